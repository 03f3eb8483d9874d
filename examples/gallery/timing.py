"""How the files of the gallery show themselves: checked against torch, then timed beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import torch

ROUNDS = 7


def show(
    name: str,
    kernel: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: tuple[torch.Tensor, ...] = (),
    rtol: float = 1e-4,
    atol: float = 1e-4,
    beside: Callable[..., Any] | None = None,
) -> float:
    """Print one line: how far a kernel is from its reference, and how fast beside it or another of torch's functions.

    Return how many times as fast it is.
    """

    def ours() -> Any:
        return kernel(*inputs, *outputs)

    def theirs() -> Any:
        return (beside or reference)(*inputs)

    expected = _several(reference(*inputs))
    returned = ours()  # nothing where the outputs were given
    pairs = zip(outputs or _several(returned), expected, strict=True)
    error = max(_checked(*pair, rtol, atol) for pair in pairs)
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    mine, other = (median(side) for side in zip(*times, strict=True))
    print(f"{name}: {1e3 * mine:.2f} ms, {other / mine:.2f}x torch, max error {error:.1e}")
    return other / mine


def _several(result: Any) -> Sequence[torch.Tensor]:
    return result if isinstance(result, tuple) else (result,)


def _checked(got: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> float:
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
    return float((got.double() - expected.double()).abs().max())


def _seconds(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start
