"""products: matrices multiplied as people write it, in tiles of 32, 64, 128 and in ragged ones.

The worst of the tiles counts: those of a program are not those that the machine multiplies in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from contest import EAGER, OURS, Contest, Field, Missing, Run, Work

import tilewright.language as pl

sys.path.append(str(Path(__file__).parents[2] / "examples" / "gallery"))

import quantized

GROUP = "Products, by the tiles they are written in"
FEW = "Products of few rows, by the tiles they are written in"
TURNED = "Products of few rows with weights stored output by output"
QUANTIZED = "Products with quantized weights"
TILES = {"32": (32, 32, 32), "64": (64, 64, 64), "128": (128, 128, 128), "48x80x56": (48, 80, 56)}
ROUNDS = 21
JAX = "jax, bf16"
M = pl.dynamic("M")


def matmul(tm: int, tn: int, tk: int) -> Any:
    """Return the kernel that everybody writes first."""

    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, a.shape[0], tm):
            for j in pl.parallel(0, b.shape[1], tn):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.matmul(pl.load(a, [i, 0], [tm, tk]), pl.load(b, [0, j], [tk, tn]))
                    for k in pl.range(tk, a.shape[1], tk):
                        acc = pl.matmul_acc(acc, pl.load(a, [i, k], [tm, tk]), pl.load(b, [k, j], [tk, tn]))
                    pl.store(acc, [i, j], c)
        return c

    return product


def of_any_rows(tm: int, tn: int, tk: int) -> Any:
    """Return a kernel that is told by each call how many rows there are."""

    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        a.bind_dynamic(0, M)
        c.bind_dynamic(0, M)
        for i in pl.parallel(0, a.shape[0], tm):
            for j in pl.parallel(0, b.shape[1], tn):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.zeros([tm, tn], dtype=pl.FP32)
                    for k in pl.range(0, a.shape[1], tk):
                        acc += pl.load(a, [i, k], [tm, tk]) @ pl.load(b, [k, j], [tk, tn])
                    pl.store(acc, [i, j], c)
        return c

    return product


def with_turned(tm: int, tn: int, tk: int) -> Any:
    """Return a kernel whose weights lie output by output, as those of torch's linear layers do."""

    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, a.shape[0], tm):
            for j in pl.parallel(0, b.shape[0], tn):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.zeros([tm, tn], dtype=pl.FP32)
                    for k in pl.range(0, a.shape[1], tk):
                        acc += pl.load(a, [i, k], [tm, tk]) @ pl.load(b, [j, k], [tn, tk]).T
                    pl.store(acc, [i, j], c)
        return c

    return product


def enter(m: int, k: int, n: int, dtype: torch.dtype, kernel: Callable[..., Any] = matmul) -> Field:
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, shape, dtype=dtype) for shape in ((m, k), (k, n)))
        expected, theirs = torch._int_mm(a, b), partial(torch._int_mm, a, b)  # pyright: ignore
    else:
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        wide, out = (a.float(), b.float()), torch.empty(m, n)
        expected = (a.double() @ b.double()).float()
        if kernel is with_turned:
            b, wide = b.T.contiguous(), (wide[0], wide[1].T.contiguous().T)
        theirs = partial(torch.matmul, *wide, out=out)
    tiles = {f"in {name}": (min(tm, m) if kernel is matmul else tm, tn, tk) for name, (tm, tn, tk) in TILES.items()}
    ours = {name: _run(kernel(*tile), a, b, expected) for name, tile in tiles.items()}
    others = {JAX: in_jax(a, b)} if dtype == torch.bfloat16 and kernel is matmul else {}
    return Field(expected, {**ours, EAGER: theirs, **others}, rtol=1e-3, atol=2e-3)


def in_jax(a: torch.Tensor, b: torch.Tensor) -> Run | Missing:
    """Return a run of jax's product of matrices in bf16, which it sums in fp32 as ours does."""
    if find_spec("jax") is None:
        return Missing("no jax")
    import jax
    import jax.numpy as jnp

    lhs, rhs = (jnp.asarray(each.float().numpy()).astype(jnp.bfloat16) for each in (a, b))
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    return lambda: torch.from_dlpack(product(lhs, rhs).block_until_ready())


def _run(kernel: Any, a: torch.Tensor, b: torch.Tensor, like: torch.Tensor) -> Callable[[], torch.Tensor]:
    out = torch.empty_like(like)

    def run() -> torch.Tensor:
        kernel(a, b, out)
        return out

    return run


def enter_quantized(name: str, rows: int, size: int = 4096) -> Field:
    """Enter a kernel of the gallery beside torch on weights that were made floats before."""
    inputs = getattr(quantized, f"make_inputs_{name}")(rows=rows, inner=size, outputs=size)
    kernel, outputs = getattr(quantized, name), quantized.make_output(*inputs)
    identity = torch.eye(size, dtype=inputs[0].dtype)
    weights = getattr(quantized, f"reference_{name}")(identity, *inputs[1:]).float()
    x, out = inputs[0].float(), torch.empty(rows, size)

    def ours() -> torch.Tensor:
        kernel(*inputs, *outputs)
        return outputs[0].float()

    theirs = partial(torch.matmul, x, weights, out=out)
    return Field(x @ weights, {OURS: ours, EAGER: theirs}, rtol=2e-2, atol=1e-1)


def _contest(
    what: str, m: int, k: int, n: int, dtype: torch.dtype, target: float, group: str = GROUP, kernel: Any = matmul
) -> Contest:
    row, work = partial(enter, m, k, n, dtype, kernel), Work(flops=2 * m * k * n)
    return Contest(what, row, work, target, group=group, subject="in 32", most_rounds=ROUNDS)


HIDDEN, KEYS, INNER, TOKENS = 4096, 1024, 11008, 256
ROWS = (
    *(_contest(f"fp32 {n}³", n, n, n, torch.float32, 0.95) for n in (512, 1000, 1024, 2048, 4096)),
    *(
        _contest(f"fp32 {TOKENS}x{k}x{n}", TOKENS, k, n, torch.float32, 0.95)
        for k, n in ((HIDDEN, HIDDEN), (HIDDEN, KEYS), (HIDDEN, INNER), (INNER, HIDDEN))
    ),
    *(_contest(f"bf16 {n}³, torch in fp32", n, n, n, torch.bfloat16, 2.5) for n in (512, 1000, 1024, 2048, 4096)),
    *(_contest(f"int8 {n}³", n, n, n, torch.int8, 1.0) for n in (1024, 2048)),
    *(_contest(f"fp32 {m}x4096x4096", m, 4096, 4096, torch.float32, 1.0, FEW) for m in (1, 8)),
    *(_contest(f"bf16 {m}x4096x4096, torch in fp32", m, 4096, 4096, torch.bfloat16, 1.8, FEW) for m in (1, 8)),
    *(
        _contest(f"{name} {m}x4096x4096, rows told by calls", m, 4096, 4096, dtype, target, FEW, of_any_rows)
        for name, dtype, target in (("fp32", torch.float32, 1.0), ("bf16", torch.bfloat16, 1.8))
        for m in (1, 8)
    ),
    *(
        _contest(f"{name} {m}x4096x4096", m, 4096, 4096, dtype, target, TURNED, with_turned)
        for name, dtype, target in (("fp32", torch.float32, 1.0), ("bf16", torch.bfloat16, 1.8))
        for m in (1, 8, 16)
    ),
    *(
        Contest(
            f"{name} {rows}x4096x4096", partial(enter_quantized, name, rows), Work(flops=2 * rows * 4096**2),
            2.0 if rows == 1 else None, group=QUANTIZED, most_rounds=ROUNDS,
            note="torch multiplies weights that were made fp32 before.",
        )
        for name in ("w8a32", "w4a16")
        for rows in (1, 16, 128)
    ),
)  # fmt: skip
