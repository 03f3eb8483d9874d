"""Narrow matrices: rows that are taken together leave what the interpreter leaves, beside pages that trap."""

from __future__ import annotations

from random import Random

import pytest
from ops.streamed import take_for_large
from property.narrow import narrow
from property.native import check


@pytest.mark.parametrize("number", range(60))
def test_narrow_rows_are_the_same_taken_together(number: int) -> None:
    check(narrow(Random(f"narrow {number}").randint), f"narrow {number}")


@pytest.mark.parametrize("number", range(40))
def test_narrow_rows_are_the_same_written_past_the_caches(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_for_large(monkeypatch)
    check(narrow(Random(f"streamed {number}").randint), f"narrow {number}")
