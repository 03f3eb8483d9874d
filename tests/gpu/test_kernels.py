"""Whole kernels on the GPU: loops, grids, dynamic extents, temporaries, products, errors, streams, saved programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError
from tilewright.programs.program import CompiledProgram

torch: Any = pytest.importorskip("torch")

M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [row, 0], [16, 128]), pl.load(y, [row, 0], [16, 128])
            pl.store(a + b, [row, 0], out)
    return out


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, columns = x.shape
    for row in pl.parallel(0, rows, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [4, columns])
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            pl.store(pl.row_expand_div(e, pl.row_sum(e)), [row, 0], out)
    return out


@pl.jit
def rms_norm(x: pl.Tensor[[M, 320], pl.BF16], w: pl.Tensor, out: pl.Out[pl.Tensor[[M, 320], pl.BF16]]):
    rows, columns = x.shape
    for row in pl.parallel(0, rows, 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [row, 0], [1, columns]), pl.FP32)
            scale = pl.rsqrt(pl.row_sum(t * t) * (1.0 / columns) + 1e-5)
            y = pl.row_expand_mul(t, scale) * pl.load(w, [0, 0], [1, columns])
            pl.store(pl.cast(y, pl.BF16, mode="rint"), [row, 0], out)
    return out


@pl.jit
def gelu(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for row in pl.parallel(0, x.shape[0], 8):
        for column in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.gelu(pl.load(x, [row, column], [8, 64])), [row, column], out)
    return out


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, k = a.shape
    n = b.shape[1]
    for i in pl.parallel(0, m, 64):
        for j in pl.parallel(0, n, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
                for step in pl.range(0, k, 32):
                    left, right = pl.load(a, [i, step], [64, 32]), pl.load(b, [step, j], [32, 64])
                    acc = pl.matmul_acc(acc, left, right)
                pl.store(acc, [i, j], out)
    return out


@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Two launches, with a temporary between them that only the device sees."""
    middle = pl.create_tensor(x.shape, dtype=pl.FP32)
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, 64]) * 2.0, [row, 0], middle)
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(middle, [row, 0], [16, 64]) + 1.0, [row, 0], out)
    return out


@pl.jit
def whole_tensors(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            powers = pl.exp(pl.slice(x, [8, x.shape[1]], [row, 0]))
            out = pl.assemble(out, pl.row_expand_div(powers, pl.row_sum(powers)), [row, 0])
    return out


@pl.jit
def large_tiles(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        powers = pl.exp(x)
        out = pl.assemble(out, pl.col_expand_mul(pl.row_expand_div(powers, pl.row_sum(powers)), w), [0, 0])
    return out


@pl.jit
def logs_of_sums(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [row, 0], [1, x.shape[1]]), pl.FP32)
            best = pl.row_max(t)
            total = pl.row_sum(pl.exp(pl.row_expand_sub(t, best)))
            other = pl.row_sum(pl.exp(t))
            pl.store(pl.log(total) + best, [row, 0], out)
            pl.store(other, [row, 1], out)
    return out


@pl.jit
def shifted(x: pl.Tensor, out: pl.Out[pl.Tensor], at: pl.Scalar[pl.INDEX]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [at, 0], [4, 32]), [0, 0], out)
    return out


def uniform(*shape: int, dtype: Any = None) -> Any:
    return torch.rand(*shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).to(
        dtype or torch.float32
    )


def test_add_in_place_and_returned() -> None:
    x, y = uniform(256, 128), uniform(256, 128)
    out = torch.empty_like(x)
    add(x, y, out)
    made = add(x, y)
    assert torch.equal(out, x + y) and torch.equal(made, x + y) and made.device == x.device


def test_rows_that_are_left_over_are_masked() -> None:
    x, y = uniform(37, 128), uniform(37, 128)
    assert torch.equal(add(x, y), x + y)


def test_views_that_are_neither_aligned_nor_contiguous() -> None:
    held = uniform(80, 200)
    x, y = held[3:43, 5:133], uniform(128, 40).T
    assert torch.equal(add(x, y), x + y)
    out = torch.zeros(128, 40, device="cuda").T
    add(x, y, out)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("columns", [64, 1000])
def test_softmax(columns: int) -> None:
    x = uniform(30, columns) * 8
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1), rtol=2e-6, atol=1e-8)


def test_rms_norm_of_bfloat16() -> None:
    x, w = uniform(17, 320, dtype=torch.bfloat16), uniform(1, 320)
    wide = x.float()
    want = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5) * w
    torch.testing.assert_close(rms_norm(x, w), want.bfloat16(), rtol=1e-2, atol=1e-2)


def test_gelu_of_dynamic_extents_over_a_grid_of_two_loops() -> None:
    for shape in ((64, 128), (31, 100), (1, 1)):
        x = uniform(*shape) * 8 - 4
        torch.testing.assert_close(gelu(x), torch.nn.functional.gelu(x.double()).float(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_matmul(dtype: str) -> None:
    kind = getattr(torch, dtype)
    for m, n, k in ((128, 128, 64), (70, 90, 50)):
        a, b = (uniform(m, k) - 0.5).to(kind), (uniform(k, n) - 0.5).to(kind)
        out = torch.full((m, n), 7.0, device="cuda")
        matmul(a, b, out)
        torch.testing.assert_close(out.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)


@pl.jit
def multiplied(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile.full([128, 128], dtype=pl.INT32, value=0)
            for step in pl.range(0, a.shape[1], 64):
                left, right = pl.load(a, [i, step], [128, 64]), pl.load(b, [step, 0], [64, 128])
                acc = pl.matmul_acc(acc, pl.cast(left, pl.INT32), pl.cast(right, pl.INT32))
            pl.store(acc, [i, 0], out)
    return out


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        ("int8", "int8"),
        ("uint8", "uint8"),
        ("uint8", "int8"),
        ("int8", "uint8"),
        ("int16", "int16"),
        ("int32", "int32"),
    ],
)
def test_products_of_integers_are_exact_to_32_bits(lhs: str, rhs: str) -> None:
    a, b = (
        torch.randint(torch.iinfo(kind).min, torch.iinfo(kind).max, shape, dtype=kind)
        for kind, shape in ((getattr(torch, lhs), (256, 192)), (getattr(torch, rhs), (192, 128)))
    )
    out = torch.zeros((256, 128), device="cuda", dtype=torch.int32)
    multiplied(a.cuda(), b.cuda(), out)
    assert torch.equal(out.cpu(), (a.long() @ b.long()).int())


def test_temporaries_are_memory_of_the_device() -> None:
    x = uniform(32, 64)
    for _ in range(3):
        assert torch.equal(twice(x), x * 2 + 1)


def test_blocks_compute_with_whole_tensors_of_any_extent() -> None:
    for shape in ((32, 70), (8, 5000), (16, 1)):
        x = uniform(*shape)
        torch.testing.assert_close(whole_tensors(x), torch.softmax(x, -1))


def test_whole_tensors_larger_than_any_tile_are_computed_in_rows() -> None:
    for shape in ((2048, 2048), (1001, 333)):
        x, w, out = uniform(*shape), uniform(1, shape[1]), torch.empty(shape, device="cuda")
        large_tiles(x, w, out)
        torch.testing.assert_close(out, torch.softmax(x, -1) * w)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_sums_of_exponentials_are_exact_wherever_they_lie(dtype: Any) -> None:
    x = torch.randn(8, 1024, device="cuda").to(dtype)
    x[1] -= 95  # every exponential is subnormal
    x[2] -= 300
    x[3, 5], x[4, 9], x[5, :100] = float("inf"), float("nan"), -float("inf")
    x[6] += 85  # more than fp32 holds, but for the logarithm
    out = torch.empty(8, 2, device="cuda")
    logs_of_sums(x, out)
    best, wide = x.double().amax(1), x.double()
    want = torch.stack([(wide - best[:, None]).exp().sum(1).log() + best, wide.exp().sum(1)], 1)
    torch.testing.assert_close(out, want.float(), rtol=2e-6, atol=2e-43, equal_nan=True)


def test_tensors_of_two_places_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="`x` is on cuda:0 and `y` on cpu"):
        add(uniform(16, 128), torch.zeros(16, 128))


def test_a_load_outside_its_tensor_is_raised_by_the_next_call() -> None:
    x, out = uniform(8, 32), torch.zeros(4, 32, device="cuda")
    program = shifted.compile(x, out, at=pl.RUNTIME)
    program(x, out, 4)
    assert torch.equal(out, x[4:])
    with pytest.raises(ExecutionError, match="a load starts outside its tensor"):
        program(x, out, 9)
        torch.cuda.synchronize()
        program(x, out, 0)
    program(x, out, 0)
    assert torch.equal(out, x[:4])


def test_calls_follow_the_current_stream() -> None:
    x, side = uniform(256, 128), torch.cuda.Stream()
    out = torch.zeros_like(x)
    add(x, x, out)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.mul_(2)
        add(x, x, out)
        out.add_(1)
    side.synchronize()
    assert torch.equal(out, x * 2 + 1)


def test_calls_can_be_captured_in_a_graph() -> None:
    x, out = uniform(64, 128), torch.zeros(64, 128, device="cuda")
    add(x, x, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(x, x, out)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x + x)


def test_a_saved_program_runs_without_its_source(tmp_path: Path) -> None:
    x = uniform(64, 128)
    add.compile(x, x).save(tmp_path)
    loaded = CompiledProgram.load(tmp_path)
    assert torch.equal(loaded(x, x), x + x)


def test_equal_calls_give_equal_bits() -> None:
    x = uniform(64, 1000)
    first = softmax(x)
    assert all(torch.equal(softmax(x), first) for _ in range(5))


def test_warm_calls_go_past_python_whatever_the_device() -> None:
    x, here = uniform(64, 128), torch.rand(64, 128)
    for _ in range(40):
        assert torch.equal(add(here, here), here + here)
        assert torch.equal(add(x, x), x + x)
        out = torch.empty_like(x)
        add(x, x, out)
        assert torch.equal(out, x + x)
    before = add.call_info().direct
    for _ in range(10):
        assert torch.equal(add(x, x), x + x)
        assert torch.equal(add(here, here), here + here)
    assert add.call_info().direct >= before + 20
    with pytest.raises(ValueError, match="`x` is on cuda:0 and `y` on cpu"):
        add(x, here)


@pl.jit
def scaled(x: pl.Tensor, factors: pl.Tensor, out: pl.Out[pl.Tensor], sums: pl.Out[pl.Tensor]):
    """Turns so small that blocks share them out, and one number a turn."""
    for row in pl.parallel(0, x.shape[0], 1):
        for column in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [row, column], [1, 64]) * pl.read(factors, [row, 0])
                pl.store(t, [row, column], out)
                pl.store(pl.row_max(t), [row, column // 64], sums)
    return out, sums


@pytest.mark.parametrize("columns", [256, 200])
def test_blocks_share_tiny_turns_out(columns: int) -> None:
    generator = torch.Generator(device="cuda").manual_seed(6)
    x, factors = (torch.randn(3000, n, generator=generator, device="cuda") for n in (columns, 1))
    out, largest = torch.full_like(x, torch.nan), torch.full((3000, 9), torch.nan, device="cuda")[:, 1:5]
    scaled(x, factors, out, largest)
    want = x * factors
    padded = torch.nn.functional.pad(want, (0, 256 - columns), value=-torch.inf).view(3000, 4, 64).amax(-1)
    assert torch.equal(out, want) and torch.equal(largest, padded)


@pl.jit
def in_large_tiles(
    x: pl.Tensor, turned: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor], sums: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]
):
    for block in pl.spmd(3):
        t = pl.load(x, [block * 250, 0], [250, 250])
        pl.store(pl.transpose(t, 0, 1), [block * 250, 0], turned)
        pl.store(pl.flip(t, 1), [block * 250, 0], other)
        pl.store(pl.cumsum(t, axis=0), [block * 250, 0], sums)
        pl.store(pl.matmul(t, t), [block * 250, 0], out)


def test_tiles_beyond_shared_memory_go_through_memory() -> None:
    x = torch.randn(750, 250, generator=torch.Generator().manual_seed(2))
    three, found = x.view(3, 250, 250).double(), [torch.empty(750, 250, device="cuda") for _ in range(4)]
    in_large_tiles(x.cuda(), *found)
    for got, want in zip(found, (three.mT, three.flip(2), three.cumsum(1), three @ three), strict=True):
        torch.testing.assert_close(got.cpu().double().view(3, 250, 250), want, rtol=1e-5, atol=1e-4)
