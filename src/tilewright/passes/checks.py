"""Checks: what must hold after every pass."""

from __future__ import annotations

from tilewright.core.program import Program
from tilewright.passes.context import VerificationLevel


def check(program: Program, after: str, level: VerificationLevel) -> None:
    """Raise InternalError when a pass has broken the program."""
