"""Settings: every environment variable the package reads, read live and typed."""

from __future__ import annotations

import os

PREFIX = "TILEWRIGHT_"


def verify_level() -> str:
    """Return `none`, `basic` or `roundtrip` from TILEWRIGHT_VERIFY_LEVEL; ValueError for anything else."""
    return _choice("VERIFY_LEVEL", "basic", ("none", "basic", "roundtrip"))


def _choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(PREFIX + name, "").strip().lower() or default
    if value not in allowed:
        raise ValueError(f"{PREFIX}{name} must be one of {', '.join(allowed)}, got {value!r}")
    return value
