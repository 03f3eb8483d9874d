"""Numbers where elements are expected: ops on two of them, and those that become elements first."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import counting, inout, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import OperandError

pytestmark = pytest.mark.usefixtures("on_target")


@pytest.mark.parametrize(("name", "want"), [("add", 14), ("sub", 6), ("mul", 40), ("div", 2)])
def test_an_op_on_two_numbers_is_the_operator(name: str, want: int) -> None:
    function = kernel(
        f"pl.write(out, [0], pl.{name}(n, m))\npl.write(out, [1], pl.{name}(n, 4))",
        n=scalar(pl.INT32),
        m=scalar(pl.INT32),
        out=inout(pl.INT32, 2),
    )
    result = np.zeros(2, np.int32)
    launch(function, 10, 4, result)
    assert result.tolist() == [want, want]


def test_two_literals_are_an_index_or_a_float() -> None:
    text = str(kernel("a = pl.add(2, 3)\nb = pl.mul(2.0, 3.0)\npl.write(x, [a], b)", x=inout(pl.FP32, 8)))
    assert "pl.tensor.write(x, [5], 6.0)" in text


@pytest.mark.parametrize("use", ["pl.add(True, n)", "pl.mul(n, n > 1)", "pl.div(False, True)"])
def test_truth_is_no_number(use: str) -> None:
    with pytest.raises(OperandError, match="scalar arithmetic does not accept bool") as raised:
        kernel(f"a = {use}", n=scalar(pl.INT32))
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize(
    ("dtype", "given", "number"),
    [(pl.INT16, pl.FP32, 2.75), (pl.INT16, pl.FP32, -2.75), (pl.FP32, pl.INT32, 7), (pl.INT8, pl.INT32, 130)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
@pytest.mark.parametrize("name", ["adds", "subs"])
def test_a_scalar_form_converts_its_number_first(
    name: str, kind: str, dtype: DataType, given: DataType, number: float
) -> None:
    body = {
        "tile": f"out = pl.store(pl.tile.{name}(pl.load(x, [0, 0], [2, 8]), n), [0, 0], out)",
        "tensor": f"out = pl.assemble(out, pl.tensor.{name}(x, n), [0, 0])",
    }[kind]
    function = kernel(body, x=tensor(dtype, 2, 8), n=scalar(given), out=out(dtype, 2, 8))
    x = counting(2, 8, dtype=dtype)
    converted = np.asarray(int(number) if dtype.is_int() else number).astype(dtype.numpy)
    want = x + converted if name == "adds" else x - converted
    assert run(function, x, number).tobytes() == want.astype(dtype.numpy).tobytes()


@pytest.mark.parametrize("name", ["max", "min"])
def test_tiles_have_the_scalar_extremes_too(name: str) -> None:
    assert getattr(pl.tile, name) is getattr(pl, name)


@pytest.mark.parametrize("use", ["pl.rems(t, scalar=3.0)", "pl.addsc(t, scalar=3.0, rhs2=t)", "pl.adds(t, scalar=n)"])
def test_the_number_of_a_scalar_form_is_also_called_scalar(use: str) -> None:
    function = kernel(
        f"t = pl.load(x, [0, 0], [1, 8])\nout = pl.store({use}, [0, 0], out)",
        x=tensor(pl.FP32, 1, 8),
        n=scalar(pl.FP32),
        out=out(pl.FP32, 1, 8),
    )
    x = counting(1, 8)
    want = {"rems": np.remainder(x, 3), "addsc": x + 3 + x, "adds": x + 3}[use[3:].split("(")[0]]
    assert run(function, x, 3.0).tolist() == want.tolist()
