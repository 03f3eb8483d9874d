"""Contenders: ways to have the same work done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import torch
from contest import Missing, Run

from tilewright import ir
from tilewright.core.program import Program


def ours(program: Program, *inputs: torch.Tensor, out: torch.Tensor) -> Run:
    """Return a run of `program`, compiled for this processor, that writes `out`."""
    compiled = ir.compile(program, platform="cpu")

    def run() -> torch.Tensor:
        compiled(*inputs, out)
        return out

    return run


def inductor(work: Callable[..., torch.Tensor], *args: torch.Tensor) -> Run | Missing:
    """Return a run of what torch.compile makes of `work`, for the threads torch has now."""
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        return Missing("no C++ compiler")
    torch.compiler.reset()
    compiled = torch.compile(work)
    return lambda: compiled(*args)
