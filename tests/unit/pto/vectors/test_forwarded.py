"""Forwarded copies: local buffers that are pieces of global memory, where nobody can tell."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import ir, pto
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse

Gm = pto.gm_ptr(pto.f32)
SIZE = 1024


def piece(p: Any, at: Any) -> Any:
    view = pto.make_tensor_view(p, shape=[1, 4 * SIZE], strides=[4 * SIZE, 1])
    return pto.partition_view(view, offsets=[0, at], sizes=[1, SIZE])


def add_one(source: Any, target: Any) -> None:
    mask = pto.make_mask(pto.f32, pto.PAT.ALL)
    for i in range(pto.const(0), SIZE, 64):
        pto.vsts(pto.vadds(pto.vlds(source[i:]), 1.0, mask), target[i:], mask)


def tiles() -> tuple[Any, Any]:
    return pto.alloc_tile(shape=[SIZE], dtype=pto.f32), pto.alloc_tile(shape=[SIZE], dtype=pto.f32)


@pto.jit()
def apart(a: Gm, out: Gm, n: pto.i32) -> None:
    x, y = tiles()
    at = pto.cast(pto.get_block_idx(), pto.index) * SIZE
    pto.tile.load(piece(a, at), x)
    with pto.simd():
        add_one(x, y)
    pto.tile.store(y, piece(out, at + pto.cast(n, pto.index)))


@pto.jit()
def in_place(a: Gm, out: Gm, n: pto.i32) -> None:
    """Reads a piece that it writes to before it reads its copy again."""
    x, y = tiles()
    at = pto.cast(pto.get_block_idx(), pto.index) * SIZE
    pto.tile.load(piece(a, at), x)
    with pto.simd():
        add_one(x, y)
    pto.tile.store(y, piece(a, at))
    with pto.simd():
        add_one(x, y)
    pto.tile.store(y, piece(out, at))


@pto.jit()
def twice(a: Gm, out: Gm, n: pto.i32) -> None:
    """Stores a buffer, changes it, and stores it elsewhere."""
    x, y = tiles()
    pto.tile.load(piece(a, 0), x)
    with pto.simd():
        add_one(x, y)
    pto.tile.store(y, piece(out, 0))
    with pto.simd():
        add_one(y, y)
    pto.tile.store(y, piece(out, SIZE))


@pto.jit()
def blank(a: Gm, out: Gm, n: pto.i32) -> None:
    """Reads a buffer before it is filled, and writes only half of another."""
    x, y = tiles()
    with pto.simd():
        add_one(x, y)
    pto.tile.store(y, piece(out, 0))
    pto.tile.load(piece(a, 0), x)
    z = pto.alloc_tile(shape=[SIZE], dtype=pto.f32)
    with pto.simd():
        mask = pto.make_mask(pto.f32, pto.PAT.ALL)
        for i in range(pto.const(0), SIZE // 2, 64):
            pto.vsts(pto.vlds(x[i:]), z[i:], mask)
    pto.tile.store(z, piece(out, SIZE))


def expected(name: str, a: Any) -> tuple[Any, Any]:
    one, out = np.float32(1), np.full(4 * SIZE, -1, np.float32)
    first = a[:SIZE]
    if name == "apart":
        out[: 2 * SIZE] = a[: 2 * SIZE] + one
    elif name == "in_place":
        out[: 2 * SIZE] = a[: 2 * SIZE] + one
        a = np.concatenate([a[: 2 * SIZE] + one, a[2 * SIZE :]])
    elif name == "twice":
        out[: 2 * SIZE] = np.concatenate([first + one, first + one + one])
    else:
        out[: 2 * SIZE] = np.concatenate([np.ones(SIZE), first[: SIZE // 2], np.zeros(SIZE // 2)])
    return a, out


@pytest.mark.parametrize(("kernel", "buffers"), [(apart, 0), (in_place, 2), (twice, 1), (blank, 3)])
def test_kernels_that_copy(kernel: Any, buffers: int, target: str) -> None:
    module = parse(kernel.mlir_text())
    program = lower(module, next(f for f in module.funcs() if f.name == kernel.name), target="a5")
    assert str(program).count("tensor.create") == buffers
    a, out = np.random.default_rng(0).normal(size=4 * SIZE).astype(np.float32), np.full(4 * SIZE, -1, np.float32)
    held, wanted = expected(kernel.name, a)
    ir.compile(program, platform=target)(2 if kernel in (apart, in_place) else 1, a, out, 0)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(a, held)
