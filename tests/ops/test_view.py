"""Views of tensors: their memory under another shape or layout."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, inout, kernel, launch, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.enums import TensorLayout
from tilewright.core.types import TensorType
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

X = tensor(pl.FP32, 4, 6)


def read(view: str, shape: tuple[int, ...], *numbers: int) -> Array:
    """Return what a view of `x`, the numbers from zero on, holds."""
    zeros = [0] * len(shape)
    body = f"v = {view}\nout = pl.store(pl.load(v, {zeros}, {list(shape)}, clamp=True), {zeros}, out)"
    names = dict.fromkeys("nm"[: len(numbers)], scalar(pl.INDEX))
    return run(kernel(body, x=X, **names, out=out(pl.FP32, *shape)), counting(4, 6), *numbers, fill=-1)


def test_a_view_has_the_same_elements_in_the_same_order() -> None:
    np.testing.assert_array_equal(read("pl.tensor.view(x, [3, 8])", (3, 8)), counting(3, 8))


def test_writing_a_view_writes_its_tensor() -> None:
    x = counting(4, 6)
    launch(kernel("pl.write(pl.tensor.view(x, [24]), [23], -1.0)", x=inout(pl.FP32, 4, 6)), x)
    assert x[3, 5] == -1


def test_another_layout_swaps_the_last_two_axes() -> None:
    np.testing.assert_array_equal(read("pl.tensor.view(x, layout=pl.DN)", (6, 4)), np.transpose(counting(4, 6)))


def test_the_same_layout_changes_nothing() -> None:
    np.testing.assert_array_equal(read("pl.tensor.view(x, layout=pl.ND)", (4, 6)), counting(4, 6))


def test_the_layout_goes_back() -> None:
    body = "pl.tensor.view(pl.tensor.view(x, layout=pl.DN), layout=pl.ND)"
    np.testing.assert_array_equal(read(body, (4, 6)), counting(4, 6))


def test_a_shape_with_a_layout_is_that_of_the_view() -> None:
    np.testing.assert_array_equal(read("pl.tensor.view(x, [3, 8], layout=pl.DN)", (3, 8)), np.transpose(counting(8, 3)))


def test_a_view_of_a_turned_tensor_is_of_its_memory() -> None:
    body = "pl.tensor.view(pl.tensor.view(x, layout=pl.DN), [3, 8], layout=pl.ND)"
    np.testing.assert_array_equal(read(body, (3, 8)), counting(3, 8))


def test_the_type_says_the_layout_and_reads_back() -> None:
    function = kernel("v = pl.tensor.view(x, layout=pl.DN)\nw = pl.tensor.view(v, layout=pl.ND)", x=X)
    type_ = type_of(function, "v")
    assert isinstance(type_, TensorType) and type_.layout is TensorLayout.DN and type_.shape == (6, 4)
    assert str(pl.parse(str(function))) == str(function)


def test_a_valid_part_may_be_asked_for() -> None:
    result = read("pl.tensor.view(x, [2, 12], [n, 5])", (2, 12), 1)
    want = np.full((2, 12), -1, np.float32)
    want[0, :5] = np.arange(5)
    np.testing.assert_array_equal(result, want)


PARTS = {
    "planes": ("[n, 2, 6]", "[4, 6]", "[2 * n, 6]", True),
    "planes of short rows": ("[n, 2, 5]", "[4, 6]", "[2 * n, 5]", True),
    "a row of all": ("[n, 2, 6]", "[1, 24]", "[1, 12 * n]", True),
}


@pytest.mark.parametrize("name", ["planes", "planes of short rows", "a row of all"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_leading_axes_become_one(name: str, n: int) -> None:
    valid, shape, asked, _ = PARTS[name]
    part = f"pl.slice(pl.reshape(x, [2, 2, 6]), [2, 2, 6], [0, 0, 0], valid_shape={valid})"
    target = tuple(int(extent) for extent in shape.strip("[]").split(","))
    result = read(f"pl.tensor.view({part}, {shape}, {asked})", target, n)
    x = counting(2, 2, 6)
    live = x[:n, :, :5] if "5" in valid else x[:n]
    want = np.full(target, -1, np.float32)
    box = (1, 12 * n) if target[0] == 1 else (2 * n, live.shape[-1])
    want[: box[0], : box[1]] = np.reshape(live, box)
    np.testing.assert_array_equal(result, want)


def test_a_partly_valid_tensor_needs_to_be_told() -> None:
    part = "pl.slice(x, [4, 6], [0, 0], valid_shape=[2, 6])"
    for given in ("[1, 24]", "[2, 12], [1, 12]", "[1, 24], [1, 11]"):
        with pytest.raises(ShapeMismatchError, match="only part of it holds real data|are other elements"):
            kernel(f"v = pl.tensor.view({part}, {given})", x=X)


def test_a_valid_part_of_another_size_is_refused_when_it_runs() -> None:
    part = "pl.slice(x, [4, 6], [0, 0], valid_shape=[n, 6])"
    with pytest.raises(ExecutionError, match="valid in other elements|are other elements"):
        read(f"pl.tensor.view({part}, [1, 24], [1, m])", (1, 24), 2, 11)


@pytest.mark.parametrize("n", [3, 9])
def test_a_view_of_a_window_is_refused_when_it_runs(n: int) -> None:
    with pytest.raises(ExecutionError, match="strided|different numbers"):
        read("pl.tensor.view(pl.slice(x, [4, 4], [0, 0]), [n - 1, 8])", (2, 8), n)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("", AttributeValueError, "a view needs a shape or a layout"),
        (", layout=pl.NZ", AttributeValueError, "pl.ND or pl.DN"),
        (", [24], layout=pl.DN", ShapeMismatchError, "two axes or more"),
        (", [5, 5]", ShapeMismatchError, "different numbers of elements"),
        (", [24], [3, 3]", ShapeMismatchError, "one entry per axis"),
        (", [24], [25]", ShapeMismatchError, "does not fit"),
    ],
)
def test_what_a_view_cannot_be(given: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"v = pl.tensor.view(x{given})", x=X)
