"""How the files of the gallery show themselves: checked against torch, then timed beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import torch

ROUNDS = 7


def show(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], rtol: float = 1e-4, atol: float = 1e-4) -> None:
    """Print one line: how far a kernel is from torch, and how fast beside it, one call of each in turn."""
    error = max(_checked(a, b, rtol, atol) for a, b in zip(_several(ours()), _several(theirs()), strict=True))
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    mine, other = (median(side) for side in zip(*times, strict=True))
    print(f"{name}: {1e3 * mine:.2f} ms, {other / mine:.2f}x torch, max error {error:.1e}")


def _several(result: Any) -> Sequence[torch.Tensor]:
    return result if isinstance(result, tuple) else (result,)


def _checked(got: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> float:
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
    return float((got.double() - expected.double()).abs().max())


def _seconds(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start
