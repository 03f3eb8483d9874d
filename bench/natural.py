"""Measure kernels written the obvious way, at several tile sizes, beside torch and others: the worst size counts.

Memory-bound work is also held to C with AVX-512 intrinsics and streaming stores, beside a copy that streams as many
bytes in and out. All is compiled afresh, and what that takes is shown.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

os.environ["TILEWRIGHT_CACHE_DIR"] = "off"
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # where AMX is flagged and does not work

import natural_kernels as kernels
import torch
import torch.nn.functional as F
from contest import use_threads
from harness import Report, Timing, interleaved, save, timed
from memory import keep_pages
from natural_c import InC
from natural_peers import COMPILE, JAX, NUMBA, peers

TILES = (32, 64, 128, 48)
"""Rows at a time, or rows and columns; the last leaves a rest everywhere."""
SHAPES = {"4096 x 4096": (4096, 4096), "128 x 768": (128, 768), "8 x 64": (8, 64)}
ATTENTION = {"8 x 1024 x 64": (8, 1024, 64), "32 x 4096 x 128": (32, 4096, 128)}
LARGE = 1 << 20
"""Elements of a matrix that comes from memory."""
ROUNDS = {"attention 32 x 4096 x 128": 1}
"""How often what takes seconds is measured."""
CALLS = {"128 x 768": 20, "8 x 64": 200}
EAGER = "torch eager"
OTHERS = (COMPILE, NUMBA, JAX)
C, COPY = "C", "C copy"
NOTES = (
    "Milliseconds, the best of the rounds, outputs allocated beforehand where a contender takes them. `in 48` leaves a "
    "rest everywhere. On large matrices each contender runs twice in a row, and the second time counts. Ratios are "
    "those of the worst tile size: to the best of the others, wanted 1.2 for matrices from memory, 1.5 for small ones "
    "and 1 for attention; and to C, wanted 0.95, which is AVX-512 intrinsics, streaming stores and hints to fetch "
    "(`bench/natural.cpp`). The copy moves as many bytes. A cold compile is what the first call takes beside the work, "
    "the slowest tile size, wanted 150 ms. torch.compile takes part on one thread, and torch runs with "
    "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16."
)
COLD = 150.0
"""Milliseconds that a cold compile may take."""


@dataclass(frozen=True)
class Work:
    """A kernel, what it is given, what torch does instead, and where both write."""

    kernel: Callable[..., Any]
    inputs: tuple[Any, ...]
    eager: Callable[[], Any]
    out: torch.Tensor
    expected: torch.Tensor
    close: float = 2e-5
    name: str = ""
    """What C and peers call the kernel, where they have it."""
    is_large: bool = False
    """Whether what it reads comes from memory: only then are there peers but torch and C."""
    target: float = 1.0
    """How many times as fast as the best of the others it should be."""

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
        is_large = m * n >= LARGE
        expected = eager().clone().to(out.dtype)
        return Work(kernel, inputs, eager, out, expected, close, kernel.__name__, is_large, 1.2 if is_large else 1.5)

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


def measured(work: Work, in_c: InC | None, rounds: int, calls: int, threads: int) -> list[str]:
    """Return the cells of a row: milliseconds of each, how many times as fast the worst tile size is, the compile."""
    clock = "cpu" if threads == 1 else "wall"
    gc.freeze()
    cold = [_cold(work, rows) for rows in TILES]
    cases: dict[str, Callable[[], object]] = {str(rows): partial(_ours, work, rows) for rows in TILES}
    others = {EAGER: work.eager, **(peers(work.name, work.inputs, work.out, threads) if work.is_large else {})}
    c = {C: in_c.run(work.name, work.inputs, work.out, threads)} if in_c is not None and work.name else {}
    for who, run in (others | c).items():
        _check(work, torch.as_tensor(_array(run())), who)
    assert torch.get_num_threads() == threads, "somebody has changed on how many threads torch runs"
    cases |= others | c
    gc.freeze()  # torch.compile and jax leave much behind, and each sample starts with a collection
    if in_c is not None and work.is_large:
        cases[COPY] = in_c.copy(*work.moved, threads)
    sample = _again if work.is_large else timed
    found = interleaved(
        {name: partial(sample, case, calls) for name, case in cases.items()}, rounds, min(rounds, 2) - 1
    )
    best = {name: _best(timings, clock) for name, timings in found.items()}
    worst, fastest = max(best[str(rows)] for rows in TILES), min(best[who] for who in others)
    verdicts = [f"{fastest / worst:.2f}x {'✓' if fastest >= work.target * worst else '✗'}"]
    if work.name:
        verdicts.append(f"{best[C] / worst:.2f} {'✓' if best[C] >= 0.95 * worst else '✗'}" if C in best else "")
    shown = [*map(str, TILES), EAGER, *([*OTHERS, COPY] if work.is_large else []), *([C] if work.name else [])]
    took = [f"{max(cold):.0f} ms {'✓' if max(cold) <= COLD else '✗'}"] if threads == 1 else []
    return [*(_cell(best.get(each)) for each in shown), *verdicts, *took]


def _again(case: Callable[[], object], calls: int) -> Timing:
    """Return how long work takes that finds the caches as it left them, and not as somebody else did."""
    case()
    return timed(case, calls)


def _best(timings: list[Timing], clock: str) -> float:
    """Return the best round, of those on several threads the best that nobody else took part in, if there is one."""
    if clock == "cpu":
        # what a thread of jax's did is counted when it sleeps, and it waits busily between two calls
        return min(t.cpu if 2 * t.cpu > t.wall else t.wall for t in timings)
    return min(t.wall for t in [t for t in timings if not t.interruptions] or timings)


def _cold(work: Work, rows: int) -> float:
    """Return what the first call takes beside the work itself, having checked what it gives."""
    work.out.zero_()
    first = timed(partial(_ours, work, rows))
    _check(work, work.out, f"{rows} rows at a time")
    is_long = first.cpu > 2000
    return 0.0 if is_long else _alone(first) - _alone(timed(partial(_ours, work, rows)))


def _alone(timing: Timing) -> float:
    """Return what our own threads took: clocks of a process count those of jax, which wait busily, and others' by."""
    return min(timing.cpu, timing.wall)


def _check(work: Work, result: torch.Tensor, who: str) -> None:
    close = partial(torch.allclose, rtol=work.close, atol=work.close)
    got, want = result.float().reshape(work.expected.shape), work.expected.float()
    most = 1.0 if work.out.dtype == torch.int8 else 0.0  # somebody rounds x * s once, somebody twice
    assert close(got, want) or (got - want).abs().max() <= most, f"{work.name}: {who} is wrong"


def _array(result: Any) -> Any:
    """Return a tensor, or an array as one that torch knows."""
    if isinstance(result, torch.Tensor):
        return result
    import numpy as np

    found = np.array(result)
    return found if found.dtype.kind in "fiu" else found.astype(np.float32)


def _ours(work: Work, rows: int) -> object:
    return work.kernel(*work.inputs, work.out, rows=rows)


def _cell(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.2f}" if milliseconds >= 0.1 else f"{milliseconds:.4f}"


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
        in_c = InC.compiled(folder)
        reports = [report for threads in chosen.threads for report in measure(chosen, threads, in_c)]
    if not (chosen.names or chosen.shapes or chosen.dry_run):
        save("natural kernels", NOTES, reports)


def measure(chosen: argparse.Namespace, threads: int, in_c: InC | None) -> list[Report]:
    """Return a table for each shape."""
    use_threads(threads)
    found: list[Report] = []
    families: Mapping[str, Any] = {
        **{shape: partial(rows_of_a_matrix, *extents) for shape, extents in SHAPES.items()},
        **{f"attention {shape}": partial(attentions, *extents) for shape, extents in ATTENTION.items()},
    }
    for shape, make in families.items():
        if chosen.shapes and not any(text in shape for text in chosen.shapes):
            continue
        if shape in ROUNDS and threads < max(chosen.threads):
            continue  # a minute of one thread says little more
        every: dict[str, Work] = make()
        works = {name: w for name, w in every.items() if not chosen.names or any(x in name for x in chosen.names)}
        rounds = ROUNDS.get(shape, chosen.rounds)
        cells = [[name, *measured(w, in_c, rounds, CALLS.get(shape, 1), threads)] for name, w in works.items()]
        has_peers, has_c = (any(getattr(w, what) for w in works.values()) for what in ("is_large", "name"))
        beside = [EAGER, *([*OTHERS, COPY] if has_peers else []), *([C] if has_c else [])]
        against = ["best / worst", *(["C / worst"] if has_c else []), *(["cold compile"] if threads == 1 else [])]
        columns = [shape, *(f"in {rows}" for rows in TILES), *beside, *against]
        clock = "CPU time" if threads == 1 else "wall clock"
        found += [Report(f"{shape}, {threads} thread{'s' * (threads > 1)}, ms of {clock}", columns, cells)]
        found[-1].show()
    return found


if __name__ == "__main__":
    main()
