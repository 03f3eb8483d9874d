"""Roles: which kernels have their warps' work written out, what that comes to, and what stays Triton's."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.backends.cuda.emulated_roles import run_with_roles
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.schedule import wants_roles
from tilewright.backends.cuda.target import triton_objection

Array = Any


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, first: pl.Scalar[pl.INDEX], row: pl.Scalar[pl.INDEX],
    blocks: pl.Scalar[pl.INDEX], causal: bool, out: pl.Out[pl.Tensor],
):  # fmt: skip
    dim = q.shape[1]
    scale = 1 / math.sqrt(dim)
    queries = pl.load(q, [first + row, 0], [128, dim])
    best = pl.tile.full([128, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([128, dim], dtype=pl.FP32, value=0.0)
    for block in pl.range(blocks):
        key = block * 64
        keys = pl.load(k, [first + key, 0], [64, dim])
        scores = pl.matmul(queries, pl.tile.transpose_view(keys))
        if causal:
            scores = pl.where(pl.iota([1, 64], axis=1) + key <= pl.iota([128, 1], axis=0) + row, scores, -math.inf)
        highest = pl.maximum(best, pl.row_max(scores))
        weights = pl.exp(pl.fma(scores, scale, highest * -scale))
        kept = pl.exp((best - highest) * scale)
        total = total * kept + pl.row_sum(weights)
        values = pl.load(v, [first + key, 0], [64, dim])
        average = pl.row_expand_mul(average, kept) + pl.matmul(pl.cast(weights, q.dtype, mode="rint"), values)
        best = highest
    return pl.store(pl.cast(pl.row_expand_div(average, total), q.dtype, mode="rint"), [first + row, 0], out)


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    length = q.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(length // 128):
            out = attend(q, k, v, head * length, block * 128, length // 64, False, out)
    return out


@pl.jit
def causal_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    length = q.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(length // 128):
            out = attend(q, k, v, head * length, block * 128, block * 2 + 2, True, out)
    return out


def inputs(heads: int, length: int, dim: int, dtype: Any = ml_dtypes.bfloat16) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((heads * length, dim)).astype(dtype) for _ in range(3)]


def reference(given: list[Array], heads: int, causal: bool) -> Array:
    a, b, c = (x.astype(np.float64).reshape(heads, -1, x.shape[1]) for x in given)
    scores = a @ b.transpose(0, 2, 1) / math.sqrt(a.shape[2])
    if causal:
        scores = np.where(np.tri(scores.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ c / weights.sum(-1, keepdims=True)).reshape(given[0].shape)


def kernel_of(kernel: Any, *args: Any) -> KernelText:
    (found,) = written(kernel.specialize(*args).program).kernels
    return found


def text_of(kernel: Any, heads: int, q: Array, k: Array, v: Array) -> str:
    return "".join(kernel_of(kernel, q, k, v, heads, np.zeros_like(q)).roles[:1])


@pytest.mark.parametrize("causal", [False, True])
def test_programs_take_turns_and_leave_what_attention_is(causal: bool) -> None:
    heads, length = 3, 256
    q, k, v = inputs(heads, length, 64)
    text = text_of(causal_attention if causal else attention, heads, q, k, v)
    out = np.full_like(q, np.nan)
    found = run_with_roles(text, [q, k, v, out], heads * length // 128, programs=4)[3].astype(np.float64)
    wanted = reference([q, k, v], heads, causal)
    assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)


@pl.jit
def scaled_by_columns(q: pl.Tensor, k: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, q.shape[0], 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [row, 0], [128, 64])
            total = pl.tile.full([1, 64], dtype=pl.FP32, value=0.0)
            for key in pl.range(0, k.shape[0], 64):
                scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [key, 0], [64, 64])))
                total = total + pl.col_sum(scores)
            pl.store(total, [row // 128, 0], out)
    return out


@pl.jit
def summed(q: pl.Tensor, k: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Rows of scores above zero, summed: one product, a bias for each key, and no exponential."""
    for row in pl.parallel(0, q.shape[0], 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [row, 0], [128, 64])
            total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
            for key in pl.range(0, k.shape[0], 64):
                scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [key, 0], [64, 64])))
                scores = pl.relu(scores + pl.load(bias, [0, key], [1, 64]))
                total = total + pl.row_sum(scores)
            pl.store(total, [row, 0], out)
    return out


@pl.jit
def attention_to(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Attention to any number of keys, as it is written down most plainly."""
    for row in pl.parallel(0, q.shape[0], 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [row, 0], [128, 64])
            best = pl.tile.full([128, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
            average = pl.tile.full([128, 64], dtype=pl.FP32, value=0.0)
            for key in pl.range(0, k.shape[0], 64):
                scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [key, 0], [64, 64]))) * 0.125
                highest = pl.maximum(best, pl.row_max(scores))
                weights = pl.row_expand_expdif(scores, highest)
                kept = pl.exp(best - highest)
                total = total * kept + pl.row_sum(weights)
                half = pl.cast(weights, q.dtype, mode="rint")
                average = pl.row_expand_mul(average, kept) + pl.matmul(half, pl.load(v, [key, 0], [64, 64]))
                best = highest
            pl.store(pl.cast(pl.row_expand_div(average, total), q.dtype, mode="rint"), [row, 0], out)
    return out


def test_keys_that_leave_something_over_are_masked() -> None:
    q, k, v = inputs(1, 256, 64)
    k, v, out = k[:250], v[:250], np.full_like(q, np.nan)
    wanted = reference([q, k, v], 1, causal=False)
    for text in (texts := kernel_of(attention_to, q, k, v, out).roles):
        found = run_with_roles(text, [q, k, v, out], 2, programs=2)[3].astype(np.float64)
        assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)
    assert len(texts) == 2


def test_other_chains_of_rows_have_roles_too() -> None:
    q, k, _ = inputs(1, 256, 64)
    bias, out = np.linspace(-8, 8, 256, dtype=np.float32)[None], np.full((256, 1), np.nan, np.float32)
    (text,) = kernel_of(summed, q, k, bias, out).roles
    found = run_with_roles(text, [q, k, bias, out], 2, programs=3)[3]
    scores = q.astype(np.float64) @ k.astype(np.float64).T + bias
    np.testing.assert_allclose(found, np.maximum(scores, 0).sum(1, keepdims=True), rtol=1e-5)


@pl.jit
def counted(q: pl.Tensor, k: pl.Tensor, count: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, q.shape[0], 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [row, 0], [128, 64])
            total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
            for key in pl.range(0, k.shape[0], 64):
                scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [key, 0], [64, 64])))
                total = total + pl.row_sum(scores)
                pl.store(pl.tile.full([1, 16], dtype=pl.FP32, value=1.0), [0, 0], count, atomic=pl.AtomicType.Add)
            pl.store(total, [row, 0], out)
    return out


def test_what_mixes_rows_or_has_other_tiles_is_left_to_triton() -> None:
    q, k, v = inputs(1, 256, 64)
    assert not kernel_of(counted, q, k, np.zeros((1, 16), np.float32), np.zeros((256, 1), np.float32)).roles
    assert not kernel_of(scaled_by_columns, q, k, np.zeros((2, 64), np.float32)).roles
    assert not text_of(attention, 1, *(x.astype(np.float32) for x in (q, k, v)))


def test_only_hopper_gets_roles_and_a_setting_keeps_them_away() -> None:
    kernel = kernel_of(attention, *(given := inputs(1, 256, 64)), 1, given[0])
    assert kernel.tries(90, is_aligned=True)[0][1].has_roles
    others = (kernel.tries(80, is_aligned=True), kernel.tries(90, is_aligned=False), kernel.tries(100, is_aligned=True))
    assert not any(schedule.has_roles for tries in others for _, schedule in tries)
    assert wants_roles("") and not wants_roles("roles=0") and not wants_roles("warps=8")


def test_a_mask_is_only_looked_at_where_it_hides_something() -> None:
    given = inputs(1, 256, 64)
    full, causal = (text_of(each, 1, *given) for each in (attention, causal_attention))
    assert "everywhere" not in full
    assert len(re.findall(r"scf\.if %\w*everywhere", causal)) == 4  # the first turn and the others, each by two groups


def test_the_second_product_of_a_turn_is_beside_the_first_of_the_next() -> None:
    text = text_of(attention, 1, *inputs(1, 256, 64))
    half = text.partition("default {")[2].partition("partition0")[0]
    products = re.findall(
        r"= (?:ttng\.(warp_group_dot|warp_group_dot_wait) .*?(pendings = \d|isAsync)|(scf.for) %\d)", half
    )
    said = [name + kept[-1:] + loop for name, kept, loop in products]
    wait, begin = "warp_group_dot_wait", "warp_group_dotc"
    turns = [begin, wait + "0", "scf.for", begin, begin, wait + "1", wait + "0", begin, wait + "0"]
    assert said == turns


def test_what_is_rounded_to_half_precision_is_not_computed_to_eight_digits() -> None:
    given = inputs(1, 256, 64)
    assert "math.exp" in kernel_of(attention, *given, 1, given[0]).aligned
    wide = [x.astype(np.float32) for x in given]
    assert "math.exp" not in kernel_of(attention, *wide, 1, wide[0]).aligned


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
def test_triton_takes_roles_without_spilling() -> None:
    q, k, v = inputs(1, 256, 64)
    for keys in (256, 250):
        program = ir.compile(attention_to.specialize(q, k[:keys], v[:keys], q).program, platform="cuda", target="sm_90")
        assert "ttg.memdesc_index %ring0" in program.stages["ttgir"] and "wgmma.mma_async" in program.stages["ptx"]
        (row,) = program.stages["launches"].splitlines()[1:]
        assert row.split()[-8:-5] == ["384", "168", "0"]


@pl.jit
def earlier(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Scores above zero of all keys in earlier blocks, by their values: the first block has none."""
    for block in pl.parallel(q.shape[0] // 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [block * 128, 0], [128, 64])
            total = pl.tile.full([128, 64], dtype=pl.FP32, value=0.0)
            for key in pl.range(block * 2):
                scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [key * 64, 0], [64, 64])))
                weights = pl.cast(pl.relu(scores), q.dtype, mode="rint")
                total = pl.matmul_acc(total * 0.5, weights, pl.load(v, [key * 64, 0], [64, 64]))
            pl.store(total, [block * 128, 0], out)
    return out


def test_blocks_without_turns_leave_what_they_began_with() -> None:
    q, k, v = inputs(1, 384, 64)
    out = np.full(q.shape, np.nan, np.float32)
    text = kernel_of(earlier, q, k, v, out).roles[0]
    found = run_with_roles(text, [q, k, v, out], 3, programs=2)[3]
    wanted = np.zeros(q.shape)
    for block in range(3):
        rows = slice(128 * block, 128 * block + 128)
        for key in range(2 * block):
            keys = slice(64 * key, 64 * key + 64)
            scores = np.maximum(q[rows].astype(np.float64) @ k[keys].astype(np.float64).T, 0).astype(q.dtype)
            wanted[rows] = wanted[rows] * 0.5 + scores.astype(np.float64) @ v[keys].astype(np.float64)
    assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted) and not found[:128].any()


@pl.jit
def weighted(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    """Values by scores above zero, 64 rows a block: neighbours of a head read the same keys."""
    length = q.shape[0] // heads
    for head in pl.parallel(heads):
        for row in pl.parallel(0, length, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                queries = pl.load(q, [head * length + row, 0], [64, 64])
                total = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
                for key in pl.range(0, length, 64):
                    keys = pl.load(k, [head * length + key, 0], [64, 64])
                    scores = pl.matmul(queries, pl.tile.transpose_view(keys))
                    numbers = pl.iota([64, 1], axis=0) + row
                    scores = pl.where(pl.iota([1, 64], axis=1) + key <= numbers, scores, 0.0)
                    weights = pl.cast(pl.relu(scores), q.dtype, mode="rint")
                    total = pl.matmul_acc(total, weights, pl.load(v, [head * length + key, 0], [64, 64]))
                pl.store(total, [head * length + row, 0], out)
    return out


def weighted_reference(q: Array, k: Array, v: Array, heads: int) -> Array:
    a, b, c = (x.astype(np.float64).reshape(heads, -1, 64) for x in (q, k, v))
    scores = np.maximum(a @ b.transpose(0, 2, 1), 0) * np.tri(a.shape[1])
    return (scores.astype(q.dtype).astype(np.float64) @ c).reshape(q.shape)


def test_neighbours_that_stream_the_same_blocks_share_them() -> None:
    q, k, v = inputs(3, 128, 64)
    out = np.full(q.shape, np.nan, np.float32)
    found = run_with_roles(kernel_of(weighted, q, k, v, 3, out).roles[0], [q, k, v, out], 6, programs=2)[3]
    wanted = weighted_reference(q, k, v, 3)
    assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)
    q, k, v = inputs(2, 192, 64)  # three blocks a head: the neighbour of the third has other keys
    assert not kernel_of(weighted, q, k, v, 2, np.zeros(q.shape, np.float32)).roles
