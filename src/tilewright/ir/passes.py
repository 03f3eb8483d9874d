"""`tilewright.ir.passes`: what is watched and checked while passes run."""

from tilewright.passes.choices import DiagnosticCheck, DiagnosticCheckSet, DiagnosticPhase, MemoryPlanner, RuntimeKind
from tilewright.passes.context import (
    CallbackInstrument,
    Instrument,
    PassContext,
    ReportInstrument,
    VerificationInstrument,
    VerificationLevel,
)

__all__ = [
    "CallbackInstrument",
    "DiagnosticCheck",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "Instrument",
    "MemoryPlanner",
    "PassContext",
    "ReportInstrument",
    "RuntimeKind",
    "VerificationInstrument",
    "VerificationLevel",
]
