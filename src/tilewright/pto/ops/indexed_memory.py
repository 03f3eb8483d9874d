"""Global memory by index: elements, or rows, of a view brought to a tile, or put there.

`coalesce` says which. Where it is not said, indices in a line are those of rows, and as many as a tile has elements are
those of its elements.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import reduce

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT64, UINT32, DataType
from tilewright.pto.asked_words import GATHERING, SCATTERING
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, cell_view, check_covers, corresponding, window
from tilewright.pto.machine.values import Tile, View
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import declare
from tilewright.pto.operand_laws import combined, of_memory
from tilewright.pto.ops.gathers import each, is_empty
from tilewright.pto.text.form import tile
from tilewright.records import record


@record
class Places:
    """Which element of global memory each element of a tile belongs to."""

    m: Machine
    view: View
    indices: Expr
    mode: str
    """What becomes of indices outside."""
    lies_down: bool | None
    """Whether the indices of rows lie in a row; None where there is an index for each element."""

    @property
    def count(self) -> Expr:
        """How many elements, or rows, there are to name."""
        extents = self.view.shape if self.lies_down is None else self.view.shape[:-1]
        return reduce(lambda a, b: self.m.b.scalar("mul", a, b), extents, self.m.b.index(1))

    @contextmanager
    def named(self, row: Expr, column: Expr, skips: str) -> Generator[Expr]:
        """Give the number of an element among those of the view, only where there is one if the mode `skips`."""
        b, at = self.m.b, {None: (row, column), True: (0, row), False: (row, 0)}[self.lies_down]
        place = self._settled(b.get(self.indices, *(b.index(each) for each in at)))
        with b.when(b.scalar("lt", place, self.count)) if self.mode == skips else nullcontext():
            if self.lies_down is not None:
                place = b.scalar("add", b.scalar("mul", place, self.view.strides[-2]), column)
            yield place

    def _settled(self, index: Expr) -> Expr:
        """Return what an index names: the last for one that is too large, or the remainder, where a mode says so.

        Indices count from zero on: those with a sign are read without it, where a mode looks at them.
        """
        b = self.m.b
        if self.mode in ("", "undefined"):
            return b.index(index)
        place = b.index(b.cast(b.cast(index, UINT32), INT64))
        if self.mode == "clamp":
            return b.least(place, b.add(self.count, -1))
        return b.scalar("mod", place, self.count) if self.mode == "wrap" else place


def _places(m: Machine, op: Op, view: View, indices: Tile, data: Tile, word: str) -> Places:
    """Return where the elements of a tile belong."""
    mode = word_of(op.attributes.get(word, "undefined")).lower()
    if not _is_by_row(op, view, indices, data):
        return Places(m, view, corresponding(m, indices, data), mode, None)
    lies_down = indices.limits[0] == 1
    rows, one = data.valid[0], m.b.index(1)
    region, limit = ((one, rows), (1, data.limits[0])) if lies_down else ((rows, one), (data.limits[0], 1))
    check_covers(m, indices, region, limit)
    return Places(m, view, window(m, indices, region), mode, lies_down)


def _is_by_row(op: Op, view: View, indices: Tile, data: Tile) -> bool:
    said = word_of(op.attributes.get("coalesce", "")).lower()
    return said == "row" or (not said and len(view.shape) > 1 and 1 in indices.limits and 1 not in data.limits)


@declare(
    "pto.mgather",
    tile("yz", "z"),
    law=of_memory,
    words=GATHERING,
    example="(%x: w1x512xf32, %i: t8x64xi32 = 0..511, %out: t8x64xf32); {op} ins(%x, %i) outs(%out)",
    means="x.ravel()[i]",
)
def _gather_memory(m: Machine, op: Op, target: Tile, view: View, indices: Tile) -> None:
    """Elements of global memory at indices, or rows; `gatherOob` says what indices outside stand for."""
    if not m.placed(indices, target) or is_empty(target):
        return
    places, made = _places(m, op, view, indices, target, "gatherOob"), window(m, target, target.valid)
    with each(m, target.valid) as at:
        if places.mode == "zero":
            m.b.set(made, constant(0, target.type.element.dtype), *at)
        with places.named(*at, "zero") as place:
            m.b.set(made, m.b.get(_element(m, view, place), m.b.index(0)), *at)


@declare(
    "pto.mscatter",
    tile("zz", "y"),
    law=combined,
    words=SCATTERING,
    example="(%x: t8x64xf32, %i: t8x64xi32 = arange, %out: w1x512xf32 = zeros); {op} ins(%x, %i) outs(%out)",
    means="out.ravel()[i.ravel()] = x.ravel()",
)
def _scatter_memory(m: Machine, op: Op, view: View, source: Tile, indices: Tile) -> None:
    """Elements, or rows, to global memory at indices, or combined with what is there, as `scatterAtomicOp` says.

    `scatterOob` says what becomes of indices outside.
    """
    if not m.placed(source, indices) or is_empty(source):
        return
    way = word_of(op.attributes.get("scatterAtomicOp", op.attributes.get("atomicType", ""))).lower()
    combine = f"atomic_{way.removeprefix('atomic_')}" if way.removeprefix("atomic_") not in ("", "none") else ""
    places, elements = _places(m, op, view, indices, source, "scatterOob"), window(m, source, source.valid)
    every = reduce(lambda a, b: m.b.scalar("mul", a, b), view.shape, m.b.index(1))
    flat_view = bytes_view(m, view.pointer, (every,), (1,))
    with each(m, source.valid) as at, places.named(*at, "skip") as place:
        value = m.b.get(elements, *at)
        if combine:
            m.b.tile(combine, flat_view, _single(m, place, INT64), _single(m, value, source.type.element.dtype))
        else:
            m.b.set(_element(m, view, place), value, m.b.index(0))


def _single(m: Machine, number: Expr, dtype: DataType) -> Expr:
    """Return a tile of one number."""
    return m.b.tile("full", (1, 1), dtype, m.b.cast(number, dtype))


def _element(m: Machine, view: View, place: Expr) -> Expr:
    """Return an element of global memory by its number."""
    step = m.b.mul(place, view.pointer.element.nbytes)
    return cell_view(m, replace(view.pointer, offset=m.b.add(view.pointer.offset, step)))
