"""What programs say that PTO has other words for: pads, ragged values, any rank, sums, counting, rooms, blocks."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from property.exported import extents_of, run_exported

import tilewright.language as pl
from tilewright import pto
from tilewright.errors import KernelError
from tilewright.programs.pto_text.lines import Lines
from tilewright.runtime import RunConfig

M, N = pl.dynamic("M"), pl.dynamic("N")
Rows = pl.Tensor[[M, 64], pl.FP32]


@pl.jit
def padded(x: Rows, out: pl.Out[Rows]):
    """Rows that hang over are as many ones, and the sum over a block counts them."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64], pad=1.0)
            some = pl.fillpad(pl.load(x, [r, 0], [16, 64]), -2.0)
            pl.store(pl.load(x, [r, 0], [16, 64]) + pl.col_sum(t) - pl.col_min(some), [r, 0], out)


@pl.jit
def halo(x: Rows, out: pl.Out[Rows]):
    """Each element and those above and left of it, zeros where there are none."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            above = pl.load(x, [r - 1, 0], [16, 64], pad=0.0)
            before = pl.load(x, [r, -3], [16, 64], pad=0.0)
            pl.store(t + above * 2.0 + before * 3.0, [r, 0], out)


@pl.jit
def either(x: Rows, out: pl.Out[Rows]):
    """A tile, valid in part, out of a branch and through a loop."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            if r > 16:
                u = t * 2.0
            else:
                u = pl.load(x, [r, 0], [16, 64]) + 1.0
            for _ in pl.range(3):
                u = u + t
            pl.store(u, [r, 0], out)


@pl.jit
def behind(x: Rows, out: pl.Out[Rows]):
    """Rows from the tenth of each block on, of which the last block has none."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            pl.store(t, [r, 0], out)
            pl.store(t[10:14, :] * 2.0, [r, 0], out)


@pl.jit
def causal(x: Rows, out: pl.Out[Rows]):
    """A mask of a row and a column, by which a row, a column and a number are chosen, and both met."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            place = pl.iota([16, 1], axis=0) + r
            t = pl.load(x, [r, 0], [16, 64])
            seen = pl.where(pl.arange(64) <= place, t, -1e30)
            spread = pl.row_max(seen) - pl.col_sum(t)
            pl.store(pl.softmax(seen, axis=-1) + pl.where(0.0 < spread, spread, pl.row_sum(t)), [r, 0], out)


@pl.jit
def flags(x: pl.Tensor[[M, 64], pl.BOOL], out: pl.Out[pl.Tensor[[M, 64], pl.BOOL]], y: Rows):
    """Conditions that are loaded, compared, joined, turned, chosen by and stored."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, z = pl.load(x, [r, 0], [16, 64]), pl.load(y, [r, 0], [16, 64])
            some = pl.or_(pl.and_(t, z > 0.0), pl.not_(pl.where(t, z, 1.0) < 2.0))
            pl.store(some, [r, 0], out)


@pl.jit
def line(x: pl.Tensor[[N], pl.FP32], out: pl.Out[pl.Tensor[[N], pl.FP32]]):
    for i in pl.parallel(0, N, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [i], [64])
            pl.store(t * t, [i], out)


@pl.jit
def batches(x: pl.Tensor[[M, 8, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 8, 32], pl.FP32]]):
    """Several matrices at once, whose rows are added up, and one of them alone."""
    for b in pl.parallel(0, M, 2):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [b, 0, 0], [2, 8, 32])
            pl.store(t * 2.0 - pl.row_sum(t), [b, 0, 0], out)


@pl.jit
def summed(x: Rows, out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.col_sum(pl.load(x, [r, 0], [16, 64])), [0, 0], out, atomic=pl.AtomicType.Add)


@pl.jit
def counted(x: pl.Tensor[[16, 64], pl.INT32], out: pl.Out[pl.Tensor[[16, 64], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        places = pl.iota([16, 64], axis=0, start=3, step=2) + pl.arange(64)
        pl.store(t * (pl.iota([16, 1], axis=0) + 1) + places, [0, 0], out)


@pl.jit
def halved(x: Rows, out: pl.Out[Rows], limit: pl.Scalar[pl.INT32]):
    """Turns that go on while something holds, which carries a tile and two numbers."""
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            n = 1
            while n < limit:
                t = t * 0.5
                n = n * 2
            pl.store(t, [r, 0], out)


@pl.jit
def through(x: Rows, out: pl.Out[Rows]):
    """A tensor of its own for each turn, between two kernels."""
    for r in pl.parallel(0, M, 16):
        between = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [16, 64], pad=0.0) + 1.0, [0, 0], between)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(between, [0, 0], [16, 64])
            pl.store(pl.load(x, [r, 0], [16, 64]) * pl.col_sum(t), [r, 0], out)


@pl.jit
def pieces(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    """Tiles that are cut, put into each other, turned and seen under other shapes."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        left, right = pl.slice(t, [16, 32], [0, 0]), pl.slice(t, [16, 32], [0, 32])
        swapped = pl.concat(right, left)
        folded = pl.reshape(pl.reshape(swapped, [32, 32]) * 2.0, [16, 64])
        pl.store(pl.assemble(folded, pl.slice(t, [8, 16], [4, 16]), [8, 32]), [0, 0], out)


@pl.jit
def lonely(x: pl.Tensor[[N], pl.FP32], out: pl.Out[pl.Tensor[[N], pl.FP32]]):
    """One element of a tile with one axis, met by all others."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0], [64])
        pl.store(t + pl.read(t, [3]), [0], out)


@pl.jit
def read_bounds(
    x: pl.Tensor[[64, 64], pl.FP32], out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], ends: pl.Tensor[[3], pl.INT32]
):
    """A loop whose bounds are numbers of 32 bits in memory."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(pl.read(ends, [0]), pl.read(ends, [1]), 8):
            pl.store(pl.load(x, [r, 0], [8, 64]) * 2.0, [r, 0], out)


@pl.jit
def kept_axis(x: pl.Tensor[[16, 1], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    """An axis that changes places with itself."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.transpose(pl.load(x, [0, 0], [16, 1]), 1, -1), [0, 0], out)


@pl.jit
def one_element(x: Rows, out: pl.Out[Rows], by: pl.InOut[pl.Tensor[[], pl.FP32]]):
    """A tensor without axes, read and written."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.store(t * pl.read(by, []), [0, 0], out)
        pl.write(by, [], 5.0)


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)


CASES: dict[str, tuple[Any, Callable[[], list[Any]]]] = {
    "padded": (padded, lambda: [floats(41, 64), floats(41, 64)]),
    "halo": (halo, lambda: [floats(41, 64), floats(41, 64)]),
    "behind": (behind, lambda: [floats(41, 64), floats(41, 64)]),
    "either": (either, lambda: [floats(41, 64), floats(41, 64)]),
    "causal": (causal, lambda: [floats(41, 64), floats(41, 64)]),
    "flags": (flags, lambda: [floats(41, 64) > 0, np.zeros((41, 64), bool), floats(41, 64)]),
    "line": (line, lambda: [floats(150), floats(150)]),
    "batches": (batches, lambda: [floats(5, 8, 32), floats(5, 8, 32)]),
    "summed": (summed, lambda: [floats(41, 64), np.zeros((1, 64), np.float32)]),
    "counted": (counted, lambda: [np.arange(1024, dtype=np.int32).reshape(16, 64), np.zeros((16, 64), np.int32)]),
    "halved": (halved, lambda: [floats(20, 64), floats(20, 64), 37]),
    "through": (through, lambda: [floats(41, 64), floats(41, 64)]),
    "lonely": (lonely, lambda: [floats(64), floats(64)]),
    "read_bounds": (read_bounds, lambda: [floats(64, 64), floats(64, 64), np.array([8, 48, 0], np.int32)]),
    "kept_axis": (kept_axis, lambda: [floats(16, 1), floats(16, 1)]),
    "one_element": (one_element, lambda: [floats(16, 64), floats(16, 64), np.array(3, np.float32)]),
    "pieces": (pieces, lambda: [floats(16, 64), floats(16, 64)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("platform", "grid"), [("interpret", 1), ("cpu", 3)])
def test_it_reads_back_and_computes_the_same(name: str, platform: str, grid: int) -> None:
    kernel, made = CASES[name]
    wanted, found = made(), made()
    text = kernel.compile(*found).as_pto()
    kernel(*wanted)
    entry = kernel.specialize(*found).program.entries[-1]
    run_exported(text, entry.name, found, extents_of(entry, found), platform, grid)
    for got, want in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=1e-6)


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("word", ["", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif"])
def test_a_row_or_a_column_of_each_of_several_matrices(axis: str, word: str) -> None:
    op = getattr(pl, f"{axis}_expand{word}")
    shape = (3, 8, 1) if axis == "row" else (3, 1, 16)

    @pl.jit
    def each(x: pl.Tensor, line: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.slice(pl.load(x, [0, 0, 0], x.shape), [3, 8, 16], [0, 0, 0], valid_shape=[3, 8, 11])
            pl.store(op(t, pl.load(line, [0, 0, 0], line.shape)), [0, 0, 0], out)

    given = [floats(3, 8, 16), np.linspace(1, 9, 3 * 8 * 16, dtype=np.float32)[: np.prod(shape)].reshape(shape)]
    wanted, found = ([*given, np.zeros((3, 8, 16), np.float32)] for _ in range(2))
    text = each.compile(*found).as_pto()
    each(*wanted, config=RunConfig(platform="interpret"))
    run_exported(text, "each", found, {})
    np.testing.assert_array_equal(found[2], wanted[2])


@pytest.mark.parametrize("axis", ["row", "col"])
def test_exponentials_of_differences_in_a_column(axis: str) -> None:
    op, fold = getattr(pl, f"{axis}_expand_expdif"), getattr(pl, f"{axis}_min")

    @pl.jit
    def column(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [20, 1])
            pl.store(op(t, fold(t) * 2.0), [0, 0], out)

    wanted, found = ([floats(14, 1), np.zeros((14, 1), np.float32)] for _ in range(2))
    text = column.compile(*found).as_pto()
    column(*wanted, config=RunConfig(platform="interpret"))
    run_exported(text, "column", found, {})
    np.testing.assert_array_equal(found[1], wanted[1])


def test_the_text_says_what_it_needs(golden: Any) -> None:
    """Rooms come last, what nothing uses is not there, and a parameter that nothing uses is called so."""

    @pl.jit
    def scaled(x: Rows, unused: pl.Scalar[pl.FP32], out: pl.Out[Rows]):
        for r in pl.parallel(0, M, 16):
            between = pl.create_tensor([16, 64], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, 0], [16, 64], pad=0.0) * 2.0, [0, 0], between)
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, 0], [16, 64]) + pl.col_max(pl.load(between, [0, 0], [16, 64])), [r, 0], out)

    golden("scaled_export.pto", scaled.compile(floats(20, 64), 1.0, floats(20, 64)).as_pto())


def test_several_entries_are_several_functions() -> None:
    @pl.program
    class Both:
        @pl.function
        def twice(self, x: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], [8, 64]) * 2.0, [0, 0], out)

        @pl.function
        def thrice(self, x: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], [8, 64]) * 3.0, [0, 0], out)

    from tilewright.programs.pto_text.export import as_pto

    text = as_pto(Both)
    assert [func.name for func in pto.parse(text).funcs()] == ["twice", "thrice"]
    for name, by in (("twice", 2), ("thrice", 3)):
        x, out = floats(8, 64), np.zeros((8, 64), np.float32)
        run_exported(text, name, [x, out], {})
        np.testing.assert_array_equal(out, by * x)


@pl.jit
def flattened(x: Rows, out: pl.Out[pl.Tensor[[1], pl.FP32]]):
    """The sum of a row that may not be there, as a tile of one axis."""
    with pl.at(level=pl.Level.CORE_GROUP):
        row = pl.load(x, [0, 0], [1, 64])
        pl.store(pl.sum(row, axis=1, keepdims=False), [0], out)


@pytest.mark.parametrize("rows", [0, 41])
def test_a_row_that_may_not_be_there_is_an_element_that_may_not(rows: int) -> None:
    wanted, found = ([np.ones((rows, 64), np.float32), np.full(1, 7, np.float32)] for _ in range(2))
    text = flattened.compile(*found).as_pto()
    flattened(*wanted)
    run_exported(text, "flattened", found, {"M": rows})
    np.testing.assert_array_equal(found[1], wanted[1])


@pl.jit
def shown(x: pl.Tensor[[16, 64], pl.BF16], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.print(t)
        pl.store(t, [0, 0], out)


@pl.jit
def shown_as_floats(x: pl.Tensor[[16, 64], pl.BF16], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.print(pl.cast(t, pl.FP32))
        pl.store(t, [0, 0], out)


def test_what_no_machine_takes_is_helped_in_the_words_of_the_language() -> None:
    with pytest.raises(pto.NoPtoError) as caught:
        shown.compile().as_pto()
    assert caught.value.help == "convert it with `pl.cast(..., pl.FP32)`"
    assert "tprint" in shown_as_floats.compile().as_pto()


@pytest.mark.parametrize("said", [
    "convert with `pto.tcvt`", "convert it to f128 with `pto.tcvt`", "write fractal=512 in its type",
    "compute with `pto.tmuls` or `pto.trelu` before", "write !pto.tile_buf<vec, 8x64xf32>", "",
])  # fmt: skip
def test_help_for_the_author_of_text_is_not_handed_on(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(text: str) -> None:
        raise KernelError("no", help=said)

    monkeypatch.setattr("tilewright.programs.pto_text.export.READERS", [read])
    with pytest.raises(pto.NoPtoError) as caught:
        shown.compile().as_pto()
    assert caught.value.help == pto.NoPtoError.hint


def test_names_are_numbered_in_order_and_around_those_that_are_taken() -> None:
    lines = Lines()
    assert [lines.name(hint) for hint in ("add", "add_2", "add", "add", "", "_v", "add_2")] == [
        "%add", "%add_2", "%add_1", "%add_3", "%v", "%v_1", "%add_2_1",
    ]  # fmt: skip
