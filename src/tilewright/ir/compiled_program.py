"""`tilewright.ir.compiled_program`: what `ir.compile` returns, and what it takes."""

from tilewright.runtime.program import CompiledProgram, ParamInfo, extract_param_infos

__all__ = ["CompiledProgram", "ParamInfo", "extract_param_infos"]
