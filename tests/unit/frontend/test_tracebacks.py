"""Brief tracebacks: a mistake in a call shows the line of the call; a mistake of ours shows where it is."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.frontend.tracebacks import brief


@pl.jit
def added(x: pl.Tensor[[4, 4], pl.FP32], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x + 1.0


X = np.zeros((4, 4), np.float32)
MISTAKES: dict[str, Callable[[], object]] = {
    "no argument": lambda: added(),  # pyright: ignore[reportCallIssue]
    "a list": lambda: added([1, 2], X),
    "another type": lambda: added(X.astype(np.float16), X),
    "another shape": lambda: added(np.zeros((5, 4), np.float32), X),
    "one array twice": lambda: added(X, X),
    "too many": lambda: added(X, X, 3),  # pyright: ignore[reportCallIssue]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistaken_call_shows_no_frames_of_ours_but_the_last(mistake: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        MISTAKES[mistake]()
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[-2:] == ["test_tracebacks.py", "tracebacks.py"]


def test_what_python_finds_wrong_inside_shows_where_that_is() -> None:
    def mistaken() -> int:
        return len(3)  # pyright: ignore[reportArgumentType]

    with pytest.raises(TypeError) as caught:
        brief(mistaken)()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "mistaken"
