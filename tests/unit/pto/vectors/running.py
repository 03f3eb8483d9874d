"""Running: the kernels of this folder, by name, on a target."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy

from tilewright import ir
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse

np = cast("Any", numpy)
Array = Any

KERNELS = Path(__file__).parent / "kernels"


@cache
def compiled(name: str, platform: str) -> Any:
    """Return the kernel of a file, ready to be called with a grid and its arguments."""
    path = KERNELS / f"{name}.pto"
    module = parse(path.read_text(), str(path))
    func = next(func for func in module.funcs() if func.name == name)
    return ir.compile(lower(module, func, target="a5"), platform=platform)


def run(name: str, platform: str, *arguments: Any, grid: int = 1) -> None:
    """Run a kernel; its buffers change in place."""
    compiled(name, platform)(grid, *arguments)


def built(text: str, platform: str = "cpu", arch: str = "a5") -> Any:
    """Return the first function of a text, ready to be called."""
    module = parse(text, "k.pto")
    return ir.compile(lower(module, next(module.funcs()), target=arch), platform=platform)


def numbers(seed: int, *shape: int, low: float = -4, high: float = 4) -> Array:
    """Return random fp32 numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(seed: int, count: int, dtype: Any, low: int | None = None, high: int | None = None) -> Array:
    """Return random integers, of the whole range of their type unless told."""
    info = np.iinfo(dtype)
    start, stop = info.min if low is None else low, info.max if high is None else high
    return np.random.default_rng(seed).integers(start, stop, count, dtype, endpoint=True)


def lanes(count: int, pattern: str) -> Array:
    """Return which lanes a pattern sets."""
    at = np.arange(count)
    if pattern.startswith("VL"):
        return at < int(pattern[2:])
    shares = {"ALL": count, "ALLF": 0, "H": count // 2, "Q": count // 4}
    return at < shares[pattern] if pattern in shares else at % int(pattern[1:]) == 0


def image(on: Array, bits: int) -> Array:
    """Return a mask as the machine stores it: 32 bytes, a lane's bit at its first byte."""
    flags = np.zeros(256, np.uint8)
    flags[:: bits // 8] = on
    return np.packbits(flags, bitorder="little")
