"""Native code: random programs leave what the interpreter leaves, as accurately as their ops declare.

Every op has programs about it and seven others, so that each takes part natively in all its surroundings however rarely
random statements would have met. What is drawn is one number per program: such programs are quick to make and differ
widely, but cannot be made smaller. `make fuzz` tries more of them, about one op each.
"""

from __future__ import annotations

from random import Random
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, note, reject, seed, settings
from hypothesis import strategies as st
from property.axis_ways import derived_in
from property.native import check, check_errors
from property.programs import program
from property.running import QUICK
from property.ways import LEFT_OUT, covered

from tilewright.core.op import OPS
from tilewright.errors import ExecutionError, KernelError

PER_OP = 5
"""How many programs are about each op."""

BUDGET = 20
"""About how many statements a program has, besides those about its ops."""

TOGETHER = 8
"""How many ops a program is about: most of what one costs is not the op that it is about."""

APART = -(-len(covered()) // TOGETHER)
GROUPS = [covered()[start::APART] for start in range(APART)]
"""Ops that share programs, far from each other in the registry."""

numbers = st.integers(1, 1 << 64)


def test_every_op_takes_part_or_is_left_out_for_a_reason() -> None:
    missing = [name for name in OPS if name not in covered() and name not in LEFT_OUT]
    assert not missing, f"give {', '.join(missing)} a way into random programs in tests/property/ways.py, or a reason"
    assert sorted([*covered(), *LEFT_OUT]) == sorted(OPS)


@pytest.mark.parametrize("ops", GROUPS, ids=" ".join)
def test_programs_with_an_op_do_natively_what_the_interpreter_does(ops: list[str]) -> None:
    uses: list[frozenset[str]] = []

    @seed(crc32(" ".join(ops).encode()))
    @settings(QUICK, max_examples=PER_OP)
    @given(numbers)
    def every(number: int) -> None:
        text, origin = seeded(f"{number}", BUDGET, about=ops)
        uses.append(check(text, origin) | derived_in(text))

    every()
    assert len(uses) == PER_OP
    for op in ops:
        found = sum(op in used for used in uses)
        assert found >= PER_OP // 2, f"only {found} of {PER_OP} programs have {op} in them"


@pytest.mark.parametrize("shard", range(2))
def test_programs_that_index_anywhere_are_refused_as_the_interpreter_refuses_them(shard: int) -> None:
    refused: list[bool] = []

    @seed(shard)
    @settings(QUICK, max_examples=40)
    @given(numbers)
    def every(number: int) -> None:
        refused.append(check_risky(*seeded(f"{shard} {number}", BUDGET, risk=20)))

    every()
    assert len(refused) == 40 and sum(refused) >= 7


def seeded(seed: str, budget: int, **options: Any) -> tuple[str, str]:
    """Return a program that one seed leads to, and how to make it again."""
    text = program(Random(seed).randint, budget, **options)
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    origin = f"program(Random({seed!r}).randint, {budget}{given})"
    note(f"{origin}:\n{text}")
    return text, origin


def check_risky(text: str, origin: str = "a program") -> bool:
    """Check a program that may be wrong; one that already the compiler refuses tells nothing."""
    try:
        return check_errors(text, origin)
    except ExecutionError:
        raise
    except KernelError:
        reject()
