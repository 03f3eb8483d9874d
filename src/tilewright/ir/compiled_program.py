"""`tilewright.ir.compiled_program`: what `ir.compile` returns, and what it takes."""

from tilewright.programs.entry import Entry
from tilewright.programs.metadata import ParamInfo, extract_param_infos
from tilewright.programs.program import CompiledProgram

__all__ = ["CompiledProgram", "Entry", "ParamInfo", "extract_param_infos"]
