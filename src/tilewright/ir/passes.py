"""`tilewright.ir.passes`: what is watched and checked while passes run."""

from tilewright.passes.context import (
    CallbackInstrument,
    Instrument,
    PassContext,
    ReportInstrument,
    VerificationLevel,
)

__all__ = ["CallbackInstrument", "Instrument", "PassContext", "ReportInstrument", "VerificationLevel"]
