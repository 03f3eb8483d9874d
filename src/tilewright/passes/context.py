"""Pass contexts: what is watched and checked while passes run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from tilewright import settings
from tilewright.core.program import Program
from tilewright.records import mutable


class VerificationLevel(Enum):
    """How much is checked: nothing; the rules of the IR at the end; those and the text round trip after each pass."""

    NONE = "none"
    BASIC = "basic"
    ROUNDTRIP = "roundtrip"


class Instrument(Protocol):
    """Something told before and after each pass."""

    def before_pass(self, name: str, program: Program) -> None:
        """Called with the program a pass is about to get."""
        ...

    def after_pass(self, name: str, program: Program) -> None:
        """Called with the program a pass returned."""
        ...


@dataclass(frozen=True)
class CallbackInstrument:
    """Calls plain functions before and after each pass."""

    before: Callable[[str, Program], None] | None = None
    after: Callable[[str, Program], None] | None = None
    name: str = "callback"

    def before_pass(self, name: str, program: Program) -> None:
        """Call `before`, if there is one."""
        if self.before is not None:
            self.before(name, program)

    def after_pass(self, name: str, program: Program) -> None:
        """Call `after`, if there is one."""
        if self.after is not None:
            self.after(name, program)


@dataclass(frozen=True)
class ReportInstrument:
    """Writes how many statements each pass left, one line per pass, into a folder."""

    directory: str | Path

    def before_pass(self, name: str, program: Program) -> None:
        """Nothing to do yet."""

    def after_pass(self, name: str, program: Program) -> None:
        """Append one line to the report."""
        folder = Path(self.directory)
        folder.mkdir(parents=True, exist_ok=True)
        lines = program.as_python(concise=True).count("\n")
        with (folder / "passes.txt").open("a", encoding="utf-8") as report:
            report.write(f"{name}: {len(program.function_list)} functions, {lines} lines\n")


@mutable
class PassContext:
    """Settings for the passes run inside `with PassContext(...)`."""

    instruments: Sequence[Instrument] = ()
    verification_level: VerificationLevel = field(default_factory=lambda: VerificationLevel(settings.verify_level()))
    _tokens: list[Token[PassContext | None]] = field(
        default_factory=list[Token["PassContext | None"]], init=False, repr=False
    )

    def __enter__(self) -> PassContext:
        """Make this the current context."""
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the context before."""
        _CURRENT.reset(self._tokens.pop())

    @staticmethod
    def active() -> PassContext | None:
        """Return the innermost context, None outside of all."""
        return _CURRENT.get()

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context, or the default one."""
        return _CURRENT.get() or PassContext()


_CURRENT: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)
