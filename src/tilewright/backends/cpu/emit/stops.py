"""Stops: how a function notes errors, counts its work, and is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tilewright.backends.cpu.emit.polls import Polls, is_over
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.forks import computed_once
from tilewright.named_tuples import NamedTuple
from tilewright.native.context import NUMBERS, Context
from tilewright.native.llvm import I1, I64, PTR, TRUE, Builder, Value, i64
from tilewright.source import Span


class Spanned(Protocol):
    """Something with a place in the source."""

    @property
    def span(self) -> Span:
        """Where it was written."""
        ...


class Exact(NamedTuple):
    """An error's message with places for numbers, and what emits those where it is noted."""

    text: str
    numbers: Callable[[], Sequence[Value]]


class Stopping:
    """Code that can fail: what it is written with, and where a return goes."""

    def __init__(self, program: Unit, b: Builder, at: Spanned) -> None:
        self.program = program
        self.b = b
        self.context = Value(PTR, "%context")
        self.exit = b.label("exit")
        """The block a return goes to."""
        self.at = at
        self.name = ""
        """The function that errors are said to be in, where its author gave it a name."""

    @property
    def at(self) -> Spanned:
        """What is being emitted."""
        return self._at

    @at.setter
    def at(self, at: Spanned) -> None:
        self._at = at
        self.b.place_at(at.span)

    @property
    def checked(self) -> bool:
        """Whether the running program checks itself; where it does not, what would fail has no meaning."""
        return self.program.checked

    def negated(self, condition: Value) -> Value:
        """Return the opposite of a condition."""
        return self.b.op("xor", condition, TRUE)

    def fail(self, condition: Value, message: str, at: Spanned, exact: Exact | None = None) -> None:
        """Note an error where a condition holds; the first one noted is reported when the program ends.

        Whoever notes it writes the numbers of its exact message, too.
        """
        if not self.checked:
            return
        b, text = self.b, exact.text if exact is not None else ""
        number = i64(self.program.note(message, at.span, self.name, text))
        with b.when(condition):
            cell = b.offset(self.context, i64(Context.ERROR), I64)
            noted = b.value("{ i64, i1 }", f"cmpxchg {cell}, i64 0, {number} monotonic monotonic")
            if exact is not None:
                with b.when(b.value(I1, f"extractvalue {noted}, 1")):
                    for word, value in zip(NUMBERS, exact.numbers(), strict=False):
                        b.store(value, b.offset(self.context, i64(word), I64), 8)

    def stop(self, condition: Value, message: str, at: Spanned, exact: Exact | None = None) -> None:
        """Note an error where a condition holds, and leave the function: what follows must not happen."""
        with self.b.when(condition):
            self.fail(TRUE, message, at, exact)
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
