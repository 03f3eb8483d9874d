"""Scalars: `arith` on one bit and on unsigned numbers, at the ends of what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.tiles.running import read, run

from tilewright.errors import ExecutionError

STORED: dict[str, Any] = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "ui64": np.uint64}


def computed(target: str, op: str, type_: str, result: str, *operands: Any) -> int:
    """Return what an op makes of some operands on a target."""
    names = [f"%v{i}" for i in range(len(operands))]
    parameters = ", ".join(f"{name}: {type_}" for name in names)
    form = f"{type_} to {result}" if len(names) == 1 else type_
    kept = "i8" if result == "i1" else result
    widened = "%s = arith.extui %r : i1 to i8" if result == "i1" else ""
    module = read(f"""module {{ func.func @k(%out: !pto.ptr<{kept}>, {parameters}) {{
      %c0 = arith.constant 0 : index
      %r = arith.{op} {", ".join(names)} : {form}
      {widened}
      pto.store {"%s" if widened else "%r"}, %out[%c0] : !pto.ptr<{kept}>, {kept}
      return
    }} }}""")
    return int(run(module, "k", target, 1, [np.zeros(1, STORED[kept]), *operands])[0][0])


@pytest.mark.parametrize(
    ("op", "table"),
    [
        ("addi", "0110"),
        ("muli", "0001"),
        ("maxsi", "0001"),
        ("minsi", "0111"),
        ("maxui", "0111"),
        ("minui", "0001"),
        ("andi", "0001"),
        ("xori", "0110"),
    ],
)
def test_one_bit_has_a_table(target: str, op: str, table: str) -> None:
    pairs = [(False, False), (False, True), (True, False), (True, True)]
    assert "".join(str(computed(target, op, "i1", "i1", *pair)) for pair in pairs) == table


@pytest.mark.parametrize("op", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"])
def test_one_bit_is_divided_by_one_bit(target: str, op: str) -> None:
    assert [computed(target, op, "i1", "i1", x, True) for x in (False, True)] == [0, int(not op.startswith("rem"))]
    with pytest.raises(ExecutionError, match="division by zero"):
        computed(target, op, "i1", "i1", True, False)


@pytest.mark.parametrize("op", ["shli", "shrsi", "shrui"])
def test_one_bit_that_is_not_shifted_stays(target: str, op: str) -> None:
    assert [computed(target, op, "i1", "i1", x, False) for x in (False, True)] == [0, 1]


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "quotient"),
    [
        ("ceildivui", -7, 2, (1 << 63) - 3),
        ("ceildivui", -1, -1, 1),
        ("ceildivui", 0, 5, 0),
        ("ceildivsi", -(1 << 63), 3, -((1 << 63) // 3)),
        ("ceildivsi", -(1 << 63), -(1 << 63), 1),
        ("ceildivsi", 7, 2, 4),
        ("ceildivsi", -7, 2, -3),
    ],
)
def test_quotients_are_rounded_up_over_the_whole_range(target: str, op: str, lhs: int, rhs: int, quotient: int) -> None:
    assert computed(target, op, "i64", "i64", lhs, rhs) == quotient


def test_the_largest_unsigned_quotient_is_rounded_up(target: str) -> None:
    assert computed(target, "ceildivui", "ui64", "ui64", (1 << 64) - 1, 2) == 1 << 63


@pytest.mark.parametrize(("result", "value"), [("i32", 3e9), ("i8", 200.0), ("i32", 7.9)])
def test_floats_become_unsigned_numbers_of_all_their_bits(target: str, result: str, value: float) -> None:
    bits = 8 * np.dtype(STORED[result]).itemsize
    assert computed(target, "fptoui", "f32", result, value) % (1 << bits) == int(value)
