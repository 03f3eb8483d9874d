"""Arguments: what a kernel can be called with, and how."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal

import numpy as np
import pytest
import torch
from unit.jit.kernels import numbers, scaled, tripled

import tilewright.language as pl
from tilewright.errors import OperandError

M = pl.dynamic("M")


class Way(Enum):
    A = "a"
    B = "b"


@pl.jit
def triple(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return tripled(x, out)


@pl.jit
def affine(
    x: pl.Tensor,
    bias: pl.Tensor | None = None,
    out: pl.Out[pl.Tensor] = None,
    factor: pl.FP32 = 2.0,
    *,
    times: pl.INT32 = 1,
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) * factor
        for _ in pl.range(times - 1):
            t = t * factor
        if bias is not None:
            t = t + pl.load(bias, [0, 0], [4, 8])
        out = pl.store(t, [0, 0], out)
    return out


X = numbers(4, 8)


# how arguments are passed


def test_an_output_that_is_left_out_is_returned() -> None:
    assert torch.equal(triple(X), 3 * X)


def test_an_output_that_is_passed_is_written_and_nothing_returned() -> None:
    out = torch.zeros(4, 8)
    assert triple(X, out) is None
    assert torch.equal(out, 3 * X)


def test_arguments_go_by_position_by_keyword_and_mixed() -> None:
    for args, kwargs in (((X, X), {}), ((X,), {"bias": X}), ((), {"bias": X, "x": X})):
        assert torch.equal(affine(*args, **kwargs), 3 * X)
    out = torch.zeros(4, 8)
    affine(X, factor=3.0, out=out, times=2)
    assert torch.equal(out, 9 * X)


def test_what_is_left_out_has_its_default() -> None:
    assert torch.equal(affine(X), 2 * X)
    assert torch.equal(affine(X, None), 2 * X)
    assert torch.equal(affine(X, None, 4.0), 4 * X)  # outputs left out, so the third is the factor


def test_a_positional_only_parameter_has_no_keyword() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, /, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    assert torch.equal(kernel(X), 3 * X)
    with pytest.raises(TypeError, match="takes `x` by position only"):
        kernel(x=X)


def test_a_keyword_only_output_has_no_place() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, *, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    for _ in range(3):
        out = torch.zeros(4, 8)
        kernel(X, out=out)
        assert torch.equal(out, 3 * X)
    assert torch.equal(kernel(X), 3 * X)
    with pytest.raises(TypeError, match=r"takes 1 \(in-place\) or 1 \(return\) positional arguments, got 2"):
        kernel(X, torch.zeros(4, 8))


def test_an_output_may_come_first() -> None:
    @pl.jit
    def kernel(out: pl.Out[pl.Tensor], x: pl.Tensor, factor: pl.FP32 = 2.0):
        return scaled(x, factor, out)

    assert torch.equal(kernel(X), 2 * X)
    assert torch.equal(kernel(X, 5.0), 5 * X)
    out = torch.zeros(4, 8)
    kernel(out, X, 3.0)
    assert torch.equal(out, 3 * X)


def test_a_helper_takes_keywords_and_defaults_too() -> None:
    @pl.jit.incore
    def power(x: pl.Tensor, out: pl.Out[pl.Tensor], factor: pl.FP32 = 2.0, *, times: pl.INT32 = 1):
        t = pl.load(x, [0, 0], [4, 8])
        for _ in pl.range(times):
            t = t * factor
        return pl.store(t, [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = power(x, out)
        out = power(out=out, x=out, times=2)
        return power(out, out, 0.5)

    assert torch.equal(kernel(X), 4 * X)


def test_several_outputs_come_back_as_a_tuple() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, two: pl.Out[pl.Tensor], three: pl.Out[pl.Tensor]):
        two = scaled(x, 2.0, two)
        three = scaled(x, 3.0, three)
        return two, three

    two, three = kernel(X)
    assert torch.equal(two, 2 * X) and torch.equal(three, 3 * X)
    with pytest.raises(TypeError, match=r"takes 3 \(in-place\) or 1 \(return\) positional arguments, got 2"):
        kernel(X, X)
    with pytest.raises(TypeError, match="`three` is missing: pass every output, or none"):
        kernel(X, two=torch.zeros(4, 8))


def test_an_inout_parameter_is_read_and_written() -> None:
    @pl.jit
    def kernel(x: pl.InOut[pl.Tensor], factor: pl.FP32):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], x)

    x = X.clone()
    assert kernel(x, 2.0) is None
    assert torch.equal(x, 2 * X)


def test_a_kernel_may_return_a_tensor_of_its_own() -> None:
    @pl.jit
    def kernel(x: pl.Tensor):
        made = pl.create_tensor(x.shape, dtype=x.dtype)
        return tripled(x, made)

    assert torch.equal(kernel(X), 3 * X)
    assert isinstance(kernel(X.numpy()), np.ndarray)


def test_a_kernel_may_take_and_return_numbers_alone() -> None:
    @pl.jit
    def kernel(n: pl.INT32):
        return n + 1

    assert kernel(41) == 42


# tensors


class Producer:
    """An array of some other framework."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_of_every_framework_share_one_program() -> None:
    kernel = pl.jit(triple.function)
    out = torch.zeros(4, 8)
    assert torch.equal(kernel(X), 3 * X)
    assert np.array_equal(kernel(X.numpy()), 3 * X.numpy())
    assert np.array_equal(kernel(Producer(X.numpy())), 3 * X.numpy())
    kernel(Producer(X), Producer(out))
    assert torch.equal(out, 3 * X)
    assert kernel.cache_info().compiles == 1


@pytest.mark.parametrize(
    "x",
    [numbers(8, 4).t(), numbers(8, 16)[::2, ::2], numbers(1, 8).expand(4, 8), numbers(2, 4, 8)[1]],
    ids=["transposed", "every other", "expanded", "one of two"],
)
def test_strides_are_taken_as_they_come(x: torch.Tensor) -> None:
    assert torch.equal(triple(x), 3 * x)


def test_an_output_may_be_strided_but_not_overlap_itself() -> None:
    out = torch.zeros(8, 4).t()
    triple(X, out)
    assert torch.equal(out, 3 * X)
    with pytest.raises(ValueError, match="several of its elements share memory"):
        triple(X, torch.zeros(1, 8).expand(4, 8))


def test_a_module_parameter_is_a_tensor() -> None:
    weight = torch.nn.Parameter(X.clone())
    with torch.no_grad():
        assert torch.equal(triple(weight), 3 * X)
    with pytest.raises(ValueError, match="`out` requires grad"):
        triple(X, weight)


def test_an_empty_tensor_gives_an_empty_one() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, x.shape[0], 4):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [i, 0], [4, 8]), [i, 0], out)
        return out

    assert kernel(torch.zeros(0, 8)).shape == (0, 8)
    assert torch.equal(kernel(numbers(8, 8)), numbers(8, 8))


def test_a_tensor_without_axes_holds_one_element() -> None:
    @pl.jit
    def kernel(value: pl.Tensor, out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        pl.static_assert(len(value.shape) == 0)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.tile.full([4, 8], dtype=pl.FP32, value=1.0)
            out = pl.store(t * pl.read(value, []), [0, 0], out)
        return out

    assert torch.equal(kernel(torch.tensor(2.5)), torch.full((4, 8), 2.5))


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool]
)
def test_every_element_type_is_taken(dtype: torch.dtype) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.static_assert(x.dtype == out.dtype)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
        return out

    x = X.to(dtype)
    assert torch.equal(kernel(x), x)


# numbers


@pl.jit
def times(x: pl.Tensor, factor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], out)
    return out


@pytest.mark.parametrize(
    "factor", [2, 2.5, True, np.float32(2.5), np.float64(0.5), np.int8(-3), np.uint64(7), np.bool_(True)]
)
def test_a_number_may_be_of_python_or_of_numpy(factor: Any) -> None:
    assert torch.equal(times(X, factor), X * float(factor))


def test_an_integer_for_a_float_is_a_float_in_the_body() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, factor: pl.FP32, times: pl.INT32, out: pl.Out[pl.Tensor]):
        for _ in pl.range(times):
            factor = factor * 0.5
        return scaled(x, factor, out)

    assert torch.equal(kernel(X, 1, 2), X / 4)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (pl.INT32, 1.5, "`n` is a scalar of int32, got float"),
        (pl.INT32, True, "`n` is a scalar of int32, got bool"),
        (pl.Scalar[pl.INT8], 200, "`n` is a scalar of int8, which cannot hold 200: int8 reaches from -128 to 127"),
        (pl.UINT8, -1, "`n` is a scalar of uint8, which cannot hold -1: uint8 reaches from 0 to 255"),
        (
            None,
            2**64,
            f"`n` is a scalar of index, which cannot hold {2**64}: index reaches from {-(2**63)} to {2**63 - 1}",
        ),
        (pl.INT32, X, "`n` is a scalar, got a tensor"),
        (pl.Tensor, 1, "`n` is a tensor: pass a torch tensor or a NumPy array, got int"),
        (pl.Tensor, None, "`n` is a tensor and not optional, got None"),
    ],
)
def test_a_value_that_does_not_fit_names_the_parameter(annotation: Any, value: Any, message: str) -> None:
    def kernel(n, out: pl.Out[pl.Tensor]):
        return out

    kernel.__annotations__["n"] = annotation
    made = pl.jit(kernel)
    with pytest.raises(TypeError) as caught:
        made(value, torch.zeros(4, 8))
    assert str(caught.value) == message
    assert made.cache_info() == (0, 0, 0, 0)


@pytest.mark.parametrize("value", [object(), 1 + 2j, {1, 2}], ids=["object", "complex", "set"])
def test_a_value_of_no_kind_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match="^`factor` is neither a tensor nor a number: got"):
        times(X, value)


def test_a_scalar_keeps_to_the_bounds_of_its_annotation() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, row: pl.Scalar[pl.INDEX, (0, 4)], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [row, 0], [4, 8]), [0, 0], out)
        return out

    x = numbers(8, 8)
    assert torch.equal(kernel(x, 4), x[4:])
    with pytest.raises(ValueError, match="`row` must lie within 0 to 4, got 5"):
        kernel(x, 5)
    program = kernel.compile(x, row=pl.RUNTIME)
    assert torch.equal(program(x, 3), x[3:7])
    with pytest.raises(ValueError, match="`row` must lie within 0 to 4, got 5"):
        program(x, 5)


# wrong calls


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing argument `x`: it takes 2 (in-place) or 1 (return) arguments"),
        ((), {"out": X}, "missing argument `x`: it takes 2 (in-place) or 1 (return) arguments"),
        ((X, X, X), {}, "takes 2 (in-place) or 1 (return) positional arguments, got 3"),
        ((X,), {"x": X}, "got `x` twice"),
        ((X,), {"y": X}, "has no parameter `y`"),
        ((X, 3), {}, "`out` is an output: pass a tensor, or leave it out to have it returned; got int"),
        ((X,), {"out": 3}, "`out` is an output: pass a tensor, or leave it out to have it returned; got int"),
        ((X, pl.RUNTIME), {}, "`out` is an output: pass a tensor, or leave it out to have it returned; got Runtime"),
    ],
)
def test_a_call_that_does_not_fit_says_why(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        triple(*args, **kwargs)
    assert str(caught.value) == f"@pl.jit function 'triple': {message}"


def test_an_unsupported_element_type_is_told_the_supported_ones() -> None:
    with pytest.raises(TypeError, match=r"`x`: Unsupported torch dtype torch\.complex64; supported: float16, float32"):
        triple(X.cfloat())
    with pytest.raises(TypeError, match=r"`x`: Unsupported array dtype complex64; supported: bool, int4, int8"):
        triple(np.zeros((4, 8), np.complex64))


def test_tensors_lie_on_one_device() -> None:
    elsewhere = torch.zeros(4, 8, device="meta")
    with pytest.raises(
        ValueError, match="^`x` is on device meta, where tensors have no elements: pass one with data, such as"
    ):
        triple(elsewhere, X)
    with pytest.raises(ValueError, match="^`x` is on device meta"):
        triple(elsewhere)


def test_a_program_is_made_for_tensors_without_memory() -> None:
    elsewhere = torch.empty(100_000_000, 64, dtype=torch.bfloat16, device="meta")
    assert "[100000000, 64], pl.BF16" in triple.specialize(elsewhere).program.as_python(concise=True)
    compiled = triple.compile(torch.empty(4, 8, device="meta"))
    assert torch.equal(compiled(X), 3 * X)
    with pytest.raises(ValueError, match="^`x` is on device meta"):
        compiled(torch.empty(4, 8, device="meta"))


def test_a_stated_shape_is_held_against_the_argument() -> None:
    @pl.jit
    def kernel(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        return tripled(x, out)

    assert torch.equal(kernel(X), 3 * X)
    with pytest.raises(ValueError, match=r"`x` expects shape \[4, 8\], got \[4, 4\]"):
        kernel(numbers(4, 4))
    with pytest.raises(ValueError, match="`x` expects rank 2, got 1"):
        kernel(numbers(4))
    with pytest.raises(TypeError, match="`x` expects dtype fp32, got int32"):
        kernel(X.int())


# outputs without a stated shape


def test_an_output_is_made_like_the_inputs_only_where_it_is_written_that_far() -> None:
    @pl.jit
    def row_sums(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.row_sum(pl.load(x, [0, 0], [4, 8])), [0, 0], out)
        return out

    out = torch.zeros(4, 1)
    row_sums(X, out)
    assert torch.equal(out, X.sum(1, keepdim=True))
    large = torch.zeros_like(X)
    for _ in range(3):  # and none is taken for a model
        row_sums(X, large)
        assert torch.equal(large[:, :1], out) and not large[:, 1:].any()
        with pytest.raises(
            TypeError, match=r"`out`, which is not written as far .* but to \[4, 1\]: pass it"
        ) as caught:
            row_sums(X)
        assert str(caught.value).endswith("out: pl.Out[pl.Tensor[[4, 1], pl.FP32]]")


def test_an_output_of_unlike_inputs_has_to_be_stated() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    with pytest.raises(
        TypeError, match=r"cannot tell the shape of the output `out`: pass it, or annotate it"
    ) as caught:
        kernel(X, numbers(2, 2))
    assert str(caught.value).endswith("alike, and here `x` is [4, 8] of fp32 and `y` [2, 2] of fp32")


@pytest.mark.parametrize(("shape", "example"), [((1, 8), "[4, 8]"), ((8, 3), "[4, 3]"), ((4, 1), "[4, 8]")])
def test_the_example_for_an_output_is_what_its_inputs_broadcast_to_or_multiply_to(
    shape: tuple[int, int], example: str
) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    with pytest.raises(TypeError, match=re.escape(f"out: pl.Out[pl.Tensor[{example}, pl.FP32]]")):
        kernel(X, numbers(*shape))


def test_a_last_tensor_that_is_missing_may_be_meant_as_an_output() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Tensor):
        return tripled(x, out)

    with pytest.raises(TypeError, match=r"missing argument `out`: it takes 2 argument\(s\); pl\.Out\[\.\.\.\] around"):
        kernel(X)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "b"), (tuple, ("a", "b")), (tuple[str, ...], ("a", "b")), (list[str], ["a", "b"]), (dict, {1: "b"}),
        (str | None, "b"), (str | int, "b"), (Literal["a", "b"], "b"), (Sequence[str], ("a", "b")), (Way, Way.B),
    ],
)  # fmt: skip
def test_a_constant_is_annotated_as_what_it_is(annotation: Any, value: Any) -> None:
    def kernel(x: pl.Tensor, which, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    kernel.__annotations__["which"] = annotation
    assert torch.equal(pl.jit(kernel)(X, value), X * 3)


def test_what_is_no_configuration_is_said() -> None:
    with pytest.raises(TypeError, match=r"`config` takes a RunConfig of tilewright\.runtime, got int"):
        triple(X, config=3)


# annotations alone


@pl.jit
def powers(x: pl.Tensor[[M, 8], pl.FP32], factor: pl.FP32, n: pl.INT32 = 2, *, out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for i in pl.parallel(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [i, 0], [4, 8])
            for _ in pl.range(n):
                t = t * factor
            out = pl.store(t, [i, 0], out)
    return out


def test_annotations_and_values_for_scalars_are_enough_to_compile() -> None:
    kernel = pl.jit(powers.function)
    program = kernel.compile(factor=2.0)
    x = numbers(5, 8)
    assert torch.equal(program(x, 2.0, 2), 4 * x)
    assert kernel.compile(numbers(3, 8), 2.0) is program
    assert torch.equal(kernel(x, 2.0), 4 * x)
    assert kernel.cache_info().compiles == 1


def test_a_scalar_left_to_run_time_stays_a_parameter() -> None:
    x = numbers(5, 8)
    program = powers.compile(factor=pl.RUNTIME, n=pl.RUNTIME)
    assert torch.equal(program(x, 3.0, 3), 27 * x)
    assert torch.equal(program(x, 0.5, 0), x)
    with_samples = powers.compile(x, pl.RUNTIME, n=1)
    assert torch.equal(with_samples(x, 5.0, 1), 5 * x)


def test_lower_gives_a_program_and_leaves_no_trace() -> None:
    kernel = pl.jit(powers.function)
    assert [f.name for f in kernel.lower(factor=2.0).entries] == ["powers"]
    assert [f.name for f in kernel.lower(numbers(3, 8), 2.0).entries] == ["powers"]
    assert kernel.cache_info() == (0, 0, 0, 0)


def test_an_optional_tensor_is_none_where_nobody_gives_it() -> None:
    @pl.jit
    def kernel(
        x: pl.Tensor[[4, 8], pl.FP32],
        y: pl.Tensor[[4, 8], pl.FP32] | None = None,
        out: pl.Out[pl.Tensor[[4, 8], pl.FP32]] = None,
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 8])
            if y is not None:
                t = t + pl.load(y, [0, 0], [4, 8])
            out = pl.store(t, [0, 0], out)
        return out

    assert kernel.compile().param_names == ["x", "out"]
    assert torch.equal(kernel(X), X)
    assert torch.equal(kernel(X, X), 2 * X)


@pytest.mark.parametrize(
    ("kernel", "kwargs", "message"),
    [
        (triple, {}, "bare 'pl.Tensor' of `x` says neither shape nor dtype"),
        (powers, {}, "scalar parameter 'factor' has no value: pass one by keyword, or pl.RUNTIME to leave it open"),
        (powers, {"factor": "x"}, "scalar parameter 'factor' needs a number or pl.RUNTIME, got str"),
        (powers, {"factor": 2.0, "bogus": 1}, "has no parameter `bogus`"),
        (powers, {"factor": 2.0, "x": 3}, "`x` is a tensor: pass one, or leave it to its annotation, got int"),
    ],
)
def test_what_annotations_leave_out_is_asked_for(kernel: Any, kwargs: dict[str, Any], message: str) -> None:
    for use in (kernel.compile, kernel.lower):
        with pytest.raises(TypeError) as caught:
            use(**kwargs)
        assert message in str(caught.value)


def test_a_call_never_leaves_a_scalar_open() -> None:
    with pytest.raises(TypeError, match=r"'factor' received pl\.RUNTIME, which only compile\(\) and lower\(\) take"):
        powers(numbers(4, 8), pl.RUNTIME)


def test_a_number_of_no_stated_kind_cannot_stay_open() -> None:
    with pytest.raises(TypeError, match="its annotation does not say which kind of number"):
        times.compile(X, pl.RUNTIME)


def test_element_types_of_other_libraries_are_understood() -> None:
    @pl.jit
    def halve(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            narrow = pl.cast(pl.load(x, [0, 0], x.shape), torch.float16)
            wide = pl.cast(pl.cast(narrow, np.int32), "fp32")
            pl.store(wide * 0.5, [0, 0], out)
        return out

    x = torch.arange(8.0).reshape(2, 4)
    torch.testing.assert_close(halve(x), x / 2)


def test_what_is_no_element_type_is_refused() -> None:
    @pl.jit
    def wrong(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.create_tensor(x.shape, dtype=3)
        return out

    with pytest.raises(OperandError, match="`dtype` of `create` must be an element type, got 3"):
        wrong(torch.zeros(2, 4))


def test_a_bare_tile_annotation_takes_any_tile() -> None:
    @pl.jit.inline
    def square(tile: pl.Tile):
        return tile * tile

    @pl.jit
    def squares(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(square(pl.load(x, [0, 0], x.shape)), [0, 0], out)
        return out

    x = torch.arange(8.0).reshape(2, 4)
    torch.testing.assert_close(squares(x), x * x)
