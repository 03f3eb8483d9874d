"""Indexed access: rows and elements taken and put by index, columns by pattern."""

from collections.abc import Callable

import torch
from contenders import ours
from contest import EAGER, OURS, Contest, Field, Run, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.jit.function import JITFunction

ROWS_THERE, WIDTH, ROWS_PER_TILE = 65536, 512, 16
BLOCK = 128
N, STRIP = 4096, 16
COPY = "copy"

Matrix = pl.Tensor[[ROWS_THERE, WIDTH], pl.FP32]
Index = pl.Tensor[[1, ROWS_THERE], pl.INT32]


@pl.jit
def memory_gather(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], ROWS_PER_TILE):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.mgather(x, pl.load(index, [0, row], [1, ROWS_PER_TILE]))
            out = pl.store(rows, [row, 0], out)
    return out


@pl.jit
def row_gather(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], ROWS_PER_TILE):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.create_tile([ROWS_PER_TILE, x.shape[1]], dtype=x.dtype)
            for k in pl.range(ROWS_PER_TILE):
                rows = pl.gather_row(rows, x, [k, 0], [pl.read(index, [0, row + k]), 0], [1, x.shape[1]])
            out = pl.store(rows, [row, 0], out)
    return out


@pl.jit
def paged_gather(x: pl.Tensor, index: pl.Tensor, table: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], ROWS_PER_TILE):
        with pl.at(level=pl.Level.CORE_GROUP):
            places = pl.slice(index, [1, ROWS_PER_TILE], [0, row])
            rows = pl.paged_gather(x, places, table, BLOCK, x.shape[1], ROWS_PER_TILE)
            out = pl.assemble(out, rows, [row, 0])
    return out


@pl.program
class ScatterUpdate:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, index: Index, out: pl.InOut[Matrix]) -> Matrix:
        for row in pl.parallel(0, ROWS_THERE, ROWS_PER_TILE):
            with pl.at(level=pl.Level.CORE_GROUP):
                places = pl.slice(index, [1, ROWS_PER_TILE], [0, row])
                out = pl.scatter_update(out, -2, places, pl.slice(x, [ROWS_PER_TILE, WIDTH], [row, 0]))
        return out


def _run(kernel: JITFunction | Program, *given: torch.Tensor, out: torch.Tensor) -> Run:
    if isinstance(kernel, Program):
        return ours(kernel, *given, out=out)

    def run() -> torch.Tensor:
        kernel(*given, out)
        return out

    return run


def by_row(
    kernel: JITFunction | Program,
    torch_run: Callable[..., Run],
    there: int = ROWS_THERE,
    width: int = WIDTH,
    dtype: torch.dtype = torch.float32,
) -> Callable[[], Field]:
    """Return the contest of a kernel that takes or puts each row once, in any order."""

    def enter() -> Field:
        x, order = torch.randn(there, width).to(dtype), torch.randperm(there)
        given, table = (x, order.int()[None]), torch.randperm(there // BLOCK)
        if kernel is paged_gather:
            given, order = (*given, table.int()[None]), table[order // BLOCK] * BLOCK + order % BLOCK
        out, eager = output(there, width).to(dtype), torch_run(x, order, output(there, width).to(dtype))
        runs = {OURS: _run(kernel, *given, out=out), EAGER: eager}
        return Field(eager().clone(), runs, rtol=0, atol=0)

    return enter


def select(x: torch.Tensor, order: torch.Tensor, out: torch.Tensor) -> Run:
    return lambda: torch.index_select(x, 0, order, out=out)


def copy_rows(x: torch.Tensor, order: torch.Tensor, out: torch.Tensor) -> Run:
    return lambda: out.index_copy_(0, order, x)


@pl.program
class ElementGather:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[N, N], pl.FP32],
        index: pl.Tensor[[N, N], pl.INT32],
        out: pl.Out[pl.Tensor[[N, N], pl.FP32]],
    ) -> pl.Tensor[[N, N], pl.FP32]:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                taken = pl.gather(
                    pl.slice(x, [STRIP, N], [row, 0]), dim=-1, index=pl.slice(index, [STRIP, N], [row, 0])
                )
                out = pl.assemble(out, taken, [row, 0])
        return out


def gather_elements() -> Field:
    x, index, eager = torch.randn(N, N), torch.randint(0, N, (N, N)), output(N, N)
    return Field(
        torch.gather(x, 1, index),
        {
            OURS: ours(ElementGather, x, index.int(), out=output(N, N)),
            EAGER: lambda: torch.gather(x, 1, index, out=eager),
        },
        rtol=0,
        atol=0,
    )


@pl.program
class MaskGather:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[N, N], pl.FP32], out: pl.Out[pl.Tensor[[N, N // 2], pl.FP32]]
    ) -> pl.Tensor[[N, N // 2], pl.FP32]:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                even = pl.tile.gather_mask(pl.load(x, [row, 0], [STRIP, N]), pl.tile.MaskPattern.P0101)
                out = pl.store(even, [row, 0], out)
        return out


@pl.program
class MaskScatter:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[N, N // 2], pl.FP32], out: pl.InOut[pl.Tensor[[N, N], pl.FP32]]
    ) -> pl.Tensor[[N, N], pl.FP32]:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                held = pl.load(out, [row, 0], [STRIP, N])
                held = pl.tile.scatter_mask(held, pl.load(x, [row, 0], [STRIP, N // 2]), pl.tile.MaskPattern.P1010)
                out = pl.store(held, [row, 0], out)
        return out


def copied(moved: int, expected: torch.Tensor) -> Run:
    """Return a copy that reads and writes so many elements in all."""
    x, out = torch.randn(moved // 2), output(moved // 2)

    def run() -> torch.Tensor:
        out.copy_(x)
        return expected

    return run


def mask_gather() -> Field:
    x, eager = torch.randn(N, N), output(N, N // 2)
    expected = x[:, ::2].contiguous()
    runs = {OURS: ours(MaskGather, x, out=output(N, N // 2)), EAGER: lambda: eager.copy_(x[:, ::2])}
    return Field(expected, {**runs, COPY: copied(3 * N * N // 2, expected)}, rtol=0, atol=0)


def mask_scatter() -> Field:
    x, held, eager = torch.randn(N, N // 2), torch.randn(N, N), output(N, N)
    expected = held.clone()
    expected[:, 1::2] = x
    eager.copy_(held)

    def scatter() -> torch.Tensor:
        eager[:, 1::2] = x
        return eager

    runs = {OURS: ours(MaskScatter, x, out=held), EAGER: scatter}
    return Field(expected, {**runs, COPY: copied(5 * N * N // 2, expected)}, rtol=0, atol=0)


COUNTED, BINS, COUNTED_TILE = 1_000_000, 256, 16384
ADDED, PLACES, PER_TILE = 8192, 1024, 256


@pl.program
class Histogram:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[COUNTED], pl.INT32], out: pl.Out[pl.Tensor[[BINS], pl.INT32]]
    ) -> pl.Tensor[[BINS], pl.INT32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.tile.full([BINS], dtype=pl.INT32, value=0), [0], out)
        for i in pl.parallel(0, COUNTED, COUNTED_TILE):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.atomic_add(out, pl.load(x, [i], [COUNTED_TILE]), 1)
        return out


def histogram() -> Field:
    x = torch.randint(0, BINS, (COUNTED,), dtype=torch.int32)
    wide, eager = x.long(), torch.zeros(BINS, dtype=torch.int32)

    def count() -> torch.Tensor:
        return eager.copy_(torch.bincount(wide, minlength=BINS))

    runs = {OURS: ours(Histogram, x, out=torch.zeros(BINS, dtype=torch.int32)), EAGER: count}
    return Field(count().clone(), runs, rtol=0, atol=0)


def scatter_add(width: int) -> Callable[[], Field]:
    """Return the contest of adding rows of some width where indices say."""

    @pl.program
    class ScatterAdd:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[ADDED, width], pl.FP32],
            index: pl.Tensor[[ADDED], pl.INT32],
            out: pl.Out[pl.Tensor[[PLACES, width], pl.FP32]],
        ) -> pl.Tensor[[PLACES, width], pl.FP32]:
            for i in pl.parallel(0, PLACES, PER_TILE):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.tile.full([PER_TILE, width], dtype=pl.FP32, value=0.0), [i, 0], out)
            for i in pl.parallel(0, ADDED, PER_TILE):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.atomic_add(out, pl.load(index, [i], [PER_TILE]), pl.load(x, [i, 0], [PER_TILE, width]))
            return out

    def enter() -> Field:
        x, index, eager = torch.randn(ADDED, width), torch.randint(0, PLACES, (ADDED,)), output(PLACES, width)

        def add() -> torch.Tensor:
            return eager.zero_().index_add_(0, index, x)

        runs = {OURS: ours(ScatterAdd, x, index.int(), out=output(PLACES, width)), EAGER: add}
        return Field(add().clone(), runs, rtol=1e-4, atol=1e-4)

    return enter


def _moved(there: int, width: int, dtype: torch.dtype) -> Work:
    return Work(bytes=2 * dtype.itemsize * there * width)


WHOLE = Work(bytes=2 * 4 * ROWS_THERE * WIDTH)
SIZE = f"{ROWS_THERE} x {WIDTH}"
CACHED = ((4096, 1024, torch.float32, ""), (4096, 128, torch.float32, ""), (4096, 128, torch.float16, " fp16"))
"""Matrices that fit the caches."""
NOTE = "the same bytes copied by torch, once each."
ROWS = (
    Contest(f"mgather rows {SIZE}", by_row(memory_gather, select), WHOLE, target=1.0),
    Contest(f"gather_row {SIZE}", by_row(row_gather, select), WHOLE, target=1.0),
    Contest(f"paged_gather {SIZE}", by_row(paged_gather, select), WHOLE, target=1.0),
    *(
        Contest(
            f"{name} {there} x {width}{note}",
            by_row(kernel, select, there, width, dtype),
            _moved(there, width, dtype),
            target=1.0,
            calls=4,
        )
        for there, width, dtype, note in CACHED
        for name, kernel in (
            ("mgather rows", memory_gather),
            ("gather_row", row_gather),
            ("paged_gather", paged_gather),
        )
    ),
    Contest(f"scatter_update {SIZE}", by_row(ScatterUpdate, copy_rows), WHOLE, target=1.0),
    Contest(f"histogram of 1 M into {BINS}", histogram, Work(bytes=4 * COUNTED), target=1.0),
    Contest(f"scatter_add {ADDED} x 64", scatter_add(64), Work(bytes=2 * 4 * ADDED * 64), target=1.0),
    Contest(f"scatter_add {ADDED} x 512", scatter_add(512), Work(bytes=2 * 4 * ADDED * 512), target=1.0),
    Contest(f"gather elements {N}²", gather_elements, Work(bytes=3 * 4 * N * N)),
    Contest(f"gather_mask {N}²", mask_gather, Work(bytes=6 * N * N), target=0.8, against=COPY, note=NOTE),
    Contest(f"scatter_mask {N}²", mask_scatter, Work(bytes=10 * N * N), target=0.8, against=COPY, note=NOTE),
)
