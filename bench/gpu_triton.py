"""Kernels of the GPU's rows that Triton's tutorials have, as its users write them: what ours are measured beside."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

RESIDENT = 8
"""Programs of a multiprocessor that share the rows of a softmax out."""


@triton.jit
def _add(x, y, out, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    tl.store(out + places, tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside), mask=inside)


@triton.jit
def _softmax(x, out, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    places = tl.arange(0, BLOCK)
    inside = places < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * columns + places, mask=inside, other=float("-inf")).to(tl.float32)
        raised = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + places, (raised / tl.sum(raised, axis=0)).to(out.type.element_ty), mask=inside)


@triton.jit
def _layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    x += tl.program_id(0) * columns
    out += tl.program_id(0) * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        total += tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
        apart = tl.where(places < columns, values - mean, 0.0)
        squares += apart * apart
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        inside = places < columns
        values = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
        found = (values - mean) * scale * tl.load(weight + places, mask=inside) + tl.load(bias + places, mask=inside)
        tl.store(out + places, found.to(out.type.element_ty), mask=inside)


@triton.jit
def _matmul(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BAND: tl.constexpr):
    rows_of_blocks, columns_of_blocks = tl.cdiv(m, M), tl.cdiv(n, N)
    band = tl.program_id(0) // (BAND * columns_of_blocks)
    height = min(rows_of_blocks - band * BAND, BAND)
    inside = tl.program_id(0) % (BAND * columns_of_blocks)
    rows = ((band * BAND + inside % height) * M + tl.arange(0, M)) % m
    columns = (inside // height * N + tl.arange(0, N)) % n
    steps = tl.arange(0, K)
    left, right = a + rows[:, None] * k + steps[None, :], b + steps[:, None] * n + columns[None, :]
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        there = steps < k - step * K
        acc = tl.dot(tl.load(left, mask=there[None, :], other=0.0), tl.load(right, mask=there[:, None], other=0.0), acc)
        left += K
        right += K * n
    rows = (band * BAND + inside % height) * M + tl.arange(0, M)
    columns = inside // height * N + tl.arange(0, N)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + rows[:, None] * n + columns[None, :], acc.to(out.type.element_ty), mask=mask)


def add(x: Any, y: Any) -> Callable[[], Any]:
    """Return a call that adds two tensors."""
    out, count = torch.empty_like(x), x.numel()

    def call() -> Any:
        _add[(triton.cdiv(count, 1024),)](x, y, out, count, BLOCK=1024)
        return out

    return call


def softmax(x: Any) -> Callable[[], Any]:
    """Return a call that makes each row of a tensor one of probabilities."""
    out, (rows, columns) = torch.empty_like(x), x.shape
    programs = min(rows, RESIDENT * torch.cuda.get_device_properties(0).multi_processor_count)

    def call() -> Any:
        _softmax[(programs,)](x, out, rows, columns, BLOCK=triton.next_power_of_2(columns), STAGES=4, num_warps=8)
        return out

    return call


def layer_norm(x: Any, weight: Any, bias: Any) -> Callable[[], Any]:
    """Return a call that normalizes each row of a tensor."""
    out, (rows, columns) = torch.empty_like(x), x.shape
    block = min(65536 // x.element_size(), triton.next_power_of_2(columns))

    def call() -> Any:
        _layer_norm[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=block, num_warps=min(max(block // 256, 1), 8))
        return out

    return call


def matmul(a: Any, b: Any) -> Callable[[], Any]:
    """Return a call that multiplies two matrices."""
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, device=a.device, dtype=a.dtype)
    blocks = triton.cdiv(m, 128) * triton.cdiv(n, 256)

    def call() -> Any:
        _matmul[(blocks,)](a, b, out, m, n, k, M=128, N=256, K=64, BAND=8, num_warps=8, num_stages=3)
        return out

    return call
