"""What leaves a loop or a function before its end, in PTO text, which has branches and conditions instead."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnnecessaryComparison=false, reportCallIssue=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import extents_of, run_exported

import tilewright.language as pl
from tilewright import pto
from tilewright.programs.pto_text.export import as_pto

M = pl.dynamic("M")
Rows = pl.Tensor[[M, 32], pl.FP32]
Marks = pl.Tensor[[M], pl.INT32]
Row = pl.Tensor[[1, 32], pl.FP32]


@pl.jit
def searched(x: Rows, marks: Marks, out: pl.InOut[Row]):
    """Rows are added up to the first that is marked with a number above five; those with a four are left out."""
    with pl.at(level=pl.Level.CORE_GROUP):
        total, count = pl.tile.full([1, 32], pl.FP32, 0.0), 0
        for i in pl.range(M):
            mark = pl.read(marks, [i])
            if mark == 4:
                continue
            if mark > 5:
                total = total + 100.0
                break
            total = total + pl.load(x, [i, 0], [1, 32])
            count = count + i
        pl.store(total + pl.cast(count, pl.FP32), [0, 0], out)


@pl.jit
def skipping(x: Rows, marks: Marks, out: pl.InOut[Row]):
    """Only `continue`, at two depths, and what follows both."""
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.tile.full([1, 32], pl.FP32, 0.0)
        for i in pl.range(M):
            t = pl.load(x, [i, 0], [1, 32])
            mark = pl.read(marks, [i])
            if mark > 2:
                t = t * 2.0
                if mark == 4:
                    continue
                t = t + 1.0
            total = total + t
        pl.store(total, [0, 0], out)


@pl.jit
def downwards(x: Rows, marks: Marks, out: pl.InOut[Row]):
    """A loop that counts down and is left from a loop inside, which is left itself."""
    with pl.at(level=pl.Level.CORE_GROUP):
        total, last = pl.tile.full([1, 32], pl.FP32, 0.0), 0
        for i in pl.range(M - 1, -1, -2):
            last = i
            for j in pl.range(i, M):
                if pl.read(marks, [j]) > 5:
                    break
                total = total + pl.load(x, [j, 0], [1, 32])
            if pl.read(marks, [i]) == 3:
                break
        pl.store(total + pl.cast(last, pl.FP32), [0, 0], out)


@pl.jit
def asked(x: Rows, marks: Marks, out: pl.InOut[Row]):
    """A condition that would read past the end, were it asked again behind the `break`."""
    with pl.at(level=pl.Level.CORE_GROUP):
        total, i = pl.tile.full([1, 32], pl.FP32, 0.0), 0
        while pl.read(marks, [i]) < 9:
            total = total + pl.load(x, [i, 0], [1, 32])
            i = i + 1
            if i == M:
                break
        pl.store(total, [0, 0], out)


@pl.jit
def ragged(x: Rows, marks: Marks, out: pl.InOut[Rows]):
    """Tiles of which the run knows how much is valid, carried out of a loop that is left."""
    for r in pl.parallel(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [4, 32])
            for i in pl.range(5):
                t = t * 2.0
                if pl.read(marks, [r]) == i:
                    t = t + 1.0
                    break
            pl.store(t, [r, 0], out)


@pl.jit.incore
def found(x: Rows, marks: Marks, out: pl.InOut[Row]):
    for i in pl.range(M):
        for j in pl.range(i):
            if pl.read(marks, [j]) + pl.read(marks, [i]) > 9:
                out = pl.store(pl.load(x, [i, 0], [1, 32]) - pl.load(x, [j, 0], [1, 32]), [0, 0], out)
                return out
        if pl.read(marks, [i]) > 1:
            if pl.read(marks, [i]) == 7:
                return out
            out = pl.store(pl.load(x, [i, 0], [1, 32]), [0, 0], out)
    out = pl.store(pl.load(x, [0, 0], [1, 32]) * 2.0, [0, 0], out)
    return out


@pl.jit
def returning(x: Rows, marks: Marks, out: pl.InOut[Row]):
    """A kernel that returns from loops in loops and from branches in branches, called in a loop that goes on."""
    for _ in pl.range(2):
        out = found(x, marks, out)
    return out


KERNELS = {
    "searched": searched,
    "skipping": skipping,
    "downwards": downwards,
    "asked": asked,
    "ragged": ragged,
    "returning": returning,
}
MARKS = ([1, 4, 2, 0, 3, 6, 1], [0] * 7, [9, 1, 2], [4, 4, 4, 4], [1, 3, 5, 2, 7, 8, 1], [1], [2, 8, 7, 7, 3])


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("marks", MARKS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_it_reads_back_and_computes_the_same(name: str, marks: list[int], platform: str) -> None:
    kernel = KERNELS[name]
    x = np.random.default_rng(0).integers(-8, 9, (len(marks), 32)).astype(np.float32)

    def made() -> list[Any]:
        return [x, np.array(marks, np.int32), np.zeros(x.shape if name == "ragged" else (1, 32), np.float32)]

    wanted, got = made(), made()
    text = kernel.compile(*got).as_pto()
    kernel(*wanted)
    entry = kernel.specialize(*got).program.entries[-1]
    run_exported(text, entry.name, got, extents_of(entry, got), platform)
    np.testing.assert_array_equal(got[2], wanted[2])


def test_other_tensors_returned_from_inside_are_refused() -> None:
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def either(
            self,
            a: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
            b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
            n: pl.Scalar[pl.INDEX],
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            if n > 3:
                return a
            return b

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            a: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
            b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
            n: pl.Scalar[pl.INDEX],
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            c = self.either(a, b, n)
            return c

    with pytest.raises(pto.NoPtoError, match="`either` returns other values from inside than at its end"):
        as_pto(P)


def test_what_would_be_written_too_often_is_refused() -> None:
    @pl.jit
    def twice_each(x: Rows, marks: Marks, out: pl.InOut[Row]):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.tile.full([1, 32], pl.FP32, 0.0)
            for i in pl.range(M):
                n = pl.read(marks, [i])
                if n > 0:
                    total = total + 1.0
                    if n == 9:
                        break
                if n > 1:
                    total = total + 1.0
                    if n == 10:
                        break
                if n > 2:
                    total = total + 1.0
                    if n == 11:
                        break
                if n > 3:
                    total = total + 1.0
                    if n == 12:
                        break
                if n > 4:
                    total = total + 1.0
                    if n == 13:
                        break
            pl.store(total, [0, 0], out)

    x = np.zeros((7, 32), np.float32)
    with pytest.raises(pto.NoPtoError, match="more than 16 times"):
        twice_each.compile(x, np.zeros(7, np.int32), x[:1].copy()).as_pto()


@pl.program
class Settled:
    """A kernel whose branches its callers settle."""

    @pl.function(type=pl.FunctionType.InCore)
    def scaled(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]], twice: pl.Scalar[pl.BOOL]
    ):
        t = pl.load(x, [0, 0], [16, 64])
        if twice:
            t = t * 2.0
        pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        other: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        out = self.scaled(x, out, True)
        other = self.scaled(x, other, False)
        return out, other


def test_a_branch_that_is_settled_is_the_side_that_is_taken() -> None:
    text = as_pto(Settled)
    assert text.count("scf.if") == 1  # the first block does all
    x, out, other = (np.ones((16, 64), np.float32) for _ in range(3))
    run_exported(text, "main", [x, out, other], {})
    np.testing.assert_array_equal(out, 2 * x)
    np.testing.assert_array_equal(other, x)


@pl.program
class Idle:
    """A kernel that its caller lets make no turn."""

    @pl.function(type=pl.FunctionType.InCore)
    def repeated(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        t = pl.load(x, [0, 0], [16, 64])
        for _ in pl.range(0, n, 2):
            t = t * 2.0
        pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        out = self.repeated(x, out, 0)
        return out


def test_a_loop_that_makes_no_turn_is_what_it_starts_with() -> None:
    text = as_pto(Idle)
    x, out = (np.ones((16, 64), np.float32) * n for n in (3, 0))
    assert "scf.for" not in text
    run_exported(text, "main", [x, out], {})
    np.testing.assert_array_equal(out, x)


@pl.jit.opaque
def copied(p: pl.Tensor, q: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, p.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            q = pl.store(pl.load(p, [i, 0], [4, 8]), [i, 0], q)
    return q


def test_room_that_nothing_uses_is_called_so() -> None:
    @pl.jit
    def empty(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        half = copied(x, pl.create_tensor(x.shape, dtype=x.dtype))
        return copied(half, out)

    given = [np.zeros((0, 8), np.float32), np.zeros((0, 8), np.float32)]
    text = empty.compile(*given).as_pto()
    assert "(%_x: !pto.ptr<f32, gm>, %_out: !pto.ptr<f32, gm>, %_room: !pto.ptr<f32, gm>)" in text
    run_exported(text, "empty", given, {})
