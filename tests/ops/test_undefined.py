"""Undefined elements: looking at what nobody wrote is an error, of the compiler or of the running program."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilewright.language as pl
from tilewright.errors import ExecutionError, OutOfBoundsError, ShapeMismatchError, UndefinedElementError
from tilewright.runtime import RunConfig

NOBODY = "elements that nobody wrote"


@pytest.fixture
def config(target: str) -> RunConfig:
    if target == "cuda":
        pytest.skip("what nobody wrote is not followed there")
    return RunConfig(platform=target)


@pl.jit
def made_plus_loaded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tile_full([16, 64], pl.FP32, 0.0)
        for c in pl.range(0, x.shape[1], 64):
            acc += pl.load(x, [0, c], [16, 64])
        pl.store(pl.row_sum(acc), [0, 0], out)
    return out


@pl.jit
def loaded_plus_made(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tile_full([16, 64], pl.FP32, 0.0)
        for c in pl.range(0, x.shape[1], 64):
            acc = pl.load(x, [0, c], [16, 64]) + acc
        pl.store(pl.row_sum(acc), [0, 0], out)
    return out


@pl.jit
def padded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tile_full([16, 64], pl.FP32, 0.0)
        for c in pl.range(0, x.shape[1], 64):
            acc += pl.load(x, [0, c], [16, 64], pad=0.0)
        pl.store(pl.row_sum(acc), [0, 0], out)
    return out


@pl.jit
def partly_added(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tile_full([16, 64], pl.FP32, 0.0)
        for c in pl.range(0, x.shape[1], 64):
            acc = pl.part_add(acc, pl.load(x, [0, c], [16, 64]))
        pl.store(pl.row_sum(acc), [0, 0], out)
    return out


def sums(kernel: Any, width: int, config: RunConfig) -> None:
    x = torch.randn(16, width)
    out = torch.full((16, 1), -1.0)
    kernel(x, out, config=config)
    torch.testing.assert_close(out, x.sum(1, keepdim=True), rtol=1e-4, atol=1e-4)


def test_a_sum_over_a_ragged_edge_is_refused_where_nobody_wrote(config: RunConfig) -> None:
    with pytest.raises(ExecutionError, match=f"{NOBODY}: they came in at line 29, `acc \\+= pl.load"):
        sums(made_plus_loaded, 100, config)


def test_an_accumulator_that_would_lose_what_it_summed_is_refused(config: RunConfig) -> None:
    with pytest.raises(ExecutionError, match="the valid part of `acc` shrinks"):
        sums(loaded_plus_made, 100, config)


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("kernel", [made_plus_loaded, loaded_plus_made])
def test_whole_tiles_meet_as_before(kernel: Any, width: int, config: RunConfig) -> None:
    sums(kernel, width, config)


@pytest.mark.parametrize("width", [1, 36, 64, 100, 129])
@pytest.mark.parametrize("kernel", [padded, partly_added])
def test_the_remedies_of_a_ragged_sum_give_the_sum(kernel: Any, width: int, config: RunConfig) -> None:
    sums(kernel, width, config)


def test_what_is_known_to_be_undefined_is_refused_when_compiling() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile_full([16, 64], pl.FP32, 0.0)
            acc = acc + pl.load(x, [0, 64], [16, 64])
            pl.store(pl.row_sum(acc), [0, 0], out)

    with pytest.raises(UndefinedElementError, match=NOBODY):
        kernel.lower(torch.ones(16, 100), torch.ones(16, 1))


def test_what_is_computed_on_the_rest_and_never_looked_at_is_no_error(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.tile_full([16, 64], pl.FP32, 1.0) + pl.load(x, [0, 64], [16, 64])
            pl.store(pl.set_validshape(pl.exp(t), 16, 36), [0, 0], out)

    x, out = torch.randn(16, 100), torch.zeros(16, 36)
    kernel(x, out, config=config)
    torch.testing.assert_close(out, torch.exp(x[:, 64:] + 1))


def test_a_created_tile_is_undefined_until_it_is_written(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, parts: int, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.create_tile([16, 64], pl.FP32)
            for i in pl.range(0, parts, 8):
                for j in pl.range(0, 64, 32):
                    t = pl.assemble(t, pl.load(x, [i, j], [8, 32]), [i, j])
            pl.store(t, [0, 0], out)

    x, out = torch.randn(16, 64), torch.zeros(16, 64)
    kernel(x, 16, out, config=config)
    torch.testing.assert_close(out, x)
    with pytest.raises((ExecutionError, UndefinedElementError), match=NOBODY):
        kernel(x, 8, out, config=config)


def test_widening_a_tile_shows_nothing(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, wide: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64], valid_shape=[16, 40])
            pl.store(pl.set_validshape(t, 16, wide), [0, 0], out)

    x, out = torch.randn(16, 64), torch.zeros(16, 64)
    program = kernel.compile(x, pl.RUNTIME, out, config=config)
    program(x, 40, out)
    torch.testing.assert_close(out[:, :40], x[:, :40])
    assert not out[:, 40:].any()
    with pytest.raises(ExecutionError, match=NOBODY):
        program(x, 41, out)


def test_a_choice_between_a_whole_and_a_partial_tile_shows_nothing(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            whole = pl.load(x, [0, 0], [16, 64])
            part = pl.load(x, [0, 0], [16, 64], valid_shape=[16, n])
            pl.store(pl.sel(pl.cmp(whole, 0.0, cmp_type=pl.CmpType.GT), whole, part), [0, 0], out)

    x, out = torch.randn(16, 64), torch.zeros(16, 64)
    program = kernel.compile(x, pl.RUNTIME, out, config=config)
    program(x, 64, out)
    torch.testing.assert_close(out, x)
    with pytest.raises(ExecutionError, match=NOBODY):
        program(x, 63, out)


def test_an_accumulator_starts_with_the_first_product_or_with_nothing(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        for m in pl.parallel(0, x.shape[0], 32):
            for n in pl.parallel(0, y.shape[1], 32):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.create_tile([32, 32], pl.FP32, target_memory=pl.Mem.Acc)
                    for k in pl.range(0, x.shape[1], 32):
                        a, b = pl.load(x, [m, k], [32, 32]), pl.load(y, [k, n], [32, 32])
                        acc = pl.matmul_acc(acc, a, b, init_cond=k == 0)
                    pl.store(acc, [m, n], out)

    x, y, out = torch.randn(50, 70), torch.randn(70, 40), torch.zeros(50, 40)
    kernel(x, y, out, config=config)
    torch.testing.assert_close(out, x @ y, rtol=1e-4, atol=1e-4)


def test_an_accumulator_of_one_number_takes_the_extents_of_the_products(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        for m in pl.parallel(0, x.shape[0], 32):
            for n in pl.parallel(0, y.shape[1], 32):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.tile_full([32, 32], pl.FP32, 0.0)
                    for k in pl.range(0, x.shape[1], 32):
                        acc = pl.matmul_acc(acc, pl.load(x, [m, k], [32, 32]), pl.load(y, [k, n], [32, 32]))
                    pl.store(acc, [m, n], out)

    x, y, out = torch.randn(50, 70), torch.randn(70, 40), torch.zeros(50, 40)
    kernel(x, y, out, config=config)
    torch.testing.assert_close(out, x @ y, rtol=1e-4, atol=1e-4)


def test_a_tile_that_each_turn_replaces_may_be_of_any_extent(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ahead = pl.load(x, [0, 0], [16, 64])
            for c in pl.range(0, x.shape[1], 64):
                here = ahead
                ahead = pl.load(x, [0, c + 64], [16, 64], clamp=True)
                pl.store(here * 2.0, [0, c], out)

    x, out = torch.randn(16, 100), torch.zeros(16, 100)
    kernel(x, out, config=config)
    torch.testing.assert_close(out, x * 2)


def test_a_tensor_that_was_created_never_shows_what_memory_held() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        scratch = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], scratch)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(scratch, [0, 0], [64, 64]), [0, 0], out)

    out = torch.full((64, 64), -1.0)
    for _ in range(3):
        kernel(torch.ones(16, 64), out)
        assert out[:16].eq(1).all() and not out[16:].any()
    with pytest.raises(ExecutionError, match=NOBODY):
        kernel(torch.ones(16, 64), out, config=RunConfig(platform="interpret"))


def test_padding_serves_every_edge(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        H, W = x.shape
        for r in pl.parallel(0, H, 16):
            for c in pl.parallel(0, W, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.tile_full([16, 16], pl.FP32, 0.0)
                    for i in pl.range(3):
                        for j in pl.range(3):
                            acc = acc + pl.load(x, [r + i - 1, c + j - 1], [16, 16], pad=0.0)
                    pl.store(pl.set_validshape(acc, pl.min(16, H - r), pl.min(16, W - c)), [r, c], out)

    x, out = torch.randn(37, 50), torch.zeros(37, 50)
    kernel(x, out, config=config)
    expected = torch.nn.functional.conv2d(x[None, None], torch.ones(1, 1, 3, 3), padding=1)[0, 0]
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "pad", "found"), [
    (torch.float32, float("-inf"), float("-inf")),
    (torch.float32, 1e30, 1e30),
    (torch.int32, pl.PadValue.max, 2**31 - 1),
    (torch.int32, float("-inf"), -(2**31)),
    (torch.int8, -128, -128),
    (torch.bfloat16, 3.0, 3.0),
])  # fmt: skip
def test_padding_is_any_number_the_elements_can_have(dtype: Any, pad: Any, found: float, config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, pad: Any, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [-1, 2], [4, 8], pad=pad), [0, 0], out)

    x, out = torch.ones(2, 4, dtype=dtype), torch.zeros(4, 8, dtype=dtype)
    kernel(x, pad, out, config=config)
    expected = torch.full((4, 8), found, dtype=dtype)
    expected[1:3, :2] = 1
    assert torch.equal(out, expected)


@pytest.mark.parametrize("pad", [0.5, 300, "zero"])
def test_padding_the_elements_cannot_have_is_refused(pad: Any) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, pad: Any, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8], pad=pad), [0, 0], out)

    with pytest.raises(ValueError, match="cannot be padded with"):
        kernel.lower(torch.ones(4, 8, dtype=torch.int8), pad, torch.ones(4, 8, dtype=torch.int8))


@pl.jit
def row_of(table: pl.Tensor, row: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(table, [row, 0], [1, 8]), [0, 0], out)


@pytest.mark.parametrize("row", [-1, 4, 5])
def test_a_load_that_starts_at_the_end_of_an_axis_or_outside_it_is_an_error(row: int, config: RunConfig) -> None:
    table, out = torch.ones(4, 8), torch.full((1, 8), 7.0)
    with pytest.raises(OutOfBoundsError):
        row_of(table, row, out, config=config)
    with pytest.raises(ExecutionError, match="outside"):
        row_of.compile(table, pl.RUNTIME, out, config=config)(table, row, out)


def test_a_load_at_zero_of_an_axis_without_elements_finds_nothing(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor[[pl.dynamic("M"), 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

    out = torch.full((4, 8), 7.0)
    kernel(torch.ones(0, 8), out, config=config)
    assert out.eq(7).all()


def test_a_padded_tile_of_one_column_stops_at_the_edges_too(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], line: pl.Out[pl.Tensor]):
        for j in pl.range(x.shape[1] + 2):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [-1, j - 1], [8, 1], pad=-3.0), [0, j], out)
                pl.store(pl.load(x[0], [j - 1], [1], pad=-3.0), [j], line)

    x, out, line = torch.arange(15.0).reshape(5, 3), torch.zeros(8, 5), torch.zeros(5)
    kernel(x, out, line, config=config)
    expected = torch.full((8, 5), -3.0)
    expected[1:6, 1:4] = x
    assert torch.equal(out, expected) and torch.equal(line, expected[1])


def test_holes_in_a_tile_put_together_stay_undefined_when_computed_with(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, first: int, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.create_tile([8, 8], dtype=pl.FP32)
            for i in pl.range(first, 8):
                t = pl.assemble(t, pl.load(x, [7 - i + first, 0], [1, 8]), [7 - i + first, 0])
            pl.store(t * 0.5 + t, [0, 0], out)

    x, out = torch.randn(8, 8), torch.zeros(8, 8)
    kernel(x, 0, out, config=config)
    torch.testing.assert_close(out, x * 1.5)
    with pytest.raises(ExecutionError, match=NOBODY):
        kernel(x, 1, out, config=config)


def test_an_element_that_was_written_alone_can_be_read(config: RunConfig) -> None:
    @pl.jit
    def kernel(out: pl.Out[pl.Tensor[[1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.write(pl.create_tile([8, 8], dtype=pl.FP32), [4, 5], 2.5)
            pl.write(out, [0], pl.read(t, [4, 5]))

    out = torch.zeros(1)
    kernel(out, config=config)
    assert out.item() == 2.5


def test_bits_of_a_mask_that_nobody_compared_choose_nothing(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            one = pl.tile_full([8, 16], pl.FP32, 1.0)
            some = pl.load(x, [0, 0], [8, 16], valid_shape=[8, n])
            mask = pl.cmp(some, 0.0, cmp_type=pl.CmpType.LE)
            pl.store(pl.row_sum(pl.sel(mask, one, one * 0.0)), [0, 0], out)

    x, out = torch.randn(8, 16), torch.zeros(8, 1)
    program = kernel.compile(x, pl.RUNTIME, out, config=config)
    program(x, 16, out)
    torch.testing.assert_close(out, (x <= 0).sum(1, keepdim=True).float())
    with pytest.raises(ExecutionError, match=NOBODY):
        program(x, 13, out)
    with pytest.raises((ExecutionError, UndefinedElementError), match=NOBODY):
        kernel(x, 13, out, config=config)


def test_parts_of_tensors_are_refused_where_a_tile_is_meant() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.slice(x, [4, 4], [0, 0], valid_shape=[2, 3])
            pl.assemble(out, pl.part_add(pl.slice(x, [4, 4], [0, 0]), part), [0, 0])

    with pytest.raises(ShapeMismatchError, match="taken as a whole"):
        kernel.lower(torch.ones(8, 8), torch.ones(8, 8))


def test_what_is_made_of_a_part_of_a_tensor_never_shows_what_memory_held() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.slice(x, [16, 16], [0, 0], valid_shape=[2, 3])
            pl.assemble(out, pl.full([16, 16], pl.FP32, 0.0) + part * 2.0, [0, 0])

    out = torch.full((16, 16), -1.0)
    kernel(torch.ones(16, 16), out)
    assert out[:2, :3].eq(2).all() and out.sum() == 12


def test_a_part_written_into_a_narrow_tile_makes_it_wider(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            narrow = pl.load(x, [0, 0], [8, 8], valid_shape=[n, n])
            pl.store(pl.assemble(narrow, pl.load(x, [0, 0], [8, 8]), [0, 0]), [0, 0], out)

    x, out = torch.randn(8, 8), torch.zeros(8, 8)
    kernel.compile(x, pl.RUNTIME, out, config=config)(x, 3, out)
    assert torch.equal(out, x)


def test_a_narrowed_tile_that_is_written_to_still_holds_what_it_held(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 8])
            narrow = pl.set_validshape(t, n, n)
            pl.store(t + pl.assemble(narrow, narrow, [0, 0]), [0, 0], out)

    x, out = torch.randn(8, 8), torch.zeros(8, 8)
    kernel.compile(x, pl.RUNTIME, out, config=config)(x, 3, out)
    torch.testing.assert_close(out, x * 2)


def test_nothing_is_looked_at_in_a_tile_without_elements(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            none = pl.load(x, [0, 0], [8, 8], valid_shape=[8, 0])
            pl.store(pl.maximum(none, pl.load(x, [0, 0], [8, 8])), [0, 0], out)
            row = pl.load(x, [n, 0], [1, 8], clamp=True)
            pl.store(pl.sel(pl.cmp(row, 1.0, cmp_type=pl.CmpType.LT), row, row), [0, 0], out)

    x, out = torch.randn(8, 8), torch.full((8, 8), 7.0)
    kernel.compile(x, pl.RUNTIME, out, config=config)(x, 9, out)
    assert out.eq(7).all()


@pytest.mark.parametrize("pad", [10**400, float("nan"), 2**40])
def test_padding_beyond_every_number_is_refused_in_words(pad: Any) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8], pad=pad), [0, 0], out)

    with pytest.raises(ValueError, match="cannot be padded with"):
        kernel.lower(torch.ones(4, 8, dtype=torch.int32), torch.ones(4, 8, dtype=torch.int32))


@pytest.mark.parametrize("columns", [5, 8])
def test_turning_a_tile_with_a_hole_in_its_middle_fills_nothing(config: RunConfig, columns: int) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.load(x, [0, 0], [8, 8], valid_shape=[8, n])
            joined = pl.concat(left, pl.tile.full([8, 8], dtype=pl.FP32, value=1.0))
            pl.store(pl.tile.transpose(joined, 0, 1), [0, 0], out)

    x, out = torch.randn(8, 8), torch.zeros(16, 8)
    program = kernel.compile(x, pl.RUNTIME, out, config=config)
    if columns < 8:
        with pytest.raises(ExecutionError, match=NOBODY):
            program(x, columns, out)
    else:
        program(x, columns, out)
        assert torch.equal(out, torch.cat((x, torch.ones(8, 8)), 1).T)


@pl.jit.inline
def beside_ones(x: pl.Tensor):
    """Return eight columns, of which three rows of four are written, and ones beside them."""
    return pl.concat(pl.load(x, [0, 0], [8, 8], valid_shape=[3, 4]), pl.tile.full([8, 8], pl.FP32, 1.0))


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("is_computed", [False, True])
def test_parts_of_joined_tiles_are_read_where_both_were_written_and_nowhere_else(
    config: RunConfig, is_computed: bool, is_turned: bool
) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, first: int, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = beside_ones(x)
            if is_computed:
                t = t * 2.0 + pl.load(x, [0, 0], [1, 16])
            if is_turned:
                t = pl.tile.transpose_view(pl.tile.transpose_view(t))
            pl.store(pl.slice(t, [2, 4], [0, first]), [0, first], out)

    x = torch.randn(8, 16)
    whole = torch.cat([x[:, :8], torch.ones(8, 8)], dim=1)
    expected = whole * 2.0 + x[:1] if is_computed else whole
    for first in (0, 8, 11, 12):
        out = torch.zeros(8, 16)
        kernel(x, first, out, config=config)
        assert torch.equal(out[:2, first : first + 4], expected[:2, first : first + 4])
    for first in (1, 4, 7):
        with pytest.raises((ExecutionError, UndefinedElementError), match=NOBODY):
            kernel(x, first, torch.zeros(8, 16), config=config)


def test_what_is_joined_again_keeps_its_holes(config: RunConfig) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, first: int, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.concat(pl.slice(beside_ones(x), [8, 12], [0, 2]), pl.tile.full([8, 4], pl.FP32, 3.0))
            pl.store(pl.slice(t, [3, 4], [0, first]), [0, 0], out)

    x = torch.randn(8, 16)
    for first, expected in ((6, torch.ones(3, 4)), (10, torch.tensor([[1.0, 1.0, 3.0, 3.0]] * 3))):
        out = torch.zeros(3, 4)
        kernel(x, first, out, config=config)
        assert torch.equal(out, expected)
    for first in (0, 2, 5):
        with pytest.raises((ExecutionError, UndefinedElementError), match=NOBODY):
            kernel(x, first, torch.zeros(3, 4), config=config)
