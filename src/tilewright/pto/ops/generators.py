"""Generators: triangles, histograms, random numbers, and rows joined by index."""

from __future__ import annotations

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INDEX, INT32, UINT32
from tilewright.ops.builder import tile_type
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.machine.elements import cast, resized, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cover, read, read_all, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, element_type, number_of
from tilewright.pto.operand_laws import chosen_bytes, made_by_rows
from tilewright.pto.text.form import tile
from tilewright.pto.types import SCALARS, TileBuf

BINS = 256
"""The columns of a histogram: one for each value of a byte."""


def _refuse_wide(op: Op) -> None:
    """Refuse numbers that are no i32."""
    for value in op.ins:
        if value.type != SCALARS["i32"]:
            message = f"`{op.name}` takes numbers of i32, `%{value.name}` is {value.type}"
            raise PtoTypeMismatchError(message, help="truncate it to i32, or cast it with `arith.index_cast`")


def _one_side(op: Op, _: Constants) -> None:
    """Refuse a triangle that is neither the lower one nor the upper one."""
    _refuse_wide(op)
    side = number_of(op, "upperOrLower")
    if side not in (None, 0, 1):
        raise PtoAttributeError(f"`upperOrLower` of `{op.name}` is {side}", help="0 is the lower triangle, 1 the upper")


@declare(
    "pto.ttri",
    tile("i", "z"),
    rule=_one_side,
    counts=SCALARS["i32"],
    words={"upperOrLower": ""},
    means="np.arange(64) <= np.arange(8)[:, None] + n",
    example="(%n: i32 = 3, %out: t8x64xf32); {op} ins(%n) outs(%out)",
)
def _triangle(m: Machine, op: Op, target: Tile, diagonal: Expr) -> None:
    """Ones up to a diagonal of each row, or from there on, and zeros elsewhere."""
    dtype, upper = target.type.element.dtype, bool(number_of(op, "upperOrLower"))
    start = m.b.cast(diagonal, INDEX)
    cover(m, target, resized(m, lambda shape: m.b.tile("tri", start, shape, dtype=dtype, upper=upper), target))


def _rounds(op: Op, _: Constants) -> None:
    _refuse_wide(op)
    rounds, element = number_of(op, "rounds"), element_type(op.outs[0].type)
    if rounds not in (None, 7, 10):
        raise PtoAttributeError(f"`{op.name}` of {rounds} rounds", help="rounds is 7 or 10")
    if element.name not in ("i32", "si32", "ui32"):
        raise PtoTypeMismatchError(f"`{op.name}` makes words of 32 bits, got {element}", help="use i32 or ui32")


@declare(
    "pto.trandom",
    tile("iiiiii", "z"),
    rule=_rounds,
    law=made_by_rows,
    counts=SCALARS["i32"],
    example="(%n: i32, %out: t8x64xi32); {op} ins(%n, %n, %n, %n, %n, %n) outs(%out)",
    means="random_words([int(n)] * 2, [int(n)] * 4, (8, 64), 10)",
)
def _random(m: Machine, op: Op, target: Tile, *words: Expr) -> None:
    """The words of Philox 4x32 for a key of two words and a counter of four."""
    rows, cols = target.limits
    given = [m.b.cast(word, UINT32) for word in words]
    rounds = number_of(op, "rounds") or 10
    made = m.b.tile("random", *given, (rows, cols), target.valid, dtype=target.type.element.dtype, rounds=rounds)
    cover(m, target, made)


def _counts_bytes(op: Op, _: Constants) -> None:
    source, target = op.ins[0].of(TileBuf), op.outs[0].of(TileBuf)
    if source.element.name != "ui16" or target.element.name != "ui32":
        message = f"`{op.name}` counts ui16 elements in ui32, got {source.element} in {target.element}"
        raise PtoTypeMismatchError(message, help="reinterpret the elements, or count others another way")
    if target.cols < BINS:
        raise PtoValidShapeError(f"`%{op.outs[0].name}` has {target.cols} columns", help="a histogram has 256")


@declare(
    "pto.thistogram",
    tile("zz", "z"),
    rule=_counts_bytes,
    law=chosen_bytes,
    example="(%x: t8x64xui16 = 0..65535, %i: !pto.tile_buf<vec, 32x1xui8, valid=8x1, blayout=col_major> = zeros, "
    "%out: t8x256xui32)"
    "; {op} ins(%x, %i) outs(%out)",
    means="(x[:, :, None] >> 8 <= np.arange(256)).sum(1)",
)
def _histogram(m: Machine, op: Op, target: Tile, source: Tile, chosen: Tile) -> None:
    """How many high bytes of a row are at most each number; or low bytes, of elements with a chosen high byte."""
    if not m.placed(target):
        return
    values = cast(m, read_all(m, source), INT32)
    high = m.b.tile("shr", values, constant(8, INT32))
    counted, some = high, None
    if op.attributes.get("isMSB") is False:
        wanted = cast(m, read(m, chosen, (source.valid[0], m.b.index(1)), (source.type.rows, 1)), INT32)
        some = m.b.tile("row_expand_sub", high, wanted)
        counted = m.b.tile("and_", values, constant(255, INT32))
    one, none = (m.b.tile("full", tile_type(values).shape, INT32, constant(each, INT32)) for each in (1, 0))
    with m.b.loop(0, BINS) as number:
        few = where(m, counted, CmpType.LE, m.b.cast(number, INT32), one, none)
        few = few if some is None else where(m, some, CmpType.EQ, constant(0, INT32), few, none)
        total = cast(m, m.b.tile("row_sum", few, few), UINT32)
        write(m, target, total, (m.b.index(0), number), (source.valid[0], m.b.index(1)))


def _signed_counts(op: Op, _: Constants) -> None:
    """Refuse counts of columns whose sign is said."""
    for value in op.ins[2:]:
        if element_type(value.type).name[0] in "us":
            message = f"`{op.name}` counts in i8, i16 or i32, `%{value.name}` holds {element_type(value.type)}"
            raise PtoTypeMismatchError(message, help="make it a tile of i32")


@declare(
    "pto.tconcatidx",
    tile("ttzz"),
    rule=_signed_counts,
    example="(%x: t8x32xf32, %y: t8x32xf32, %i: t8x8xi32 = 0..32, %j: t8x8xi32 = 0..32, %out: t8x64xf32)"
    "; {op} ins(%x, %y, %i, %j) outs(%out)",
    means="for r in range(8): row = np.append(x[r, :i[r, 0]], y[r, :j[r, 0]]); out[r, :len(row)] = row",
)
def _join_by_index(m: Machine, op: Op, target: Tile, first: Tile, second: Tile, counts: Tile, others: Tile) -> None:
    """As many columns of each row of the first tile as its index says, then of the second, as far as there is room."""
    if not all(m.placed(each) for each in (target, first, second, counts, others)):
        return
    one, none = m.b.index(1), m.b.index(0)
    with m.b.loop(0, target.valid[0]) as row:
        start: Expr = none
        for source, number in ((first, counts), (second, others)):
            room = m.b.scalar("sub", m.b.index(target.type.cols), start)
            columns = m.b.least(m.b.least(_counted(m, number, row), source.valid[1]), room)
            with m.b.when(m.b.scalar("gt", columns, none)):
                piece = read(m, source, (one, columns), (1, source.type.cols), (row, none))
                write(m, target, piece, (row, start), (one, columns))
            start = m.b.add(start, columns)


def _counted(m: Machine, tile_: Tile, row: Expr) -> Expr:
    """Return the first number of a row, nothing negative."""
    number = m.b.tile("read", read(m, tile_, (m.b.index(1), m.b.index(1)), (1, 1), (row, m.b.index(0))), (0, 0))
    return m.b.scalar("max", m.b.cast(number, INDEX), m.b.index(0))
