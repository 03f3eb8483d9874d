"""Native code: random programs leave what the interpreter leaves, as accurately as their ops declare."""

from __future__ import annotations

from random import Random
from zlib import crc32

import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st
from property.native import check
from property.programs import program, programs
from property.running import QUICK, THOROUGH
from property.ways import LEFT_OUT, covered

from tilewright.core.op import OPS

PROGRAMS = 2000
"""How many programs every run of the tests tries, spread evenly over the ops."""

BUDGET = 20
"""About how many statements a program has: on one core, all of them take four minutes."""

PER_OP = -(-PROGRAMS // len(covered()))


def test_every_op_takes_part_or_is_left_out_for_a_reason() -> None:
    assert sorted([*covered(), *LEFT_OUT]) == sorted(OPS)


@pytest.mark.parametrize("op", covered())
def test_programs_with_an_op_do_natively_what_the_interpreter_does(op: str) -> None:
    found: list[bool] = []

    @seed(crc32(op.encode()))
    @settings(QUICK, max_examples=PER_OP)
    @given(st.integers(1, 1 << 64))
    def every(number: int) -> None:
        text = program(Random(number).randint, BUDGET, about=op)
        note(text)
        found.append(op in check(text))

    every()
    assert len(found) == PER_OP
    assert sum(found) >= PER_OP // 2, f"only {sum(found)} of {PER_OP} programs have {op} in them"


@pytest.mark.long
@settings(THOROUGH)
@given(text=programs(budget=80))
def test_large_programs_do_natively_what_the_interpreter_does(text: str) -> None:
    check(text)
