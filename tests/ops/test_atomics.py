"""Atomic updates: every update of elements and rows against loops over them, alone and beside other threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from ops.indexed import computed, refused, sample
from ops.kernels import kernel, tensor

import tilewright.language as pl
from tilewright.core.region import whole
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, RaceError, ShapeMismatchError
from tilewright.frontend.programs import as_program
from tilewright.interpret.checked import run_checked
from tilewright.passes.launches import launches
from tilewright.passes.manager import PassManager

np: Any = numpy  # their stubs leave most of what is used here half typed
RNG = np.random.default_rng(15)
Update = Callable[[Any, Any], Any]


def added(held: Any, given: Any) -> Any:
    if held.dtype.kind in "iu":
        return held + given
    return np.asarray(np.float64(held) + np.float64(given)).astype(held.dtype)


UPDATES: dict[str, Update] = {
    "add": added,
    "max": np.maximum,
    "min": np.minimum,
    "xchg": lambda held, given: given,
    "and": lambda held, given: held & given,
    "or": lambda held, given: held | given,
    "xor": lambda held, given: held ^ given,
}


def updated(update: Update, x: Any, index: Any, given: Any, mask: Any) -> tuple[Any, Any]:
    """Return a vector after its elements were changed one by one, and what they were."""
    x, old = x.copy(), np.zeros_like(given)
    for place in np.ndindex(index.shape):
        if mask[place]:
            old[place] = x[index[place]]
            with np.errstate(all="ignore"):
                x[index[place]] = update(x[index[place]], given[place])
    return x, old


def same(got: Any, want: Any) -> None:
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes(), (got, want)


@pytest.mark.parametrize(
    ("dtype", "index_type"),
    [(pl.FP32, pl.INT32), (pl.BF16, pl.INT64), (pl.FP16, pl.UINT8), (pl.INT32, pl.INT16), (pl.UINT8, pl.UINT32),
     (pl.INT64, pl.INT32), (pl.FP64, pl.INT64)],
    ids=str,
)  # fmt: skip
def test_elements_change_one_after_the_other(dtype: DataType, index_type: DataType) -> None:
    names = list(UPDATES) if dtype.is_int() else ["add", "max", "min", "xchg"]
    x, given = np.abs(sample(RNG, dtype, 9)), sample(RNG, dtype, 3, 21)
    index, mask = RNG.integers(0, 9, given.shape).astype(index_type.numpy), RNG.integers(0, 2, given.shape) > 0
    body = "i = pl.load(index, [0, 0], [3, 21], valid_shape=[rows, columns])\nm = pl.load(mask, [0, 0], [3, 21])\n"
    body += "v = pl.load(given, [0, 0], [3, 21], valid_shape=[rows, columns])\n"
    for name in names:
        body += f"out_{name}_old = pl.store(pl.atomic_{name}(out_{name}, i, v, mask=m), [0, 0], out_{name}_old)\n"
        body += f"pl.atomic_{name}(out_{name}_all, i, v)\n"
    held = np.ones_like(given)
    arrays = {
        n: a for name in names for n, a in ((f"out_{name}", x), (f"out_{name}_old", held), (f"out_{name}_all", x))
    }
    for rows, columns in ((3, 21), (2, 5), (0, 3)):
        found = computed(body, index=index, mask=mask, given=given, **arrays, rows=rows, columns=columns)
        part = slice(0, rows), slice(0, columns)
        for at, name in enumerate(names):
            some = updated(UPDATES[name], x, index[part], given[part], mask[part])
            want = held.copy()
            want[part] = some[1]
            same(found[3 * at], some[0])
            same(found[3 * at + 1], want)
            same(found[3 * at + 2], updated(UPDATES[name], x, index[part], given[part], mask[part] | True)[0])


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP64, pl.FP16, pl.INT8], ids=str)
def test_rows_change_one_after_the_other(dtype: DataType) -> None:
    x, given = sample(RNG, dtype, 6, 2, 19), sample(RNG, dtype, 8, 2, 19)
    index, mask = RNG.integers(0, 6, (1, 8)).astype(np.int32), RNG.integers(0, 2, (1, 8)) > 0
    body = (
        "i = pl.load(index, [0, 0], [1, 8])\nm = pl.load(mask, [0, 0], [1, 8])\n"
        "v = pl.load(given, [0, 0, 0], [8, 2, 19], valid_shape=[n, 2, columns])\n"
        "out_old = pl.store(pl.atomic_add(out, i, v), [0, 0, 0], out_old)\n"
        "pl.atomic_max(out_max, i, v, mask=m)\npl.atomic_add(out_two, i, 2)"
    )
    held = np.zeros_like(given)
    for n, columns in ((8, 19), (5, 3), (0, 19)):
        out, old, most, two = computed(
            body, index=index, mask=mask, given=given, out=x, out_old=held, out_max=x, out_two=x, n=n, columns=columns
        )
        want, was, largest, more = x.copy(), held.copy(), x.copy(), x.copy()
        for k, row in enumerate(index[0]):
            part, rows = (row, slice(None), slice(0, columns)), given[k, :, :columns]
            with np.errstate(all="ignore"):
                more[row] = added(more[row], x.dtype.type(2))
                if k < n:
                    was[k, :, :columns] = want[part]
                    want[part] = added(want[part], rows)
                    largest[part] = np.maximum(largest[part], rows) if mask[0, k] else largest[part]
        for got, expected in ((out, want), (old, was), (most, largest), (two, more)):
            same(got, expected)


def test_elements_of_a_matrix_are_counted_along_rows() -> None:
    x, index = sample(RNG, pl.INT32, 5, 7), RNG.integers(0, 35, (2, 40)).astype(np.int64)
    body = "i = pl.load(index, [0, 0], [2, 40])\npl.atomic_add(out, i, 3, axis=None)"
    want = x.reshape(-1).copy()
    np.add.at(want, index, np.int32(3))
    same(computed(body, index=index, out=x), want.reshape(5, 7))


@pytest.mark.parametrize("dtype", [pl.INT32, pl.FP16, pl.BF16, pl.FP32, pl.FP64], ids=str)
def test_an_element_is_swapped_where_it_is_as_expected(dtype: DataType) -> None:
    x = np.array([0.0, -0.0, np.nan, 3.0]).astype(dtype.numpy) if dtype.is_float() else np.array([0, 1, 2, 3], np.int32)
    index = np.array([[0, 0, 1, 2, 3, 3]], np.int32)
    given = np.array([[5, 6, 7, 8, 9, 3]]).astype(dtype.numpy)
    compare = x[index[0]][None].copy()
    compare[0, 1] = 5
    compare[0, 5] = 4
    body = (
        "i = pl.load(index, [0, 0], [1, 6])\nc = pl.load(compare, [0, 0], [1, 6])\nv = pl.load(given, [0, 0], [1, 6])\n"
        "out_old = pl.store(pl.atomic_cas(out, i, c, v), [0, 0], out_old)"
    )
    out, old = computed(body, index=index, compare=compare, given=given, out=x, out_old=np.zeros_like(given))
    same(out, np.array([6, 7, 8, 9]).astype(dtype.numpy))
    same(old, np.concatenate([x[:1], given[0, :1], x[1:], given[0, 4:5]])[None])


def test_counting_into_few_elements_misses_none() -> None:
    index, mask = RNG.integers(0, 13, (1, 200)).astype(np.uint8), RNG.integers(0, 2, (1, 200)) > 0
    body = (
        "i = pl.load(index, [0, 0], [1, 200], valid_shape=[1, n])\nm = pl.load(mask, [0, 0], [1, 200])\n"
        "pl.atomic_add(out, i, 1)\npl.atomic_add(out_some, i, pl.cast(i, pl.INT64), mask=m)"
    )
    for n in (200, 77, 0):
        given = {"out": np.arange(13, dtype=np.int32), "out_some": np.zeros(13, np.int64)}
        counts, some = computed(body, index=index, mask=mask, **given, n=n)
        same(counts, given["out"] + np.bincount(index[0, :n], minlength=13).astype(np.int32))
        chosen = index[0, :n][mask[0, :n]]
        same(some, np.bincount(chosen, weights=chosen, minlength=13).astype(np.int64))


@pl.jit
def beside(
    index: pl.Tensor, given: pl.Tensor, rows: pl.InOut[pl.Tensor], counts: pl.InOut[pl.Tensor], big: pl.InOut[pl.Tensor]
):
    for i in pl.parallel(0, index.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.atomic_add(rows, pl.load(index, [i], [64]), pl.load(given, [i, 0], [64, 24]))
    for i in pl.parallel(0, index.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            places = pl.load(index, [i], [64])
            pl.atomic_add(counts, places, 1)
            pl.atomic_max(big, places, pl.row_sum(pl.load(given, [i, 0], [64, 24])))
    with pl.spmd(10):
        i = pl.get_block_idx() * 64
        pl.atomic_add(counts, pl.load(index, [i], [64]), -1)
        pl.atomic_add(rows, pl.load(index, [i], [64]), pl.load(given, [i, 0], [64, 24]))
    return rows, counts, big


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_turns_side_by_side_lose_nothing(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
    index, given = RNG.integers(0, 11, 1000).astype(np.int32), RNG.integers(-9, 9, (1000, 24)).astype(np.float32)
    rows, counts, big = np.zeros((11, 24), np.float32), np.zeros(11, np.int32), np.full((11, 1), -1e9, np.float32)
    beside(index, given, rows, counts, big)
    want = np.zeros_like(rows)
    np.add.at(want, index, given)
    np.add.at(want, index[:640], given[:640])
    most = np.full(11, -1e9, np.float32)
    np.maximum.at(most, index, given.sum(1))
    same(rows, want)
    same(counts, np.bincount(index[640:], minlength=11).astype(np.int32))
    same(big[:, 0], most)


def test_an_index_that_points_at_nothing_is_refused() -> None:
    index, mask = np.array([[0, 1, 4, 2]], np.int32), np.array([[True, True, False, True]])
    body = "i = pl.load(index, [0, 0], [1, 4])\npl.atomic_add(out, i, 1.0)"
    for bad in (4, -1):
        index[0, 2] = bad
        native, meant = refused(body, index=index, out=np.zeros((4, 3), np.float32))
        assert f"index {bad} in `indices`" in native and f"index {bad} at" in meant
        masked = "m = pl.load(mask, [0, 0], [1, 4])\n" + body.replace("1.0)", "1.0, mask=m)")
        got = computed(masked, index=index, mask=mask, out=np.zeros((4, 3), np.float32))
        same(got[:, 0], np.array([1, 1, 1, 0], np.float32))


WRONG = (
    ("pl.atomic_add(x, i, 1.0, axis=1)", AttributeValueError, "`axis` is 0 or None here, got 1"),
    ("pl.atomic_add(x, pl.cast(i, pl.FP32), 1.0)", DTypeMismatchError, "`indices` must be integers, got fp32"),
    ("pl.atomic_add(x, i, i)", DTypeMismatchError, "int32 elements cannot go into fp32"),
    ("pl.atomic_add(x, i, t)", ShapeMismatchError, "`values` must be [4, 8] for these indices"),
    ("pl.atomic_add(x, pl.cast(t, pl.INT32), 1.0)", ShapeMismatchError, "rows are named by indices in a line"),
    ("pl.atomic_and(x, i, 1)", DTypeMismatchError, "fp32 elements are not supported here"),
    ("pl.atomic_add(x, i, 1.0, mask=i)", DTypeMismatchError, "`mask` must hold bool, got int32"),
)


@pytest.mark.parametrize(("text", "error", "message"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_fit_is_refused(text: str, error: type[Exception], message: str) -> None:
    body = f"i = pl.load(index, [0, 0], [1, 4])\nt = pl.load(x, [0, 0], [2, 8])\n{text}"
    with pytest.raises(error) as found:
        kernel(body, x=f"pl.InOut[{tensor(pl.FP32, 4, 8)}]", index=tensor(pl.INT32, 1, 4))
    assert message in str(found.value)


@pl.jit
def slices(index: pl.Tensor, given: pl.Tensor, out: pl.InOut[pl.Tensor]):
    for i in pl.parallel(0, index.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.slice(out, [8, 24], [i // 64, 0])
            pl.atomic_add(part, pl.load(index, [i], [64]), pl.load(given, [i, 0], [64, 24]))
    return out


def test_a_loop_that_only_adds_rows_is_divided_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")
    index, given = RNG.integers(0, 8, 640).astype(np.int32), RNG.integers(-9, 9, (640, 24)).astype(np.float32)
    out, want = np.zeros((18, 24), np.float32), np.zeros((18, 24), np.float32)
    slices(index, given, out)
    np.add.at(want, index + np.arange(640) // 64, given)
    same(out, want)
    rows, counts, big = np.zeros((11, 24), np.float32), np.zeros(11, np.int32), np.zeros((11, 1), np.float32)
    for kernel_, args, divided in ((beside, (index, given, rows, counts, big), 1), (slices, (index, given, out), 0)):
        program = PassManager.get_strategy().run_passes(kernel_.specialize(*args).program)
        found = [launch.count for function in program.function_list for launch in launches(program, function)]
        assert ["by places of" in count for count in found].count(True) == divided, found


def test_turns_that_update_one_place_do_not_race_unless_one_reads_it() -> None:
    given = {"index": tensor(pl.INT32, 2, 4), "out": f"pl.InOut[{tensor(pl.FP32, 4, 4)}]"}
    update = "for r in pl.parallel(2):\n    pl.atomic_add(out, pl.load(index, [r, 0], [1, 4]), 1.0)"
    index, out = np.zeros((2, 4), np.int32), np.zeros((4, 4), np.float32)
    run_checked(as_program(kernel(update, **given)), "kernel", [whole(index), whole(out)])
    same(out[0], np.full(4, 8, np.float32))
    looked = f"{update}\n    t = pl.load(out, [0, 0], [1, 4])\n    pl.store(t, [2 + r, 0], out)"
    with pytest.raises(RaceError, match=r"out\[0, 0\]"):
        run_checked(as_program(kernel(looked, **given)), "kernel", [whole(index), whole(out)])


@pl.jit
def weighed(index: pl.Tensor, given: pl.Tensor, line: pl.InOut[pl.Tensor], flat: pl.InOut[pl.Tensor]):
    for i in pl.parallel(0, index.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.atomic_add(line, pl.load(index, [i], [64]), pl.load(given, [i], [64]))
    for i in pl.parallel(0, index.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            places = pl.load(index, [i], [64])
            pl.atomic_min(flat, places * 2, pl.load(given, [i], [64]), mask=places > 3, axis=None)
    return line, flat


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_elements_are_shared_out_in_the_order_of_turns(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
    index, given = RNG.integers(0, 17, 1000).astype(np.int32), RNG.normal(0, 1, 1000).astype(np.float32)
    line, flat = np.zeros(17, np.float32), np.zeros((5, 14), np.float32)[:, ::2]
    want, least = line.copy(), flat.copy().reshape(-1)
    weighed(index, given, line, flat)
    np.add.at(want, index, given)
    np.minimum.at(least, 2 * index[index > 3], given[index > 3])
    same(line, want)
    same(flat, least.reshape(5, 7))
    program = PassManager.get_strategy().run_passes(weighed.specialize(index, given, line, flat).program)
    found = [launch.count for function in program.function_list for launch in launches(program, function)]
    assert all("by places of" in count for count in found) and found, found


@pl.jit
def doubled(index: pl.Tensor, out: pl.InOut[pl.Tensor]):
    part = pl.slice(out, [64, 24], [0, 0])
    for i in pl.parallel(0, 64, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.atomic_add(out, pl.load(index, [i], [64]), pl.load(part, [i, 0], [64, 24]))
    return out


def test_a_turn_that_reads_what_it_changes_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "3")
    index, out = np.arange(64, dtype=np.int32)[::-1].copy(), RNG.integers(0, 9, (64, 24)).astype(np.float32)
    want = out + out[::-1]
    for _ in range(5):
        found = out.copy()
        doubled(index, found)
        same(found, want)
