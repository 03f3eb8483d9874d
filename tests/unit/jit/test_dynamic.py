"""Dynamic axes: one program for every extent, whoever asks for it."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import pytest
import torch
from unit.jit.kernels import doubled_rows, numbers

import tilewright.language as pl
from tilewright.errors import DynamicConflictError, NotStaticError, OutOfBoundsError, UnboundSymbolError
from tilewright.frontend.signature import DynDim, TensorMeta
from tilewright.jit.function import JITFunction

M, N, K = pl.dynamic("M"), pl.dynamic("N"), pl.dynamic("K")
CORE = pl.Level.CORE_GROUP
Matrix = pl.Tensor[[M, 8], pl.FP32]

EXTENTS = (5, 1, 3, 4, 17, 100, 0)
"""Extents to call one program with: the one it is made for, less than a tile, whole tiles, ragged tails, nothing."""


@pl.jit.incore
def asking(x: pl.Tensor, i: pl.INDEX, out: pl.Out[pl.Tensor]):
    """Twice some rows of a tensor with any number of rows."""
    x.bind_dynamic(0, M)
    t = pl.load(x, [i, 0], [4, x.shape[1]])
    return pl.store(t + t, [i, 0], out)


@pl.jit.opaque
def all_doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Twice a tensor with any number of rows."""
    x.bind_dynamic(0, M)
    out.bind_dynamic(0, M)
    for i in pl.parallel(0, M, 4):
        out = doubled_rows(x, i, out)
    return out


def shapes(kernel: JITFunction, *args: Any) -> list[tuple[int | DynDim, ...]]:
    """Return the shapes of the tensors that a program takes."""
    return [meta.shape for meta in kernel.specialize(*args).metas.values() if isinstance(meta, TensorMeta)]


def check(kernel: JITFunction, factor: int) -> None:
    """Fail unless one program multiplies matrices of any height, left-out outputs included."""
    for rows in EXTENTS:
        x, out = numbers(rows, 8), torch.zeros(rows, 8)
        assert torch.equal(kernel(x), factor * x)
        kernel(x, out)
        assert torch.equal(out, factor * x)
    assert kernel.cache_info().compiles == 1
    assert shapes(kernel, numbers(5, 8)) == [(DynDim("M", "M"), 8)] * 2


# where axes become dynamic


def test_annotations_name_dynamic_axes() -> None:
    @pl.jit
    def kernel(x: Matrix, out: pl.Out[Matrix]):
        for i in pl.parallel(0, M, 4):
            out = doubled_rows(x, i, out)
        return out

    check(kernel, 2)


def test_an_entry_binds_dynamic_axes() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(0, M)
        out.bind_dynamic(dim=0, var=M)
        for i in pl.parallel(0, x.shape[0], 4):
            out = doubled_rows(x, i, out)
        return out

    check(kernel, 2)


def test_what_a_helper_asks_for_reaches_its_callers() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, x.shape[0], 4):
            out = asking(x, i, out)
        return out

    check(kernel, 2)


def test_it_reaches_callers_of_callers_too() -> None:
    @pl.jit.opaque
    def middle(p: pl.Tensor, q: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, p.shape[0], 4):
            q = asking(p, i, q)
        return q

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        half = pl.create_tensor(x.shape, dtype=x.dtype)
        half = middle(x, half)
        return middle(half, out)

    check(kernel, 4)


def test_an_inline_helper_asks_like_any_other() -> None:
    @pl.jit.inline
    def bound(x: pl.Tensor, out: pl.Tensor):
        x.bind_dynamic(0, M)
        out.bind_dynamic(0, M)
        for i in pl.parallel(0, M, 4):
            out = doubled_rows(x, i, out)
        return out

    @pl.jit.inline
    def annotated(x: Matrix, out: Matrix):
        for i in pl.parallel(0, M, 4):
            out = doubled_rows(x, i, out)
        return out

    @pl.jit
    def first(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return bound(x, out)

    @pl.jit
    def second(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return annotated(x, out)

    check(first, 2)
    check(second, 2)


def test_functions_with_types_written_out_call_helpers_that_ask() -> None:
    from tilewright import ir

    @pl.function(type=pl.FunctionType.Orchestration)
    def static(x: pl.Tensor[[5, 8], pl.FP32], out: pl.Out[pl.Tensor[[5, 8], pl.FP32]]):
        return all_doubled(x, out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def dynamic(x: Matrix, out: pl.Out[Matrix]):
        return all_doubled(x, out)

    assert torch.equal(ir.compile(static)(numbers(5, 8)), 2 * numbers(5, 8))
    assert torch.equal(ir.compile(dynamic)(numbers(9, 8)), 2 * numbers(9, 8))


# through locals


@pl.jit
def through_an_alias(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    y = x
    return all_doubled(y, out)


@pl.jit
def through_a_slice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return all_doubled(pl.slice(x, [x.shape[0], 8], [0, 0]), out)


@pl.jit
def through_a_subscript(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return all_doubled(x[:, 0:8], out)


@pl.jit
def through_a_tuple(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    pair = (x, out)
    return all_doubled(pair[0], pair[1])


@pl.jit
def through_two_transposes(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return all_doubled(pl.transpose(pl.transpose(x, 0, 1), 0, 1), out)


@pytest.mark.parametrize(
    "kernel",
    [through_an_alias, through_a_slice, through_a_subscript, through_a_tuple, through_two_transposes],
    ids=lambda kernel: kernel.name,
)
def test_a_local_that_came_from_a_parameter_makes_it_dynamic(kernel: JITFunction) -> None:
    check(pl.jit(kernel.function), 2)


def test_a_local_made_from_a_dynamic_axis_goes_to_helpers() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        rows, columns = x.shape
        made = pl.create_tensor([rows, columns], dtype=x.dtype)
        made = all_doubled(x, made)
        again = pl.create_tensor(made.shape, dtype=made.dtype)
        again = all_doubled(made, again)
        return all_doubled(again, out)

    check(kernel, 8)


def test_what_one_helper_returns_goes_to_the_next() -> None:
    @pl.jit.opaque
    def made(x: pl.Tensor):
        result = pl.create_tensor(x.shape, dtype=x.dtype)
        for i in pl.parallel(0, x.shape[0], 4):
            result = doubled_rows(x, i, result)
        return result

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return all_doubled(made(made(x)), out)

    check(kernel, 8)


def test_a_local_that_is_one_of_two_parameters_makes_both_dynamic() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        if pl.read(x, [0, 0]) > 0.0:
            chosen = x
        else:
            chosen = y
        return all_doubled(chosen, out)

    for rows in (4, 5, 1):
        x, out = numbers(rows, 8), torch.zeros(rows, 8)
        kernel(x, x + 1, out)
        assert torch.equal(out, 2 * (x + 1))
        kernel(x + 1, x, out)
        assert torch.equal(out, 2 * (x + 1))
    assert kernel.cache_info().compiles == 1


# names of extents as values


def test_an_extent_goes_by_many_names() -> None:
    @pl.jit
    def kernel(x: Matrix, out: pl.Out[Matrix]):
        a = b = pl.tensor.dim(x, 0)
        made = pl.create_tensor([b, 8], dtype=pl.FP32)
        for i in pl.parallel(0, a, 4):
            made = doubled_rows(x, i, made)
        a = M
        halves = (a + 3) // 4
        for i in pl.parallel(0, halves):
            out = doubled_rows(made, i * 4, out)
        return out

    check(kernel, 4)


def test_a_name_made_in_the_body_is_a_name() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        rows = pl.dynamic("M")
        x.bind_dynamic(0, rows)
        out.bind_dynamic(0, rows)
        other = rows
        for i in pl.parallel(0, other, 4):
            out = doubled_rows(x, i, out)
        return out

    check(kernel, 2)


def test_the_name_given_to_dynamic_is_kept() -> None:
    height = pl.dynamic("rows")

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(0, height)
        return all_doubled(x, out)

    assert shapes(kernel, numbers(5, 8))[0] == (DynDim("rows", "rows"), 8)


def test_an_extent_decides_a_branch_at_run_time() -> None:
    @pl.jit
    def kernel(x: Matrix, out: pl.Out[Matrix]):
        factor = 3.0
        if x.shape[0] > 4:
            factor = 2.0
        for i in pl.parallel(0, M, 4):
            with pl.at(level=CORE):
                out = pl.store(pl.load(x, [i, 0], [4, 8]) * factor, [i, 0], out)
        return out

    for rows in (4, 5, 1):
        assert torch.equal(kernel(numbers(rows, 8)), numbers(rows, 8) * (2 if rows > 4 else 3))
    assert kernel.cache_info().compiles == 1


def test_an_output_may_be_a_formula_of_extents() -> None:
    @pl.jit
    def kernel(x: Matrix, out: pl.Out[pl.Tensor[[M * 2, 8], pl.FP32]]):
        for i in pl.parallel(0, M, 4):
            with pl.at(level=CORE):
                t = pl.load(x, [i, 0], [4, 8])
                out = pl.store(t, [i, 0], out)
                out = pl.store(t, [i + M, 0], out)
        return out

    for rows in (4, 5, 1):
        assert torch.equal(kernel(numbers(rows, 8)), torch.cat([numbers(rows, 8)] * 2))
    with pytest.raises(ValueError, match=r"`out` expects shape \[M \* 2, 8\] = \[8, 8\], got \[9, 8\]"):
        kernel(numbers(4, 8), numbers(9, 8))


# several axes


def test_two_axes_of_one_tensor_are_dynamic() -> None:
    @pl.jit
    def kernel(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        for i in pl.parallel(0, M, 4):
            for j in pl.parallel(0, N, 16):
                with pl.at(level=CORE):
                    out = pl.store(pl.load(x, [i, j], [4, 16]) * 2.0, [i, j], out)
        return out

    for rows in (1, 4, 7):
        for columns in (1, 16, 33):
            assert torch.equal(kernel(numbers(rows, columns)), 2 * numbers(rows, columns))
    assert kernel.cache_info().compiles == 1


def test_static_axes_stay_static() -> None:
    @pl.jit
    def kernel(x: Matrix, row: pl.Tensor, out: pl.Out[Matrix]):
        for i in pl.parallel(0, M, 4):
            with pl.at(level=CORE):
                t = pl.load(x, [i, 0], [4, 8]) + pl.load(row, [0, 0], [1, row.shape[1]])
                out = pl.store(t, [i, 0], out)
        return out

    x, row = numbers(5, 8), numbers(1, 8)
    assert torch.equal(kernel(x, row), x + row)
    assert shapes(kernel, x, row) == [(DynDim("M", "M"), 8), (1, 8), (DynDim("M", "M"), 8)]


def test_one_name_is_one_extent() -> None:
    @pl.jit
    def kernel(x: pl.Tensor[[M, M], pl.FP32], out: pl.Out[pl.Tensor[[M, M], pl.FP32]]):
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        return out

    assert torch.equal(kernel(numbers(5, 5)), numbers(5, 5))
    with pytest.raises(ValueError, match=r"`x` expects shape \[M, M\] = \[5, 5\], got \[5, 6\]"):
        kernel(numbers(5, 6))


@pl.jit
def through_opaque(x: pl.Tensor, y: pl.Tensor, ox: pl.Out[pl.Tensor], oy: pl.Out[pl.Tensor]):
    ox = all_doubled(x, ox)
    oy = all_doubled(y, oy)
    return ox, oy


@pl.jit.inline
def doubled_here(x: Matrix, out: Matrix):
    for i in pl.parallel(0, M, 4):
        out = doubled_rows(x, i, out)
    return out


@pl.jit
def through_inline(x: pl.Tensor, y: pl.Tensor, ox: pl.Out[pl.Tensor], oy: pl.Out[pl.Tensor]):
    ox = doubled_here(x, ox)
    oy = doubled_here(y, oy)
    return ox, oy


@pl.jit
def own_name_beside_a_helpers(x: pl.Tensor, y: pl.Tensor, ox: pl.Out[pl.Tensor], oy: pl.Out[pl.Tensor]):
    ox = all_doubled(x, ox)
    y.bind_dynamic(0, M)
    oy.bind_dynamic(0, M)
    for i in pl.parallel(0, M, 4):
        oy = doubled_rows(y, i, oy)
    return ox, oy


@pl.jit.opaque
def second_named(p: pl.Tensor, q: Matrix, op: pl.Out[pl.Tensor], oq: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, p.shape[0], 4):
        op = doubled_rows(p, i, op)
    for i in pl.parallel(0, M, 4):
        oq = doubled_rows(q, i, oq)
    return op, oq


@pl.jit
def same_name_for_another_extent(
    x: Matrix,
    y: pl.Tensor[[K, 8], pl.FP32],
    ox: pl.Out[Matrix],
    oy: pl.Out[pl.Tensor[[K, 8], pl.FP32]],
):
    return second_named(x, y, ox, oy)


@pytest.mark.parametrize(
    "kernel",
    [through_opaque, through_inline, own_name_beside_a_helpers, same_name_for_another_extent],
    ids=lambda kernel: kernel.name,
)
def test_a_helpers_name_is_its_own_at_every_call(kernel: JITFunction) -> None:
    for first, second in ((5, 3), (1, 9), (6, 2)):
        x, y, ox, oy = numbers(first, 8), numbers(second, 8), torch.zeros(first, 8), torch.zeros(second, 8)
        kernel(x, y, ox, oy)
        assert torch.equal(ox, 2 * x) and torch.equal(oy, 2 * y)


def test_axes_that_a_helper_knows_to_be_equal_must_be() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return all_doubled(x, out)

    assert torch.equal(kernel(numbers(5, 8)), 2 * numbers(5, 8))
    with pytest.raises(ValueError, match=r"`out` expects shape \[M, 8\] = \[5, 8\], got \[3, 8\]"):
        kernel(numbers(5, 8), torch.zeros(3, 8))


@pytest.mark.parametrize("outputs_first", [True, False])
def test_an_output_like_an_input_may_have_a_name_of_its_own(outputs_first: bool) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        if outputs_first:
            out.bind_dynamic(0, N)
        x.bind_dynamic(0, M)
        out.bind_dynamic(0, N)
        for i in pl.parallel(0, M, 4):
            out = doubled_rows(x, i, out)
        return out

    for rows, room in ((5, 5), (5, 9), (3, 3)):
        out = torch.zeros(room, 8)
        kernel(numbers(rows, 8), out)
        assert torch.equal(out[:rows], 2 * numbers(rows, 8))


# mistakes


def test_one_axis_has_one_name() -> None:
    @pl.jit
    def kernel(x: Matrix, out: pl.Out[Matrix]):
        x.bind_dynamic(0, N)
        return out

    with pytest.raises(DynamicConflictError, match="axis 0 is dynamic by two names: 'M' and 'N'"):
        kernel(numbers(4, 8))


def test_one_variable_holds_one_name() -> None:
    def helper() -> JITFunction:
        rows = pl.dynamic("other")

        @pl.jit.incore
        def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            x.bind_dynamic(0, rows)
            return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

        return copied

    rows, copied = pl.dynamic("rows"), helper()

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(0, rows)
        return copied(x, out)

    with pytest.raises(
        DynamicConflictError, match=r"`rows` is pl.dynamic\('rows'\) and pl.dynamic\('other'\) in one program"
    ):
        kernel(numbers(4, 8))


@pytest.mark.parametrize("axis", [2, -1])
def test_an_axis_that_is_not_there_cannot_be_bound(axis: int) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(axis, M)
        return out

    with pytest.raises(OutOfBoundsError, match=f"`x` has axes 0 to 1, not {axis}"):
        kernel(numbers(4, 8))


def test_a_name_that_no_axis_has_tells_nothing() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, K, 4):
            out = doubled_rows(x, i, out)
        return out

    with pytest.raises(UnboundSymbolError, match="'K' is no extent that an argument tells"):
        kernel(numbers(4, 8))


def test_where_a_static_extent_is_needed_the_message_says_by_what_and_why_it_is_not() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=CORE):
            t = pl.load(x, [0, 0], [x.shape[0], 8])
            out = pl.store(t, [0, 0], out)
        return all_doubled(out, out)

    with pytest.raises(NotStaticError) as caught:
        kernel(numbers(4, 8))
    assert "`load` needs to know its sizes before the program runs" in str(caught.value)
    assert "axis 0 of `x` is dynamic: 'M', asked for by the call at" in str(caught.value)


def test_a_slice_of_unknown_size_is_told_where_it_was_passed() -> None:
    @pl.jit.incore
    def whole(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, 0], [x.shape[0], x.shape[1]]), [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, count: pl.Tensor, out: pl.Out[pl.Tensor]):
        part = pl.slice(x, [pl.read(count, [0]), 8], [0, 0])
        return whole(part, out)

    with pytest.raises(NotStaticError, match=rf"axis 0 of `x` is not known at the call at {__file__}"):
        kernel(numbers(4, 8), torch.tensor([2]), torch.zeros(4, 8))
