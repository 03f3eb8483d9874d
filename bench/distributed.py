"""Programs of many ranks: what a dispatch costs, and host collectives beside torch.distributed's.

    python bench/distributed.py                                    # ranks are threads of this process
    torchrun --nproc-per-node 2 bench/distributed.py               # ranks are processes, beside gloo
    TILEWRIGHT_TRANSPORT=messages torchrun --nproc-per-node 2 bench/distributed.py      # as on two machines
    python bench/distributed.py --wire 1gbit       # products, on two machines with such a wire between them, as root
    python bench/distributed.py --start            # the first call, of ranks that share a cache

Each row is the least of several rounds. Two ranks need two cores that nobody else uses, and `OMP_NUM_THREADS=1`; the
first line says what there is. Over messages on two cores the products have nothing to overlap with: what gathers the
rows keeps both busy. `--wire` has a wire set the pace, and as many columns in a product as make it take as long as the
gather, unless PRODUCT_COLUMNS says how many. Its machines are network namespaces, with `ip` and `tc`.

`--start` compares the slowest of four ranks with one rank alone, and with four that have nothing to do with each other:
in processor time, which is the same on two cores. In time by the clock they need a core each. `--plan` shows what
planning takes as ranks grow, none of them running.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, cast

import numpy as np
import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.core.program import Program
from tilewright.core.region import Region, whole
from tilewright.interpret.hosts import HostMachine
from tilewright.programs.distributed.group import group_of
from tilewright.runtime import RunConfig

dist: Any = torch.distributed
NR = pl.dynamic("NR")
DISPATCHES = 2000
"""So many that the meetings of a call, which differ by milliseconds on a busy machine, do not count."""
FEW, MANY, LONG = 40, 400, 1 << 14
"""Collectives of a call: few of so many elements, behind which the rest of a call takes longer than what is subtracted
for it, and many of fewer, whose times would be lost in what calls differ by."""
STARTS = 7
"""Rounds of first calls."""
M, K, BLOCK = 4096, 256, 64
COLUMNS = int(os.environ.get("PRODUCT_COLUMNS", "96"))
"""The columns of a product: so many that it takes about as long as gathering its rows, without a wire."""
SIZES = (1 << 12, 1 << 16, 1 << 20)
ROWS = (1 << 12, 1 << 16, 1 << 19)
"""Elements of a window, and of each row."""
RANKS = int(os.environ.get("WORLD_SIZE", "2"))


@pl.jit
def copy(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
    return y


@pl.jit.host
def many(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
    for _ in pl.range(DISPATCHES):
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)
    return y


@pl.jit.host
def once(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        copy(x[r], y[r], device=r)
    return y


def reducing(size: int, dtype: pl.DataType) -> pl.JITFunction:
    """Return a host function that all-reduces a window of so many elements again and again."""
    times = times_of(size)

    @pl.jit.host
    def reduce(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
        rows = pld.alloc_window_buffer([1, size], dtype=dtype)
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        data = pld.window(rows, [1, size], dtype=dtype)
        signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
        for _ in pl.range(times):
            data = pld.tensor.allreduce(data, signal)
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)
        return y

    return reduce


def moving(name: str, size: int) -> pl.JITFunction:
    """Return a host function that moves rows of so many elements by a collective again and again."""
    times = times_of(size)

    @pl.jit.host
    def move(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
        own = pld.alloc_window_buffer([1, size], dtype=pl.FP32)
        given = pld.alloc_window_buffer([pld.world_size(), size], dtype=pl.FP32)
        taken = pld.alloc_window_buffer([pld.world_size(), size], dtype=pl.FP32)
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        row = pld.window(own, [1, size], dtype=pl.FP32)
        source = pld.window(given, [pld.world_size(), size], dtype=pl.FP32)
        target = pld.window(taken, [pld.world_size(), size], dtype=pl.FP32)
        signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
        for _ in pl.range(times):
            if name == "broadcast":
                row = pld.tensor.broadcast(row, signal, root=0)
            if name == "allgather":
                target = pld.tensor.allgather(row, target, signal)
            if name == "reduce_scatter":
                target = pld.tensor.reduce_scatter(target, signal)
            if name == "all_to_all":
                target = pld.tensor.all_to_all(source, target, signal)
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)
        return y

    return move


def times_of(size: int) -> int:
    """Return how many collectives of so many elements a call has."""
    return FEW if size >= LONG else MANY


def best(run: Callable[[], object], rounds: int = 7) -> float:
    """Return the seconds of the quickest of several runs, one before them not counted."""
    run()
    times: list[float] = []
    for _ in range(rounds):
        since = time.perf_counter()
        run()
        times.append(time.perf_counter() - since)
    return min(times)


def show(name: str, text: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(f"{name:32} {text}", flush=True)


def dispatches(config: RunConfig) -> None:
    x, y = torch.rand(RANKS, 1, 64), torch.zeros(RANKS, 1, 64)
    a, b = x[0].clone(), y[0].clone()

    def warm() -> None:
        for _ in range(DISPATCHES):
            copy(a, b)

    call = best(warm) / DISPATCHES
    several, one = many.compile(config=config), once.compile(config=config)
    whole, single = best(lambda: several(x, y), 15), best(lambda: one(x, y), 30)
    beyond = (whole - single) / (DISPATCHES - 1) - call
    show("a warm call", f"{1e6 * call:.2f} us")
    show("a dispatch beyond it", f"{1e6 * beyond:.2f} us")
    show("a call of a host function", f"{1e6 * single:.0f} us")


def collectives(config: RunConfig) -> None:
    """Show what collectives of the host take, beside torch's own."""
    kinds = [(size, pl.FP32, torch.float32) for size in SIZES]
    kinds += [(SIZES[-1], pl.FP16, torch.float16), (SIZES[-1], pl.BF16, torch.bfloat16)]
    for size, dtype, elements in kinds:
        data = torch.rand(size).to(elements)
        name = f"all-reduce of {dtype.get_byte() * size >> 10} KiB of {dtype}"
        beside_torch(config, name, reducing(size, dtype), times_of(size), partial(dist.all_reduce, data))
    for size in ROWS:
        row, rows, source = torch.rand(size), torch.rand(RANKS * size), torch.rand(RANKS * size)
        theirs = {
            "broadcast": partial(dist.broadcast, row, 0),
            "allgather": lambda rows=rows, row=row: dist.all_gather([*rows.chunk(RANKS)], row),
            "reduce_scatter": lambda rows=rows, row=row: dist.reduce_scatter(row, [*rows.chunk(RANKS)]),
            "all_to_all": partial(dist.all_to_all_single, rows, source),
        }
        for name, their in theirs.items():
            label = f"{name}, rows of {4 * size >> 10} KiB"
            beside_torch(config, label, moving(name, size), times_of(size), their)


def beside_torch(config: RunConfig, name: str, host: pl.JITFunction, times: int, theirs: Callable[[], object]) -> None:
    """Show what a collective takes of which a call has so many, and torch's where there is a group."""
    x, y = torch.rand(RANKS, 1, 64), torch.zeros(RANKS, 1, 64)
    base, program = once.compile(config=config), host.compile(config=config)
    nothing = best(lambda: base(x, y), 30)
    ways: list[Callable[[], object]] = [lambda: program(x, y)]
    if dist.is_initialized():
        ways.append(lambda: [theirs() for _ in range(times)])
    rounds = [[best(way, 3) for way in ways] for _ in range(9)]
    found = [[(ours - nothing) / times, *(other / times for other in rest)] for ours, *rest in rounds]
    least = [min(each) for each in zip(*found, strict=True)]
    text = f"{1e6 * least[0]:.0f} us"
    if len(least) > 1:
        beside = middle([ours / other for ours, other in found])
        text += f", torch.distributed {1e6 * least[1]:.0f} us, {least[0] / least[1]:.2f} times it"
        text += f", {beside:.2f} times in the middle of {len(found)} rounds"
    show(name, text)


def middle(values: Sequence[float]) -> float:
    """Return the one in the middle."""
    return sorted(values)[len(values) // 2]


@pl.jit
def fused_chip(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS * M, COLUMNS], pl.FP32]],
    gathered: pl.InOut[pld.DistributedTensor[[RANKS * M, K], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[RANKS, M // BLOCK], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(gathered)
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for block in pl.range(M // BLOCK):
            for step in pl.range(1, RANKS):
                peer = (me + step) % RANKS
                pld.tensor.put(gathered, peer, a, [me * M + block * BLOCK, 0], [block * BLOCK, 0], [BLOCK, K])
                pld.system.notify(arrived, peer, [me, block], 1, op=pld.NotifyOp.Set)
            rows = pl.load(a, [block * BLOCK, 0], [BLOCK, K])
            y = pl.store(pl.matmul(rows, right), [me * M + block * BLOCK, 0], y)
        for step in pl.range(1, RANKS):
            source = (me - step + RANKS) % RANKS
            for block in pl.range(M // BLOCK):
                pld.system.wait(arrived, [source, block], 1, cmp=pld.WaitCmp.Ge)
                rows = pl.load(gathered, [source * M + block * BLOCK, 0], [BLOCK, K])
                y = pl.store(pl.matmul(rows, right), [source * M + block * BLOCK, 0], y)
    return y


@pl.jit.host
def fused(
    a: pl.Tensor[[RANKS, M, K], pl.FP32],
    b: pl.Tensor[[RANKS, K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS, RANKS * M, COLUMNS], pl.FP32]],
):
    rows = pld.alloc_window_buffer([RANKS * M, K], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, M // BLOCK], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        gathered = pld.window(rows, [RANKS * M, K], dtype=pl.FP32)
        arrived = pld.window(cells, [RANKS, M // BLOCK], dtype=pl.INT32)
        fused_chip(a[r], b[r], y[r], gathered, arrived, device=r)
    return y


@pl.jit
def product(
    a: pl.Tensor[[RANKS * M, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS * M, COLUMNS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for block in pl.range(RANKS * M // BLOCK):
            y = pl.store(pl.matmul(pl.load(a, [block * BLOCK, 0], [BLOCK, K]), right), [block * BLOCK, 0], y)
    return y


@pl.jit
def publish(a: pl.Tensor[[M, K], pl.FP32], local: pl.InOut[pld.DistributedTensor[[M, K], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for block in pl.range(M // BLOCK):
            pl.store(pl.load(a, [block * BLOCK, 0], [BLOCK, K]), [block * BLOCK, 0], local)


@pl.jit
def multiply_window(
    gathered: pld.DistributedTensor[[RANKS * M, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS * M, COLUMNS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for block in pl.range(RANKS * M // BLOCK):
            y = pl.store(pl.matmul(pl.load(gathered, [block * BLOCK, 0], [BLOCK, K]), right), [block * BLOCK, 0], y)
    return y


def gathering(spare: int) -> pl.JITFunction:
    """Return a host function that gathers rows by a collective and multiplies them; with `spare` bytes it copies."""

    @pl.jit.host
    def gather(
        a: pl.Tensor[[RANKS, M, K], pl.FP32],
        b: pl.Tensor[[RANKS, K, COLUMNS], pl.FP32],
        y: pl.Out[pl.Tensor[[RANKS, RANKS * M, COLUMNS], pl.FP32]],
    ):
        own = pld.alloc_window_buffer([M, K], dtype=pl.FP32)
        rows = pld.alloc_window_buffer(RANKS * M * K * pl.FP32.get_byte() + spare)
        cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
        local = pld.window(own, [M, K], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            publish(a[r], local, device=r)
        target = pld.window(rows, [RANKS, M * K], dtype=pl.FP32)
        row = pld.window(own, [1, M * K], dtype=pl.FP32)
        pld.tensor.allgather(row, target, pld.window(cells, [RANKS, 1], dtype=pl.INT32))
        gathered = pld.window(rows, [RANKS * M, K], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            multiply_window(gathered, b[r], y[r], device=r)
        return y

    return gather


@pl.jit
def multiply_rows(
    a: pl.Tensor[[RANKS * M, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    partial: pl.InOut[pld.DistributedTensor[[RANKS * M, COLUMNS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for block in pl.range(RANKS * M // BLOCK):
            pl.store(pl.matmul(pl.load(a, [block * BLOCK, 0], [BLOCK, K]), right), [block * BLOCK, 0], partial)


@pl.jit
def take_rows(
    summed: pld.DistributedTensor[[RANKS * M, COLUMNS], pl.FP32],
    rank: pl.Scalar[pl.INT32],
    y: pl.Out[pl.Tensor[[M, COLUMNS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for block in pl.range(M // BLOCK):
            rows = pl.load(summed, [rank * M + block * BLOCK, 0], [BLOCK, COLUMNS])
            y = pl.store(rows, [block * BLOCK, 0], y)
    return y


@pl.jit.host
def scatter(
    a: pl.Tensor[[RANKS, RANKS * M, K], pl.FP32],
    b: pl.Tensor[[RANKS, K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS, M, COLUMNS], pl.FP32]],
):
    blocks = pld.alloc_window_buffer([RANKS * M, COLUMNS], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    partial = pld.window(blocks, [RANKS * M, COLUMNS], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        multiply_rows(a[r], b[r], partial, device=r)
    rows = pld.window(blocks, [RANKS, M * COLUMNS], dtype=pl.FP32)
    pld.tensor.reduce_scatter(rows, pld.window(cells, [RANKS, 1], dtype=pl.INT32))
    for r in pl.range(pld.world_size()):
        take_rows(partial, r, y[r], device=r)
    return y


def scatters(config: RunConfig) -> None:
    """Show the product whose rows are summed as they are made beside the product followed by torch's reduce-scatter."""
    a, b, y = torch.rand(RANKS, RANKS * M, K), torch.rand(RANKS, K, COLUMNS), torch.zeros(RANKS, M, COLUMNS)
    rank = dist.get_rank() if dist.is_initialized() else 0
    made, own = torch.empty(RANKS * M, COLUMNS), torch.empty(M, COLUMNS)
    if dist.is_initialized():
        dist.broadcast(a, 0)
        dist.broadcast(b, 0)
    given = _sharded(a, b, y) if dist.is_initialized() else (a, b, y)
    program = scatter.compile(config=config)
    ways: dict[str, Callable[[], object]] = {
        "matmul reduce-scatter": lambda: program(*given),
        "product alone": lambda: product(a[rank], b[rank], made),
    }
    if dist.is_initialized():

        def one_by_one() -> None:
            product(a[rank], b[rank], made)
            dist.reduce_scatter(own, [*made.view(RANKS, M, COLUMNS)])

        ways["product, then torch's reduce-scatter"] = one_by_one
    compared(ways)
    torch.testing.assert_close(y[rank], (a @ b).sum(0).view(RANKS, M, COLUMNS)[rank], rtol=1e-4, atol=1e-2)


def products(config: RunConfig) -> None:
    """Show the all-gather matmul beside the host's collective followed by the product, and beside torch's own."""
    a, b, y = torch.rand(RANKS, M, K), torch.rand(RANKS, K, COLUMNS), torch.zeros(RANKS, RANKS * M, COLUMNS)
    rank = dist.get_rank() if dist.is_initialized() else 0
    made, gathered = torch.empty(RANKS * M, COLUMNS), a.reshape(RANKS * M, K).clone()
    if dist.is_initialized():
        dist.broadcast(a, 0)
        dist.broadcast(b, 0)
    given = _sharded(a, b, y) if dist.is_initialized() else (a, b, y)
    in_place, copied, by_hand = (each.compile(config=config) for each in (gathering(0), gathering(64), fused))
    ways: dict[str, Callable[[], object]] = {
        "all-gather matmul": lambda: in_place(*given),
        "the same, written by hand": lambda: by_hand(*given),
        "all-gather by copies, then product": lambda: copied(*given),
        "product alone": lambda: product(gathered, b[rank], made),
    }
    if dist.is_initialized():

        def gather() -> None:
            dist.all_gather([*gathered.view(RANKS, M, K)], a[rank])

        def one_by_one() -> None:
            gather()
            product(gathered, b[rank], made)

        ways |= {"torch's all-gather alone": gather, "torch's all-gather, then product": one_by_one}
    compared(ways)
    torch.testing.assert_close(y[rank], a.reshape(RANKS * M, K) @ b[rank], rtol=1e-4, atol=1e-2)


def compared(ways: dict[str, Callable[[], object]]) -> None:
    """Show what each way takes, and beside the first."""
    rounds = [[best(run, 3) for run in ways.values()] for _ in range(15)]
    for name, times in zip(ways, zip(*rounds, strict=True), strict=True):
        beside = middle([other / first for first, other in zip((row[0] for row in rounds), times, strict=True)])
        show(name, f"{1e3 * min(times):.2f} ms, {beside:.2f} times the first")


def _sharded(*tensors: torch.Tensor) -> list[Any]:
    """Return the row of this process of each tensor, as DTensors that share their memory."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    mesh, rank, shards = init_device_mesh("cpu", (RANKS,)), dist.get_rank(), cast("Any", DTensor)
    return [shards.from_local(each[rank : rank + 1], mesh, [Shard(0)]) for each in tensors]


class _Echo:
    """Answers messages with as many bytes as they ask for."""

    def hear(self, source: int, numbers: Sequence[int], data: Any) -> Any:
        return data if not numbers[0] else np.zeros(numbers[0], np.uint8)


def messages() -> None:
    """Show what messages between two processes take, and answers to them."""
    group = group_of()
    link, echo, peer = group.link(), _Echo(), 1 - group.rank
    link.plans[0], link.timeout = echo, timedelta(seconds=60)
    for size in (8, 1 << 16, 1 << 20, 1 << 22):
        data = np.zeros(size, np.uint8)
        dist.barrier()
        sent = best(lambda data=data: link.send(peer, 0, [0], data), 60)
        asked = best(lambda size=size: link.ask(peer, 0, [size], size), 60)
        show(f"a message of {size} bytes", f"{1e6 * sent:.0f} us, an answer {1e6 * asked:.0f} us")
    dist.barrier()


def starts() -> None:
    """Show what the first call takes in each of four processes with a warm cache, and in one alone or four at once."""
    kinds = {"4 ranks": (4, 4), "4 times 1 rank": (4, 1), "1 rank": (1, 1)}
    with tempfile.TemporaryDirectory() as cache:
        _started(4, 4, cache)  # which compiles, and leaves byte code of what it imports
        found = [{name: _slowest(*each, cache) for name, each in kinds.items()} for _ in range(STARTS)]
    for name in kinds:
        (wall, own), (middle_wall, middle_own) = (
            [1e3 * of([each[name][k] for each in found]) for k in range(2)] for of in (min, middle)
        )
        text = f"{wall:.0f} ms, {own:.0f} ms of processor time; {middle_wall:.0f} and {middle_own:.0f} ms in the middle"
        show(f"the first call, {name}", text)
    for name in ("4 ranks", "4 times 1 rank"):
        wall, own = (middle([each[name][k] / each["1 rank"][k] for each in found]) for k in range(2))
        show(f"{name}, to 1 rank's", f"{own:.2f} times the processor time, {wall:.2f} times the time")


def _slowest(processes: int, ranks: int, cache: str) -> tuple[float, float]:
    """Return the seconds of the first call of the slowest of some processes, and of processors."""
    wall, own = (max(each) for each in zip(*_started(processes, ranks, cache), strict=True))
    return wall, own


def _started(processes: int, ranks: int, cache: str) -> list[tuple[float, float]]:
    """Start processes at once, groups of so many ranks; return the seconds of their first calls, and of processors."""
    running: list[subprocess.Popen[str]] = []
    ports = [_port() for _ in range(processes // ranks)]
    for process in range(processes):
        port = ports[process // ranks]
        told = {
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": port,
            "TILEWRIGHT_CACHE_DIR": cache,
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "",  # what a caller sets there would have every process compile all modules
        }
        env = {**os.environ, **told, "RANK": str(process % ranks)}
        command = [sys.executable, __file__, "--first"]
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    said = [process.communicate()[0].split() for process in running]
    return [(float(wall), float(own)) for wall, own in said]


def _port() -> str:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return str(free.getsockname()[1])


def first() -> None:
    """Make the first call of a process, once all are there, and say how long it took."""
    dist.init_process_group("gloo")
    dist.barrier()
    x, y = torch.rand(RANKS, 1, 64), torch.zeros(RANKS, 1, 64)
    since, own = time.perf_counter(), time.process_time()
    once(x, y, config=RunConfig(device_ids=range(RANKS)))
    print(time.perf_counter() - since, time.process_time() - own, flush=True)
    dist.barrier()
    dist.destroy_process_group()


def wired(rate: str) -> None:
    """Run the products on two machines: network namespaces with names of their own, and a wire of some rate."""
    ends, addresses = ("wire0", "wire1"), ("10.213.78.1", "10.213.78.2")
    names = [f"tilewright-bench-{os.getpid()}-{number}" for number in range(2)]
    try:
        for name in names:
            _ip("netns", "add", name)
        _ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
        for name, end, address in zip(names, ends, addresses, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            shaped = ("tc", "-n", name, "qdisc", "add", "dev", end, "root", "tbf", "rate", rate)
            subprocess.run([*shaped, "burst", "256kb", "latency", "20ms"], check=True)
        on_both = partial(_on_both, [*zip(names, ends, strict=True)], addresses[0])
        columns = os.environ.get("PRODUCT_COLUMNS") or _balanced(*map(float, on_both("--parts").split()))
        print(f"{columns} columns, a wire of {rate}", flush=True)
        print(on_both("--products", PRODUCT_COLUMNS=str(columns)), end="")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def _on_both(places: Sequence[tuple[str, str]], master: str, option: str, **told: str) -> str:
    """Return what this script says on two machines, its first rank on the first."""
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": master, "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1", **told}
    running: list[subprocess.Popen[str]] = []
    for rank, (name, end) in enumerate(places):
        env = {**os.environ, **told, "RANK": str(rank), "GLOO_SOCKET_IFNAME": end}
        inside = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]
        command = [*inside, sys.executable, __file__, option]
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    return [process.communicate()[0] for process in running][0]


def parts() -> None:
    """Say how many seconds torch's gather of a product's rows takes, and the product."""
    dist.init_process_group("gloo")
    a, b = torch.rand(M, K), torch.rand(K, COLUMNS)
    gathered, made = torch.empty(RANKS * M, K), torch.empty(RANKS * M, COLUMNS)
    rows = [*gathered.view(RANKS, M, K)]
    taken = [best(run) for run in (lambda: dist.all_gather(rows, a), lambda: product(gathered, b, made))]
    if dist.get_rank() == 0:
        print(*taken)
    dist.destroy_process_group()


def _balanced(gather: float, product: float) -> int:
    """Return with how many columns a product takes as long as the gather."""
    return max(1, round(COLUMNS * gather / product / 32)) * 32


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def plans() -> None:
    for ranks in (8, 64, 1024):
        x, y = torch.rand(ranks, 1, 64), torch.zeros(ranks, 1, 64)
        program, args = once.specialize(x, y).program, [whole(x.numpy()), whole(y.numpy())]
        seconds = best(partial(_plan, program, ranks, args), 3)
        show(f"planning {ranks} ranks", f"{1e3 * seconds:.1f} ms, {1e6 * seconds / ranks:.0f} us a dispatch")


def _plan(program: Program, ranks: int, args: list[Region]) -> None:
    HostMachine(program, ranks).planned("once", args)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--plan", action="store_true", help="only what planning takes")
    options.add_argument("--start", action="store_true", help="only what first calls take, with a warm cache")
    options.add_argument("--products", action="store_true", help="only products beside their collectives")
    options.add_argument(
        "--wire", metavar="RATE", help="only those, on two machines with a wire of this rate (tc's word)"
    )
    options.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--parts", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if not (chosen.first or chosen.parts):
        load = " ".join(f"{each:.1f}" for each in os.getloadavg())
        show("here", f"{os.cpu_count()} cores, load {load}, torch on {torch.get_num_threads()} threads a rank")
    for is_chosen, run in (
        (chosen.plan, plans), (chosen.start, starts), (chosen.first, first), (chosen.parts, parts),
    ):  # fmt: skip
        if is_chosen:
            return run()
    if chosen.wire:
        return wired(chosen.wire)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    config = RunConfig(device_ids=range(RANKS))
    if not chosen.products:
        dispatches(config)
        collectives(config)
    products(config)
    scatters(config)
    if dist.is_initialized():
        if not group_of().shares_memory and not chosen.products:
            messages()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
