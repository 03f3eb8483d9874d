"""Matrix units: whether a processor has AMX, and whether this process may and does use it.

Linux keeps the tiles of AMX from processes that have not asked for them: https://docs.kernel.org/arch/x86/xstate.html.
Code uses them where the processor has them, the kernel grants them, a trial has gone well and nobody has switched them
off; a process asks when the first program is loaded that needs them.
"""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import replace
from functools import cache

from tilewright import settings
from tilewright.native.libraries import library
from tilewright.native.target import Target, cpu_flags, fingerprint, host, normalized

_ARCH_PRCTL, _GET_SUPPORTED, _GET_PERMITTED, _ASK, _TILE_DATA = 158, 0x1021, 0x1022, 0x1023, 18
_FEATURES = ("amx-tile", "amx-bf16", "amx-int8")
"""What products use, all of it or nothing, as LLVM calls it."""


def amx() -> tuple[str, ...]:
    """Return which kinds of AMX the processor has, nothing where it has none."""
    return tuple(sorted(f"amx_{flag.removeprefix('amx')}" for flag in cpu_flags() if flag.startswith("amx")))


def is_permitted() -> bool:
    """Return whether this process has asked for AMX's tiles, and got them."""
    return _answers(_GET_PERMITTED)


def objection() -> str:
    """Return why no code here uses AMX, nothing where it does."""
    if settings.amx() != "on":
        return f"TILEWRIGHT_AMX is {settings.amx()}"
    return _objection()


@cache
def _objection() -> str:
    if not {feature.replace("-", "_") for feature in _FEATURES} <= {*amx()}:
        return "this processor has no AMX"
    if not _answers(_GET_SUPPORTED):
        return "this kernel does not let processes use AMX"
    from tilewright.native import tile_trials  # which only processors with AMX need

    return "" if tile_trials.passed() else "AMX does not work here: a trial of it failed"


def refusal() -> str:
    """Ask for AMX's tiles, for all threads of this process; return what the kernel says against it."""
    if is_permitted() or not library(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA):
        return ""
    return f"this process may not use it: {os.strerror(ctypes.get_errno())}"


@cache
def _host_with_amx() -> Target:
    target = host()
    features = {each[1:]: each[0] == "+" for each in target.features.split(",")}
    return replace(target, features=normalized({**features, **dict.fromkeys(_FEATURES, True)}))


def own_target() -> Target:
    """Return the processor this process runs on, with AMX where it is used; loads LLVM."""
    return host() if objection() else _host_with_amx()


def own_fingerprint() -> str:
    """Return a text that changes whenever `own_target()` may, without loading LLVM."""
    return fingerprint() if objection() else f"{fingerprint()} AMX"


def _on_linux() -> bool:
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def _answers(question: int) -> bool:
    """Return whether the kernel names the tiles where it is asked which features there are."""
    mask = ctypes.c_uint64()
    failed = not _on_linux() or library(None).syscall(_ARCH_PRCTL, question, ctypes.byref(mask))
    return not failed and bool(mask.value >> _TILE_DATA & 1)
