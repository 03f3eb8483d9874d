"""Stops: how a function notes errors, counts its work, and is left."""

from __future__ import annotations

from typing import Protocol

from tilewright.backends.cpu.emit.polls import Polls, is_over
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.forks import computed_once
from tilewright.native.context import Context
from tilewright.native.llvm import I64, PTR, TRUE, Builder, Value, i64
from tilewright.source import Span


class Spanned(Protocol):
    """Something with a place in the source."""

    @property
    def span(self) -> Span:
        """Where it was written."""
        ...


class Stopping:
    """Code that can fail: what it is written with, and where a return goes."""

    def __init__(self, program: Unit, b: Builder, at: Spanned) -> None:
        self.program = program
        self.b = b
        self.context = Value(PTR, "%context")
        self.exit = b.label("exit")
        """The block a return goes to."""
        self.at = at
        """What is being emitted."""

    @property
    def checked(self) -> bool:
        """Whether the running program checks itself; where it does not, what would fail has no meaning."""
        return self.program.checked

    def negated(self, condition: Value) -> Value:
        """Return the opposite of a condition."""
        return self.b.op("xor", condition, TRUE)

    def fail(self, condition: Value, message: str, at: Spanned, index: Value | None = None) -> None:
        """Note an error where a condition holds; the first one noted is reported when the program ends.

        Its message may name an index, of which it keeps 32 bits.
        """
        if not self.checked:
            return
        number = i64(self.program.note(message, at.span))
        with self.b.when(condition):
            cell = self.b.offset(self.context, i64(Context.ERROR), I64)
            if index is not None:
                number = self.b.op("or", self.b.op("shl", index, i64(32)), number)
            self.b.do(f"cmpxchg {cell}, i64 0, {number} monotonic monotonic")

    def stop(self, condition: Value, message: str, at: Spanned, index: Value | None = None) -> None:
        """Note an error where a condition holds, and leave the function: what follows must not happen."""
        with self.b.when(condition):
            self.fail(TRUE, message, at, index)
            self.leave(self.exit)

    def leave(self, label: str) -> None:
        """Emit a jump; what follows it is never reached."""
        self.b.do(f"br label %{label}")
        self.b.begin(self.b.label("unreached"))

    def leave_after_an_error(self) -> None:
        """Emit a return where an error has been noted: what should have been made may not be there."""
        with self.b.when(is_over(self.b, self.context)):
            self.leave(self.exit)

    def worked(self, units: int) -> None:
        """Count work; now and then that leaves a program that failed or was interrupted."""
        if self.program.polled:
            self._polls.count(units)

    @computed_once
    def _polls(self) -> Polls:
        return Polls(self.b, self.context, self.exit)
