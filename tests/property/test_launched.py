"""Launches of hand-written kernels in functions do what NumPy does, whatever memory their arguments share."""

from __future__ import annotations

from random import Random

import pytest
from property.launched import check_launches


@pytest.mark.parametrize("number", range(40))
def test_launches_leave_what_numpy_leaves(number: int) -> None:
    check_launches(Random(f"launches {number}").randint, f"<launches {number}>")
