"""Running programs: arguments, outputs, and the callable that `ir.compile` returns."""

from tilewright.runtime.compiler import compile as compile
from tilewright.runtime.compiler import run as run
from tilewright.runtime.program import CompiledProgram as CompiledProgram

__all__ = ["CompiledProgram", "compile", "run"]
