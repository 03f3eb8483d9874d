"""The natural kernels' work in C: `natural.cpp`, compiled for this processor, on threads of torch's OpenMP."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

Run = Callable[[], Any]
SOURCE = Path(__file__).with_name("natural.cpp")
STREAMED = 4 << 20
"""Bytes from which on a result is written past the caches."""


class _Work(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.c_void_p * 3),
        ("out", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("m", "n", "threads", "streams")),
    )


class InC:
    """The compiled functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    @classmethod
    def compiled(cls, folder: str) -> InC | None:
        """Return the functions, compiled in a folder; None, having said so, where that cannot be."""
        if shutil.which("g++") is None or "avx512bw" not in Path("/proc/cpuinfo").read_text():
            print("no C: that takes g++ and AVX-512")
            return None
        found = re.search(r"/\S*libgomp\S*\.so\S*", Path("/proc/self/maps").read_text())
        if found is not None:  # a second OpenMP would have threads of its own, which wait busily beside those
            ctypes.CDLL(found[0], ctypes.RTLD_GLOBAL)
        flags = ["-O3", "-march=native", "-ffast-math", "-fno-exceptions", "-fPIC", "-fopenmp"]
        subprocess.run(["g++", *flags, "-c", "-o", f"{folder}/natural.o", str(SOURCE)], check=True)
        linked = ["-shared", "-o", f"{folder}/natural.so", f"{folder}/natural.o", "-lm"]
        subprocess.run(["g++", *linked, *(["-fopenmp"] if found is None else [])], check=True)
        return cls(ctypes.CDLL(f"{folder}/natural.so"))

    def run(self, name: str, inputs: Sequence[torch.Tensor], out: torch.Tensor, threads: int) -> Run:
        """Return the work of a kernel on a matrix."""
        m, n = inputs[0].shape
        return self._call(name, inputs, torch.zeros_like(out), (m, n), threads)

    def copy(self, nin: int, nout: int, threads: int) -> Run:
        """Return a copy of so many bytes to so many."""
        come = torch.rand(nin // 4 + 2048).view(torch.uint8)  # a Zen 5 streams lines of zeros twice as fast as others
        return self._call("copy", [come], torch.ones(nout + 64, dtype=torch.uint8), (nin, nout), threads)

    def _call(
        self, name: str, inputs: Sequence[torch.Tensor], out: torch.Tensor, extents: tuple[int, int], threads: int
    ) -> Run:
        size = out.numel() * out.element_size()
        result = out.view(torch.uint8).flatten()[-out.data_ptr() % 64 :] if name == "copy" else out
        pointers = (ctypes.c_void_p * 3)(*(each.data_ptr() for each in inputs))
        work = _Work(pointers, result.data_ptr(), *extents, threads, size >= STREAMED)
        function, kept = getattr(self.library, name), (inputs, out)

        def run() -> torch.Tensor:
            function(ctypes.byref(work))
            return kept[1]

        return run
