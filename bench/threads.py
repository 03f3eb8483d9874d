"""Measure how kernels grow with threads, beside torch: products, attention and memory-bound work in tiles of 64.

    python bench/threads.py --threads 1 2 4 8 16

A row's figure is how many times as fast as on one thread it is, and how many times as fast as torch on as many.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["TILEWRIGHT_CACHE_DIR"] = "off"
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # where AMX is flagged and does not work

import natural_kernels as kernels
import torch
import torch.nn.functional as F
from contest import use_threads
from harness import Report, interleaved, save, timed
from memory import keep_pages
from rows.products import matmul

TILE = 64
NOTES = (
    "Milliseconds on the wall clock, the best of the rounds, outputs allocated beforehand: ours, torch's, how many "
    "times as fast as on the fewest threads ours is, and as torch on as many. Kernels as in `bench/natural.py` and "
    "`bench/kernels.py products`, in tiles of 64."
)
Pair = tuple[Callable[[], object], Callable[[], object]]


def works() -> dict[str, Pair]:
    """Return what is measured: ours and torch's."""
    x, y, out = torch.randn(3, 4096, 4096).unbind()
    small, other, sums = torch.randn(3, 128, 768).unbind()
    q, k, v = torch.randn(3, 1, 32, 1024, 64).unbind()
    seen = torch.empty(32, 1024, 64)
    found: dict[str, Pair] = {
        "add 4096²": (partial(kernels.add, x, y, out, rows=TILE), partial(torch.add, x, y, out=out)),
        "softmax 4096²": (partial(kernels.softmax, x, out, rows=TILE), partial(torch.softmax, x, -1, out=out)),
        "add 128 x 768": (
            partial(kernels.add, small, other, sums, rows=TILE),
            partial(torch.add, small, other, out=sums),
        ),
        "attention 32 x 1024 x 64": (
            partial(kernels.attention, q[0], k[0], v[0], seen, causal=False, rows=TILE),
            partial(F.scaled_dot_product_attention, q, k, v),
        ),
    }
    return found | {
        "fp32 product 512³": product(512, 512, torch.float32),
        "fp32 product 2048³": product(2048, 2048, torch.float32),
        "bf16 product 2048³": product(2048, 2048, torch.bfloat16),
        "fp32 decode 1 x 4096 x 4096": product(1, 4096, torch.float32),
    }


def product(m: int, n: int, dtype: torch.dtype) -> Pair:
    a, b = torch.randn(m, n).to(dtype), torch.randn(n, n).to(dtype)
    c, d = torch.empty(m, n), torch.empty(m, n, dtype=dtype)
    return partial(matmul(TILE, TILE, TILE), a, b, c), partial(torch.mm, a, b, out=d)


def measured(pair: Pair, rounds: int) -> tuple[float, float]:
    """Return the milliseconds that ours and torch's take."""
    first = timed(pair[0])  # it compiles
    calls = max(1, int(20 / max(timed(pair[0]).wall, 0.02))) if first.wall < 5000 else 1
    found = interleaved({str(at): partial(timed, case, calls) for at, case in enumerate(pair)}, rounds)
    ours, theirs = (min(t.wall for t in timings) for timings in found.values())
    return ours, theirs


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of each row (5)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="thread counts (1 2)")
    parser.add_argument("--dry-run", action="store_true", help="print the results and write nothing")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    keep_pages()
    rows: dict[str, list[Any]] = {}
    for threads in chosen.threads:
        use_threads(threads)
        for name, pair in works().items():
            ours, theirs = measured(pair, chosen.rounds)
            first = rows.setdefault(name, [ours])
            first.append(f"{ours:.3g} / {theirs:.3g}, {first[0] / ours:.1f}x, {theirs / ours:.2f}")
    cells = [[name, *found[1:]] for name, found in rows.items()]
    report = Report("ours / torch, growth, against torch", ["work", *map(str, chosen.threads)], cells)
    report.show()
    if not chosen.dry_run:
        save("threads", NOTES, [report])


if __name__ == "__main__":
    main()
