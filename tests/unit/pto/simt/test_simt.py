"""SIMT: launches over work items, natively and in the interpreter, held to Python that runs them one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from unit.pto.tiles import running

from tilewright.dtypes import BF16
from tilewright.errors import ExecutionError, KernelError

np: Any = numpy
KERNELS = Path(__file__).parent / "kernels"


def run(name: str, target: str, *arguments: Any, grid: int = 1) -> list[Any]:
    """Return what the arrays among some arguments hold after a launch of a kernel of this folder."""
    module = running.read((KERNELS / f"{name}.pto").read_text(encoding="utf-8"), f"{name}.pto")
    return running.run(module, name, target, grid, arguments)


def test_work_items_have_places(target: str) -> None:
    whole, called = run("places", target, np.zeros(256, np.int32), np.zeros(20, np.int32), 5)
    z, y, x = np.indices((2, 4, 32))
    assert (whole.reshape(2, 4, 32) == x + 256 * y + 10000 * z).all()
    z, y, x = np.indices((2, 2, 5))
    assert (called.reshape(2, 2, 5) == x + 256 * y + 10000 * z).all()


def test_lanes_find_out_about_each_other(target: str) -> None:
    count = 45
    found = run("warps", target, np.zeros(22 * count, np.int32), count)[0].reshape(22, count)
    for t in range(count):
        lane, first = t % 32, t - t % 32
        there = range(min(32, count - first))
        bits, all_ = 1 << lane, 0xFFFFFFFF
        masks = [bits, 2 * bits - 1, bits - 1, all_ & -bits, all_ & -2 * bits]
        votes = [sum(1 << i for i in there if i % 2 == 0), 0, 1, 0, 1]

        def at(i: int, low: int = 0, own: int = lane + 1, there: range = there) -> int:
            return i + 1 if i in there and i >= low else own

        down = at(lane + 3) if (lane + 3) // 16 == lane // 16 else lane + 1
        shuffles = [at(3), at(lane - 2), down, at(lane ^ 1), lane + 1]
        sums = [sum(i + 1 for i in there), len(there), 1]
        expected = [lane, *masks, *votes, *shuffles, *sums, sums[0], len(there), at(lane ^ 2)]
        assert [int(n) & all_ for n in found[:, t]] == [n & all_ for n in expected], t


def test_branches_and_loops_around_meetings(target: str) -> None:
    count = 45
    found = run("control", target, np.full(6 * count, -1, np.int32), count)[0].reshape(6, count)
    warps = [range(first, min(first + 32, count)) for first in range(0, count, 32)]
    own = np.arange(count) % 7
    second, looped = np.ones(count, int), np.arange(count)
    for warp in warps:
        thirds = [t for t in warp if t % 3 == 0]
        for t in warp:
            assert found[0, t] == (sum(thirds) if t in thirds else t)
            assert found[1, t] == (max(i for i in thirds if i % 2) if t in thirds and t % 2 else -1)
        for _ in range(3):
            other = [t + int(second[t]) for t in warp]
            taken = [int(looped[i]) if i in warp else int(looped[t]) for t, i in zip(warp, other, strict=True)]
            for t, value in zip(warp, taken, strict=True):
                second[t], looped[t] = value, looped[t] + value
        for turn in range(0, 7, 2):
            active = [t for t in warp if turn < own[t]]
            most = max((looped[t] for t in active), default=0)
            for t in active:
                looped[t] = most - turn
        twos, others = ([t for t in warp if (own[t] == 2) == is_two and own[t] != 5] for is_two in (True, False))
        for t in warp:
            assert found[5, t] == (sum(twos) if t in twos else 7 if own[t] == 5 else max(others))
    assert found[2].tolist() == second.tolist()
    assert found[3].tolist() == looped[::-1].tolist()
    assert (found[4] == 0).all()


def test_elements_change_in_one_step(target: str) -> None:
    before = np.array([10, 3, 7, 10, 10, 0, 0, 0], np.int32)
    floats, halves = np.array([1, 2], np.float32), np.zeros(1, np.float16)
    places, floats, halves, pair, old = run(
        "counters", target, before, floats, halves, np.zeros(1, np.uint32), np.zeros(80, np.int32)
    )
    assert places.tolist() == [210, 39, 7, 42, 2, 63, 0, -780]
    assert (floats.tolist(), halves.tolist(), pair.view(np.float16).tolist()) == ([21, 0.5], [40], [40, 80])
    assert old.tolist() == [*range(10, 210, 5), *(10 * t + 780 for t in range(40))]


def test_blocks_change_elements_side_by_side() -> None:
    before = np.array([10, 3, 7, 10, 10, 0, 0, 0], np.int32)
    floats, halves = np.array([1, 2], np.float32), np.zeros(1, np.float16)
    places = run("counters", "cpu", before, floats, halves, np.zeros(1, np.uint32), np.zeros(80, np.int32), grid=8)[0]
    assert places.tolist() == [1610, 39, 7, 42, 2, 63, 0, -6240]


X = np.array([0.25, 1.5, 2.5, -1.5, -0.5, 100.75, -0.0, np.nan, 3e9, 0.49999997], np.float32)
Y = np.array([2.0, 0.1, -3.7, 2.0, 65504.0, 1e-8, 2.0009766, 1.0, -0.333, 5.0], np.float32)
WORDS = np.array([1, -1, 2**31 - 1, -(2**31), 16777217, 305419896, 0, -7, 1 << 30, 3], np.int32)
LONGS = np.array([1, -1, 2**63 - 1, -(2**63), 1 << 40, 123456789123456789, 0, -7, 5, 3], np.int64)


def test_numbers(target: str) -> None:
    count = len(X)
    outs = np.zeros(19 * count, np.float32), np.zeros(17 * count, np.int32), np.zeros(3 * count, np.int64)
    *_, floats, ints, longs = run("numbers", target, X, Y, WORDS, LONGS, *outs, count)
    floats, ints, longs = (found.reshape(-1, count) for found in (floats, ints, longs))
    _check_functions(floats)
    w, v = [int(n) for n in WORDS], [int(n) ^ t for t, n in enumerate(WORDS)]
    assert [int(n) for n in ints[11]] == [(a * b) >> 32 for a, b in zip(w, v, strict=True)]
    whole = [(a % 2**32) * (b % 2**32) for a, b in zip(w, v, strict=True)]
    assert [int(n) % 2**32 for n in ints[12]] == [n >> 32 for n in whole]
    pools = [(a % 2**32 << 32 | b % 2**32).to_bytes(8, "little") for a, b in zip(w, v, strict=True)]
    picked = [bytes([p[t & 7], p[0], p[0], p[0]]) for t, p in enumerate(pools)]
    assert [int(n) % 2**32 for n in ints[13]] == [int.from_bytes(p, "little") for p in picked]
    assert ints[14:, 0].tolist() == [0x4038, 0x403C, 0x46004000]
    assert [int(n) % 2**64 for n in longs[0]] == whole
    product = [int(n) for n in longs[0]]
    assert [int(n) for n in longs[1]] == [int(a) * b >> 64 for a, b in zip(LONGS, product, strict=True)]
    high = [(int(a) % 2**64) * (b % 2**64) >> 64 for a, b in zip(LONGS, product, strict=True)]
    assert [int(n) % 2**64 for n in longs[2]] == high
    _check_conversions(ints)


def _check_functions(found: Any) -> None:
    away = np.copysign(np.floor(np.abs(X.astype(float)) + 0.5), X)
    with np.errstate(all="ignore"):
        half, halves = X.astype(np.float16).astype(float), Y.astype(np.float16).astype(float)
        fused = (X.astype(float) * Y + X).astype(np.float32)
        exact = [np.abs(X), None, None, None, np.ceil(X), np.floor(X), np.rint(X), away, np.fmin(X, Y), np.fmax(X, Y)]
        exact += [None, fused, (half * halves + half).astype(np.float16)]
        near = {1: np.sqrt(X), 2: np.exp(X), 3: np.log(X), 10: np.power(X, Y)}
        near[13] = np.exp(halves).astype(np.float16)
    for row, wanted in enumerate(exact):
        if wanted is not None:
            np.testing.assert_array_equal(found[row], np.float32(wanted), err_msg=str(row))
    for row, wanted in near.items():
        np.testing.assert_allclose(found[row], np.float32(wanted), rtol=2e-3 if row == 13 else 1e-6, err_msg=str(row))
    np.testing.assert_array_equal(found[15], WORDS.astype(np.float32))
    towards_zero = [16777216.0 if w == 16777217 else w for w in WORDS.tolist()]
    towards_zero[2] = 2147483520.0
    towards_zero[5] = 305419872.0  # 24 bits of 305419896
    np.testing.assert_array_equal(found[16], np.float32(towards_zero))
    np.testing.assert_array_equal(found[17], WORDS.view(np.uint32).astype(np.float32))
    np.testing.assert_array_equal(found[18], LONGS.astype(np.float32))


def _check_conversions(found: Any) -> None:
    low, high = -(2**31), 2**31 - 1
    numbers = np.where(np.isnan(X), 0, X).astype(float)
    away = np.copysign(np.floor(np.abs(numbers) + 0.5), numbers)
    wanted = [np.rint(numbers), away, np.floor(numbers), np.ceil(numbers), np.trunc(numbers)]
    for row, each in enumerate(wanted, 5):
        assert found[row].tolist() == np.clip(each, low, high).astype(np.int64).tolist(), row
    assert found[10].view(np.uint32).tolist() == np.clip(np.trunc(numbers), 0, 2**32 - 1).astype(np.int64).tolist()
    near = Y.astype(np.float16)
    with np.errstate(all="ignore"):
        before, behind = np.nextafter(near, np.float16(-np.inf)), np.nextafter(near, np.float16(np.inf))
    down, up = np.where(near <= Y, near, before), np.where(near >= Y, near, behind)
    zero = np.where(Y < 0, up, down)
    odd = np.where((zero == Y) | (zero.view(np.uint16) % 2 == 1), zero, np.where(Y < 0, down, up))
    for row, each in ((1, down), (2, up), (3, zero), (4, odd)):
        assert found[row].tolist() == each.view(np.uint16).tolist(), row


LAUNCH = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @body(%p: !pto.ptr<i32, gm>) attributes {{pto.simt_entry}} {{
    {body}
    return
  }}
  func.func @main(%p: !pto.ptr<i32, gm>, %n: i32) attributes {{pto.entry}} {{
    %c64 = arith.constant 64 : i32
    {main}
    return
  }}
}}
"""


RUN = "pto.simt_launch @body<<<%n, %n, %n>>>(%p) : (!pto.ptr<i32, gm>) -> ()"


@pytest.mark.parametrize(
    ("body", "main", "said"),
    [
        ("", "pto.simt_launch @body<<<%c64, %c64, %n>>>(%p) : (!pto.ptr<i32, gm>) -> ()", "64 x 64"),
        ("", "pto.simt_launch @main<<<%n, %n, %n>>>(%p, %n) : (!pto.ptr<i32, gm>, i32) -> ()", "pto.simt_entry"),
        ("", "pto.simt_launch @bodies<<<%n, %n, %n>>>(%p) : (!pto.ptr<i32, gm>) -> ()", "@body"),
        ("", "pto.simt_launch @body<<<%n, %n, %n>>>(%n) : (i32) -> ()", "i32 where !pto.ptr"),
        ("", "pto.syncthreads", "work items of a launch"),
        ("%a = pto.castptr %p : !pto.ptr<i32, gm> -> i64\n %b = arith.addi %a, %a : i64", RUN, "number is not known"),
        ("%n = pto.get_tid_x : i32\n pto.keep %n {slot = 1 : i64} : i32\n %l = pto.get_laneid : i32", "", "last"),
        ("%v = pto.resume {slot = 123 : i64} : i32", "", "up to 122"),
        ("%n = pto.get_tid_x : i32\n %v = pto.resume {slot = 1 : i64} : i32", "", "first"),
    ],
)
def test_wrong_launches_are_refused(body: str, main: str, said: str) -> None:
    text = LAUNCH.format(body=body, main=main)
    with pytest.raises(KernelError, match=said):
        running.run(running.read(text), "main", "interpret", 1, [np.zeros(4, np.int32), 3])


def test_more_work_items_than_there_can_be_stop_the_program(target: str) -> None:
    main = "pto.simt_launch @body<<<%c64, %n, %n>>>(%p) : (!pto.ptr<i32, gm>) -> ()"
    module = running.read(LAUNCH.format(body="", main=main))
    with pytest.raises(Exception, match="at most 2048 work items"):
        running.run(module, "main", target, 1, [np.zeros(4, np.int32), 8])


MET = """%n = pto.get_tid_x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %most = arith.constant {most} : i32
    {around} {{
      pto.syncthreads
    }}
    pto.stg %c1, %p[%n] : !pto.ptr<i32, gm>, i32"""
FIRST = "%is = arith.cmpi slt, %n, %most : i32\n scf.if %is"
TURNS = "%own = arith.minsi %n, %most : i32\n scf.for %i = %c0 to %own step %c1 : i32"
LINE = "pto.simt_launch @body<<<%n, %one, %one>>>(%p) : (!pto.ptr<i32, gm>) -> ()"


@pytest.mark.parametrize(("around", "most"), [(FIRST, 5), (FIRST, 39), (TURNS, 1), (TURNS, 7)])
def test_a_barrier_that_some_work_items_never_reach_stops_the_program(around: str, most: int, target: str) -> None:
    main = f"%one = arith.constant 1 : i32\n {LINE}"
    module = running.read(LAUNCH.format(body=MET.format(most=most, around=around), main=main))
    with pytest.raises(ExecutionError, match=r"some work items of the launch reach `pto\.syncthreads`"):
        running.run(module, "main", target, 1, [np.zeros(40, np.int32), 40])


@pytest.mark.parametrize(("around", "most"), [(FIRST, 0), (FIRST, 40), (TURNS, 0)])
def test_a_barrier_that_all_work_items_reach_or_none_is_no_error(around: str, most: int, target: str) -> None:
    main = f"%one = arith.constant 1 : i32\n {LINE}"
    module = running.read(LAUNCH.format(body=MET.format(most=most, around=around), main=main))
    assert running.run(module, "main", target, 1, [np.zeros(40, np.int32), 40])[0].tolist() == [1] * 40


SHUFFLE = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @body(%o: !pto.ptr<i32>) attributes {{pto.simt_entry}} {{
    %by = arith.constant {by} : i32
    %lane = pto.get_tid_x : i32
    %s = pto.shuffle_{way} %lane, %by {{width = {width}}} : i32, i32 -> i32
    pto.stg %s, %o[%lane] : !pto.ptr<i32>, i32
    return
  }}
  func.func @k(%o: !pto.ptr<i32>) {{
    %one = arith.constant 1 : i32
    %count = arith.constant {count} : i32
    pto.simt_launch @body<<<%count, %one, %one>>>(%o) : (!pto.ptr<i32>) -> ()
    return
  }}
}}
"""


@pytest.mark.parametrize("way", ["up", "down", "idx", "bfly"])
@pytest.mark.parametrize(("by", "width", "count"), [(1, 32, 1), (40, 32, 64), (16, 16, 20), (3, 16, 32)])
def test_a_lane_that_no_other_answers_keeps_its_own(way: str, by: int, width: int, count: int, target: str) -> None:
    text = SHUFFLE.format(way=way, by=by, width=width, count=count)
    found = running.run(running.read(text, "shuffle.pto"), "k", target, 1, [np.full(count, -1, np.int32)])[0]
    for item in range(count):
        lane, first = item % 32, item - item % 32
        base = lane - lane % width
        other = {"up": lane - by, "down": lane + by, "idx": base + by, "bfly": lane ^ by}[way]
        is_there = base <= other < base + width and first + other < min(first + 32, count)
        assert found[item] == (first + other if is_there else item), item


ATOMIC = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @body(%p: !pto.ptr<{type}>, %q: !pto.ptr<{type}>) attributes {{pto.simt_entry}} {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %other = pto.ldg %q[%c0] : !pto.ptr<{type}> -> {type}
    %given = pto.ldg %q[%c1] : !pto.ptr<{type}> -> {type}
    %old = pto.atomic_{way} %p, {given} : !pto.ptr<{type}>, {types} -> {type}
    pto.stg %old, %q[%c0] : !pto.ptr<{type}>, {type}
    return
  }}
  func.func @k(%p: !pto.ptr<{type}>, %q: !pto.ptr<{type}>) {{
    %one = arith.constant 1 : i32
    pto.simt_launch @body<<<%one, %one, %one>>>(%p, %q) : (!pto.ptr<{type}>, !pto.ptr<{type}>) -> ()
    return
  }}
}}
"""
CHANGED = {
    "exch": 3, "add": 9, "sub": 3, "min": 3, "max": 6, "cas": 3, "and": 2, "or": 7, "xor": 5,
}  # fmt: skip
"""What six becomes by three, in each way, where it is compared with six."""
HELD = {"i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "bf16": BF16.numpy}


@pytest.mark.parametrize("element", HELD)
@pytest.mark.parametrize("way", CHANGED)
def test_every_atomic_op_changes_every_element_it_takes(way: str, element: str, target: str) -> None:
    if way in ("and", "or", "xor") and not element.startswith("i"):
        pytest.skip("bits of floats are refused")
    given = "%other, %given" if way == "cas" else "%given"
    sign = " signed" if way in ("min", "max") and element.startswith("i") else ""
    types = ", ".join([element] * (2 if way == "cas" else 1))
    text = ATOMIC.format(type=element, way=way, given=given + sign, types=types)
    held = [np.array([6, 5]).astype(HELD[element]), np.array([6, 3]).astype(HELD[element])]
    places, old = running.run(running.read(text, "atomic.pto"), "k", target, 1, held)
    assert (places.astype(float).tolist(), old.astype(float).tolist()) == ([CHANGED[way], 5], [6, 3])
    if way == "cas":
        held[1][0] = 7
        places, old = running.run(running.read(text, "atomic.pto"), "k", target, 1, held)
        assert (places.astype(float).tolist(), old.astype(float).tolist()) == ([6, 5], [6, 3])
