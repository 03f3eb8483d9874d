"""Platforms: the names of where programs run, and what each of them stands for here."""

from __future__ import annotations

import sys
import warnings
from enum import Enum
from functools import cache

from tilewright.backends.interface import Backend, backend_names, find, serving, takes
from tilewright.native.machines import objection

DEFAULT, INTERPRETER = "cpu", "interpret"


class Unsaid(str):
    """A platform that nobody has named: programs run where their tensors are."""


NPUS = ("a2a3sim", "a2a3", "a5sim", "a5")
"""The PTO family's names, all of which stand for the processor here."""


class BackendType(Enum):
    """The PTO family's processors: a platform's name says which one it means, and none of them changes our code."""

    Ascend910B = "Ascend910B"
    Ascend950 = "Ascend950"


def platforms() -> list[str]:
    """Return where a program can run: on each back end, and on what the PTO family's names stand for."""
    return [*backend_names(), *NPUS]


def checked_platform(name: object) -> str:
    """Return a platform's name as we write it; ValueError lists the known ones."""
    spelled = name.strip().lower() if isinstance(name, str) else name
    if spelled not in platforms():
        raise ValueError(f"Invalid platform {name!r}; one of {', '.join(platforms())}")
    return sys.intern(str(spelled))  # one object each, which is what calls are told apart by


def target_of(platform: str) -> str:
    """Return the back end that really runs a platform's programs.

    The PTO family's names stand for the processor, and the interpreter for one that no native code runs on.
    """
    if platform != DEFAULT and platform not in NPUS:
        return platform
    return INTERPRETER if objection() else DEFAULT


def backend_for(platform: str) -> Backend:
    """Return what compiles and runs a platform's programs; a warning says, once, that this is no native code."""
    target = target_of(platform)
    if target == INTERPRETER != platform:
        _warn(objection())
    return find(target)


class InterpretedWarning(RuntimeWarning):
    """Kernels run on the interpreter, since there is no native code for this machine."""


@cache
def _warn(reason: str) -> None:
    message = f"{reason}: kernels run on the interpreter, which is right and slow"
    warnings.warn(message, InterpretedWarning, stacklevel=3)


def platform_for(device: str, platform: str = DEFAULT, *, is_said: bool = False) -> str:
    """Return where programs for a device's tensors run: where a caller says, or else on the back end that takes them.

    ValueError where a platform is asked for by name, and its programs do not take such tensors.
    """
    backend = backend_for(platform)
    if takes(backend, device):
        return platform
    found = serving(device) if platform == DEFAULT and not is_said else None
    if found is None:
        taken = " and ".join(backend.devices)
        raise ValueError(f"platform {platform!r} takes tensors on {taken}, and those of this call are on {device}")
    return found.name


def backend_of(platform: str) -> BackendType:
    """Return the processor that a platform's name means: our own names stand for the older one, as the default does."""
    return BackendType.Ascend950 if platform.startswith("a5") else BackendType.Ascend910B


def is_same_place(one: str, other: str) -> bool:
    """Return whether two platforms' names mean one place: ours stand for any of the PTO family's on the processor."""
    return target_of(one) == target_of(other) and (one == other or not (one in NPUS and other in NPUS))
