"""Reshapes: the same elements under another shape, all of them or a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from ops.kernels import counting, inout, kernel, launch, on_the_interpreter, out, run, scalar, tensor, type_of
from ops.test_shape import from_tile

import tilewright.language as pl
from tilewright.core.types import TensorType, TileType
from tilewright.errors import ExecutionError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


Shape: TypeAlias = tuple[int, ...]

CASES: dict[str, tuple[Shape, Shape, Shape, Shape | None]] = {
    "an axis of one is added": ((4, 8), (3, 5), (4, 1, 8), (3, 1, 5)),
    "an axis of one is dropped": ((4, 1, 8), (3, 1, 5), (4, 8), (3, 5)),
    "axes of one move": ((1, 4, 8), (1, 3, 5), (4, 8, 1), (3, 5, 1)),
    "nothing is valid": ((4, 8), (0, 8), (8, 4), (0, 0)),
    "whole rows become a row": ((4, 8), (3, 8), (1, 32), (1, 24)),
    "whole rows become longer ones": ((4, 8), (2, 8), (2, 16), (1, 16)),
    "whole rows become shorter ones": ((4, 8), (3, 8), (8, 4), (6, 4)),
    "part of a longer row": ((4, 8), (3, 8), (2, 16), None),
    "a row becomes several": ((1, 32), (1, 24), (4, 8), (3, 8)),
    "less than a row becomes less than a row": ((1, 32), (1, 5), (4, 8), (1, 5)),
    "more than a row and less than two": ((1, 32), (1, 9), (4, 8), None),
    "planes become rows": ((4, 2, 8), (3, 2, 8), (8, 8), (6, 8)),
    "one plane of rows": ((4, 2, 8), (1, 1, 8), (8, 8), (1, 8)),
    "a part of every row": ((4, 8), (4, 5), (32,), None),
    "a single element": ((4, 8), (1, 1), (32,), (1,)),
}
"""A shape and what is valid of it, another shape and what is valid of that; None where it is no box."""


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case[3]])
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_the_valid_part_is_a_box_of_the_same_elements(name: str, kind: str) -> None:
    shape, valid, target, expected = CASES[name]
    assert expected is not None
    x = counting(*shape)
    zeros = [0] * len(target)
    window = f"pl.slice(x, {list(shape)}, {[0] * len(shape)}, valid_shape={list(valid)})"
    if kind == "tile":
        window = f"pl.load(x, {[0] * len(shape)}, {list(shape)}, valid_shape={list(valid)})"
    value = "r" if kind == "tile" else f"pl.load(r, {zeros}, {list(target)}, clamp=True)"
    body = f"r = pl.reshape({window}, {list(target)})\nout = pl.store({value}, {zeros}, out)"
    function = kernel(body, x=tensor(pl.FP32, *shape), out=out(pl.FP32, *target))
    type_ = type_of(function, "r")
    assert isinstance(type_, (TileType, TensorType)) and type_.valid == expected
    live = x[tuple(slice(0, extent) for extent in valid)]
    want = np.full(target, -1, np.float32)
    want[tuple(slice(0, extent) for extent in expected)] = np.reshape(live, expected)
    np.testing.assert_array_equal(run(function, x, fill=-1), want)


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if not case[3]])
def test_a_valid_part_that_is_no_box_is_refused(name: str) -> None:
    shape, valid, target, _ = CASES[name]
    with pytest.raises(ShapeMismatchError, match="cannot reshape"):
        from_tile(f"pl.reshape(a, {list(target)})", counting(*shape), *target, load=f", valid_shape={list(valid)}")


RUNTIME: dict[str, tuple[str, Shape, Callable[[int, int], Shape] | None]] = {
    "an axis of one is added": ("[n, m]", (4, 1, 8), lambda n, m: (n, 1, m)),
    "rows become rows of planes": ("[n, 8]", (2, 2, 8), None),
    "rows become more rows": ("[n, 8]", (1, 4, 8), lambda n, m: (1, n, 8)),
    "rows of a plane become rows": ("[n, 8]", (4, 2, 4), lambda n, m: (n, 2, 4)),
    "rows become shorter ones": ("[n, 8]", (8, 4), lambda n, m: (2 * n, 4)),
    "rows become a column": ("[n, 8]", (32, 1), lambda n, m: (8 * n, 1)),
    "rows and columns": ("[n, m]", (32,), None),
}


@pytest.mark.parametrize("name", RUNTIME)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_how_much_is_valid_is_carried_along(name: str, kind: str) -> None:
    valid, target, expected = RUNTIME[name]
    window = f"pl.slice(x, [4, 8], [0, 0], valid_shape={valid})"
    if kind == "tile":
        window = f"pl.load(x, [0, 0], [4, 8], valid_shape={valid})"
    zeros = [0] * len(target)
    value = "r" if kind == "tile" else f"pl.load(r, {zeros}, {list(target)}, clamp=True)"
    body = f"r = pl.reshape({window}, {list(target)})\nout = pl.store({value}, {zeros}, out)"
    parameters = {"x": tensor(pl.FP32, 4, 8), "n": scalar(pl.INDEX), "m": scalar(pl.INDEX)}
    function = kernel(body, **parameters, out=out(pl.FP32, *target))
    x = counting(4, 8)
    for n, m in ((3, 5), (4, 8), (1, 8), (0, 0)):
        rows, columns = n, m if "m" in valid else 8
        if expected is None and (rows, columns) != (4, 8):
            with pytest.raises(ExecutionError, match="reshaped"):
                run(function, x, n, m)
            continue
        box = target if expected is None else expected(rows, columns)
        want = np.full(target, -1, np.float32)
        want[tuple(slice(0, extent) for extent in box)] = np.reshape(x[:rows, :columns], box)
        np.testing.assert_array_equal(run(function, x, n, m, fill=-1), want, f"{n} {m}")


def test_reshaping_a_tensor_is_a_view_of_it() -> None:
    x = counting(2, 3)
    launch(kernel("pl.write(pl.reshape(x, [6]), [5], -1.0)", x=inout(pl.FP32, 2, 3)), x)
    assert x[1, 2] == -1


@pytest.mark.parametrize(("shape", "want"), [("-1, 4", (6, 4)), ("3, -1", (3, 8)), ("2, -1, 4", (2, 3, 4))])
def test_one_extent_is_what_is_left(shape: str, want: Shape) -> None:
    result = from_tile(f"pl.reshape(a, [{shape}])", counting(4, 6), *want)
    np.testing.assert_array_equal(result, np.reshape(counting(4, 6), want))
    view = kernel(f"v = pl.reshape(x, [{shape}])", x=tensor(pl.FP32, 4, 6))
    assert getattr(type_of(view, "v"), "shape", ()) == want


@pytest.mark.parametrize("shape", ["-1, -1", "-1, 5", "0, -1"])
def test_only_one_extent_that_divides_is_what_is_left(shape: str) -> None:
    with pytest.raises(ShapeMismatchError):
        from_tile(f"pl.reshape(a, [{shape}])", counting(4, 6), 4, 6)


def test_reshaping_keeps_the_number_of_elements() -> None:
    with pytest.raises(ShapeMismatchError, match=r"\[2, 3\] and \[4\] hold different numbers of elements"):
        from_tile("pl.reshape(a, [4])", counting(2, 3), 4)


def test_reshaping_needs_a_wholly_valid_value() -> None:
    with pytest.raises(ShapeMismatchError, match="cannot reshape .* only part of it holds real data") as caught:
        from_tile("pl.reshape(a, [6])", counting(2, 3), 6, load=", valid_shape=[2, 2]")
    assert "fillpad" in caught.value.help


@on_the_interpreter
def test_reshaping_a_strided_view_is_refused_when_it_runs() -> None:
    function = kernel("v = pl.reshape(pl.slice(x, [4, 2], [0, 0]), [8])", x=tensor(pl.FP32, 4, 4))
    with pytest.raises(ExecutionError, match="this view is strided"):
        launch(function, counting(4, 4))
