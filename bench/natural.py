"""Measure kernels written the obvious way, at several tile sizes, beside torch: the worst size counts.

Memory-bound work is also held to a copy in C that streams as many bytes in and out, which nothing can beat.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # where AMX is flagged and does not work

import natural_kernels as kernels
import torch
import torch.nn.functional as F
from contest import use_threads
from harness import Report, interleaved, save, timed
from memory import keep_pages

TILES = (16, 32, 64, 128)
SHAPES = {"4096 x 4096": (4096, 4096), "128 x 768": (128, 768), "8 x 64": (8, 64)}
ATTENTION = {"8 x 1024 x 64": (8, 1024, 64), "32 x 4096 x 128": (32, 4096, 128)}
CALLS = {"128 x 768": 20, "8 x 64": 200}
EAGER, COPY = "torch eager", "C copy"

STREAM = r"""
#include <immintrin.h>
#include <stddef.h>
void stream(const char *in, size_t nin, char *out, size_t nout) {
    __m256i all = _mm256_setzero_si256();
    size_t most = nin > nout ? nin : nout, i = 0, o = 0;
    for (size_t done = 0; done < most; done += 4096) {
        double part = done + 4096 < most ? (double)(done + 4096) / most : 1.0;
        for (size_t end = part * nin; i + 64 <= end; i += 64) {
            _mm_prefetch(in + i + 2048, _MM_HINT_T1);
            all = _mm256_xor_si256(all, _mm256_loadu_si256((const __m256i *)(in + i)));
            all = _mm256_xor_si256(all, _mm256_loadu_si256((const __m256i *)(in + i + 32)));
        }
        for (size_t end = part * nout; o + 64 <= end; o += 64) {
            _mm256_stream_si256((__m256i *)(out + o), all);
            _mm256_stream_si256((__m256i *)(out + o + 32), all);
        }
    }
    _mm_sfence();
}
"""


@dataclass(frozen=True)
class Work:
    """A kernel, what it is given, what torch does instead, and where both write."""

    kernel: Callable[..., Any]
    inputs: tuple[Any, ...]
    eager: Callable[[], Any]
    out: torch.Tensor
    expected: torch.Tensor
    close: float = 2e-5

    @property
    def moved(self) -> tuple[int, int]:
        """How many bytes come and go."""
        tensors = [each for each in self.inputs if isinstance(each, torch.Tensor)]
        return sum(t.numel() * t.element_size() for t in tensors), self.out.numel() * self.out.element_size()


def rows_of_a_matrix(m: int, n: int) -> dict[str, Work]:
    """Return all the memory-bound work on matrices of one shape."""
    x, y = torch.randn(2, m, n)
    w, b = torch.randn(2, 1, n)
    scale, target = torch.rand(m, 1), torch.randint(n, (m, 1), dtype=torch.int32)
    cos, sin = torch.rand(2, m, n // 2)
    small, long = (5 * x).to(torch.int8), target[:, 0].long()
    out, between, turned = torch.zeros(m, n), torch.zeros(m, n), torch.zeros(n, m)
    byte, half = torch.zeros(m, n, dtype=torch.int8), torch.zeros(m, n, dtype=torch.bfloat16)
    place, column, row = torch.zeros(m, 1, dtype=torch.int32), torch.zeros(m, 1), torch.zeros(1, n)

    def quantize() -> torch.Tensor:
        return byte.copy_(torch.mul(x, kernels.SCALE, out=between).round_().clamp_(-128, 127))

    def gelu() -> torch.Tensor:
        torch.add(torch.mul(x, w, out=between), b, out=between)
        return torch.ops.aten.gelu.out(between, approximate="tanh", out=out)

    def rope() -> torch.Tensor:
        one, two = x.chunk(2, dim=-1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)

    def work(kernel: Any, eager: Any, out: torch.Tensor, *inputs: Any, close: float = 2e-5) -> Work:
        return Work(kernel, inputs, eager, out, eager().clone().to(out.dtype), close)

    k = kernels
    return {
        "add": work(k.add, lambda: torch.add(x, y, out=out), out, x, y),
        "softmax": work(k.softmax, lambda: torch.softmax(x, -1, out=out), out, x),
        "RMS norm": work(k.rms_norm, lambda: F.rms_norm(x, (n,), w[0], 1e-5), out, x, w),
        "layer norm": work(k.layer_norm, lambda: F.layer_norm(x, (n,), w[0], b[0]), out, x, w, b),
        "gelu(x * w + b)": work(k.gelu, gelu, out, x, w, b),
        "fp32 to int8": work(k.quantize, quantize, byte, x),
        "fp32 to bf16": work(k.halve, lambda: half.copy_(x), half, x),
        "log-softmax": work(k.log_softmax, lambda: torch.log_softmax(x, -1, out=out), out, x),
        "argmax": work(k.argmax, lambda: torch.argmax(x, -1, keepdim=True), place, x),
        "cross entropy": work(
            k.cross_entropy, lambda: F.cross_entropy(x, long, reduction="none")[:, None], column, x, target
        ),
        "RoPE": work(k.rope, rope, out, x, cos, sin),
        "silu * mul": work(k.silu_mul, lambda: torch.mul(F.silu(x), y, out=out), out, x, y),
        "int8 to fp32": work(k.dequantize, lambda: torch.mul(small, scale, out=out), out, small, scale),
        "column sums": work(k.column_sums, lambda: torch.sum(x, 0, keepdim=True, out=row), row, x, close=1e-3),
        "transpose": work(k.transpose, lambda: turned.copy_(x.T), turned, x),
    }


def attentions(heads: int, length: int, dim: int) -> dict[str, Work]:
    """Return attention on heads of one shape, full and causal."""
    found: dict[str, Work] = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        q, k, v = (torch.randn(1, heads, length, dim).to(dtype) for _ in range(3))
        out = torch.zeros(heads, length, dim, dtype=dtype)
        for causal in (False, True):
            eager = partial(F.scaled_dot_product_attention, q, k, v, is_causal=causal)
            wanted = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
            kernel = partial(kernels.attention, causal=causal)
            close = 2e-5 if dtype == torch.float32 else 2e-2
            found[f"{'causal' if causal else 'full'} {name}"] = Work(
                kernel, (q[0], k[0], v[0]), eager, out, wanted[0].to(dtype), close
            )
    return found


def streamed(folder: str) -> Callable[[int, int], Callable[[], object]] | None:
    """Return a copy in C, compiled in a folder; None where there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    source = Path(folder) / "stream.c"
    source.write_text(STREAM)
    subprocess.run(["gcc", "-O2", "-mavx2", "-shared", "-fPIC", "-o", f"{folder}/stream.so", str(source)], check=True)
    function = ctypes.CDLL(f"{folder}/stream.so").stream
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2

    def copy(nin: int, nout: int) -> Callable[[], object]:
        come, go = torch.ones(nin + 4096, dtype=torch.uint8), torch.ones(nout + 64, dtype=torch.uint8)
        aligned = -go.data_ptr() % 64
        return lambda: (function(come.data_ptr(), nin, go.data_ptr() + aligned, nout), go)

    return copy


def measured(work: Work, copy: Any, rounds: int, calls: int, clock: str) -> list[str]:
    """Return the cells of a row: milliseconds of each, and how many times as fast the worst tile size is."""
    tiles = [rows for rows in TILES if rows <= max(16, *work.expected.shape[-2:])]
    cases: dict[str, Callable[[], object]] = {str(rows): partial(_ours, work, rows) for rows in tiles}
    for rows in tiles:
        work.out.zero_()
        _ours(work, rows)
        assert torch.allclose(work.out, work.expected, rtol=work.close, atol=work.close), f"{rows} rows at a time"
    cases[EAGER] = work.eager
    if copy is not None:
        cases[COPY] = copy(*work.moved)
    found = interleaved({name: partial(timed, case, calls) for name, case in cases.items()}, rounds)
    best = {name: min(getattr(t, clock) for t in timings) for name, timings in found.items()}
    worst = max(best[str(rows)] for rows in tiles)
    ours = [_cell(best.get(str(rows))) for rows in TILES]
    return [*ours, _cell(best[EAGER]), _cell(best.get(COPY)), _ratio(best[EAGER], worst), _ratio(best.get(COPY), worst)]


def _ours(work: Work, rows: int) -> object:
    return work.kernel(*work.inputs, work.out, rows=rows)


def _cell(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.2f}" if milliseconds >= 0.1 else f"{milliseconds:.4f}"


def _ratio(theirs: float | None, ours: float) -> str:
    return "" if theirs is None else f"{theirs / ours:.2f}x"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="rows whose name has one of these in it (all)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of each row (7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="thread counts (1 2)")
    parser.add_argument("--shapes", nargs="*", default=[], help="shapes that have one of these in them (all)")
    parser.add_argument("--dry-run", action="store_true", help="print the results and write nothing")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    keep_pages()
    with tempfile.TemporaryDirectory() as folder:
        copy = streamed(folder)
        reports = [report for threads in chosen.threads for report in measure(chosen, threads, copy)]
    for report in reports:
        report.show()
    if not (chosen.names or chosen.shapes or chosen.dry_run):
        save("natural kernels", "Milliseconds, the best of the rounds; a ratio counts the worst tile size.", reports)


def measure(chosen: argparse.Namespace, threads: int, copy: Any) -> list[Report]:
    """Return a table for each shape."""
    use_threads(threads)
    clock = "cpu" if threads == 1 else "wall"
    found: list[Report] = []
    families: Mapping[str, Any] = {
        **{shape: partial(rows_of_a_matrix, *extents) for shape, extents in SHAPES.items()},
        **{f"attention {shape}": partial(attentions, *extents) for shape, extents in ATTENTION.items()},
    }
    for shape, make in families.items():
        if chosen.shapes and not any(text in shape for text in chosen.shapes):
            continue
        every: dict[str, Work] = make()
        works = {name: w for name, w in every.items() if not chosen.names or any(x in name for x in chosen.names)}
        plain = None if shape.startswith("attention") or threads > 1 else copy
        cells = [[name, *measured(w, plain, chosen.rounds, CALLS.get(shape, 1), clock)] for name, w in works.items()]
        columns = [shape, *(f"{rows} rows" for rows in TILES), EAGER, COPY, "vs torch", "vs copy"]
        found += [Report(f"{shape}, {threads} thread{'s' * (threads > 1)}, ms of {clock}", columns, cells)]
    return found


if __name__ == "__main__":
    main()
