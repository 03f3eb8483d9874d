"""`tilewright.ir.compiled_program`: what `ir.compile` returns, and what it takes."""

from tilewright.runtime.entry import Entry
from tilewright.runtime.metadata import ParamInfo, extract_param_infos
from tilewright.runtime.program import CompiledProgram

__all__ = ["CompiledProgram", "Entry", "ParamInfo", "extract_param_infos"]
