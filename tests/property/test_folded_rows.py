"""Folded rows: what goes through its passes a few rows at a time leaves what the interpreter leaves."""

from __future__ import annotations

from random import Random

import pytest
from ops.streamed import take_for_large
from property.folded_rows import folded_rows
from property.native import check


@pytest.mark.parametrize("number", range(60))
def test_folded_rows_are_the_same_a_few_at_a_time(number: int) -> None:
    check(folded_rows(Random(f"folded rows {number}").randint), f"folded rows {number}")


@pytest.mark.parametrize("number", range(30))
def test_folded_rows_are_the_same_written_past_the_caches(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_for_large(monkeypatch)
    check(folded_rows(Random(f"streamed {number}").randint), f"folded rows {number}")
