"""Constants: what is known while code is written is what LLVM would compute."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest

from tilewright.native.constants import computed, held, joined
from tilewright.native.llvm import FALSE, I1, I64, TRUE, Builder, Module, Value, i64

NUMBERS = (0, 1, -1, 7, 64, 1 << 40, -(1 << 63), (1 << 63) - 1)
X = Value(I64, "%x")


@pytest.mark.parametrize("seed", range(50))
def test_numbers_wrap_as_words_do(seed: int) -> None:
    random = Random(seed)
    x, y = (random.choice((*NUMBERS, random.randrange(-(1 << 63), 1 << 63))) for _ in range(2))
    with np.errstate(over="ignore"):
        a, b = cast("Any", np.int64(x)), cast("Any", np.int64(y))
        wanted: dict[str, Any] = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b}
    assert {name: computed(name, str(x), str(y)) for name in wanted} == {n: str(v) for n, v in wanted.items()}
    assert computed("llvm.smin", str(x), str(y)) == str(min(x, y))
    assert [held(f"icmp {name}", str(x), str(y)) for name in ("slt", "eq", "sge")] == [
        str(value).lower() for value in (x < y, x == y, x >= y)
    ]


@pytest.mark.parametrize(("name", "neutral"), [("add", "0"), ("mul", "1"), ("or", "0"), ("xor", "0")])
def test_what_is_neutral_leaves_a_number_on_either_side(name: str, neutral: str) -> None:
    assert computed(name, "%x", neutral) == computed(name, neutral, "%x") == "%x"


@pytest.mark.parametrize("name", ["sub", "shl", "ashr", "lshr"])
def test_nothing_taken_from_a_number_is_not_a_number_taken_from_nothing(name: str) -> None:
    assert computed(name, "%x", "0") == "%x" and computed(name, "0", "%x") is None


@pytest.mark.parametrize("name", ["udiv", "sdiv", "urem", "llvm.umin", "shl"])
def test_what_is_not_known_runs(name: str) -> None:
    assert computed(name, "7", "3") is None and computed(name, "%x", "%y") is None


def test_conditions_are_joined_by_the_one_that_decides() -> None:
    assert joined("and", "%x", "false") == "false" and joined("or", "true", "%x") == "true"
    assert joined("and", "true", "%x") == joined("or", "%x", "false") == "%x"
    assert joined("xor", "true", "true") == "false" and joined("xor", "%x", "true") is None


def builder() -> Builder:
    return Builder(Module(), "f", [X])


def test_a_loop_of_one_turn_is_what_is_inside_it() -> None:
    b = builder()
    with b.loop(i64(3), i64(9), i64(6)) as index:
        assert b.op("add", index, i64(1)) == i64(4)
    assert b.lines == ["entry:"]


def test_a_loop_of_no_turns_is_passed_by() -> None:
    b = builder()
    with b.loop(i64(3), i64(3), i64(1)):
        b.op("add", X, X)
    assert f"br {FALSE}, label" in b.lines[1]


def test_choices_and_comparisons_of_constants_are_made_at_once() -> None:
    b = builder()
    assert b.select(b.compare("icmp slt", i64(1), i64(2)), X, i64(0)) == X
    assert b.select(FALSE, X, i64(0)) == i64(0)
    assert b.op("and", TRUE, Value(I1, "%c")) == Value(I1, "%c")
    assert b.lines == ["entry:"]
