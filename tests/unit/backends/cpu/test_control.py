"""Control flow in native code: loops, branches, exits, and what they carry."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import floats, kernel, native

OUT = "out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]"
X = "x: pl.Tensor[[8, 16], pl.FP32]"


def zeros() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.zeros((8, 16), np.float32)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 8, 1), (0, 8, 3), (7, -1, -1), (7, 0, -3), (5, 5, 1), (5, 2, 1), (2, 5, -1), (0, 1, 1 << 62), (-4, 4, 2)],
)
def test_loops_count_as_range_does(start: int, stop: int, step: int) -> None:
    params = (
        "a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INDEX], c: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[2], pl.INT64]]"
    )
    counted = kernel(
        params,
        "n = pl.const(0, pl.INT64)",
        "total = 0",
        "for i in pl.range(a, b, c):",
        "    n = n + 1",
        "    total = total * 3 + i",
        "pl.write(out, [0], n)",
        "pl.write(out, [1], total)",
    )
    counted.check(start, stop, step, np.zeros(2, np.int64))


def test_a_loop_to_the_last_number_ends() -> None:
    last = (1 << 63) - 1
    counted = kernel(
        "a: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[1], pl.INT64]]",
        "n = pl.const(0, pl.INT64)",
        "for i in pl.range(a, 9223372036854775807, 5):",
        "    n = n + 1",
        "pl.write(out, [0], n)",
    )
    counted.check(last - 7, np.zeros(1, np.int64))


def test_a_step_of_zero_is_an_error_where_the_loop_is() -> None:
    looping = kernel(
        f"step: pl.Scalar[pl.INDEX], {OUT}",
        "for i in pl.range(0, 8, step):",
        "    pl.write(out, [i, 0], 1.0)",
    )
    error = looping.fails("step cannot be zero", 0, zeros())
    assert error.spans[0].line == 9
    looping.check(3, zeros())


@pytest.mark.parametrize("limit", [0, 3, 8, 100])
def test_break_and_continue_hand_on_what_they_carry(limit: int) -> None:
    adding = kernel(
        f"{X}, limit: pl.Scalar[pl.INDEX], {OUT}",
        "acc = pl.tile.full([1, 16], dtype=pl.FP32, value=0.0)",
        "n = 0",
        "for i in pl.range(8):",
        "    if i == limit:",
        "        break",
        "    n = n + i",
        "    if i == 2:",
        "        acc = pl.mul(acc, 2.0)",
        "        continue",
        "    acc = pl.add(acc, pl.load(x, [i, 0], [1, 16]))",
        "out = pl.store(acc, [0, 0], out)",
        "pl.write(out, [1, 0], pl.cast(n, pl.FP32))",
    )
    adding.check(floats(8, 16), limit, zeros())


@pytest.mark.parametrize("start", [0, 1, 7, 27])
def test_while_loops_run_until_their_condition_fails(start: int) -> None:
    collatz = kernel(
        "start: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor[[2], pl.INT64]]",
        "n = start",
        "steps = pl.const(0, pl.INT64)",
        "while n > 1:",
        "    if n % 2 == 0:",
        "        n = n // 2",
        "    else:",
        "        n = 3 * n + 1",
        "    steps = steps + 1",
        "    if steps > 50:",
        "        break",
        "pl.write(out, [0], n)",
        "pl.write(out, [1], steps)",
    )
    collatz.check(start, np.zeros(2, np.int64))


def test_a_while_loop_ends_once_an_error_is_noted() -> None:
    waiting = kernel(
        "flags: pl.Tensor[[4], pl.INT32], at: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[1], pl.INT32]]",
        "seen = pl.read(flags, [0])",
        "while seen == 0:",
        "    seen = pl.read(flags, [at])",
        "pl.write(out, [0], seen)",
    )
    waiting.fails("index 4 lies outside 0 to 4", np.zeros(4, np.int32), 4, np.zeros(1, np.int32))


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_carried_tiles_trade_places(turns: int) -> None:
    trading = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], {OUT}",
        "a = pl.load(x, [0, 0], [2, 16])",
        "b = pl.load(x, [2, 0], [2, 16])",
        "c = pl.load(x, [4, 0], [2, 16])",
        "for i in pl.range(turns):",
        "    kept = a",
        "    a = b",
        "    b = c",
        "    c = kept",
        "out = pl.store(a, [0, 0], out)",
        "out = pl.store(b, [2, 0], out)",
        "out = pl.store(c, [4, 0], out)",
    )
    trading.check(floats(8, 16), turns, zeros())


def test_a_loop_inside_works_where_the_one_around_carries() -> None:
    summing = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], {OUT}",
        "a = pl.load(x, [0, 0], [2, 16])",
        "b = pl.load(x, [2, 0], [2, 16])",
        "for i in pl.range(turns):",
        "    for j in pl.range(turns):",
        "        for k in pl.range(turns):",
        "            a = a + pl.load(x, [4, 0], [2, 16])",
        "    kept = pl.exp(b)",
        "    for j in pl.range(turns):",
        "        b = a * 2.0",
        "    a = kept",
        "out = pl.store(a, [0, 0], out)",
        "out = pl.store(b, [2, 0], out)",
    )
    for turns in (0, 1, 2, 3):
        summing.check(floats(8, 16) / 8, turns, zeros())
    adding = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], {OUT}",
        "a = pl.tile.full([8, 16], dtype=pl.FP32, value=1.0)",
        "for i in pl.range(turns):",
        "    for j in pl.range(turns):",
        "        a = pl.matmul_acc(a, pl.load(x, [0, 0], [8, 8]), pl.load(x, [0, 0], [8, 16]))",
        "out = pl.store(a, [0, 0], out)",
    )
    adding.check(floats(8, 16), 3, zeros())
    assert "memcpy" not in adding.native.code.texts["llvm"]()


UPDATES = {
    "sums": (["a = a + t", "b = b * 0.5"], True),
    "a sum that somebody else reads": (["c = a + t", "b = pl.row_expand_add(b, pl.row_sum(c))", "a = c"], False),
    "one that is read again": (["c = a + t", "b = b + a", "a = c"], False),
    "one that is read in a later pass": (["c = a + t", "b = pl.row_expand_sub(a, pl.row_max(b))", "a = c"], False),
    "ones that trade places": (["a, b = b + t, a - t"], False),
    "one that rows of another go into": (["a = pl.col_expand_add(a, pl.load(x, [i, 0], [1, 16]))"], True),
    "one that a copy of is added to": (["a = a + pl.concat(a[:, 8:], a[:, :8])"], True),
    "one that is stored beside": (["out = pl.store(a, [0, 0], out)", "a = a + t"], False),
}


@pytest.mark.parametrize(("body", "in_place"), UPDATES.values(), ids=UPDATES)
def test_a_carried_tile_is_updated_where_it_lies_unless_somebody_reads_it(body: list[str], in_place: bool) -> None:
    updating = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], {OUT}",
        "t = pl.load(x, [0, 0], [4, 16])",
        "a = pl.load(x, [2, 0], [4, 16]) + 1.0",
        "b = pl.load(x, [4, 0], [4, 16]) + 2.0",
        "for i in pl.range(turns):",
        *(f"    {line}" for line in body),
        "out = pl.store(a, [0, 0], out)",
        "out = pl.store(b, [4, 0], out)",
    )
    for turns in (0, 1, 2, 3):
        updating.check(floats(8, 16), turns, zeros())
    assert ("memcpy" not in updating.native.code.texts["llvm"]()) == in_place


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_carried_tile_can_be_a_turned_view_of_itself(turns: int) -> None:
    turning = kernel(
        "x: pl.Tensor[[8, 8], pl.FP32], turns: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0], [8, 8])",
        "for i in pl.range(turns):",
        "    t = pl.transpose(t, 0, 1)",
        "out = pl.store(t, [0, 0], out)",
    )
    turning.check(floats(8, 8), turns, np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("rows", [0, 1, 5, 8])
@pytest.mark.parametrize("turns", [0, 2])
def test_carried_tiles_keep_how_much_of_them_is_valid(rows: int, turns: int) -> None:
    growing = kernel(
        f"{X}, rows: pl.Scalar[pl.INDEX], turns: pl.Scalar[pl.INDEX], {OUT}",
        "t = pl.load(x, [0, 0], [8, 16], valid_shape=[rows, 16])",
        "for i in pl.range(turns):",
        "    t = pl.load(x, [i, 0], [8, 16], valid_shape=[pl.min(rows, 8 - i), 16])",
        "out = pl.store(t, [0, 0], out)",
    )
    growing.check(floats(8, 16), rows, turns, zeros())


@pytest.mark.parametrize("which", [0, 1])
def test_branches_yield_tiles_of_any_valid_extent(which: int) -> None:
    choosing = kernel(
        f"{X}, which: pl.Scalar[pl.INDEX], rows: pl.Scalar[pl.INDEX], {OUT}",
        "if which == 0:",
        "    t = pl.load(x, [0, 0], [8, 16], valid_shape=[rows, 16])",
        "    s = pl.cast(rows, pl.FP32)",
        "else:",
        "    t = pl.load(x, [0, 0], [8, 16], valid_shape=[8, rows])",
        "    s = 2.5",
        "out = pl.store(pl.mul(t, s), [0, 0], out)",
    )
    choosing.check(floats(8, 16), which, 5, zeros())


@pytest.mark.parametrize("which", [0, 1, 2])
def test_returns_leave_loops_and_branches(which: int) -> None:
    leaving = native(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def find(self, {X}, which: pl.Scalar[pl.INDEX], {OUT}):
        if which == 0:
            pl.write(out, [0, 0], 5.0)
            return out
        for i in pl.range(8):
            out = pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], out)
            if i == which * 2:
                return out
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, which: pl.Scalar[pl.INDEX], {OUT}):
        out = self.find(x, which, out)
        return out
"""
    )
    leaving.check(floats(8, 16), which, zeros())


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_carried_tensors_trade_places(turns: int) -> None:
    swapping = native(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, turns: pl.Scalar[pl.INDEX], {OUT}):
        a = pl.create_tensor([8, 16], dtype=pl.FP32, init_value=1)
        b = pl.create_tensor([8, 16], dtype=pl.FP32, init_value=2)
        for i in pl.range(turns):
            with pl.at(level=pl.Level.CORE_GROUP):
                b = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), pl.load(x, [0, 0], [8, 16])), [0, 0], b)
            kept = a
            a = b
            b = kept
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(a, [0, 0], [8, 16]), [0, 0], out)
        return out
"""
    )
    swapping.check(floats(8, 16), turns, zeros())


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_carried_view_may_be_turned(turns: int) -> None:
    turning = native(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], turns: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        view = x
        for i in pl.range(turns):
            view = pl.transpose(view, 0, 1)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(view, [0, 0], [8, 8]), [0, 0], out)
        return out
"""
    )
    turning.check(floats(8, 8), turns, np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("turns", [1, 4])
def test_arrays_are_values_that_loops_carry(turns: int) -> None:
    counting = kernel(
        "turns: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8], pl.INT32]]",
        "a = pl.array.create(4, pl.INT32)",
        "b = pl.array.create(4, pl.INT32)",
        "first = a",
        "for i in pl.range(turns):",
        "    a = pl.array.update_element(a, i, pl.cast(i, pl.INT32) + 5)",
        "    kept = a",
        "    a = b",
        "    b = kept",
        "for i in pl.range(4):",
        "    pl.write(out, [i], pl.array.get_element(a, i) + pl.array.get_element(first, i))",
        "    pl.write(out, [i + 4], pl.array.get_element(b, i))",
    )
    counting.check(turns, np.zeros(8, np.int32))


@pytest.mark.parametrize("index", [-1, 4, 1 << 62])
def test_an_index_outside_an_array_is_an_error(index: int) -> None:
    indexing = kernel(
        "at: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[1], pl.INT32]]",
        "a = pl.array.create(4, pl.INT32)",
        "a = pl.array.update_element(a, at, 7)",
        "pl.write(out, [0], pl.array.get_element(a, 0))",
    )
    indexing.fails("outside 0 to 4", index, np.zeros(1, np.int32))


def test_a_value_that_no_turn_bound_is_an_error_only_where_it_is_read() -> None:
    late = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], wanted: pl.Scalar[pl.INDEX], {OUT}",
        "for i in pl.range(turns):",
        "    t = pl.load(x, [i, 0], [1, 16])",
        "    s = pl.read(x, [i, 0])",
        "if wanted == 1:",
        "    out = pl.store(pl.add(t, s), [0, 0], out)",
    )
    late.check(floats(8, 16), 0, 0, zeros())
    late.check(floats(8, 16), 3, 1, zeros())
    late.fails("has no value here", floats(8, 16), 0, 1, zeros())


@pytest.mark.parametrize("outer", [0, 1, 3])
@pytest.mark.parametrize("inner", [0, 1, 2])
def test_values_bound_in_nested_loops_reach_the_end(outer: int, inner: int) -> None:
    nested = kernel(
        f"{X}, outer: pl.Scalar[pl.INDEX], inner: pl.Scalar[pl.INDEX], {OUT}",
        "s = 0.0",
        "for i in pl.range(outer):",
        "    for j in pl.range(inner):",
        "        if i == 1:",
        "            continue",
        "        s = s + pl.read(x, [i, j])",
        "        if j == 1:",
        "            break",
        "    s = s * 2.0",
        "pl.write(out, [0, 0], s)",
    )
    nested.check(floats(8, 16), outer, inner, zeros())


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_tuples_are_carried_part_by_part(turns: int) -> None:
    pairing = kernel(
        f"{X}, turns: pl.Scalar[pl.INDEX], {OUT}",
        "pair = (pl.load(x, [0, 0], [1, 16]), 1.0)",
        "for i in pl.range(turns):",
        "    pair = (pl.load(x, [i, 0], [1, 16]), pair[1] * 2.0)",
        "out = pl.store(pl.mul(pair[0], pair[1]), [0, 0], out)",
    )
    pairing.check(floats(8, 16), turns, zeros())


@pytest.mark.parametrize("outer", [0, 1, 3])
@pytest.mark.parametrize("inner", [0, 2])
def test_a_value_first_bound_in_an_inner_loop_is_read_after_it(outer: int, inner: int) -> None:
    nested = kernel(
        f"{X}, outer: pl.Scalar[pl.INDEX], inner: pl.Scalar[pl.INDEX], {OUT}",
        "for i in pl.range(outer):",
        "    for j in pl.range(inner):",
        "        t = pl.load(x, [i + j, 0], [1, 16])",
        "    out = pl.store(t, [i, 0], out)",
    )
    nested.agrees(floats(8, 16), outer, inner, zeros())
