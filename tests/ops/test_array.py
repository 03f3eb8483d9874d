"""Arrays: a few scalars on a core, updated by value."""

from __future__ import annotations

import pytest
from ops.kernels import kernel, launch, on_the_interpreter, out, run, scalar

import tilewright.language as pl
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, OperandError, OutOfBoundsError

pytestmark = pytest.mark.usefixtures("on_target")


def test_a_new_array_holds_zeros() -> None:
    body = "arr = pl.array.create(2, pl.INT32)\npl.write(out, [0], pl.array.get_element(arr, 1))"
    assert run(kernel(body, out=out(pl.INT32, 1)), fill=5) == [0]


def test_an_update_makes_another_array() -> None:
    body = """
    old = pl.array.create(2, pl.INT32)
    new = pl.array.update_element(old, 1, 7)
    pl.write(out, [0], pl.array.get_element(old, 1))
    pl.write(out, [1], pl.array.get_element(new, 1))
    """
    assert run(kernel(body, out=out(pl.INT32, 2)), fill=5).tolist() == [0, 7]


def test_subscripts_read_and_rebind() -> None:
    body = """
    arr = pl.array.create(3, pl.INT32)
    for i in pl.range(3):
        arr[i] = pl.cast(i, pl.INT32) * 2
    pl.write(out, [0], arr[0] + arr[1] + arr[2])
    """
    assert run(kernel(body, out=out(pl.INT32, 1))) == [6]


def test_an_element_wraps_to_the_type_of_the_array() -> None:
    body = "arr = pl.array.create(1, pl.INT8)\narr = pl.array.update_element(arr, 0, n)\npl.write(out, [0], arr[0])"
    assert run(kernel(body, n=scalar(pl.INT32), out=out(pl.INT8, 1)), 300) == [44]


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_provably_outside_is_refused(index: int) -> None:
    with pytest.raises(OutOfBoundsError, match=f"index {index} lies outside 0 to 4"):
        kernel(f"arr = pl.array.create(4, pl.INT32)\nn = pl.array.get_element(arr, {index})")


@on_the_interpreter
def test_an_index_outside_is_refused_when_it_runs() -> None:
    function = kernel("arr = pl.array.create(4, pl.INT32)\nv = pl.array.get_element(arr, n)", n=scalar(pl.INT32))
    with pytest.raises(ExecutionError, match="index 4 lies outside 0 to 4"):
        launch(function, 4)


def test_an_array_holds_at_least_one_element() -> None:
    with pytest.raises(AttributeValueError, match="at least one element, got 0"):
        kernel("arr = pl.array.create(0, pl.INT32)")


def test_an_array_holds_no_floats() -> None:
    with pytest.raises(DTypeMismatchError, match="arrays hold integers, bools and task ids, not fp32"):
        kernel("arr = pl.array.create(4, pl.FP32)")


@pytest.mark.parametrize("value", ["n", "True"])
def test_an_integer_array_takes_integers_only(value: str) -> None:
    body = f"arr = pl.array.create(4, pl.INT32)\narr = pl.array.update_element(arr, 0, {value})"
    with pytest.raises(DTypeMismatchError, match="cannot go into an array of int32"):
        kernel(body, n=scalar(pl.FP32))


@pytest.mark.parametrize("value", [1.5, 2**31, -(2**31) - 1, 2**70])
def test_an_integer_array_takes_numbers_it_can_hold(value: float) -> None:
    body = f"arr = pl.array.create(4, pl.INT32)\narr = pl.array.update_element(arr, 0, {value})"
    with pytest.raises(OperandError, match=f"{value} is not a number int32 can hold"):
        kernel(body)


def test_an_array_collects_task_ids() -> None:
    body = """
    ids = pl.array.create(2, pl.TASK_ID)
    ids = pl.array.update_element(ids, 1, pl.system.task_invalid())
    same = ids[1] == pl.system.task_invalid()
    if same:
        pl.write(out, [0], 1)
    """
    assert run(kernel(body, out=out(pl.INT32, 1))) == [1]
