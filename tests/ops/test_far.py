"""Elementwise ops on floats of all sizes: as exact as they promise where results are subnormal, or nearly too large."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops.kernels import Array, floating, kernel, out, tensor
from ops.native import Native, assert_same
from ops.test_families import Case, cases, computed, operand_shapes, required

import tilewright.language as pl
from tilewright.core.op import Kind, Op
from tilewright.core.program import Function
from tilewright.dtypes import DataType

COUNT = 6144
FLOATS = (pl.FP32, pl.FP16, pl.BF16)


def far_cases(op: Op) -> list[Case]:
    """Return an op on each type of float whose reference is computed in a wider one."""
    return [case for case in cases("elementwise") if case.op is op and case.dtype in FLOATS]


def is_of_floats(op: Op) -> bool:
    return op.kind is Kind.TILE and any(all(operand_shapes(case)) for case in far_cases(op))


far_ops = [op for op in dict.fromkeys(case.op for case in cases("elementwise")) if is_of_floats(op)]


def far_kernel(op: Op) -> Function:
    """Return a kernel that has a row of results for each type of float."""
    lines: list[str] = []
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for case in far_cases(op):
        names = [f"{p.name}_{case.dtype}" for p in required(case)]
        inputs |= {name: tensor(case.dtype, 1, COUNT) for name in names}
        outputs[f"out_{case.dtype}"] = out(computed(case).dtype, 1, COUNT)
        loads = ", ".join(f"pl.load({name}, [0, 0], [1, {COUNT}])" for name in names)
        lines.append(f"out_{case.dtype} = pl.store(pl.{op.name}({loads}), [0, 0], out_{case.dtype})")
    return kernel("\n".join(lines), **inputs, **outputs)


def far_arguments(op: Op) -> list[Array]:
    """Return the arguments of such a kernel, results last."""
    rng = np.random.default_rng(len(op.name))
    inputs = [far_floats(case.dtype, rng) for case in far_cases(op) for _ in required(case)]
    return [*inputs, *(np.zeros((1, COUNT), computed(case).dtype.numpy) for case in far_cases(op))]


def far_floats(dtype: DataType, rng: np.random.Generator) -> Array:
    """Return floats of all sizes, and many that functions which grow or fall quickly are soon done with."""
    info = floating(dtype.numpy)
    low, high = math.log2(float(info.smallest_subnormal)), math.log2(float(info.max))
    sizes = [2.0 ** rng.uniform(low, high, COUNT // 3), rng.uniform(0, 20, COUNT // 3), rng.uniform(0, 110, COUNT // 3)]
    return (np.concatenate(sizes) * rng.choice([-1, 1], COUNT))[None].astype(dtype.numpy)


def compare_far(op: Op, results: list[tuple[Array, Array]]) -> None:
    """Fail where a result is further from the interpreter's than the op promises."""
    for case, (got, want) in zip(far_cases(op), results[-len(far_cases(op)) :], strict=True):
        assert_same(got, want, op.spec.accuracy(case.dtype))


@pytest.mark.parametrize("op", far_ops, ids=lambda op: op.spec.name)
def test_an_op_keeps_its_promise_on_floats_of_all_sizes(op: Op) -> None:
    compare_far(op, Native(far_kernel(op)).run(far_arguments(op)))
