"""Moves: elements from tile to tile, and one by one."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import finite_limits
from tilewright.ops.builder import known, tile_type
from tilewright.pto.asked_words import MOVING
from tilewright.pto.elements import A5
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.laws import filled
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import blank_of, bytes_view, check_reach, common, read, read_all, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, declare, element_type, gives
from tilewright.pto.operand_laws import read_in_vec
from tilewright.pto.ops.accumulator_stores import SCALE, brought, is_there, scaled_by_words
from tilewright.pto.paths import extracted, inserted, moved
from tilewright.pto.text.form import Form, Layout, Typing, Word, tile
from tilewright.pto.types import Space, TileBuf


@declare("pto.tmov", tile("zx?", "z"), rule=scaled_by_words, law=moved, means="x", words=MOVING)
@declare(
    "pto.tmov.fp",
    tile("zz", "z"),
    law=moved,
    words=MOVING,
    example="(%a: acc16x32xf32, %fp: !pto.tile_buf<scaling, 1x32xui64> = 1086324736, %out: t16x32xi8)"
    "; {op} ins(%a, %fp) outs(%out)",
    means=f"np.rint(a * {SCALE})",
)
def _move(m: Machine, op: Op, target: Tile, source: Tile, *factors: Expr | Tile) -> None:
    """A copy of what both hold, converted, and perhaps scaled and rectified, where it leaves an accumulator."""
    if not is_there(m, *factors):
        return
    mode = word_of(op.attributes.get("accToVecMode", "single_mode_vec0")).lower()
    if m.core is None or mode not in VECTOR_CORES:
        region = common(m, source, target)
        value = _as_bits(m, read(m, source, region, target.limits), source, target)
        write(m, target, brought(m, op, value, target.type.element, factors), covers=region)
        return
    rows, cols = target.limits
    for lane, at in VECTOR_CORES[mode].items():
        first = m.b.index(at[0] * rows), m.b.index(at[1] * cols)
        value = read(m, source, target.valid, target.limits, first)
        there = replace(target, pointer=m.memory.lane(target.place, m.b.index(lane))) if m.placed(target) else target
        write(m, there, brought(m, op, value, target.type.element, factors, first[1]), covers=target.valid)


def _as_bits(m: Machine, value: Expr, source: Tile, target: Tile) -> Expr:
    """Return integers as the floats whose bits they are, or the other way round, if nothing leaves an accumulator."""
    come, to = source.type.element, target.type.element
    is_copied = source.type.space is not Space.ACC and come.nbytes == to.nbytes and not (come.is_packed or to.is_packed)
    return m.b.tile("reinterpret_view", value, to.dtype) if is_copied and come.is_float != to.is_float else value


VECTOR_CORES = {
    "single_mode_vec0": {0: (0, 0)}, "single_mode_vec1": {1: (0, 0)}, "dual_mode_split_m": {0: (0, 0), 1: (1, 0)},
    "dual_mode_split_n": {0: (0, 0), 1: (0, 1)},
}  # fmt: skip
"""Which vector cores an accumulator goes to, and how many tiles down and across what each gets begins."""


@declare(
    "pto.textract_fp",
    tile("zzii", "z"),
    law=moved,
    example="(%a: acc16x32xf32, %fp: !pto.tile_buf<scaling, 1x32xui64> = 1086324736, "
    "%out: !pto.tile_buf<vec, 16x16xf16, blayout=col_major, slayout=row_major>)"
    "; {op} ins(%a, %fp, %c0, %c16) outs(%out)",
    means=f"(a * {SCALE})[:, 16:]",
)
def _extract_scaled(m: Machine, op: Op, target: Tile, source: Tile, factors: Tile, row: Expr, column: Expr) -> None:
    """The part of an accumulator from a position on, each column with its scale."""
    at = m.b.index(row), m.b.index(column)
    check_reach(m, source, target.valid, at)
    if is_there(m, factors):
        value = read(m, source, target.valid, target.limits, at)
        write(m, target, brought(m, op, value, target.type.element, (factors,), at[1]))


@declare(
    "pto.tinsert_fp",
    tile("zzii", "z"),
    law=moved,
    example="(%a: acc16x16xf32, %fp: !pto.tile_buf<scaling, 1x32xui64> = 1086324736, "
    "%out: !pto.tile_buf<vec, 16x16xf16, blayout=col_major, slayout=row_major>)"
    "; {op} ins(%a, %fp, %c0, %c0) outs(%out)",
    means=f"a * {SCALE}[:, :16]",
)
def _insert_scaled(m: Machine, op: Op, target: Tile, source: Tile, factors: Tile, row: Expr, column: Expr) -> None:
    """An accumulator into a larger tile from a position on, each column with its scale."""
    at = m.b.index(row), m.b.index(column)
    check_reach(m, target, source.valid, at)
    if is_there(m, factors):
        write(m, target, brought(m, op, read_all(m, source), target.type.element, (factors,)), at)


@declare(
    "pto.textract",
    tile("zii", "z"),
    law=extracted,
    example="(%x: t16x64xf32, %out: t8x32xf32); {op} ins(%x, %c2, %c4) outs(%out)",
    means="x[2:10, 4:36]",
)
def _extract(m: Machine, op: Op, target: Tile, source: Tile, row: Expr, column: Expr) -> None:
    """The part of a tile from a position on."""
    at = m.b.index(row), m.b.index(column)
    check_reach(m, source, target.valid, at)
    value = read(m, source, target.valid, target.limits, at)
    write(m, target, cast(m, value, target.type.element.dtype))


@declare(
    "pto.tinsert",
    tile("zii", "z"),
    law=inserted,
    example="(%x: t8x32xf32, %y: t16x64xf32); {op} ins(%x, %c2, %c4) outs(%y)",
    means="y[2:10, 4:36] = x",
)
def _insert(m: Machine, op: Op, target: Tile, source: Tile, row: Expr, column: Expr) -> None:
    """A tile into a larger one, from a position on."""
    at = m.b.index(row), m.b.index(column)
    check_reach(m, target, source.valid, at)
    write(m, target, cast(m, read_all(m, source), target.type.element.dtype), at)


@declare(
    "pto.tconcat",
    tile("tt"),
    example="(%x: t8x32xf32, %y: t8x32xf32, %out: t8x64xf32); {op} ins(%x, %y) outs(%out)",
    means="np.concatenate([x, y], 1)",
)
def _concat(m: Machine, op: Op, target: Tile, first: Tile, second: Tile) -> None:
    """Two tiles side by side."""
    left, right = read_all(m, first), read_all(m, second)
    if all(known(n) is not None for n in (*first.valid, *second.valid)):
        write(m, target, m.b.tile("concat", left, right))
        return
    write(m, target, left)
    write(m, target, right, (m.b.index(0), first.valid[1]))


@declare("pto.ttrans", tile("tz?"), example="(%x: t8x64xf32, %out: t64x8xf32); {op} ins(%x) outs(%out)", means="x.T")
def _transpose(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Rows as columns: on A2/A3 those that are valid, on A5 the whole tile, where there is room for it."""
    rows, cols = whole = source.type.rows, source.type.cols
    has_room = rows <= target.type.cols and cols <= target.type.rows
    is_whole = m.arch == A5 and has_room
    taken = read(m, source, (m.b.index(rows), m.b.index(cols)), whole) if is_whole else read_all(m, source)
    write(m, target, m.b.tile("transpose", taken, 0, 1))


# padding


_PADDED = "(%x: !pto.tile_buf<vec, 8x64xf32, valid=5x19>, %out: !pto.tile_buf<vec, {}>); {{op}} ins(%x) outs(%out)"
_PADDED_IN_PLACE = """
(%x: w8x40xf32, %y: w8x64xf32 = zeros)
; %t = pto.alloc_tile addr = %n0 : !pto.tile_buf<vec, 8x64xf32, valid=8x40>; pto.tload ins(%x) outs(%t)
; %u = pto.alloc_tile addr = %n0 : !pto.tile_buf<vec, 8x64xf32, pad=1>; pto.tfillpad_inplace ins(%t) outs(%u)
; pto.tstore ins(%u) outs(%y)
"""


def _copied(op: Op, _: Constants) -> None:
    """Refuse elements of which the bytes are not as many."""
    come, go = (value.of(TileBuf).element for value in (op.ins[0], op.outs[0]))
    if come.nbytes != go.nbytes:
        message = f"`{op.name}` copies elements that are equally large, got {come} and {go}"
        raise PtoTypeMismatchError(message, help="convert one of them with `pto.tcvt`")


@declare(
    "pto.tfillpad",
    tile("z", "z"),
    rule=_copied,
    law=filled,
    example=_PADDED.format("8x64xf32, pad=1"),
    means="np.pad(x, ((0, 3), (0, 45)))",
)
@declare(
    "pto.tfillpad_inplace",
    tile("z", "z"),
    rule=_copied,
    law=filled,
    example=_PADDED_IN_PLACE,
    means="y = np.pad(x, ((0, 0), (0, 24)))",
)
@declare(
    "pto.tfillpad_expand",
    tile("z", "z"),
    rule=_copied,
    law=filled,
    example=_PADDED.format("16x64xf32, pad=1"),
    means="np.pad(x, ((0, 11), (0, 45)))",
)
def _fill(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """A copy of the source's valid part, and the destination's pad everywhere else."""
    value = _seen_as(m, read_all(m, source, target.limits), source, target)
    _write_valid(m, target, value if tile_type(value).valid == target.limits else padded(m, value, target))


def _seen_as(m: Machine, value: Expr, source: Tile, target: Tile) -> Expr:
    """Return elements as those of a destination that have the same bytes."""
    come, to = source.type.element.dtype, target.type.element.dtype
    return value if come == to else m.b.tile("reinterpret_view", value, to)


def _write_valid(m: Machine, target: Tile, value: Expr) -> None:
    """Write the destination's valid part of a whole tile."""
    extents = tuple(known(n) for n in target.valid)
    if extents == tile_type(value).shape:
        write(m, target, value)
    elif None not in extents:
        write(m, target, m.b.tile("slice", value, target.valid, (0, 0)))
    else:
        write(m, target, m.b.tile("set_validshape", value, *target.valid))


def pad_of(type_: TileBuf) -> float:
    """Return what fills a tile outside its data; the largest and smallest numbers are finite ones."""
    dtype = type_.element.dtype
    low, high = (-finite_limits(dtype)[1], finite_limits(dtype)[1]) if dtype.is_float() else dtype.limits
    return {2: high, 3: low}.get(type_.pad, 0)


def padded(m: Machine, value: Expr, target: Tile) -> Expr:
    """Return a tile of a destination's shape: the valid part of a value, and its pad everywhere else."""
    return m.b.tile("assemble", blank(m, target), value, (0, 0))


def blank(m: Machine, target: Tile) -> Expr:
    """Return a tile of a destination's shape that is all pad."""
    dtype = target.type.element.dtype
    return m.b.tile("full", target.limits, dtype, constant(pad_of(target.type), dtype))


# one by one


_READS = {"ins": Word(Layout.TYPED, "ti", required=True)}


@declare(
    "pto.tgetval",
    Form("", "s", Typing.RESULT, words=_READS),
    rule=gives(lambda op: element_type(op.ins[0].type)),
    law=read_in_vec,
    example="(%x: t8x64xf32); %r = {op} ins(%x, %c3) outs : f32",
    means="x.ravel()[3]",
)
def _get(m: Machine, op: Op, tile: Tile, index: Expr) -> Expr:
    """One element of a tile."""
    at = m.b.index(index)
    return m.b.get(flat(m, tile), at) if m.placed(tile) else blank_of(tile)


@declare(
    "pto.tsetval", tile("is"), example="(%n: f32, %y: t8x64xf32); {op} ins(%c3, %n) outs(%y)", means="y.ravel()[3] = n"
)
def _set(m: Machine, op: Op, tile: Tile, index: Expr, value: Expr) -> None:
    """Write one element of a tile."""
    at = m.b.index(index)
    if m.placed(tile):
        m.b.set(flat(m, tile), value, at)


def flat(m: Machine, tile: Tile) -> Expr:
    """Return the elements of a tile in the order they lie in memory."""
    return bytes_view(m, tile.place, (tile.type.rows * tile.type.cols,), (1,))
