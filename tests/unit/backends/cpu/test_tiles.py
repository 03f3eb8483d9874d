"""Tiles in native code: loads and stores at the edges of tensors, and ops over tiles of any rank."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, inout, kernel, out, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import STORABLE, DataType
from tilewright.ops.memory import ATOMIC

ROWS, COLUMNS = scalar(pl.INDEX), scalar(pl.INDEX)


def agree(native: Native, *args: Array | float, ulp: float = 0) -> None:
    """Fail unless native code leaves what the interpreter leaves."""
    for got, want in native.run(args):
        assert_same(got, want, ulp)


def zeros(*shape: int, dtype: DataType = pl.FP32) -> Array:
    return np.zeros(shape, dtype.numpy)


@pytest.mark.parametrize(
    "load",
    ["[i, j], [4, 16]", "[i, j], [4, 16], clamp=True", "[i, j], [4, 16], valid_shape=[i, 3]", "[0, j], [4, 16]"],
)
def test_a_load_takes_what_is_there(load: str) -> None:
    native = Native(
        kernel(
            f"t = pl.load(x, {load})\nout = pl.store(pl.neg(t), [0, 0], out)\nmore = pl.store(t, [0, 0], more)",
            x=tensor(pl.FP32, "A", "B"),
            i=ROWS,
            j=COLUMNS,
            out=out(pl.FP32, 4, 16),
            more=out(pl.FP32, 4, 16),
        )  # fmt: skip
    )
    for shape, i, j in (((6, 20), 0, 0), ((6, 20), 3, 9), ((6, 20), 4, 19), ((3, 5), 1, 2), ((3, 0), 2, 0)):
        agree(native, counting(*shape), i, j, zeros(4, 16), zeros(4, 16))


@pytest.mark.parametrize(("i", "j"), [(-1, 0), (7, 0), (0, 21), (0, -5)])
def test_a_load_that_starts_outside_is_an_error(i: int, j: int) -> None:
    for clamp in (False, True):
        native = Native(
            kernel(
                f"t = pl.load(x, [i, j], [4, 16], clamp={clamp})\nout = pl.store(t, [0, 0], out)",
                x=tensor(pl.FP32, "A", "B"),
                i=ROWS,
                j=COLUMNS,
                out=out(pl.FP32, 4, 16),
            )  # fmt: skip
        )
        found, expected = native.errors([counting(6, 20), i, j, zeros(4, 16)])
        assert (found is None) == (expected is None) == (clamp and i >= 0 and j >= 0)


def test_a_store_that_does_not_fit_writes_nothing() -> None:
    for tile, shape in (("t", (4, 16)), ("pl.slice(t, [1, 16], [0, 0], drop_dims=[0])", (16,))):
        native = Native(
            kernel(
                f"t = pl.load(x, [0, 0], [4, 16])\nout = pl.store({tile}, [i, j], out)",
                x=tensor(pl.FP32, 4, 16),
                i=ROWS,
                j=COLUMNS,
                out=out(pl.FP32, 8, 20),
            )  # fmt: skip
        )
        agree(native, counting(4, 16), 3, 2, zeros(8, 20))
        for i, j in ((9 - len(shape), 5), (-1, 0), (8, 0)):
            found, expected = native.errors([counting(4, 16), i, j, zeros(8, 20)])
            assert found is not None and expected is not None


@pytest.mark.parametrize("dtype", sorted(ATOMIC, key=str), ids=str)
def test_a_store_adds(dtype: DataType) -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [0, 0], [5, 19])\nfor k in pl.range(3):\n"
            "    y = pl.store(t, [1, 1], y, atomic=pl.AtomicType.Add)\nreturn y",
            x=tensor(dtype, 5, 19),
            y=inout(dtype, 8, 20),
        )  # fmt: skip
    )
    agree(native, counting(5, 19, dtype=dtype), counting(8, 20, dtype=dtype))


def test_a_store_gives_elements_another_shape() -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [0, 0], [4, 6])\nout = pl.store(pl.transpose(t, 0, 1), [1, 0, 2], out, shapes=[2, 3, 4])",
            x=tensor(pl.FP32, 4, 6),
            out=out(pl.FP32, 4, 3, 7),
        )  # fmt: skip
    )
    agree(native, counting(4, 6), zeros(4, 3, 7))


def test_operands_that_span_different_parts_do_not_read_past_them() -> None:
    native = Native(
        kernel(
            """
            a = pl.load(x, [0, 0], [4, 64])
            b = pl.load(y, [0, 0], [4, 64])
            out = pl.store(pl.set_validshape(pl.add(a, b), 4, 5), [0, 0], out)
            """,
            x=tensor(pl.FP32, 4, 64),
            y=tensor(pl.FP32, "A", "B"),
            out=out(pl.FP32, 4, 5),
        )  # fmt: skip
    )
    agree(native, counting(4, 64), counting(4, 5), zeros(4, 5))


@pytest.mark.parametrize("shape", [(1,), (37,), (1, 1), (5, 1), (1, 37), (2, 3, 5), (2, 1, 3, 18)], ids=str)
def test_tiles_of_any_rank_are_computed(shape: tuple[int, ...]) -> None:
    start, row = [0] * len(shape), (*shape[:-1], 1)
    some = ", ".join(f"pl.min(i, {extent})" for extent in shape)
    two = len(shape) > 1
    native = Native(
        kernel(
            f"""
            a = pl.load(x, {start}, {list(shape)}, valid_shape=[{some}])
            b = pl.add(pl.exp(pl.muls(a, 0.1)), a)
            out = pl.store(b, {start}, out)
            s = pl.row_sum(b)
            sums = pl.store(s, {start}, sums)
            wide = pl.store(pl.mul(b, {"pl.row_expand(b, s)" if two else "s"}), {start}, wide)
            most = pl.store(pl.{"col" if two else "row"}_max(b), {start}, most)
            """,
            x=tensor(pl.FP32, *shape),
            i=ROWS,
            out=out(pl.FP32, *shape),
            sums=out(pl.FP32, *row),
            wide=out(pl.FP32, *shape),
            most=out(pl.FP32, *((*shape[:-2], 1, shape[-1]) if two else (1,))),
        )  # fmt: skip
    )
    most = zeros(*shape[:-2], 1, shape[-1]) if two else zeros(1)
    for i in (40, 2, 1):
        agree(native, counting(*shape) % 7, i, zeros(*shape), zeros(*row), zeros(*shape), most, ulp=8)


@pytest.mark.parametrize("op", ["row_sum", "row_max", "row_prod", "col_min", "col_sum"])
def test_folding_nothing_gives_what_the_op_starts_from(op: str) -> None:
    for shape in ((4, 9), (4, 1), (1, 9), (3, 130)):
        folded = (shape[0], 1) if op.startswith("row") else (1, shape[1])
        native = Native(
            kernel(
                f"t = pl.load(x, [0, 0], {list(shape)}, valid_shape=[i, j])\nout = pl.store(pl.{op}(t), [0, 0], out)",
                x=tensor(pl.INT32, *shape),
                i=ROWS,
                j=COLUMNS,
                out=out(pl.INT32, *folded),
            )  # fmt: skip
        )
        for i, j in ((shape[0], 0), (0, shape[1]), (1, 1), shape):
            agree(native, counting(*shape, dtype=pl.INT32) + 1, i, j, zeros(*folded, dtype=pl.INT32))


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_a_tile_is_full_of_a_number(dtype: DataType) -> None:
    native = Native(
        kernel(
            f"t = pl.tile.full([3, 19], dtype=pl.{dtype.symbol}, value=1)\nout = pl.store(t, [0, 0], out)",
            out=out(dtype, 3, 19),
        )
    )
    agree(native, zeros(3, 19, dtype=dtype))


def test_a_scalar_takes_the_type_of_a_tile() -> None:
    native = Native(
        kernel(
            """
            h = pl.load(x, [0, 0], [3, 19])
            n = pl.load(y, [0, 0], [3, 19])
            out = pl.store(pl.adds(h, 0.1), [0, 0], out)
            more = pl.store(pl.muls(n, w), [0, 0], more)
            most = pl.store(pl.expands(h, v), [0, 0], most)
            """,
            x=tensor(pl.FP16, 3, 19),
            y=tensor(pl.INT8, 3, 19),
            v=scalar(pl.FP32),
            w=scalar(pl.INT32),
            out=out(pl.FP16, 3, 19),
            more=out(pl.INT8, 3, 19),
            most=out(pl.FP16, 3, 19),
        )  # fmt: skip
    )
    blank = zeros(3, 19, dtype=pl.FP16), zeros(3, 19, dtype=pl.INT8), zeros(3, 19, dtype=pl.FP16)
    for v, w in zip(
        (2.7, -3.2, 300.4, 0.1, float("inf"), float("nan"), -1e30), (2, -3, 300, 0, -129, 128, 1), strict=True
    ):
        agree(native, counting(3, 19, dtype=pl.FP16) * np.float16(0.3), counting(3, 19, dtype=pl.INT8), v, w, *blank)
