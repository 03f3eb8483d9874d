"""Regular access: parts of tiles, their bytes as others, rows repeated or spread out, tiles made whole, in place."""

from collections.abc import Callable

import torch
from contenders import ours
from contest import OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from rows.indexed import COPY, NOTE, copied
from tilewright.core.program import Program
from tilewright.dtypes import from_torch

N, STRIP, HALF, PACKED = 4096, 16, 2048, 8
Matrix = pl.Tensor[[N, N], pl.FP32]
Narrow = pl.Tensor[[N, HALF], pl.FP32]


@pl.program
class Extract:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Narrow]) -> Narrow:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                part = pl.tile.extract(
                    pl.load(x, [row, 0], [STRIP, N]), 0, 1024, [STRIP, HALF], target_memory=pl.Mem.Vec
                )
                out = pl.store(part, [row, 0], out)
        return out


@pl.program
class Halves:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Narrow]) -> Narrow:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [row, 0], [STRIP, N])
                out = pl.store(t[:, :HALF] * t[:, HALF:], [row, 0], out)
        return out


@pl.program
class PackedRows:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, vec: pl.Tensor[[N, PACKED], pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                rows = pl.load(vec, [row, 0], [STRIP, PACKED])
                out = pl.store(pl.row_expand_add(pl.load(x, [row, 0], [STRIP, N]), rows), [row, 0], out)
        return out


def reinterpreting(read: pl.DataType, seen: pl.DataType, doubled: bool = False) -> Program:
    """Return a copy of elements of one type as those of another, made twice as large first if asked."""
    columns = N * 4 // read.get_byte()
    there = N * 4 // seen.get_byte()

    @pl.program
    class Reinterpret:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[N, columns], read], out: pl.Out[pl.Tensor[[N, there], seen]]
        ) -> pl.Tensor[[N, there], seen]:
            for row in pl.parallel(0, N, STRIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [row, 0], [STRIP, columns])
                    if doubled:
                        t = t + t
                    out = pl.store(pl.reinterpret_view(t, seen), [row, 0], out)
            return out

    return Reinterpret


@pl.program
class SpreadOut:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Narrow, held: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                source = pl.load(x, [row, 0], [STRIP, HALF]) * 2.0
                into = pl.load(held, [row, 0], [STRIP, N])
                out = pl.store(pl.tile.scatter_mask(into, source, pl.tile.MaskPattern.P1010), [row, 0], out)
        return out


def filling(columns: int) -> Program:
    """Return what makes rows of so many columns as wide as a matrix."""

    @pl.program
    class Fill:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[N, columns], pl.FP32], out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, N, STRIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    some = pl.load(x, [row, 0], [STRIP, columns])
                    out = pl.store(pl.fillpad_expand(some, [STRIP, N]), [row, 0], out)
            return out

    return Fill


def padding(columns: int) -> Program:
    """Return what fills the rest of tiles that reach past the last of so many columns."""

    @pl.program
    class Pad:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[N, columns], pl.FP32], out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, N, STRIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    some = pl.load(x, [row, 0], [STRIP, N], clamp=True)
                    out = pl.store(pl.fillpad(some), [row, 0], out)
            return out

    return Pad


@pl.program
class InPlace:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.InOut[Matrix]) -> Matrix:
        for row in pl.parallel(0, N, STRIP):
            with pl.at(level=pl.Level.CORE_GROUP):
                step = pl.load(x, [row, 0], [STRIP, N])
                out = pl.store(pl.load(out, [row, 0], [STRIP, N]) * 0.5 + step, [row, 0], out)
        return out


def moving(program: Program, *given: torch.Tensor, expected: torch.Tensor, room: torch.Tensor | None = None) -> Field:
    """Return the contest of a program with a copy of as many bytes as it reads and writes."""
    out = room if room is not None else torch.empty_like(expected)
    nbytes = sum(each.numel() * each.element_size() for each in (*given, expected))
    return Field(expected, {OURS: ours(program, *given, out=out), COPY: copied(nbytes // 4, expected)}, 0, 0)


def extract() -> Field:
    x = torch.randn(N, N)
    expected = x[:, 1024 : 1024 + HALF].contiguous()
    runs = {OURS: ours(Extract, x, out=output(N, HALF)), COPY: copied(N * N, expected)}
    return Field(expected, runs, 0, 0)


def halves() -> Field:
    x = torch.randn(N, N)
    return moving(Halves, x, expected=x[:, :HALF] * x[:, HALF:])


def packed_rows() -> Field:
    x, vec = torch.randn(N, N), torch.randn(N, PACKED)
    return moving(PackedRows, x, vec, expected=x + vec.repeat(1, N // PACKED))


def reinterpret(read: torch.dtype, seen: torch.dtype, doubled: bool = False) -> Callable[[], Field]:
    """Return the contest of one element type seen as another."""

    def enter() -> Field:
        x = torch.randint(0, 1000, (N, N), dtype=torch.int32).view(read)
        program = reinterpreting(from_torch(read), from_torch(seen), doubled)
        return moving(program, x, expected=(x + x if doubled else x).view(seen))

    return enter


def spread_out() -> Field:
    x, held = torch.randn(N, HALF), torch.randn(N, N)
    expected = held.clone()
    expected[:, 1::2] = x * 2
    return moving(SpreadOut, x, held, expected=expected)


def fill(columns: int) -> Callable[[], Field]:
    """Return the contest of rows made wider."""

    def enter() -> Field:
        x = torch.randn(N, columns)
        return moving(filling(columns), x, expected=torch.nn.functional.pad(x, (0, N - columns)))

    return enter


def pad(columns: int) -> Callable[[], Field]:
    """Return the contest of tiles made whole."""

    def enter() -> Field:
        x = torch.randn(N, columns)
        return moving(padding(columns), x, expected=torch.nn.functional.pad(x, (0, N - columns)))

    return enter


def in_place() -> Field:
    """Return the contest of a matrix that draws near a limit, and is there at the end."""
    x = torch.randn(N, N)
    runs = {OURS: ours(InPlace, x, out=(2 * x).clone()), COPY: copied(3 * N * N, 2 * x)}
    return Field(2 * x, runs, 1e-6, 1e-6)


def row(name: str, enter: Callable[[], Field], nbytes: int) -> Contest:
    """Return a row that is wanted at nearly the speed of a copy."""
    return Contest(f"{name} {N}²", enter, Work(bytes=nbytes), target=0.8, against=COPY, note=NOTE)


ALL = N * N
ROWS = (
    row("extract half of", extract, 4 * ALL),
    row("halves multiplied of", halves, 6 * ALL),
    row("row_expand_add of packed rows to", packed_rows, 8 * ALL),
    row("reinterpret_view fp32 as int32", reinterpret(torch.float32, torch.int32), 8 * ALL),
    row("reinterpret_view fp32 as int16", reinterpret(torch.float32, torch.int16), 8 * ALL),
    row("reinterpret_view int16 as int32", reinterpret(torch.int16, torch.int32), 8 * ALL),
    row("reinterpret_view of a sum, int32 as fp32", reinterpret(torch.int32, torch.float32, doubled=True), 8 * ALL),
    row("scatter_mask of a product into", spread_out, 10 * ALL),
    row("fillpad_expand of 4000 columns to", fill(4000), 8 * ALL),
    row("fillpad_expand of 2048 columns to", fill(HALF), 6 * ALL),
    row("fillpad of 4001 columns to", pad(4001), 8 * ALL),
    row("in place", in_place, 12 * ALL),
)
