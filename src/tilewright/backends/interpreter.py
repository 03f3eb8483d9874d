"""The interpreter as a back end: a program is run by what each of its ops means, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeAlias

from tilewright.backends.interface import Backend, Code, Timed
from tilewright.core.program import Program
from tilewright.interpret.checked import run_checked
from tilewright.interpret.evaluator import Value
from tilewright.interpret.machine import Machine
from tilewright.records import record

Run: TypeAlias = Callable[[str, Sequence[Value]], "tuple[Value, ...]"]


@record
class Interpreted(Code):
    """The program itself, which stands for its code."""

    program: Program
    is_checked: bool
    """Whether turns that race are reported, at several times the price."""


class Interpreter(Backend):
    """Programs as they are, computed by NumPy; what its options say is whether they are checked."""

    name = "interpret"

    def options(self, *, is_checked: bool = False) -> bool:
        """Return whether programs are checked."""
        return is_checked

    def compile(
        self,
        program: Program,
        entries: Sequence[str] | None = None,
        target: Any = None,
        options: bool | None = None,
        timed: Timed = nullcontext,
    ) -> Interpreted:
        """Return the program in place of its code."""
        return Interpreted(self, target, {}, {}, (), {}, program, bool(options))

    def load(self, program: Program, code: Code) -> Interpretation:
        """Return what runs a program."""
        assert isinstance(code, Interpreted)
        run = partial(run_checked, code.program) if code.is_checked else Machine(code.program).run
        return Interpretation(code, run)


class Interpretation:
    """A program that the interpreter runs."""

    def __init__(self, code: Code, run: Run) -> None:
        self.code, self.run = code, run

    def address(self, name: str) -> None:
        """Return nothing: Python stands for the host function."""


BACKEND = Interpreter()
