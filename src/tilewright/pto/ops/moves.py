"""Moves: tiles in and out of global memory, and from tile to tile.

A window of any rank meets a tile with its last axis as columns and all others, in order, as rows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod

from tilewright.core.enums import AtomicType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.errors import PtoTypeMismatchError, UnsupportedFeatureError
from tilewright.pto.machine.build import known
from tilewright.pto.machine.elements import cast, largest_finite
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination
from tilewright.pto.machine.tiles import Extents, bytes_view, check_reach, read, read_all, replaced, tile_type, write
from tilewright.pto.machine.values import Number, Tile, View
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.rules import element_type, equal
from tilewright.pto.text.form import Form, Layout, Typing, Word, tile
from tilewright.pto.types import Scalar, Space, TileBuf

Axis = tuple[Expr, Expr]
"""The extent and the stride of one axis of a window."""


def _axes(m: Machine, view: View) -> tuple[list[Axis], Axis]:
    """Return the axes that make rows, those of extent one left out, and the one that makes columns."""
    *rows, columns = zip(view.shape, view.strides, strict=True)
    return [axis for axis in rows if known(axis[0]) != 1], columns


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


def _keeps_width(op: Op) -> None:
    """Refuse a load or store between elements of different widths; an accumulator converts as it is stored."""
    source, target = op.ins[0].type, op.outs[0].type
    if isinstance(source, TileBuf) and source.space is Space.ACC:
        return
    a, b = element_type(source), element_type(target)
    if a.bits != b.bits:
        raise PtoTypeMismatchError(f"`{op.name}` moves {a} to {b}", help="convert with `pto.tcvt`")


@declare("pto.tload", tile("y", "z"), rule=_keeps_width)
def _load(m: Machine, op: Op) -> None:
    target = destination(m, op)
    view = _seen_as(m.get(op.ins[0], View), target.type.element)
    rows, columns = _axes(m, view)
    if target.type.pad and (len(rows) > 1 or _is_fractal(view, target.type)):
        write(m, target, _blank(m, target))
    if _is_fractal(view, target.type):
        _load_fractal(m, view, target)
        return
    if len(rows) > 1:
        _load_stack(m, view, target, rows, columns)
        return
    row = rows[0] if rows else (m.b.index(1), m.b.index(0))
    region = m.b.least(row[0], target.valid[0]), m.b.least(columns[0], target.valid[1])
    source = bytes_view(m, view.pointer, region, (row[1], columns[1]))
    shape = tuple(n if (n := known(r)) is not None else most for r, most in zip(region, target.limits, strict=True))
    pads = target.type.pad and region != tuple(m.b.index(n) for n in target.limits)
    if not all(shape):
        return
    value = m.b.op(
        "tile.load", tensor=source, offsets=(0, 0), shapes=shape,
        valid_shape=region if None in map(known, region) else None,
    )  # fmt: skip
    write(m, target, _padded(m, value, target) if pads else value, covers=None if pads else region)


def _seen_as(view: View, element: Scalar) -> View:
    """Return a window whose bits are read as another type of the same width."""
    return replace(view, pointer=replace(view.pointer, element=element))


def _dims(tile: Tile) -> tuple[int, int]:
    return tile.type.rows, tile.type.cols


def pad_of(type_: TileBuf) -> float:
    """Return what fills a tile outside its data; the largest and smallest numbers are finite ones."""
    dtype = type_.element.dtype
    low, high = (-largest_finite(dtype), largest_finite(dtype)) if dtype.is_float() else dtype.limits
    return {2: high, 3: low}.get(type_.pad, 0)


def _padded(m: Machine, value: Expr, target: Tile) -> Expr:
    """Return a tile of a destination's shape: the valid part of a value, and its pad everywhere else."""
    return m.b.op("tile.assemble", target=_blank(m, target), source=value, offset=(0, 0))


def _blank(m: Machine, target: Tile) -> Expr:
    """Return a tile of a destination's shape that is all pad."""
    dtype = target.type.element.dtype
    return m.b.op("tile.full", shape=target.limits, dtype=dtype, value=constant(pad_of(target.type), dtype))


def _load_fractal(m: Machine, view: View, target: Tile) -> None:
    """Load a boxed window: at once where all of it is known and valid, else one column of boxes after the other."""
    sizes = _whole_boxes(view, target)
    if sizes is not None:
        loaded = m.b.op("tile.load", tensor=_boxed_window(m, view), offsets=(0, 0, 0), shapes=sizes)
        write(m, target, m.b.op("tile.reshape", x=loaded, shape=(sizes[0], sizes[1] * sizes[2])))
        return
    if target.slot is not None:
        m.demote(target.slot)
        return
    shape = target.type.rows, known(view.shape[4])
    with _box_columns(m, view, target) as (part, start, region):
        loaded = m.b.op("tile.load", tensor=part, offsets=(0, 0), shapes=shape, valid_shape=region)
        write(m, target, loaded, (m.b.index(0), start))


def _boxed_window(m: Machine, view: View) -> Expr:
    """Return a boxed window as rows, boxes across and columns inside a box."""
    outer, _, rows, _, inner = zip(view.shape, view.strides, strict=True)
    return bytes_view(m, view.pointer, (rows[0], outer[0], inner[0]), (rows[1], outer[1], inner[1]))


def _whole_boxes(view: View, tile: Tile) -> tuple[int, int, int] | None:
    """Return the rows, boxes across and columns of a box of a window that is just a tile's valid part, else None."""
    outer, rows, inner = (known(view.shape[axis]) for axis in (0, 2, 4))
    if outer is None or rows is None or inner is None:
        return None
    is_all = (rows, outer * inner) == tuple(known(n) for n in tile.valid)
    return (rows, outer, inner) if is_all else None


@contextmanager
def _box_columns(m: Machine, view: View, tile: Tile) -> Generator[tuple[Expr, Expr, Extents]]:
    """Write a loop over the boxes across around what is written inside.

    Yield the matrix of each turn, the column of the tile it starts at, and how much of it there is.
    """
    outer, _, rows, _, inner = zip(view.shape, view.strides, strict=True)
    with m.b.loop(0, m.b.least(outer[0], tile.valid[1])) as index:
        step = m.b.mul(m.b.scalar("mul", index, outer[1]), view.pointer.element.nbytes)
        start = m.b.scalar("mul", index, inner[0])
        region = m.b.least(rows[0], tile.valid[0]), m.b.least(inner[0], m.b.scalar("sub", tile.valid[1], start))
        pointer = replaced(view.pointer, m.b.add(view.pointer.offset, step))
        with m.b.when(m.b.scalar("lt", start, tile.valid[1])):
            yield bytes_view(m, pointer, region, (rows[1], inner[1])), start, region


def _load_stack(m: Machine, view: View, target: Tile, rows: list[Axis], columns: Axis) -> None:
    """Load a window of more than two axes: at once where its extents are known, else one matrix after the other."""
    extents = [known(axis[0]) for axis in (*rows, columns)]
    sizes = [n for n in extents if n is not None]
    whole = (prod(sizes[:-1]), sizes[-1]) if sizes else (0, 0)
    wanted = tuple(known(extent) for extent in target.valid)
    if len(sizes) == len(extents) and wanted == whole:
        axes = (*rows, columns)
        source = bytes_view(m, view.pointer, tuple(a[0] for a in axes), tuple(a[1] for a in axes))
        loaded = m.b.op("tile.load", tensor=source, offsets=(0,) * len(axes), shapes=tuple(sizes))
        write(m, target, m.b.op("tile.reshape", x=loaded, shape=whole))
        return
    if target.slot is not None:
        m.demote(target.slot)
        return
    with _matrices(m, view, target, rows, columns) as (part, start, region):
        loaded = m.b.op("tile.load", tensor=part, offsets=(0, 0), shapes=target.limits, valid_shape=region)
        write(m, target, loaded, (start, m.b.index(0)))


@contextmanager
def _matrices(
    m: Machine, view: View, tile: Tile, rows: list[Axis], columns: Axis
) -> Generator[tuple[Expr, Expr, Extents]]:
    """Write loops over all axes but the last two around what is written inside.

    Yield the matrix of each turn, the row of the tile it starts at, and how much of it there is. What lies behind the
    tile's last row is not looked at, however much a window says there is.
    """
    height = tile.valid[0]
    *outer, inner = [(m.b.least(extent, height), stride) for extent, stride in rows]
    pointer, start = view.pointer, m.b.index(0)
    with ExitStack() as loops:
        for extent, stride in outer:
            left = m.b.scalar("max", m.b.scalar("sub", height, m.b.scalar("mul", start, extent)), m.b.index(0))
            index = loops.enter_context(m.b.loop(0, m.b.least(extent, left)))
            step = m.b.mul(m.b.scalar("mul", index, stride), view.pointer.element.nbytes)
            pointer = replaced(pointer, m.b.add(pointer.offset, step))
            start = m.b.add(m.b.scalar("mul", start, extent), index)
        start = m.b.scalar("mul", start, inner[0])
        loops.enter_context(m.b.when(m.b.scalar("lt", start, height)))
        region = m.b.least(inner[0], m.b.scalar("sub", height, start)), m.b.least(columns[0], tile.valid[1])
        yield bytes_view(m, pointer, region, (inner[1], columns[1])), start, region


@declare("pto.tstore", tile("zs?", "y"), rule=_keeps_width)
def _store(m: Machine, op: Op) -> None:
    _refuse_scaling(op)
    source, view = m.get(op.ins[0], Tile), m.get(op.outs[0], View)
    if _atomic(op) is AtomicType.None_:
        _refuse_overlap(view)
    if source.type.space is not Space.ACC:  # which converts
        view = _seen_as(view, source.type.element)
    if _is_fractal(view, source.type):
        _store_fractal(m, op, source, view)
        return
    rows, columns = _axes(m, view)
    if len(rows) > 1:
        _store_stack(m, op, source, view, rows, columns)
        return
    row = rows[0] if rows else (m.b.index(1), m.b.index(0))
    region = m.b.least(row[0], source.valid[0]), m.b.least(columns[0], source.valid[1])
    if 0 in map(known, region):
        return
    value = _outgoing(m, op, read(m, source, region), view)
    target = bytes_view(m, view.pointer, region, (row[1], columns[1]))
    m.b.do("tile.store", tile=value, offsets=(0, 0), output_tensor=target, atomic=_atomic(op))


def _refuse_overlap(view: View) -> None:
    """Refuse a window whose strides let elements lie on each other: nobody knows which of them is written last."""
    axes = [(known(extent), known(stride)) for extent, stride in zip(view.shape, view.strides, strict=True)]
    sizes = sorted((stride, extent) for extent, stride in axes if extent is not None and stride is not None)
    if len(sizes) < len(axes) or not 0 < prod(extent for _, extent in sizes) <= MOST_ELEMENTS or not _meet(sizes):
        return
    strides = ", ".join(str(stride) for _, stride in axes)
    raise UnsupportedFeatureError(
        f"with strides {strides}, elements of this window lie on each other",
        help="let each stride be as large as what lies inside it, or add with atomicType",
    )


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


def _refuse_scaling(op: Op) -> None:
    """Refuse what would scale elements on their way out of an accumulator."""
    if len(op.ins) > 1:
        raise UnsupportedFeatureError(
            f"`{op.name}` with a scale for its elements cannot be run here",
            help="multiply with pto.tmuls or pto.tcolexpandmul, then convert with pto.tcvt",
        )


def _atomic(op: Op) -> AtomicType:
    is_sum = getattr(op.attributes.get("atomicType"), "word", "") == "atomic_add"
    return AtomicType.Add if is_sum else AtomicType.None_


def _outgoing(m: Machine, op: Op, value: Expr, view: View) -> Expr:
    """Return a value as the window's elements; what leaves an accumulator may lose its negative part on the way."""
    if getattr(op.attributes.get("reluPreMode"), "word", "").upper() in ("NORMAL_RELU", "NORMALRELU"):
        value = m.b.op("tile.relu", x=value)
    return cast(m, value, view.pointer.element.dtype)


def _store_fractal(m: Machine, op: Op, source: Tile, view: View) -> None:
    sizes = _whole_boxes(view, source)
    if sizes is not None:
        value = m.b.op("tile.reshape", x=_outgoing(m, op, read_all(m, source), view), shape=sizes)
        target = _boxed_window(m, view)
        m.b.do("tile.store", tile=value, offsets=(0, 0, 0), output_tensor=target, atomic=_atomic(op))
        return
    if source.slot is not None:
        m.demote(source.slot)
        return
    with _box_columns(m, view, source) as (part, start, region):
        value = _outgoing(m, op, read(m, source, region, at=(m.b.index(0), start)), view)
        m.b.do("tile.store", tile=value, offsets=(0, 0), output_tensor=part, atomic=_atomic(op))


def _store_stack(m: Machine, op: Op, source: Tile, view: View, rows: list[Axis], columns: Axis) -> None:
    extents = [known(axis[0]) for axis in (*rows, columns)]
    sizes = [n for n in extents if n is not None]
    whole = (prod(sizes[:-1]), sizes[-1]) if sizes else (0, 0)
    if len(sizes) == len(extents) and tuple(known(extent) for extent in source.valid) == whole:
        axes = (*rows, columns)
        target = bytes_view(m, view.pointer, tuple(a[0] for a in axes), tuple(a[1] for a in axes))
        value = m.b.op("tile.reshape", x=_outgoing(m, op, read_all(m, source), view), shape=tuple(sizes))
        m.b.do("tile.store", tile=value, offsets=(0,) * len(axes), output_tensor=target, atomic=_atomic(op))
        return
    if source.slot is not None:
        m.demote(source.slot)
        return
    with _matrices(m, view, source, rows, columns) as (part, start, region):
        value = _outgoing(m, op, read(m, source, region, at=(start, m.b.index(0))), view)
        m.b.do("tile.store", tile=value, offsets=(0, 0), output_tensor=part, atomic=_atomic(op))


@declare("pto.tmov", tile("zx?", "z"))
def _move(m: Machine, op: Op) -> None:
    """A copy of what both hold, converted where it leaves an accumulator."""
    _refuse_scaling(op)
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    region = m.b.least(source.valid[0], target.valid[0]), m.b.least(source.valid[1], target.valid[1])
    value = read(m, source, region, target.limits)
    if getattr(op.attributes.get("reluPreMode"), "word", "").upper() in ("NORMAL_RELU", "NORMALRELU"):
        value = m.b.op("tile.relu", x=value)
    write(m, target, cast(m, value, target.type.element.dtype), covers=region)


@declare("pto.textract", tile("zii", "z"))
def _extract(m: Machine, op: Op) -> None:
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    at = m.index(op.ins[1]), m.index(op.ins[2])
    check_reach(m, source, target.valid, at)
    value = read(m, source, target.valid, target.limits, at)
    write(m, target, cast(m, value, target.type.element.dtype))


@declare("pto.tinsert", tile("zii", "z"))
def _insert(m: Machine, op: Op) -> None:
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    at = m.index(op.ins[1]), m.index(op.ins[2])
    check_reach(m, target, source.valid, at)
    write(m, target, cast(m, read_all(m, source), target.type.element.dtype), at)


@declare("pto.tconcat", tile("tt"))
def _concat(m: Machine, op: Op) -> None:
    first, second, target = m.get(op.ins[0], Tile), m.get(op.ins[1], Tile), destination(m, op)
    left, right = read_all(m, first), read_all(m, second)
    if all(known(n) is not None for n in (*first.valid, *second.valid)):
        write(m, target, m.b.op("tile.concat", a=left, b=right))
        return
    write(m, target, left)
    write(m, target, right, (m.b.index(0), first.valid[1]))


@declare("pto.ttrans", tile("tz?"))
def _transpose(m: Machine, op: Op) -> None:
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    write(m, target, m.b.op("tile.transpose", x=read_all(m, source), axis1=0, axis2=1))


@declare("pto.tfillpad tfillpad_inplace tfillpad_expand", tile("t"))
def _fill(m: Machine, op: Op) -> None:
    """A copy of the source's valid part, and the destination's pad everywhere else."""
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    value = read_all(m, source, target.limits)
    _write_valid(m, target, value if tile_type(value).valid == target.limits else _padded(m, value, target))


def _write_valid(m: Machine, target: Tile, value: Expr) -> None:
    """Write the destination's valid part of a whole tile."""
    assert isinstance(value.type, TileType)
    extents = tuple(known(n) for n in target.valid)
    if extents == value.type.shape:
        write(m, target, value)
    elif None not in extents:
        write(m, target, m.b.op("tile.slice", x=value, shape=target.valid, offset=(0, 0)))
    else:
        rows, cols = target.valid
        write(m, target, m.b.op("tile.set_validshape", x=value, valid_rows=rows, valid_cols=cols))


def _gets_element(op: Op) -> None:
    equal(op, "result", op.results[0].type, element_type(op.ins[0].type))


@declare(
    "pto.tgetval",
    Form("", "s", Typing.RESULT, words={"ins": Word(Layout.TYPED, "ti", required=True)}),
    rule=_gets_element,
)
def _get(m: Machine, op: Op) -> Number:
    tile, index = m.get(op.ins[0], Tile), m.index(op.ins[1])
    if tile.slot is not None:
        m.demote(tile.slot)
        return Number(constant(0, tile.type.element.dtype))
    return Number(m.b.op("tensor.read", x=flat(m, tile), indices=(index,)))


@declare("pto.tsetval", tile("is"))
def _set(m: Machine, op: Op) -> None:
    tile, index = destination(m, op), m.index(op.ins[0])
    if tile.slot is not None:
        m.demote(tile.slot)
        return
    m.b.do("tensor.write", x=flat(m, tile), indices=(index,), value=m.expr(op.ins[1]))


def flat(m: Machine, tile: Tile) -> Expr:
    """Return the elements of a tile in the order they lie in memory."""
    return bytes_view(m, tile.place, (m.b.index(tile.type.rows * tile.type.cols),), (m.b.index(1),))
