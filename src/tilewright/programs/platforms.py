"""Platforms: the names of where programs run, and what each of them stands for here."""

from __future__ import annotations

from enum import Enum

from tilewright.backends.interface import Backend, find

DEFAULT, INTERPRETER = "cpu", "interpret"
PLATFORMS = (DEFAULT, INTERPRETER, "a2a3sim", "a2a3", "a5sim", "a5")
"""Where a program can run: the interpreter, or the processor, which is also what the PTO family's names stand for."""

CHECKED = "checked"
"""The back end of programs on the interpreter that are checked while they run."""

OURS = PLATFORMS[:2]
"""The names that say nothing about an NPU."""


class BackendType(Enum):
    """The PTO family's processors: a platform's name says which one it means, and none of them changes our code."""

    Ascend910B = "Ascend910B"
    Ascend950 = "Ascend950"


def checked_platform(name: object) -> str:
    """Return a platform's name as we write it; ValueError lists the known ones."""
    spelled = name.strip().lower() if isinstance(name, str) else name
    if spelled not in PLATFORMS:
        raise ValueError(f"unknown platform {name!r}; one of {', '.join(PLATFORMS)}")
    return str(spelled)


def target_of(platform: str) -> str:
    """Return the back end that really runs a platform's programs: the PTO family's names stand for the processor."""
    return platform if platform in OURS else DEFAULT


def backend_for(platform: str) -> Backend:
    """Return what compiles and runs a platform's programs."""
    return find(target_of(platform))


def backend_of(platform: str) -> BackendType:
    """Return the processor that a platform's name means: our own names stand for the older one, as the default does."""
    return BackendType.Ascend950 if platform.startswith("a5") else BackendType.Ascend910B
