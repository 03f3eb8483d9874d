"""Templates: kernels as functions of the tile IR that others write out where they launch them."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.core.program import Function, Program
from tilewright.passes.aliases import Footprints


def template_of(program: Program) -> Program:
    """Return a kernel's program with an entry that is written out, and says what it writes."""
    *others, entry = program.function_list
    writes = Footprints(program)[entry.name].writes
    return program.with_functions([*others, _written_out(entry, [n in writes for n in range(len(entry.params))])])


def _written_out(entry: Function, written: list[bool]) -> Function:
    pairs = zip(entry.param_directions, written, strict=True)
    directions = tuple(direction if is_written else ParamDirection.In for direction, is_written in pairs)
    return replace(entry, func_type=FunctionType.Inline, param_directions=directions)
