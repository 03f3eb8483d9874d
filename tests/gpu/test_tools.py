"""Tools on the GPU: timelines, explanations, NVIDIA's ranges, torch's profiler and commands see kernels there."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright.language as pl
from tilewright.call.timelines import trace_to
from tilewright.runtime import RunConfig
from tilewright.tools import cli

torch: Any = pytest.importorskip("torch")


@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    held = pl.create_tensor(x.shape, dtype=pl.FP32)
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
            pl.store(pl.load(x, [row, 0], [16, 64]) + 1.0, [row, 0], held)
    for row in pl.parallel(0, x.shape[0], 32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
            pl.store(pl.load(held, [row, 0], [32, 64]) * 2.0, [row, 0], out)
    return out


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, a.shape[0], 64):
        for c in pl.parallel(0, b.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.matmul(pl.load(a, [r, 0], [64, 64]), pl.load(b, [0, c], [64, 64]))
                pl.store(t, [r, c], out)
    return out


def test_a_timeline_shows_kernels_on_their_streams(tmp_path: Path) -> None:
    path, x = tmp_path / "out.json", torch.ones(64, 64, device="cuda")
    config = RunConfig(platform="cuda", trace=path)
    side = torch.cuda.Stream()
    found = [twice(x, config=config) for _ in range(3)]
    with torch.cuda.stream(side):
        found.append(twice(x, config=config))
    torch.cuda.synchronize()
    assert all(bool((each == 4).all()) for each in found)
    trace_to(str(path)).flush()
    events = json.loads(path.read_text())
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert [names[each["tid"]] for each in kernels] == ["cuda:0 stream 0"] * 6 + ["cuda:0 stream 1"] * 2
    assert ["first" in each["name"] or "second" in each["name"] for each in kernels] == [True] * 8
    ends = [each["ts"] + each["dur"] for each in kernels]
    assert all(end <= after["ts"] + 1 for end, after in zip(ends[:5], kernels[1:6], strict=True)), "in order"
    calls = [event for event in events if event.get("cat") == "call"]
    assert len(calls) == 4
    after = [kernel["ts"] - call["ts"] for call, kernel in zip(calls, kernels[::2], strict=True)]
    assert all(-50 < each < 1e6 for each in after), "one clock tells both"


def test_products_are_held_against_tensor_cores() -> None:
    a = torch.ones(1024, 64, device="cuda", dtype=torch.float16)
    b = torch.ones(64, 1024, device="cuda", dtype=torch.float16)
    out = torch.zeros(1024, 1024, device="cuda")
    found = product.compile(a, b, out, config=RunConfig(platform="cuda")).explain(a, b, out)
    assert [limit.name for limit in found.limits] == ["memory", "tensor cores"]
    assert all(1e11 < limit.most < 1e16 and 0 < limit.share < 1 for limit in found.limits)
    assert {note.kind for line in found.lines for note in line.notes} & {"tensor cores"}


KERNEL = """
import tilewright.language as pl

@pl.jit
def doubled(x: pl.Tensor[[64, 64], pl.BF16], out: pl.Out[pl.Tensor[[64, 64], pl.BF16]]):
    for r in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [16, 64]) * 2.0, [r, 0], out)
    return out
"""


def test_commands_call_kernels_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "doubled.py"
    path.write_text(KERNEL, encoding="utf-8")
    assert cli.main(["bench", str(path), "--platform", "cuda", "--rounds", "5"]) == 0
    assert cli.main(["explain", str(path), "--platform", "cuda"]) == 0
    page = tmp_path / "page.html"
    assert cli.main(["explore", str(path), "--platform", "cuda", "--access", "-o", str(page)]) == 0
    assert "on up to" in capsys.readouterr().out and page.stat().st_size > 10_000


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # torch's own
def test_torch_profiles_kernels_by_their_names() -> None:
    x = torch.ones(64, 64, device="cuda")
    twice(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        twice(x)
        torch.cuda.synchronize()
    found = {event.key for event in profile.key_averages()}
    assert any("first" in name for name in found) and any("second" in name for name in found)


LISTENER = """
#include <stdio.h>
#include <stddef.h>
typedef void (*function)(void);
typedef struct { size_t size; int (*table)(int, function***, unsigned*); } Callbacks;
static int push(const char* text) { fprintf(stderr, "push %s\\n", text); return 0; }
static int pop(void) { fprintf(stderr, "pop\\n"); return 0; }
int InitializeInjectionNvtx2(const void* (*exported)(unsigned)) {
  function** table = NULL; unsigned size = 0;
  const Callbacks* callbacks = (const Callbacks*)exported(1);
  if (!callbacks || !callbacks->table(1, &table, &size)) return 0;
  *table[9] = (function)push; *table[11] = (function)pop;
  return 1;
}
"""
"""A tool of NVIDIA's as far as ranges go: what libraries that know NVTX load where NVTX_INJECTION64_PATH says so."""

RANGED = """
import torch
from test_tools import twice
x = torch.ones(64, 64, device="cuda")
twice(x)
twice.compile(x)(x)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_calls_are_ranges_of_nvidias_tools(tmp_path: Path) -> None:
    source, library = tmp_path / "listener.c", tmp_path / "listener.so"
    source.write_text(LISTENER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "NVTX_INJECTION64_PATH": str(library), "TILEWRIGHT_PERF": "nvtx", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", RANGED], env=env, capture_output=True, text=True, timeout=90)
    assert done.stderr.splitlines().count("push twice") == 2 and done.stderr.splitlines().count("pop") == 2, done.stderr
