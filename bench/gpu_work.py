"""Work for the GPU's rows: each with our call of it, torch's, and how far apart the results may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpu_kernels as ours
import gpu_triton as triton

Call = Callable[[], Any]
ROWS, COLUMNS = 32768, 4096
WORDS = 32768
HEADS, LENGTH, DIM = 128, 4096, 128
COPIES = {4096: 12, 8192: 4}
"""Matrices that decoding takes turns with, so that the cache does not hold them, by their size."""


class Work(NamedTuple):
    """A row: how much of what it is, ours and torch's calls of it (a round makes all of them), the tensor that ours
    write to, and the error allowed.

    An error is the distance between the results over the size of torch's.
    """

    name: str
    amount: float
    unit: str
    ours: tuple[Call, ...]
    theirs: tuple[Call, ...]
    out: Any
    error: float
    is_graph: bool = True
    triton: Call | None = None
    """The same as Triton's users write it, where its tutorials have it."""


def every(torch: Any) -> Iterator[Work]:
    """Yield rows, one after the other: what the last one took of the GPU's memory is free before the next."""
    for kind in (torch.float32, torch.bfloat16):
        yield from _elementwise(torch, kind)
        yield from _rows(torch, kind)
    for kind, size in ((torch.bfloat16, 4096), (torch.bfloat16, 8192), (torch.float16, 4096)):
        yield _product(torch, kind, size)
    yield _bytes(torch)
    yield _eighths(torch)
    for causal in (False, True):
        yield _attention(torch, causal)
    for size in (4096, 8192):
        for rows in (1, 16, 64):
            yield _decode(torch, rows, size)


def _name(kind: Any) -> str:
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}[str(kind).removeprefix("torch.")]


def _moved(name: str, count: float, out: Any, mine: Call, theirs: Call, error: float) -> Work:
    return Work(name, count / 1e3, "GB/s", (mine,), (theirs,), out, error)


def _elementwise(torch: Any, kind: Any) -> Iterator[Work]:
    f, name = torch.nn.functional, _name(kind)
    x, y = (torch.randn(ROWS, COLUMNS, device="cuda", dtype=kind) for _ in range(2))
    w, b = (torch.randn(1, COLUMNS, device="cuda", dtype=kind) for _ in range(2))
    out = torch.empty_like(x)
    size = x.numel() * x.element_size()
    near = 1e-6 if kind == torch.float32 else 1e-2
    copy = _moved(f"copy {name}", 2 * size, out, lambda: ours.convert(x, out), lambda: out.copy_(x), 0)
    yield copy._replace(is_graph=False)  # a copy in a graph is not the kernel that it is outside of one
    sums = _moved(f"add {name}", 3 * size, out, lambda: ours.add(x, y, out), lambda: torch.add(x, y), 0)
    yield sums._replace(triton=triton.add(x, y))
    yield _moved(
        f"gelu(x*w+b) {name}", 2 * size, out, lambda: ours.gelu(x, w, b, out), lambda: f.gelu(x * w + b), near,
    )  # fmt: skip
    other = torch.bfloat16 if kind == torch.float32 else torch.float32
    cast = torch.empty(ROWS, COLUMNS, device="cuda", dtype=other)
    moved = x.numel() * (x.element_size() + cast.element_size())
    yield _moved(f"cast {name} to {_name(other)}", moved, cast, lambda: ours.convert(x, cast), lambda: x.to(other), 0)
    h, o = (each.view(HEADS, -1, DIM) for each in (x, out))
    c, s = (torch.randn(1, h.shape[1], DIM // 2, device="cuda", dtype=kind) for _ in range(2))

    def turned() -> Any:
        one, two = h.chunk(2, -1)
        return torch.cat([one * c - two * s, two * c + one * s], -1)

    yield _moved(f"RoPE {name}", 2 * h.numel() * h.element_size(), o, lambda: ours.rope(h, c, s, o), turned, near)


def _rows(torch: Any, kind: Any) -> Iterator[Work]:
    f, name = torch.nn.functional, _name(kind)
    x = torch.randn(ROWS, COLUMNS, device="cuda", dtype=kind)
    w, b = (torch.randn(1, COLUMNS, device="cuda", dtype=kind) for _ in range(2))
    out = torch.empty_like(x)
    size = x.numel() * x.element_size()
    near = 1e-6 if kind == torch.float32 else 1e-2
    shares = _moved(f"softmax {name}", 2 * size, out, lambda: ours.softmax(x, out), lambda: torch.softmax(x, -1), near)
    yield shares._replace(triton=triton.softmax(x))
    yield _moved(
        f"RMS norm {name}", 2 * size, out, lambda: ours.rms_norm(x, w, out),
        lambda: f.rms_norm(x, (COLUMNS,), w[0], 1e-5), near,
    )  # fmt: skip
    yield _moved(
        f"layer norm {name}", 2 * size, out, lambda: ours.layer_norm(x, w, b, out),
        lambda: f.layer_norm(x, (COLUMNS,), w[0], b[0], 1e-5), near,
    )._replace(triton=triton.layer_norm(x, w, b))  # fmt: skip
    logits = x.view(-1, WORDS)
    target = torch.randint(WORDS, (len(logits), 1), device="cuda", dtype=torch.int32)
    loss, places = torch.empty(len(logits), 1, device="cuda"), target[:, 0].long()
    yield _moved(
        f"cross entropy {name}", size, loss, lambda: ours.cross_entropy(logits, target, loss),
        lambda: f.cross_entropy(logits, places, reduction="none")[:, None], near,
    )  # fmt: skip


def _product(torch: Any, kind: Any, size: int) -> Work:
    a, b = (torch.randn(size, size, device="cuda", dtype=kind) for _ in range(2))
    out, other = torch.empty_like(a), torch.empty_like(a)
    return Work(
        f"matmul {_name(kind)} {size}", 2 * size**3 / 1e6, "TFLOP/s", (lambda: ours.matmul(a, b, out),),
        (lambda: torch.mm(a, b, out=other),), out, 1e-2, triton=triton.matmul(a, b),
    )  # fmt: skip


def _bytes(torch: Any) -> Work:
    a, b = (torch.randint(-128, 128, (4096, 4096), device="cuda", dtype=torch.int8) for _ in range(2))
    out = torch.empty(4096, 4096, device="cuda", dtype=torch.int32)
    return Work(
        "matmul int8 4096", 2 * 4096**3 / 1e6, "TOP/s", (lambda: ours.matmul_bytes(a, b, out),),
        (lambda: torch._int_mm(a, b.t()),), out, 0,
    )  # fmt: skip


def _eighths(torch: Any) -> Work:
    a, b = (torch.randn(4096, 4096, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    out, one = torch.empty(4096, 4096, device="cuda", dtype=torch.bfloat16), torch.ones((), device="cuda")
    return Work(
        "matmul fp8 4096", 2 * 4096**3 / 1e6, "TFLOP/s", (lambda: ours.matmul_fp8(a, b, out),),
        (lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16),), out, 1e-2,
    )  # fmt: skip


def _attention(torch: Any, causal: bool) -> Work:
    q, k, v = (torch.randn(HEADS * LENGTH, DIM, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out, call = torch.empty_like(q), ours.causal_attention if causal else ours.attention
    several = [each.view(4, HEADS // 4, LENGTH, DIM) for each in (q, k, v)]
    flops = 4 * HEADS * LENGTH * LENGTH * DIM / (2 if causal else 1)

    def theirs() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*several, is_causal=causal).reshape(out.shape)

    name = f"attention bf16 {'causal' if causal else 'full'}"
    return Work(name, flops / 1e6, "TFLOP/s", (lambda: call(q, k, v, HEADS, out),), (theirs,), out, 1e-2)


def _decode(torch: Any, rows: int, size: int) -> Work:
    """Return a product of few rows with matrices that lie as weights do, a row for each result."""
    weights = [torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(COPIES[size])]
    x, out = (torch.randn(rows, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    other, call = torch.empty_like(out), ours.gemv if rows == 1 else ours.skinny
    mine = tuple(lambda w=w: call(x, w, out) for w in weights)
    theirs = tuple(lambda w=w: torch.mm(x, w.t(), out=other) for w in weights)
    count = len(weights) * (size * size + 2 * rows * size) * 2
    return Work(f"decode bf16 {rows} x {size}", count / 1e3, "GB/s", mine, theirs, out, 1e-2)
