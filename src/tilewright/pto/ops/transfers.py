"""Transfers: tiles in and out of global memory.

A window of any rank meets a tile with its last axis as columns and all others, in order, as rows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from math import prod

from tilewright.core.enums import AtomicType
from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.asked_words import STORING
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.laws import loaded, stored
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import Extents, bytes_view, read, write
from tilewright.pto.machine.values import Pointer, Tile, View
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, declare, element_type
from tilewright.pto.ops.accumulator_stores import SCALE, brought, is_there, scaled_by_words
from tilewright.pto.ops.moves import blank, padded
from tilewright.pto.text.form import tile
from tilewright.pto.types import Scalar, Space, TileBuf
from tilewright.records import record

Axis = tuple[Expr, Expr]
"""The extent and the stride of one axis of a window."""


@record
class Piece:
    """A part of a window that meets a part of a tile."""

    pointer: Pointer
    axes: tuple[Axis, ...]
    region: Extents
    """The rows and columns of the tile that it meets."""
    at: Extents | None = None
    """Where in the tile they begin."""
    limit: tuple[int, int] = (0, 0)
    """The most that they can be."""

    def view(self, m: Machine) -> Expr:
        """Return the elements of the window."""
        return bytes_view(m, self.pointer, tuple(a[0] for a in self.axes), tuple(a[1] for a in self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """How much of it there is at most, along its own axes."""
        if len(self.axes) > 2:
            return tuple(known(extent) or 0 for extent, _ in self.axes)
        return tuple(
            most if known(n) is None else known(n) or 0 for n, most in zip(self.region, self.limit, strict=True)
        )


@contextmanager
def _pieces(m: Machine, view: View, tile: Tile) -> Generator[Piece | None]:
    """Write loops over the pieces of a window around what is written inside; None where the tile needs bytes first.

    Where all extents are known and valid, everything is one piece.
    """
    fractal = _is_fractal(view, tile.type)
    rows, columns = _axes(view)
    if fractal:
        outer, _, height, _, inner = zip(view.shape, view.strides, strict=True)
        axes, sizes = (height, outer, inner), (known(height[0]), _product(outer, inner))
    else:
        axes, sizes = (*rows, columns), (_product(*rows), known(columns[0]))
    if not fractal and len(rows) < 2:
        row = rows[0] if rows else (m.b.index(1), m.b.index(0))
        region = m.b.least(row[0], tile.valid[0]), m.b.least(columns[0], tile.valid[1])
        yield Piece(view.pointer, ((region[0], row[1]), (region[1], columns[1])), region, limit=tile.limits)
    elif None not in sizes and sizes == tuple(known(extent) for extent in tile.valid):
        yield Piece(view.pointer, axes, tile.valid)
    elif not m.placed(tile):
        yield None
    else:
        with _box_columns(m, view, tile) if fractal else _matrices(m, view, tile, rows, columns) as piece:
            yield piece


def _axes(view: View) -> tuple[list[Axis], Axis]:
    """Return the axes that make rows, those of extent one left out, and the one that makes columns."""
    *rows, columns = zip(view.shape, view.strides, strict=True)
    return [axis for axis in rows if known(axis[0]) != 1], columns


def _product(*axes: Axis) -> int | None:
    """Return how many elements lie along axes, None where only the running program knows."""
    extents = [known(extent) for extent, _ in axes]
    return None if None in extents else prod(n or 0 for n in extents)


def _is_fractal(view: View, type_: TileBuf) -> bool:
    """Return whether a window `[C1, 1, R, 1, C0]` holds a tile in boxes of 32-byte rows."""
    return (
        len(view.shape) == 5
        and known(view.shape[1]) == 1
        and known(view.shape[3]) == 1
        and known(view.shape[0]) != 1
        and type_.slayout == "row_major"
        and type_.blayout == "col_major"
        and (known(view.shape[4]) or 0) * type_.element.nbytes == 32
    )


@contextmanager
def _box_columns(m: Machine, view: View, tile: Tile) -> Generator[Piece]:
    """Write a loop over the boxes across around what is written inside; yield the matrix of each turn."""
    outer, _, rows, _, inner = zip(view.shape, view.strides, strict=True)
    with m.b.loop(0, m.b.least(outer[0], tile.valid[1])) as index:
        step = m.b.mul(m.b.scalar("mul", index, outer[1]), view.pointer.element.nbytes)
        start = m.b.scalar("mul", index, inner[0])
        region = m.b.least(rows[0], tile.valid[0]), m.b.least(inner[0], m.b.scalar("sub", tile.valid[1], start))
        pointer = replace(view.pointer, offset=m.b.add(view.pointer.offset, step))
        axes = (region[0], rows[1]), (region[1], inner[1])
        with m.b.when(m.b.scalar("lt", start, tile.valid[1])):
            yield Piece(pointer, axes, region, (m.b.index(0), start), (tile.type.rows, known(inner[0]) or 0))


@contextmanager
def _matrices(m: Machine, view: View, tile: Tile, rows: list[Axis], columns: Axis) -> Generator[Piece]:
    """Write loops over all axes but the last two around what is written inside; yield the matrix of each turn.

    What lies behind the tile's last row is not looked at, however much a window says there is.
    """
    height = tile.valid[0]
    *outer, inner = [(m.b.least(extent, height), stride) for extent, stride in rows]
    pointer, start = view.pointer, m.b.index(0)
    with ExitStack() as loops:
        for extent, stride in outer:
            left = m.b.scalar("max", m.b.scalar("sub", height, m.b.scalar("mul", start, extent)), m.b.index(0))
            index = loops.enter_context(m.b.loop(0, m.b.least(extent, left)))
            step = m.b.mul(m.b.scalar("mul", index, stride), view.pointer.element.nbytes)
            pointer = replace(pointer, offset=m.b.add(pointer.offset, step))
            start = m.b.add(m.b.scalar("mul", start, extent), index)
        start = m.b.scalar("mul", start, inner[0])
        loops.enter_context(m.b.when(m.b.scalar("lt", start, height)))
        region = m.b.least(inner[0], m.b.scalar("sub", height, start)), m.b.least(columns[0], tile.valid[1])
        axes = (region[0], inner[1]), (region[1], columns[1])
        yield Piece(pointer, axes, region, (start, m.b.index(0)), tile.limits)


def _keeps_width(op: Op, _: Constants) -> None:
    """Refuse a load or store between elements of different widths; an accumulator converts as it is stored."""
    source, target = op.ins[0].type, op.outs[0].type
    a, b = element_type(source), element_type(target)
    if isinstance(source, TileBuf) and source.space is Space.ACC:
        if b.is_packed:
            raise PtoTypeMismatchError(f"`{op.name}` makes no {b} of {a}", help="store it, and convert with `pto.tcvt`")
        return
    if a.bits != b.bits:
        raise PtoTypeMismatchError(f"`{op.name}` moves {a} to {b}", help="convert with `pto.tcvt`")
    _copies(op, a, b)


def _copies(op: Op, a: Scalar, b: Scalar) -> None:
    """Refuse what would have to know the bits of elements that are only copied: sums of them, and their pads."""
    tile = (op.outs[0] if op.name == "pto.tload" else op.ins[0]).of(TileBuf)
    packed = next((element for element in (a, b) if element.is_packed), None)
    if packed is not None and (tile.pad or "atomicType" in op.attributes):
        message = f"`{op.name}` copies {packed}, and neither pads nor adds it"
        raise PtoTypeMismatchError(message, help="leave `pad` and `atomicType` out")


@declare(
    "pto.tload",
    tile("y", "z"),
    rule=_keeps_width,
    law=loaded,
    knows_packed=True,
    example="(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = pto.alloc_tile : t8x64xf32; {op} ins(%x) outs(%t)"
    "; pto.tstore ins(%t) outs(%y)",
    means="y = x",
)
def _load(m: Machine, op: Op, target: Tile, source: View) -> None:
    """A window of global memory into a tile."""
    view = _seen_as(source, target.type.element)
    is_plain = len(_axes(view)[0]) < 2 and not _is_fractal(view, target.type)
    if target.type.pad and not is_plain:
        write(m, target, blank(m, target))
    with _pieces(m, view, target) as piece:
        if piece is None or 0 in piece.shape:
            return
        shown, region = piece.view(m), piece.region
        valid = region if None in map(known, region) else None
        value = m.b.load(shown, piece.shape, valid)
        pads = is_plain and target.type.pad and region != tuple(map(m.b.index, target.limits))
        if pads:
            value = padded(m, value, target)
        elif len(piece.axes) > 2:
            value = m.b.tile("reshape", value, tuple(known(n) or 0 for n in region))
        write(m, target, value, piece.at, covers=None if pads else region)


def _seen_as(view: View, element: Scalar) -> View:
    """Return a window whose bits are read as another type of the same width."""
    return replace(view, pointer=replace(view.pointer, element=element))


def _is_stored(op: Op, constants: Constants) -> None:
    _keeps_width(op, constants)
    scaled_by_words(op, constants)


@declare(
    "pto.tstore",
    tile("zs?", "y"),
    rule=_is_stored,
    law=stored,
    words=STORING,
    knows_packed=True,
    example="(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = pto.alloc_tile : t8x64xf32"
    "; pto.tload ins(%x) outs(%t); {op} ins(%t) outs(%y)",
    means="x",
)
@declare(
    "pto.tstore_fp",
    tile("zz", "y"),
    rule=_keeps_width,
    law=stored,
    words=STORING,
    example="(%a: acc16x32xf32, %fp: !pto.tile_buf<scaling, 1x32xui64> = 1086324736, %y: w16x32xi8 = zeros)"
    "; {op} ins(%a, %fp) outs(%y)",
    means=f"np.rint(a * {SCALE})",
)
def _store(m: Machine, op: Op, view: View, source: Tile, *factors: Expr | Tile) -> None:
    """A tile into a window of global memory, added to it where `atomicType` says so.

    An accumulator is converted, and perhaps scaled and rectified.
    """
    if not is_there(m, *factors):
        return
    is_sum = word_of(op.attributes.get("atomicType", "")).lower() == "atomic_add"
    if not is_sum:
        refuse_overlap(view.shape, view.strides, _APART)
        check_apart(m, view.shape, view.strides)
    if source.type.space is not Space.ACC:  # which converts
        view = _seen_as(view, source.type.element)
    with _pieces(m, view, source) as piece:
        if piece is None or 0 in piece.shape:
            return
        held = read(m, source, piece.region, at=piece.at)
        column = None if piece.at is None else piece.at[1]
        value = brought(m, op, held, view.pointer.element, factors, column)
        if len(piece.axes) > 2:
            value = m.b.tile("reshape", value, piece.shape)
        atomic = AtomicType.Add if is_sum else AtomicType.None_
        m.b.store(piece.view(m), value, atomic=atomic)


def refuse_overlap(shape: Sequence[Expr], strides: Sequence[Expr], help: str) -> None:
    """Refuse a window whose strides let elements lie on each other: nobody knows which of them is written last."""
    axes = [(known(extent), known(stride)) for extent, stride in zip(shape, strides, strict=True)]
    sizes = sorted((stride, extent) for extent, stride in axes if extent is not None and stride is not None)
    if len(sizes) < len(axes) or not 0 < prod(extent for _, extent in sizes) <= MOST_ELEMENTS or not _meet(sizes):
        return
    listed = ", ".join(str(stride) for _, stride in axes)
    raise UnsupportedFeatureError(f"with strides {listed}, elements of this window lie on each other", help=help)


def check_apart(m: Machine, shape: Sequence[Expr], strides: Sequence[Expr]) -> None:
    """Stop the program where elements of a window lie on each other, as only the running program knows.

    Of two axes one steps over all that lies along the other. More of them are left to the author.
    """
    axes = [pair for pair in zip(shape, strides, strict=True) if known(pair[0]) != 1]
    if len(axes) > 2 or all(known(number) is not None for pair in axes for number in pair):
        return
    one = m.b.index(1)
    fine = [m.b.scalar("le", extent, one) for extent, _ in axes]
    for (_, stride), (extent, step) in zip(axes, axes[::-1], strict=True):
        moves = m.b.scalar("ge", step, one)
        over = m.b.scalar("ge", stride, m.b.scalar("mul", extent, step)) if len(axes) == 2 else moves
        fine.append(m.b.scalar("and_", moves, over))
    condition = reduce(lambda a, b: m.b.scalar("or_", a, b), fine)
    m.b.act("system.device_assert", condition=condition, message="elements of this window lie on each other")


_APART = "let each stride be as large as what lies inside it, or add with atomicType"
MOST_ELEMENTS = 1 << 16
"""How many elements of a window are looked at one by one."""


def _meet(sizes: Sequence[tuple[int, int]]) -> bool:
    """Return whether some elements lie on each other, given strides and extents, the smallest stride first."""
    end = 1
    for stride, extent in sizes:
        if extent > 1 and stride < end:
            break
        end += stride * (extent - 1)
    else:
        return False  # each axis steps over all that lies inside it
    places = [0]
    for stride, extent in sizes:
        places = [first + stride * i for first in places for i in range(extent)]
    return len(set(places)) < len(places)
