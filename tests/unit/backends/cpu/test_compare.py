"""Comparison in native code: masks that only choose, and masks in memory."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native, assert_same
from ops.test_families import special

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.dtypes import DataType
from tilewright.frontend.programs import as_program
from tilewright.ops.declare import NUMBERS
from tilewright.passes.manager import PassManager

every_type = pytest.mark.parametrize("dtype", sorted(NUMBERS, key=str), ids=str)
SHAPE = (5, 37)


def given(dtype: DataType, shape: tuple[int, ...] = SHAPE) -> tuple[Array, Array]:
    """Return two arrays that agree here and there."""
    rng = np.random.default_rng(3)
    x, y = special(dtype, shape, rng), special(dtype, shape, rng)
    return x, np.where(rng.random(shape) < 0.3, x, y).astype(dtype.numpy)


def agree(native: Native, *args: Array | float) -> None:
    """Fail unless native code leaves what the interpreter leaves."""
    for got, want in native.run(args):
        assert_same(got, want)


@every_type
def test_every_comparison_chooses_what_the_interpreter_does(dtype: DataType) -> None:
    lines = ["a = pl.load(x, [0, 0], [5, 37])", "b = pl.load(y, [0, 0], [5, 37], valid_shape=[5, 37])"]
    outputs: dict[str, str] = {}
    for test in range(6):
        for name, mask in (("t", f"pl.cmp(a, b, cmp_type={test})"), ("s", f"pl.cmps(a, n, cmp_type={test})")):
            lines.append(f"m{name}{test} = {mask}")
            lines.append(f"{name}{test} = pl.store(pl.sel(m{name}{test}, a, b), [0, 0], {name}{test})")
            lines.append(f"q{name}{test} = pl.store(pl.sels(m{name}{test}, b, scalar=n), [0, 0], q{name}{test})")
            outputs |= {f"{name}{test}": out(dtype, *SHAPE), f"q{name}{test}": out(dtype, *SHAPE)}
    native = Native(
        kernel("\n".join(lines), x=tensor(dtype, *SHAPE), y=tensor(dtype, *SHAPE), n=scalar(dtype), **outputs)
    )
    x, y = given(dtype)
    agree(native, x, y, x[1, 1].item(), *(np.zeros(SHAPE, dtype.numpy) for _ in outputs))


@pytest.mark.parametrize("shape", [(37,), (1, 8), (5, 1), (5, 37), (2, 3, 9), (3, 260)], ids=str)
def test_a_mask_in_memory_is_packed(shape: tuple[int, ...]) -> None:
    zeros, packed = [0] * len(shape), [*shape[:-1], (shape[-1] + 7) // 8]
    wide = [*shape[:-1], (shape[-1] + 255) // 256 * 32]
    native = Native(
        kernel(
            f"""
            a = pl.load(x, {zeros}, {list(shape)})
            b = pl.load(y, {zeros}, {list(shape)})
            m = pl.cmp(a, b, cmp_type=2)
            bits = pl.store(m, {zeros}, bits)
            out = pl.store(pl.sel(m, a, b), {zeros}, out)
            again = pl.load(held, {zeros}, {wide})
            more = pl.store(pl.sels(again, a, scalar=0.5), {zeros}, more)
            """,
            x=tensor(pl.FP32, *shape),
            y=tensor(pl.FP32, *shape),
            held=tensor(pl.UINT8, *wide),
            bits=out(pl.UINT8, *packed),
            out=out(pl.FP32, *shape),
            more=out(pl.FP32, *shape),
        )  # fmt: skip
    )
    held = np.random.default_rng(1).integers(0, 256, wide, np.uint8)
    x, y = given(pl.FP32, shape)
    blank = np.zeros(packed, np.uint8), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    agree(native, x, y, held, *blank)


def test_only_the_valid_part_is_compared() -> None:
    native = Native(
        kernel(
            """
            a = pl.load(x, [0, 0], [5, 37], valid_shape=[i, j])
            b = pl.load(y, [0, 0], [5, 37], valid_shape=[i, j])
            m = pl.cmp(a, b, cmp_type=5)
            out = pl.store(pl.sel(m, a, b), [0, 0], out)
            k = pl.cmp(a, b, cmp_type=4)
            bits = pl.store(k, [0, 0], bits)
            """,
            x=tensor(pl.FP32, *SHAPE),
            y=tensor(pl.FP32, *SHAPE),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, *SHAPE),
            bits=out(pl.UINT8, 5, 5),
        )  # fmt: skip
    )
    for i, j in ((3, 17), (5, 37), (0, 3), (2, 0), (1, 8)):
        agree(native, *given(pl.FP32), i, j, np.full(SHAPE, 7, np.float32), np.full((5, 5), 7, np.uint8))


def test_operands_of_different_types_meet() -> None:
    native = Native(
        kernel(
            """
            a = pl.load(x, [0, 0], [5, 37])
            b = pl.load(y, [0, 0], [5, 37])
            row = pl.load(y, [0, 0], [1, 37])
            m = pl.cmp(a, b, cmp_type=0)
            n = pl.cmp(a, row, cmp_type=2)
            out = pl.store(pl.sel(m, a, b), [0, 0], out)
            more = pl.store(pl.sel(n, b, a), [0, 0], more)
            """,
            x=tensor(pl.FP16, *SHAPE),
            y=tensor(pl.INT32, *SHAPE),
            out=out(pl.FP16, *SHAPE),
            more=out(pl.FP16, *SHAPE),
        )  # fmt: skip
    )
    y = np.random.default_rng(3).integers(-70000, 70000, SHAPE, np.int32)
    with np.errstate(over="ignore"):
        x = np.where(y % 3, y, y + 1).astype(np.float16)
    agree(native, x, y, *(np.zeros(SHAPE, np.float16) for _ in "ab"))


def test_a_mask_that_only_chooses_is_not_packed() -> None:
    function = kernel(
        "a = pl.load(x, [0, 0], [5, 64])\nm = pl.cmps(a, 0.0, cmp_type=4)\n"
        "out = pl.store(pl.sels(m, a, scalar=0.0), [0, 0], out)",
        x=tensor(pl.FP32, 5, 64), out=out(pl.FP32, 5, 64),
    )  # fmt: skip
    text = CPU().compile(PassManager.get_strategy().run_passes(as_program(function))).texts["llvm"]()
    assert "store i8" not in text and "x i8>" not in text
