"""Element grids: what goes along rows of memory leaves what the interpreter leaves, beside pages that trap."""

from __future__ import annotations

from random import Random

import pytest
from ops.streamed import take_for_large
from property.element_grids import element_grid
from property.native import check


@pytest.mark.parametrize("number", range(60))
def test_grids_of_tiles_are_the_same_along_rows(number: int) -> None:
    check(element_grid(Random(f"element grid {number}").randint), f"element grid {number}")


@pytest.mark.parametrize("number", range(20))
def test_grids_of_tiles_are_the_same_written_past_the_caches(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_for_large(monkeypatch)
    check(element_grid(Random(f"streamed {number}").randint), f"element grid {number}")
