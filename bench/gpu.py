"""The GPU: kernels as a user would write them, beside torch's own, in one interleaved run.

    python bench/gpu.py [--json FILE]

Times are of the device, by events around many launches, in random order, each the median of its rounds; the last table
is of the host. Where there is no GPU it says so and ends.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import tilewright.language as pl
from tilewright.backends.cuda.driver import driver, is_there

ROUNDS = 15


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            pl.store(pl.load(x, [row, 0], [1, n]) + pl.load(y, [row, 0], [1, n]), [row, 0], out)
    return out


@pl.jit
def gelu(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            t = pl.load(x, [row, 0], [1, n]) * pl.load(w, [0, 0], [1, n]) + pl.load(b, [0, 0], [1, n])
            pl.store(pl.gelu(t), [row, 0], out)
    return out


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [row, 0], [1, x.shape[1]]), pl.FP32)
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            pl.store(pl.cast(pl.row_expand_div(e, pl.row_sum(e)), x.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def rms_norm(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            t = pl.cast(pl.load(x, [row, 0], [1, n]), pl.FP32)
            scale = pl.rsqrt(pl.row_sum(t * t) * (1.0 / n) + 1e-5)
            y = pl.row_expand_mul(t, scale) * pl.cast(pl.load(w, [0, 0], [1, n]), pl.FP32)
            pl.store(pl.cast(y, x.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 128):
        for j in pl.parallel(0, b.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 128], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[1], 64):
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 64]), pl.load(b, [k, j], [64, 128]))
                pl.store(pl.cast(acc, out.dtype, mode="rint"), [i, j], out)
    return out


def medians(torch: Any, work: dict[str, Callable[[], Any]], per: int = 20) -> dict[str, float]:
    """Return how long each of some calls takes on the device, in microseconds."""
    for call in work.values():
        call()
    torch.cuda.synchronize()
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, call in random.sample(list(work.items()), len(work)):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(per):
                call()
            end.record()
            end.synchronize()
            found[name].append(1e3 * begin.elapsed_time(end) / per)
    return {name: statistics.median(times) for name, times in found.items()}


class Case(NamedTuple):
    """Work: how much of what it is, and ours and torch's call of it."""

    amount: float
    unit: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


def cases(torch: Any) -> dict[str, Case]:
    """Return work by name."""
    f = torch.nn.functional
    found: dict[str, Case] = {}
    for kind in (torch.float32, torch.bfloat16):
        name, size = str(kind).removeprefix("torch."), torch.empty(0, dtype=kind).element_size()
        x, y = (torch.randn(32768, 4096, device="cuda", dtype=kind) for _ in range(2))
        w, out = torch.randn(1, 4096, device="cuda", dtype=kind), torch.empty_like(x)
        bulk = x.numel() * size / 1e3
        found[f"copy {name}"] = Case(2 * bulk, "GB/s", lambda x=x, o=out: o.copy_(x), lambda x=x, o=out: o.copy_(x))
        found[f"add {name}"] = Case(
            3 * bulk, "GB/s", lambda x=x, y=y, o=out: add(x, y, o), lambda x=x, y=y, o=out: torch.add(x, y, out=o),
        )  # fmt: skip
        found[f"gelu(x*w+b) {name}"] = Case(
            2 * bulk, "GB/s", lambda x=x, w=w, o=out: gelu(x, w, w, o), lambda x=x, w=w: f.gelu(x * w + w),
        )  # fmt: skip
        found[f"softmax {name}"] = Case(
            2 * bulk, "GB/s", lambda x=x, o=out: softmax(x, o), lambda x=x: torch.softmax(x, -1),
        )  # fmt: skip
        found[f"rms norm {name}"] = Case(
            2 * bulk, "GB/s", lambda x=x, w=w, o=out: rms_norm(x, w, o), lambda x=x, w=w: f.rms_norm(x, (4096,), w[0]),
        )  # fmt: skip
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    found["matmul bfloat16 4096"] = Case(
        2 * 4096**3 / 1e6,
        "TFLOP/s",
        lambda: matmul(a, b, c),
        lambda: torch.mm(a, b, out=c),
    )
    return found


def host_times(torch: Any) -> dict[str, float]:
    """Return how long a call of a small kernel keeps the host, in microseconds."""
    x, y, out = (torch.randn(16, 64, device="cuda") for _ in range(3))
    work = {
        "ours, output given": lambda: add(x, y, out),
        "ours, returned": lambda: add(x, y),
        "torch.add(out=)": lambda: torch.add(x, y, out=out),
        "x + y": lambda: x + y,
    }
    found: dict[str, float] = {}
    for name, call in work.items():
        times: list[float] = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                call()
            times.append((time.perf_counter() - begin) / 200 * 1e6)
        found[name] = statistics.median(times)
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Kernels on the GPU beside torch's own.")
    parser.add_argument("--json", help="write the figures to a file, too")
    options = parser.parse_args()
    if not is_there():
        print("bench/gpu.py: skipped, there is no NVIDIA GPU")
        return
    import torch

    print(f"{driver().device_name(0)}, torch {torch.__version__}")
    work = cases(torch)
    cold: dict[str, float] = {}
    for name, case in work.items():
        begin = time.perf_counter()
        case.ours()
        cold[name] = 1e3 * (time.perf_counter() - begin)
    calls = {name: case.ours for name, case in work.items()}
    times = medians(torch, calls | {f"torch {name}": case.theirs for name, case in work.items()})
    print(f"{'work':24} {'ours':>8} {'torch':>8} {'ratio':>6}  unit     first call, ms")
    for name, case in work.items():
        ours, theirs = (case.amount / times[each] for each in (name, f"torch {name}"))
        print(f"{name:24} {ours:8.0f} {theirs:8.0f} {ours / theirs:6.2f}  {case.unit:8} {cold[name]:.0f}")
    host = host_times(torch)
    for name, taken in host.items():
        print(f"{name:24} {taken:8.2f} us of the host")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": times, "host": host, "cold": cold}, file, indent=1)


if __name__ == "__main__":
    main()
