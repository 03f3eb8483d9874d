"""Specialization: kernels and their helpers, each made for what its call knows."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from unit.jit import kernels
from unit.jit.kernels import numbers, scaled, tripled

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import DuplicateFunctionError, StaticAssertionError
from tilewright.jit.function import JITFunction

WIDTH = 8
CORE = pl.Level.CORE_GROUP
X = numbers(4, 8)


def functions(kernel: JITFunction, *args: Any) -> list[str]:
    """Return the functions of the program that some arguments ask for."""
    return [f.name for f in kernel.specialize(*args).program.function_list]


# sub-functions


def test_each_call_site_gets_what_its_arguments_ask_for() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, ox: pl.Out[pl.Tensor], oy: pl.Out[pl.Tensor]):
        ox = tripled(x, ox)
        oy = tripled(y, oy)
        return ox, oy

    y, ox, oy = numbers(2, 3), torch.zeros(4, 8), torch.zeros(2, 3)
    kernel(X, y, ox, oy)
    assert torch.equal(ox, 3 * X) and torch.equal(oy, 3 * y)
    assert functions(kernel, X, y, ox, oy) == ["tripled", "tripled_1", "kernel"]


def test_calls_that_ask_for_the_same_share_one_function() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = scaled(x, 2.0, out)
        out = scaled(out, factor=2.0, out=out)
        return scaled(out, 3.0, out)

    assert torch.equal(kernel(X), 12 * X)
    assert functions(kernel, X) == ["scaled", "scaled_1", "kernel"]


def test_helpers_are_submitted_as_tasks() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out, first = pl.submit(scaled, x, 2.0, out)
        out, _ = pl.submit(scaled, out, factor=3.0, out=out, deps=[first])
        return out

    assert torch.equal(kernel(X), 6 * X)
    assert functions(kernel, X) == ["scaled", "scaled_1", "kernel"]


def test_a_helper_is_submitted_once_per_block() -> None:
    @pl.jit.incore
    def row(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        block = pl.tile.get_block_idx()
        return pl.store(pl.load(x, [block, 0], [1, 8]), [block, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out, _ = pl.spmd_submit(row, x, out, core_num=4)
        return out

    assert torch.equal(kernel(X), X)


def test_a_number_the_program_computes_stays_a_parameter() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return scaled(x, pl.read(x, [0, 2]), out)

    assert torch.equal(kernel(X), 2 * X)
    assert torch.equal(kernel(X + 1), 3 * (X + 1))


def test_helpers_are_found_through_modules_classes_and_closures() -> None:
    class Library:
        @staticmethod
        @pl.jit.incore
        def halved(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return pl.store(pl.load(x, [0, 0], [4, 8]) * 0.5, [0, 0], out)

    def using(helper: JITFunction) -> JITFunction:
        @pl.jit
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = kernels.tripled(x, out)
            out = Library.halved(out, out)
            return helper(out, out)

        return kernel

    assert torch.equal(using(tripled)(X), 4.5 * X)
    assert torch.equal(using(Library.halved)(X), 0.75 * X)


def test_a_closure_wins_over_a_global() -> None:
    @pl.jit.incore
    def tripled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, 0], [4, 8]) * 30.0, [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    assert torch.equal(kernel(X), 30 * X)


def test_helpers_call_helpers_and_each_is_there_once() -> None:
    @pl.jit.opaque
    def nine_times(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = tripled(x, out)
        return tripled(out, out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = nine_times(x, out)
        out = nine_times(out, out)
        return tripled(out, out)

    assert torch.equal(kernel(X), 243 * X)
    assert functions(kernel, X) == ["tripled", "nine_times", "kernel"]


def test_helpers_of_one_name_are_told_apart() -> None:
    def times(factor: float) -> JITFunction:
        @pl.jit.incore
        def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], out)

        return helper

    two, five = times(2.0), times(5.0)

    @pl.jit
    def helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = two(x, out)
        return five(out, out)

    assert torch.equal(helper(X), 10 * X)
    assert functions(helper, X) == ["helper_1", "helper_2", "helper"]


def test_a_helper_returns_several_values() -> None:
    @pl.jit.incore
    def both(x: pl.Tensor, two: pl.Out[pl.Tensor], three: pl.Out[pl.Tensor]):
        t = pl.load(x, [0, 0], [4, 8])
        two = pl.store(t * 2.0, [0, 0], two)
        three = pl.store(t * 3.0, [0, 0], three)
        return two, three

    @pl.jit
    def unpacked(x: pl.Tensor, two: pl.Out[pl.Tensor], three: pl.Out[pl.Tensor]):
        two, three = both(x, two, three)
        return two, three

    @pl.jit
    def picked(x: pl.Tensor, two: pl.Out[pl.Tensor], three: pl.Out[pl.Tensor]):
        pair = both(x, two, three)
        return pair[0], pair[1]

    @pl.jit
    def swapped(x: pl.Tensor, two: pl.Out[pl.Tensor], three: pl.Out[pl.Tensor]):
        a, b = both(x, two, three)
        return b, a

    for kernel, (first, second) in ((unpacked, (2, 3)), (picked, (2, 3)), (swapped, (3, 2))):
        a, b = kernel(X)
        assert torch.equal(a, first * X) and torch.equal(b, second * X)


def test_a_helper_takes_tuples_of_what_is_known() -> None:
    @pl.jit.incore
    def window(x: pl.Tensor, shape, out: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, 0], shape), [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = window(x, x.shape, out)
        pair = (x, out)
        return window(pair[0], [2, 8], pair[1])

    assert torch.equal(kernel(X), X)


def test_a_helper_takes_kernels_text_and_objects() -> None:
    @dataclass
    class Window:
        rows: int

    four, four_again = Window(4), Window(4)
    four_again.rows = 2

    @pl.jit.opaque
    def twice(helper, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = helper(x, out)
        return helper(out, out)

    @pl.jit.incore
    def halved(x: pl.Tensor, mode, window, out: pl.Out[pl.Tensor]):
        factor = 0.5 if mode == "half" else 0.25
        return pl.store(pl.load(x, [0, 0], [window.rows, 8]) * factor, [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = twice(tripled, x, out)
        out = halved(out, "half", four, out)
        return halved(out, "quarter", four_again, out)

    result = kernel(X)
    assert torch.equal(result[:2], 9 / 8 * X[:2]) and torch.equal(result[2:], 9 / 2 * X[2:])


def test_a_helper_may_be_called_like_what_it_is_given() -> None:
    class Library:
        @staticmethod
        @pl.jit.incore
        def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)

    @pl.jit.opaque
    def twice(helper, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return helper(helper(x, out), out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return twice(Library.twice, twice(tripled, x, out), out)

    assert torch.equal(kernel(X), 36 * X)
    assert len(set(functions(kernel, X))) == len(functions(kernel, X)) == 5


def test_a_function_called_like_a_helper_cannot_join_it() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def tripled(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = kernels.tripled(x, out)
        return tripled(out, out)

    with pytest.raises(DuplicateFunctionError, match="two functions are called 'tripled'"):
        kernel(X)


def test_an_inline_helper_is_written_out_and_leaves_no_function() -> None:
    @pl.jit.inline
    def halved(x: pl.Tensor, factor: pl.FP32, out: pl.Out[pl.Tensor]):
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], out)
        return out

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = halved(x, out=out, factor=2)
        return halved(out, 0.25, out)

    assert torch.equal(kernel(X), X / 2)
    assert functions(kernel, X) == ["kernel"]


def test_a_kernel_calls_functions_and_templates_with_types_written_out() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def five_times(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        return pl.store(pl.load(x, [0, 0], [4, 8]) * 5.0, [0, 0], out)

    @pl.inline
    def sum_of(a: Any, b: Any):
        return pl.add(a, b)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = five_times(x, out)
        with pl.at(level=CORE):
            t = pl.load(out, [0, 0], [4, 8])
            out = pl.store(sum_of(t, t), [0, 0], out)
        return out

    assert torch.equal(kernel(X), 10 * X)


def test_functions_and_programs_call_kernels() -> None:
    @pl.function(type=pl.FunctionType.Orchestration)
    def free(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        return tripled(x, out)

    @pl.program
    class Program:
        @pl.function(type=pl.FunctionType.InCore)
        def tripled(self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            return pl.store(pl.load(x, [0, 0], [4, 8]) * 30.0, [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            out = tripled(x, out)
            return self.tripled(out, out)

    assert torch.equal(ir.compile(free)(X), 3 * X)
    assert torch.equal(ir.compile(Program)(X), 90 * X)


# what is known


def test_constants_of_module_and_closure_fold() -> None:
    height, window = 4, (4, 8)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.static_assert(WIDTH == 8 and kernels.FACTOR == 3.0)
        pl.static_assert(window[0] == height and height * WIDTH == 32)
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [height, WIDTH]), [0, 0], out)
        return out

    assert torch.equal(kernel(X), X)


def test_two_closures_are_two_kernels() -> None:
    def times(factor: float) -> JITFunction:
        @pl.jit
        def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return scaled(x, factor, out)

        return kernel

    two, three = times(2.0), times(3.0)
    assert torch.equal(two(X), 2 * X)
    assert torch.equal(three(X), 3 * X)


def test_a_static_assertion_sees_scalars_and_shapes() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        pl.static_assert(n > 0, "n counts")
        pl.static_assert(x.shape[1] % n == 0)
        return tripled(x, out)

    assert torch.equal(kernel(X, 4), 3 * X)
    with pytest.raises(StaticAssertionError, match="static_assert failed: n counts"):
        kernel(X, -1)
    with pytest.raises(StaticAssertionError, match="x.shape"):
        kernel(X, 3)


def test_static_print_speaks_once_and_with_the_final_types(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pl.dynamic("rows")

    @pl.jit.incore
    def helper(x: pl.Tensor, out: pl.Out[pl.Tensor], i: pl.INDEX):
        x.bind_dynamic(0, rows)
        return pl.store(pl.load(x, [i, 0], [4, 8]), [i, 0], out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.static_print("shape", x.shape)
        count = 0
        for i in pl.range(0, x.shape[0], 4):
            count = count + 1
            out = helper(x, out, i)
        return out

    kernel(X)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"static_print [{__file__}:") and line.endswith("]: shape (rows, 8)")


def test_a_branch_that_is_not_taken_need_not_fit() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        if x.shape[0] > 4:
            rows = 8
        else:
            rows = x.shape[0]
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [rows, 8]), [0, 0], out)
        return out

    assert torch.equal(kernel(X), X)
    assert torch.equal(kernel(numbers(8, 8)), numbers(8, 8))


def test_a_known_number_bound_again_in_a_branch_is_known_still() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, rows: pl.INDEX, out: pl.Out[pl.Tensor]):
        factor = 1
        if rows > 4:
            rows = 4
            factor = factor + 1
        pl.static_assert(rows <= 4)
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [rows, 8]) * factor, [0, 0], out)
        return out

    assert torch.equal(kernel(X, 4), X)
    assert torch.equal(kernel(X, 9), 2 * X)


# rebinding


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_while_loop_counts_a_specialized_scalar_down(n: int) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        with pl.at(level=CORE):
            t = pl.load(x, [0, 0], [4, 8])
            while n > 0:
                t = t + 1.0
                n = n - 1
            out = pl.store(t, [0, 0], out)
        return out

    assert torch.equal(kernel(X, n), X + n)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_loop_rebinds_a_keyword_only_scalar(n: int) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], *, factor: pl.FP32 = 1.0, n: pl.INT32):
        for _ in pl.range(n):
            factor = factor * 2.0
        return scaled(x, factor, out)

    assert torch.equal(kernel(X, n=n), X * 2**n)


def test_a_name_means_what_it_was_last_bound_to() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        with pl.at(level=CORE):
            t = pl.load(x, [0, 0], [2, 4])
            t = pl.load(x, [0, 0], [4, 8])
            a = b = n
            for _ in pl.range(3):
                b = a
                a = a + 1
            if pl.read(x, [0, 1]) > 0.5:
                a = a * 10
            out = pl.store(t * 0.0 + pl.cast(a * 100 + b, pl.FP32), [0, 0], out)
        return out

    assert kernel(X, 2)[0, 0] == 50 * 100 + 4
    assert kernel(-X, 2)[0, 0] == 5 * 100 + 4


# shapes of locals


def test_shapes_and_types_of_locals_are_known() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        rows, columns = x.shape
        made = pl.create_tensor([rows, columns * 2], dtype=pl.FP16)
        pl.static_assert(made.shape == (4, 16) and made.dtype == pl.FP16)
        pl.static_assert(x[0:2, 0:4].shape == (2, 4) and x[1].shape == (8,))
        pl.static_assert(pl.slice(x, [2, 8], [1, 0]).shape[0] == 2)
        turned, flat = pl.transpose(x, 0, 1), pl.reshape(x, [2, 16])
        pl.static_assert(turned.shape == (8, 4) and flat.shape[1] == 16)
        pair = (turned, flat)
        alias = pair[1]
        pl.static_assert(alias.shape == (2, 16))
        with pl.at(level=CORE):
            wide = pl.concat(pl.load(x, [0, 0], [4, 8]), pl.load(x, [0, 0], [4, 8]))
            pl.static_assert(wide.shape == (4, 16) and wide.dtype == x.dtype)
        result = tripled(x, out)
        pl.static_assert(result.shape == x.shape)
        return result

    assert torch.equal(kernel(X), 3 * X)


def test_helpers_take_locals_of_any_origin() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor[[8, 4], pl.FP32]]):
        made = pl.create_tensor([8, 4], dtype=pl.FP32)
        made = tripled(pl.transpose(x, 0, 1), made)
        flat = pl.create_tensor([4, 8], dtype=pl.FP32)
        flat = tripled(pl.reshape(made, [4, 8]), flat)
        return tripled(pl.reshape(flat, [8, 4]), out)

    assert torch.equal(kernel(X), 27 * X.t())


def test_branches_and_loops_that_agree_give_one_shape() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        if pl.read(x, [0, 1]) > 0.5:
            current = x
        else:
            current = y
        for _ in pl.range(n):
            made = pl.create_tensor(current.shape, dtype=current.dtype)
            current = tripled(current, made)
        return tripled(current, out)

    assert torch.equal(kernel(X, X + 1, 2), 27 * X)
    assert torch.equal(kernel(-X, X + 1, 0), 3 * (X + 1))
