"""Grids of products: native code in the machine's tiles leaves what the interpreter leaves in those of the program."""

from __future__ import annotations

from random import Random

import pytest
from property.native import check
from property.product_grids import grid, in_small_tiles

from tilewright.passes import widen


@pytest.mark.parametrize("number", range(12))
def test_products_are_the_same_in_other_tiles(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widen, "widened", in_small_tiles)
    check(grid(Random(f"grid {number}").randint), f"grid {number}")
