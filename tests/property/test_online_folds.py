"""Online folds: attention in the machine's tiles leaves what the interpreter leaves in those of the program."""

from __future__ import annotations

from random import Random

import pytest
from property.online_folds import check_fold, fold


@pytest.mark.parametrize("number", range(12))
def test_attention_is_the_same_in_other_tiles(number: int) -> None:
    check_fold(fold(Random(f"fold {number}").randint), f"fold {number}")


@pytest.mark.parametrize("number", range(8))
def test_attention_is_the_same_on_matrix_tiles(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")
    check_fold(fold(Random(f"tiles {number}").randint, ("BF16",), widest=80), f"tiles {number}")


@pytest.mark.parametrize("number", range(8))
def test_attention_that_ends_with_its_rows_is_the_same_where_those_share_a_prefix(number: int) -> None:
    check_fold(fold(Random(f"prefix {number}").randint, ends_with_rows=True), f"prefix {number}")


@pytest.mark.parametrize("number", range(6))
def test_shared_prefixes_are_the_same_on_matrix_tiles(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")
    draw = Random(f"prefix on tiles {number}").randint
    check_fold(fold(draw, ("BF16",), widest=80, ends_with_rows=True), f"prefix on tiles {number}")
