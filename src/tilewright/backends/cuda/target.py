"""Targets: which GPU and which Triton kernels are made for."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from tilewright.native.target import PRESETS
from tilewright.native.target import Target as Processor
from tilewright.records import record

DEFAULT = 90
"""The compute capability that kernels are made for where there is no GPU, times ten: Hopper's."""
KNOWN = (80, 86, 89, 90, 100, 120)
OLDEST_TRITON = (3, 5)
MOST_SHARED = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
"""Bytes of shared memory that a block can have, by compute capability."""


@record
class Target:
    """A GPU by its compute capability, times ten; the version of Triton; and the processor of the host functions."""

    capability: int
    triton: str
    triple: str
    cpu: str
    features: str

    @property
    def name(self) -> str:
        """The GPU as NVIDIA's tools call it."""
        return f"sm_{self.capability}"

    @property
    def processor(self) -> Processor:
        """What the host functions are made for."""
        return Processor(self.triple, self.cpu, self.features)


def shared_memory(capability: int) -> int:
    """Return how many bytes of shared memory a block can have."""
    return MOST_SHARED.get(capability, min(MOST_SHARED.values()))


def target_for(capability: int) -> Target:
    """Return a GPU as something to make code for, with host functions that run on any processor."""
    host = PRESETS["x86-64"]
    return Target(capability, triton_version(), host.triple, host.cpu, host.features)


def named(name: str) -> Target:
    """Return a GPU by its name, as in `sm_90`; ValueError for one that there is not."""
    found = re.fullmatch(r"sm_(\d+)a?", str(name).strip().lower())
    if found is None or int(found[1]) not in KNOWN:
        raise ValueError(f"no GPU is called {name!r}; one of {', '.join(f'sm_{known}' for known in KNOWN)}")
    return target_for(int(found[1]))


@cache
def triton_version() -> str:
    """Return the version of Triton that is installed, or nothing."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def triton_settings() -> str:
    """Return what the environment tells Triton, which may be to take another assembler or other options."""
    return " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("TRITON_"))


def triton_release() -> tuple[int, ...]:
    """Return the first two numbers of the version of Triton that is installed."""
    return tuple(map(int, re.findall(r"\d+", triton_version())[:2]))


def triton_objection() -> str:
    """Return why kernels cannot be compiled here, or nothing."""
    found = triton_version()
    if not found:
        return "kernels for GPUs are compiled by Triton, which is not installed (pip install triton)"
    if triton_release() < OLDEST_TRITON:
        return (
            f"kernels for GPUs are compiled by Triton {'.'.join(map(str, OLDEST_TRITON))} or newer, and {found} is here"
        )
    return ""
