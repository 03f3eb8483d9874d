"""Settings: every environment variable the package reads, read live and typed."""

from __future__ import annotations

import os
import sys

PREFIX = "TILEWRIGHT_"


def verify_level() -> str:
    """Return `none`, `basic` or `roundtrip` from TILEWRIGHT_VERIFY_LEVEL; ValueError for anything else."""
    return _choice("VERIFY_LEVEL", "basic", ("none", "basic", "roundtrip"))


def checked() -> bool:
    """Return whether native code checks what only the running program knows, from TILEWRIGHT_CHECKED: on unless off."""
    return _choice("CHECKED", "on", ("on", "off", "1", "0")) in ("on", "1")


def num_threads() -> int:
    """Return TILEWRIGHT_NUM_THREADS, or torch's thread count once torch is imported, or the processors we may use."""
    text = os.environ.get(PREFIX + "NUM_THREADS", "").strip()
    if not text:
        count = getattr(sys.modules.get("torch"), "get_num_threads", None)
        return int(count()) if count is not None else _processors()
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{PREFIX}NUM_THREADS must be a positive number, got {text!r}")
    return int(text)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(PREFIX + name, "").strip().lower() or default
    if value not in allowed:
        raise ValueError(f"{PREFIX}{name} must be one of {', '.join(allowed)}, got {value!r}")
    return value
