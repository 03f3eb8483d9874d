"""Pass contexts: what is watched and checked while passes run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias

from tilewright import settings
from tilewright.core.program import Program
from tilewright.core.verify import verify
from tilewright.passes.choices import DiagnosticCheck, DiagnosticCheckSet, DiagnosticPhase, MemoryPlanner, RuntimeKind
from tilewright.records import record


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


class PassName(str):
    """A pass as callbacks are told of it."""

    __slots__ = ()

    def get_name(self) -> str:
        """Return its name, as plain text."""
        return str(self)


Callback: TypeAlias = Callable[[PassName, Program], object]


class CallbackInstrument:
    """Calls plain functions before and after each pass; `before_pass` and `after_pass` are other names for them."""

    def __init__(
        self,
        before: Callback | None = None,
        after: Callback | None = None,
        name: str = "callback",
        *,
        before_pass: Callback | None = None,
        after_pass: Callback | None = None,
    ) -> None:
        self.before = before or before_pass
        self.after = after or after_pass
        self.name = name

    def before_pass(self, name: str, program: Program) -> None:
        """Call `before`, if there is one."""
        if self.before is not None:
            self.before(PassName(name), program)

    def after_pass(self, name: str, program: Program) -> None:
        """Call `after`, if there is one."""
        if self.after is not None:
            self.after(PassName(name), program)


class VerificationInstrument:
    """Checks the rules of the IR before and after each pass."""

    def before_pass(self, name: str, program: Program) -> None:
        """Check what a pass gets."""
        verify(program, types=False)

    def after_pass(self, name: str, program: Program) -> None:
        """Check what a pass returned."""
        verify(program, types=False)


@record
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


@record
class PassContext:
    """Settings for the passes run inside `with PassContext(...)`; from `diagnostic_phase` on they are for NPUs."""

    instruments: Sequence[Instrument] = ()
    verification_level: VerificationLevel = field(default_factory=lambda: VerificationLevel(settings.verify_level()))
    diagnostic_phase: DiagnosticPhase = DiagnosticPhase.PRE_PIPELINE
    disabled_diagnostics: DiagnosticCheckSet = field(
        default_factory=lambda: DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult])
    )
    memory_planner: MemoryPlanner = MemoryPlanner.PYPTO
    enable_pypto_l0c_double_buffer: bool = False
    runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER
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

    def get_instruments(self) -> list[Instrument]:
        """Return who is told of passes."""
        return list(self.instruments)

    def get_verification_level(self) -> VerificationLevel:
        """Return how much is checked."""
        return self.verification_level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        """Return when diagnostics run."""
        return self.diagnostic_phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        """Return which of them do not."""
        return self.disabled_diagnostics

    def get_memory_planner(self) -> MemoryPlanner:
        """Return who places tiles."""
        return self.memory_planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        """Return whether accumulators are buffered twice."""
        return self.enable_pypto_l0c_double_buffer

    def get_runtime(self) -> RuntimeKind:
        """Return who builds task graphs."""
        return self.runtime

    @staticmethod
    def active() -> PassContext | None:
        """Return the innermost context, None outside of all."""
        return _CURRENT.get()

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context, or the default one."""
        return _CURRENT.get() or PassContext()


_CURRENT: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)
