"""Checks: what must hold after a pass."""

from __future__ import annotations

from tilewright.core.equality import assert_structural_equal
from tilewright.core.program import Program
from tilewright.core.verify import verify
from tilewright.errors import InternalError, KernelError
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import parse


def check_rules(program: Program, after: str, *, ssa: bool, types: bool) -> None:
    """Raise InternalError, with the program at hand, when a pass has broken a rule of the IR."""
    try:
        verify(program, ssa=ssa, types=types)
    except KernelError as error:
        raise InternalError(f"{after} left a broken program: {error}\n{program}") from error


def check_text(program: Program, after: str) -> None:
    """Raise InternalError when a program's text does not read back as an equal program."""
    text = str(program)
    try:
        assert_structural_equal(as_program(parse(text, {}, f"<after {after}>")), program)
    except (KernelError, ValueError) as error:
        raise InternalError(f"{after} left a program whose text reads back differently: {error}\n{text}") from error
