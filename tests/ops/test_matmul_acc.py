"""Accumulated products: which part of what they are added to, in which batches, turned how."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, OperandError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


def some(seed: int, *shape: int) -> Array:
    """Return small whole numbers, of which products and sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
@pytest.mark.parametrize("first", [None, 0, 1])
@pytest.mark.parametrize("statement", [False, True])
def test_operands_are_turned(a_trans: bool, b_trans: bool, first: int | None, statement: bool) -> None:
    a, b, acc = some(1, 5, 7), some(2, 7, 6), some(3, 5, 6)
    given = f"acc, a, b, a_trans={a_trans}, b_trans={b_trans}" + (", init_cond=n == 1" if first is not None else "")
    body = f"pl.matmul_acc({given})" if statement else f"pl.assemble(acc, pl.matmul_acc({given}), [0, 0])"
    shapes = {"a": (7, 5) if a_trans else (5, 7), "b": (6, 7) if b_trans else (7, 6)}
    parameters = {name: tensor(pl.FP32, *shape) for name, shape in shapes.items()}
    function = kernel(body, **parameters, n=scalar(pl.INDEX), acc=inout(pl.FP32, 5, 6))
    result = np.array(acc)
    turned = [np.transpose(x) if flag else x for x, flag in ((a, a_trans), (b, b_trans))]
    launch(function, *map(np.ascontiguousarray, turned), first or 0, result)
    np.testing.assert_array_equal(result, a @ b if first else acc + a @ b)


BATCHES = {
    "one for all": ((3, 4, 5), (5, 6), (4, 6)),
    "both for all": ((4, 5), (5, 6), (3, 4, 6)),
    "one each": ((3, 4, 5), (3, 5, 6), (3, 4, 6)),
    "an axis of one": ((1, 4, 5), (1, 5, 6), (3, 4, 6)),
    "two axes": ((2, 1, 4, 5), (3, 5, 6), (2, 3, 4, 6)),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_batches_are_repeated_along_those_of_the_accumulator(name: str, kind: str) -> None:
    left, right, into = BATCHES[name]
    into = (*np.broadcast_shapes(left[:-2], right[:-2], into[:-2]), 4, 6)
    a, b, acc = some(1, *left), some(2, *right), some(3, *into)
    zeros = [0] * len(into)
    if kind == "tile":
        loads = [f"{n} = pl.load({n}, {[0] * len(s)}, {list(s)})" for n, s in (("a", left), ("b", right), ("c", into))]
        body = "\n".join([*loads, f"out = pl.store(pl.matmul_acc(c, a, b), {zeros}, out)"])
    else:
        body = f"out = pl.assemble(out, pl.matmul_acc(c, a, b), {zeros})"
    parameters = {n: tensor(pl.FP32, *s) for n, s in (("a", left), ("b", right), ("c", into))}
    result = run(kernel(body, **parameters, out=out(pl.FP32, *into)), a, b, acc)
    np.testing.assert_array_equal(result, acc + np.matmul(a, b))


@pytest.mark.parametrize("kind", ["tile", "tensor"])
@pytest.mark.parametrize("starts_anew", [False, True])
def test_a_sum_is_valid_where_both_are(kind: str, starts_anew: bool) -> None:
    a, b, acc = some(1, 8, 5), some(2, 5, 8), some(3, 8, 8)
    window = "pl.slice({n}, {s}, [0, 0], valid_shape={v})"
    if kind == "tile":
        window = "pl.load({n}, [0, 0], {s}, valid_shape={v})"
    lines = [
        "a = " + window.format(n="a", s=[8, 5], v="[n, 5]"),
        "b = " + window.format(n="b", s=[5, 8], v="[5, m]"),
        "c = " + window.format(n="c", s=[8, 8], v="[p, q]"),
        f"r = pl.matmul_acc(c, a, b{', init_cond=n >= 0' if starts_anew else ''})",
        f"out = pl.store({'r' if kind == 'tile' else 'pl.load(r, [0, 0], [8, 8], clamp=True)'}, [0, 0], out)",
    ]
    numbers = dict.fromkeys("nmpq", scalar(pl.INDEX))
    shapes = {"a": tensor(pl.FP32, 8, 5), "b": tensor(pl.FP32, 5, 8), "c": tensor(pl.FP32, 8, 8)}
    function = kernel("\n".join(lines), **shapes, **numbers, out=out(pl.FP32, 8, 8))
    for n, m, p, q in [(8, 8, 8, 8), (3, 8, 8, 5), (3, 4, 2, 5), (8, 8, 3, 2), (0, 8, 8, 8), (4, 4, 0, 8)]:
        rows, columns = min(n, p), min(m, q)
        want = np.full((8, 8), 99, np.float32)
        want[:rows, :columns] = (a @ b + (0 if starts_anew else acc))[:rows, :columns]
        np.testing.assert_array_equal(run(function, a, b, acc, n, m, p, q, fill=99), want)


def test_what_lies_outside_a_short_accumulator_is_not_looked_at() -> None:
    body = """
    a = pl.load(x, [0, 0], [4, 4])
    c = pl.load(x, [0, 0], [4, 4], valid_shape=[2, 3])
    out = pl.store(pl.matmul_acc(c, a, a), [0, 0], out)
    """
    x = some(4, 4, 4)
    want = np.full((4, 4), 99, np.float32)
    want[:2, :3] = (x + x @ x)[:2, :3]
    np.testing.assert_array_equal(run(kernel(body, x=tensor(pl.FP32, 4, 4), out=out(pl.FP32, 4, 4)), x, fill=99), want)


@pytest.mark.parametrize("phase", ["unspecified", "partial", "final"])
@pytest.mark.parametrize("dtype", [pl.INT8, pl.FP16, pl.BF16, pl.FP32], ids=str)
def test_a_phase_changes_no_number(phase: str, dtype: DataType) -> None:
    summed = pl.FP32 if dtype.is_float() else pl.INT32
    body = f"""
    a = pl.load(x, [0, 0], [1, 8], valid_shape=[1, k])
    b = pl.load(y, [0, 0], [8, 6], valid_shape=[8, n])
    c = pl.load(z, [0, 0], [1, 6])
    first = pl.gemv(a, b, acc_phase="{phase}")
    second = pl.tile.gemv_acc(first, a, b, acc_phase="{phase}")
    third = pl.add(second, pl.gemv_bias(a, b, c, acc_phase="{phase}"))
    out = pl.store(third, [0, 0], out)
    """
    numbers = {"k": scalar(pl.INDEX), "n": scalar(pl.INDEX)}
    shapes = {"x": tensor(dtype, 1, 8), "y": tensor(dtype, 8, 6), "z": tensor(summed, 1, 6)}
    function = kernel(body, **shapes, **numbers, out=out(summed, 1, 6))
    x, y, z = some(1, 1, 8), some(2, 8, 6), some(3, 1, 6)
    given = [values.astype(t.numpy) for values, t in ((x, dtype), (y, dtype), (z, summed))]
    for k, n in [(8, 6), (5, 6), (8, 3), (1, 1)]:
        want = np.full((1, 6), 77, np.float32)
        want[:, :n] = (3 * (x[:, :k] @ y[:k]) + z)[:, :n]
        np.testing.assert_array_equal(run(function, *given, k, n, fill=77).astype(np.float32), want)


TILES = "a = pl.load(x, [0, 0], [1, 4])\nb = pl.load(y, [0, 0], [4, 4])\n"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ('pl.gemv(a, b, acc_phase="last")', AttributeValueError, "acc_phase cannot be 'last'"),
        ('pl.gemv_acc(a, a, b, "first")', AttributeValueError, "acc_phase cannot be 'first'"),
        ("pl.matmul_acc(b, b, b, a_trans=True)", OperandError, "are for tensors"),
        ("pl.matmul_acc(a, b, b)", ShapeMismatchError, "acc must be shaped like the product"),
        ("pl.matmul_acc(pl.cast(b, pl.BF16), b, b)", DTypeMismatchError, "acc must hold fp32"),
        ("pl.matmul_acc(pl.reshape(b, [1, 4, 4]), b, b, init_cond=n > 0)", AttributeValueError, "products of two axes"),
    ],
)
def test_what_is_refused(call: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"{TILES}r = {call}", x=tensor(pl.FP32, 1, 4), y=tensor(pl.FP32, 4, 4), n=scalar(pl.INDEX))
