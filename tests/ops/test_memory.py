"""Memory: tiles in and out of tensors, fresh storage, single elements."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import bfloat16, counting, inout, kernel, launch, on_the_interpreter, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.errors import (
    DTypeMismatchError,
    ExecutionError,
    NotStaticError,
    OperandError,
    OutOfBoundsError,
    ShapeMismatchError,
)

pytestmark = pytest.mark.usefixtures("on_target")

COPY = """
a = pl.load(x, [n, 0], [4, 8])
out = pl.store(a, [0, 0], out)
"""


def valid_of(body: str, name: str = "a") -> tuple[object, ...]:
    """Return the valid part of a tile as the compiler knows it, where `x` is a 10 by 8 tensor."""
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32)), name)
    assert isinstance(type_, TileType)
    return type_.valid


def test_a_load_takes_the_elements_from_its_offsets_on() -> None:
    function = kernel(COPY, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    assert run(function, counting(10, 8), 3).tolist() == counting(10, 8)[3:7].tolist()


def test_a_load_past_the_end_is_cut_to_what_the_tensor_holds() -> None:
    function = kernel(COPY, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    result = run(function, counting(10, 8), 8, fill=-1)
    assert result[:2].tolist() == counting(10, 8)[8:].tolist()
    assert (result[2:] == -1).all()


@on_the_interpreter
@pytest.mark.parametrize("start", [-1, 10, 11])
def test_a_load_that_starts_outside_is_refused_when_it_runs(start: int) -> None:
    function = kernel(COPY, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    with pytest.raises(ExecutionError, match=f"axis 0: a load of 4 element.* at {start} starts outside 0 to 10"):
        run(function, counting(10, 8), start)


@pytest.mark.parametrize(("offset", "help"), [("8", "clamp=True"), ("-1", "pl.max(i, 0)")])
def test_a_load_that_provably_does_not_fit_is_refused_before(offset: str, help: str) -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements .* lie outside 0 to 10") as caught:
        valid_of(f"a = pl.load(x, [{offset}, 0], [4, 8])")
    assert help in caught.value.help


def test_an_offset_kept_at_zero_or_after_is_not_refused() -> None:
    body = "a = pl.load(x, [pl.max(n, 0), 0], [4, 8])\nout = pl.store(a, [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    assert run(function, counting(10, 8), -1).tolist() == counting(10, 8)[:4].tolist()


def test_a_loop_that_provably_leaves_the_tensor_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements 12 to 20 lie outside 0 to 10"):
        valid_of("for i in pl.range(12, 17):\n    a = pl.load(x, [i, 0], [4, 8])")


def test_a_clamped_load_knows_how_much_is_there() -> None:
    assert valid_of("a = pl.load(x, [8, 0], [4, 8], clamp=True)") == (2, 8)


def test_a_clamped_load_still_starts_at_zero_or_later() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements -1 to 3"):
        valid_of("a = pl.load(x, [-1, 0], [4, 8], clamp=True)")


def test_a_load_at_an_unknown_place_has_an_unknown_valid_part() -> None:
    assert valid_of("a = pl.load(x, [n, 0], [4, 8])") == (None, 8)


def test_a_load_in_a_loop_that_provably_fits_is_wholly_valid() -> None:
    body = "for i in pl.range(6):\n    pl.store(pl.load(x, [i, 0], [4, 8]), [0, 0], out)"
    text = str(kernel(body, x=tensor(pl.FP32, 10, 8), out=out(pl.FP32, 4, 8)))
    assert "pl.Tile[[4, 8], pl.FP32] =" in text


def test_a_valid_shape_asks_for_less() -> None:
    assert valid_of("a = pl.load(x, [0, 0], [4, 8], valid_shape=[3, n])") == (3, None)


def test_a_valid_shape_larger_than_the_tile_is_refused() -> None:
    with pytest.raises(ShapeMismatchError, match=r"a valid part of \[5, 8\] does not fit \[4, 8\]"):
        valid_of("a = pl.load(x, [0, 0], [4, 8], valid_shape=[5, 8])")


@on_the_interpreter
def test_a_valid_shape_larger_than_the_tile_is_refused_when_it_runs() -> None:
    body = "a = pl.load(x, [0, 0], [4, 8], valid_shape=[n, 8])\nout = pl.store(a, [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 10, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    with pytest.raises(ExecutionError, match=r"a valid part of \[5, 8\] does not fit \[4, 8\]"):
        run(function, counting(10, 8), 5)


@pytest.mark.parametrize("argument", ["[0], [4, 8]", "[0, 0], [4]", "[0, 0], [4, 8], [4]"])
def test_a_load_needs_one_entry_per_axis(argument: str) -> None:
    with pytest.raises(ShapeMismatchError, match="needs one entry per axis of the 2-D tensor, got 1"):
        valid_of(f"a = pl.load(x, {argument})")


def test_a_tile_shape_must_be_static() -> None:
    with pytest.raises(NotStaticError, match="a tile's shape must be static") as caught:
        valid_of("a = pl.load(x, [0, 0], [n, 8])")
    assert "valid_shape" in caught.value.help


def test_a_tile_is_not_loaded_from() -> None:
    with pytest.raises(OperandError, match="`tensor` of `load` must be a tensor, got tile"):
        valid_of("t = pl.load(x, [0, 0], [4, 8])\na = pl.load(t, [0, 0], [4, 8])")


def test_a_dynamic_tensor_is_loaded_to_its_end() -> None:
    function = kernel(
        """
        for r in pl.range(0, M, 4):
            a = pl.load(x, [r, 0], [4, 2])
            out = pl.store(pl.add(a, 1.0), [r, 0], out)
        """,
        x=tensor(pl.FP32, "M", 2),
        out=out(pl.FP32, "M", 2),
    )
    result = np.zeros((10, 2), np.float32)
    launch(function, counting(10, 2), result)
    assert (result == counting(10, 2) + 1).all()


@on_the_interpreter
def test_one_symbol_is_one_extent() -> None:
    function = kernel("a = pl.load(x, [0], [1])", x=tensor(pl.FP32, "M"), y=tensor(pl.FP32, "M"))
    with pytest.raises(ExecutionError, match="axis 0 of `y` is 4, but M is 3"):
        launch(function, counting(3), counting(4))


def test_a_store_writes_only_the_valid_part() -> None:
    body = "out = pl.store(pl.load(x, [0, 0], [4, 8], valid_shape=[1, 2]), [1, 1], out)"
    result = run(kernel(body, x=tensor(pl.FP32, 10, 8), out=out(pl.FP32, 4, 8)), counting(10, 8) + 5)
    assert result[1, 1:3].tolist() == [5, 6]
    assert np.count_nonzero(result) == 2


def test_a_store_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements 2 to 6 lie outside 0 to 4"):
        kernel(
            "out = pl.store(pl.load(x, [0, 0], [4, 8]), [2, 0], out)", x=tensor(pl.FP32, 4, 8), out=out(pl.FP32, 4, 8)
        )


@on_the_interpreter
def test_a_store_that_does_not_fit_is_refused_when_it_runs() -> None:
    body = "out = pl.store(pl.load(x, [0, 0], [4, 8]), [n, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 4, 8), n=scalar(pl.INT32), out=out(pl.FP32, 4, 8))
    with pytest.raises(ExecutionError, match=r"axis 0: a store of 4 element\(s\) at 1 does not fit 0 to 4"):
        run(function, counting(4, 8), 1)


def test_a_store_of_a_valid_part_that_fits_is_accepted() -> None:
    body = "out = pl.store(pl.load(x, [0, 0], [4, 8], valid_shape=[2, 8]), [2, 0], out)"
    result = run(kernel(body, x=tensor(pl.FP32, 4, 8), out=out(pl.FP32, 4, 8)), counting(4, 8))
    assert result[2:].tolist() == counting(4, 8)[:2].tolist()


def test_a_store_into_another_element_type_is_refused() -> None:
    with pytest.raises(DTypeMismatchError, match="a fp32 tile cannot be stored into a fp16 tensor") as caught:
        kernel("out = pl.store(pl.load(x, [0], [4]), [0], out)", x=tensor(pl.FP32, 4), out=out(pl.FP16, 4))
    assert caught.value.help == "convert it: pl.cast(tile, pl.FP16)"


def test_a_product_leaves_its_accumulator_as_a_smaller_float() -> None:
    body = "a = pl.load(x, [0, 0], [1, 1])\nout = pl.store(pl.matmul(a, a), [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP16, 1, 1), out=out(pl.FP16, 1, 1))
    assert run(function, np.array([[3]], np.float16)) == [[9]]


def test_a_product_does_not_leave_its_accumulator_as_an_integer() -> None:
    body = "a = pl.load(x, [0, 0], [1, 1])\nout = pl.store(pl.matmul(a, a), [0, 0], out)"
    with pytest.raises(DTypeMismatchError, match="a fp32 tile cannot be stored into a int32 tensor"):
        kernel(body, x=tensor(pl.FP16, 1, 1), out=out(pl.INT32, 1, 1))


def test_a_tile_with_fewer_axes_goes_to_the_last_ones() -> None:
    body = "out = pl.store(pl.load(x, [0], [3]), [1, 0], out)"
    assert run(kernel(body, x=tensor(pl.FP32, 3), out=out(pl.FP32, 2, 3)), counting(3)).tolist() == [[0] * 3, [0, 1, 2]]


def test_a_store_can_give_the_elements_another_shape() -> None:
    body = "out = pl.store(pl.load(x, [0, 0], [4, 2]), [0, 0, 0], out, shapes=[2, 2, 2])"
    result = run(kernel(body, x=tensor(pl.FP32, 4, 2), out=out(pl.FP32, 2, 2, 2)), counting(4, 2))
    assert result.tolist() == counting(2, 2, 2).tolist()


def test_a_store_gives_every_element_a_place() -> None:
    with pytest.raises(ShapeMismatchError, match=r"`shapes` \[1, 2, 2\] must hold every element"):
        kernel(
            "out = pl.store(pl.load(x, [0, 0], [4, 2]), [0, 0, 0], out, shapes=[1, 2, 2])",
            x=tensor(pl.FP32, 4, 2),
            out=out(pl.FP32, 2, 2, 2),
        )


def test_an_atomic_store_adds_to_what_is_there() -> None:
    body = "total = pl.store(pl.load(x, [0], [4]), [0], total, atomic=pl.AtomicType.Add)"
    function = kernel(f"{body}\n{body}", x=tensor(pl.FP32, 4), total=inout(pl.FP32, 4))
    total = np.full(4, 100, np.float32)
    launch(function, counting(4), total)
    assert total.tolist() == [100, 102, 104, 106]


def test_infinities_of_both_signs_add_up_to_no_number() -> None:
    body = "total = pl.store(pl.load(x, [0], [4]), [0], total, atomic=pl.AtomicType.Add)"
    total = np.full(4, np.inf, np.float32)
    launch(kernel(body, x=tensor(pl.FP32, 4), total=inout(pl.FP32, 4)), -total, total)
    assert np.isnan(total).all()


def test_an_atomic_store_does_not_take_every_element_type() -> None:
    with pytest.raises(DTypeMismatchError, match="atomic add does not take int64 elements"):
        kernel(
            "out = pl.store(pl.load(x, [0], [4]), [0], out, atomic=pl.AtomicType.Add)",
            x=tensor(pl.INT64, 4),
            out=out(pl.INT64, 4),
        )


def test_a_store_returns_the_tensor_it_wrote() -> None:
    function = kernel(
        """
        first = pl.store(pl.load(x, [0], [4]), [0], out)
        second = pl.store(pl.add(pl.load(first, [0], [4]), 1.0), [0], first)
        """,
        x=tensor(pl.FP32, 4),
        out=out(pl.FP32, 4),
    )
    assert run(function, counting(4)).tolist() == [1, 2, 3, 4]


def test_moving_a_tile_changes_only_its_memory() -> None:
    body = "a = pl.load(x, [0], [4])\nb = pl.move(a, target_memory=pl.Mem.Mat)\nout = pl.store(b, [0], out)"
    function = kernel(body, x=tensor(pl.FP32, 4), out=out(pl.FP32, 4))
    type_ = type_of(function, "b")
    assert isinstance(type_, TileType) and type_.memory is pl.Mem.Mat
    assert run(function, counting(4)).tolist() == [0, 1, 2, 3]


@on_the_interpreter
def test_fresh_storage_cannot_be_looked_at() -> None:
    fresh = kernel("out = pl.store(pl.create_tile([2], dtype=pl.FP32), [0], out)", out=out(pl.FP32, 2))
    with pytest.raises(ExecutionError, match="elements that nobody wrote"):
        run(fresh)


def test_a_fresh_tensor_can_be_filled() -> None:
    body = "t = pl.create_tensor([2], dtype=pl.FP32, init_value=1.5)\nout = pl.assemble(out, t, [0])"
    assert run(kernel(body, out=out(pl.FP32, 2))).tolist() == [1.5, 1.5]


def test_full_fills_with_a_run_time_value() -> None:
    body = "out = pl.store(pl.tile.full([2], dtype=pl.INT32, value=n), [0], out)"
    assert run(kernel(body, n=scalar(pl.INT32), out=out(pl.INT32, 2)), 6).tolist() == [6, 6]


def test_a_negative_extent_is_refused() -> None:
    with pytest.raises(ShapeMismatchError, match="extents must not be negative"):
        kernel("t = pl.create_tensor([-2], dtype=pl.FP32)")


@pytest.mark.parametrize("extent", [0, -2])
def test_a_tile_has_elements(extent: int) -> None:
    with pytest.raises(ShapeMismatchError, match="extents must be positive"):
        kernel(f"t = pl.create_tile([{extent}], dtype=pl.FP32)")


def test_reading_gives_one_element() -> None:
    body = "pl.write(out, [0], pl.read(x, [1, n]))"
    function = kernel(body, x=tensor(pl.BF16, 2, 2), n=scalar(pl.INT32), out=out(pl.BF16, 1))
    assert run(function, np.array([[1, 2], [3, 4.5]], bfloat16), 1).astype(float) == [4.5]


def test_reading_a_provably_absent_element_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 1: index 2 lies outside 0 to 2"):
        kernel("v = pl.read(x, [0, 2])", x=tensor(pl.FP32, 2, 2))


@on_the_interpreter
def test_reading_an_absent_element_is_refused_when_it_runs() -> None:
    function = kernel("v = pl.read(x, [n])", x=tensor(pl.FP32, 2), n=scalar(pl.INT32))
    with pytest.raises(ExecutionError, match="axis 0: index -1 lies outside 0 to 2"):
        launch(function, counting(2), -1)


def test_a_single_index_stands_for_one_axis() -> None:
    function = kernel("pl.write(out, 1, pl.read(x, 2))", x=tensor(pl.FP32, 3), out=out(pl.FP32, 2))
    assert run(function, counting(3)).tolist() == [0, 2]


def test_writing_an_element_of_a_tile_changes_the_tile() -> None:
    body = "a = pl.load(x, [0], [3])\npl.write(a, [1], 9.0)\nout = pl.store(a, [0], out)"
    x = counting(3)
    assert run(kernel(body, x=tensor(pl.FP32, 3), out=out(pl.FP32, 3)), x).tolist() == [0, 9, 2]
    assert x.tolist() == [0, 1, 2]


def test_writing_a_tile_leaves_values_made_from_it_alone() -> None:
    body = "a = pl.load(x, [0], [4])\nb = pl.reshape(a, [2, 2])\npl.write(b, [0, 0], 9.0)\nout = pl.store(a, [0], out)"
    assert run(kernel(body, x=tensor(pl.FP32, 4), out=out(pl.FP32, 4)), counting(4)).tolist() == [0, 1, 2, 3]


def test_an_index_can_be_written_into_integers() -> None:
    function = kernel("for i in pl.range(3):\n    pl.write(out, [i], i)", out=out(pl.INT32, 3))
    assert run(function).tolist() == [0, 1, 2]


def test_writing_a_float_into_integers_is_refused() -> None:
    with pytest.raises(DTypeMismatchError, match="fp32 cannot be written into int32 elements"):
        kernel("pl.write(out, [0], n)", n=scalar(pl.FP32), out=out(pl.INT32, 3))


def test_dim_of_a_static_axis_is_a_constant() -> None:
    body = "n = pl.tensor.dim(x, -1)\npl.write(out, [0], n)"
    function = kernel(body, x=tensor(pl.FP32, 3, 7), out=out(pl.INT32, 1))
    assert "dim" not in str(function)
    assert run(function, counting(3, 7)) == [7]


def test_dim_of_a_dynamic_axis_is_what_the_caller_brings() -> None:
    function = kernel("pl.write(out, [0], pl.tensor.dim(x, 1))", x=tensor(pl.FP32, 3, "N"), out=out(pl.INT32, 1))
    assert run(function, counting(3, 5)) == [5]


def test_dim_of_a_missing_axis_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 2 of a 2-D tensor does not exist"):
        kernel("n = pl.tensor.dim(x, 2)", x=tensor(pl.FP32, 3, 7))
