"""Undefined elements in random kernels: native code refuses what the interpreter refuses, and computes the rest."""

from __future__ import annotations

import pytest
from property.undefined import check

CHUNK = 20


@pytest.mark.parametrize("first", range(0, 120, CHUNK))
def test_native_code_looks_at_undefined_elements_no_more_than_the_interpreter(first: int) -> None:
    for seed in range(first, first + CHUNK):
        check(seed)


def test_random_kernels_end_in_every_way() -> None:
    ends = {end for seed in range(60) for end in check(seed).split()}
    assert ends == {"same", "error", "refused"}
