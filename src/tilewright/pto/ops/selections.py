"""Selections: comparisons as packed bits, choices by them, and ops on what only one of two tiles holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.asked_words import COMPARISON
from tilewright.pto.laws import comparable, partly
from tilewright.pto.machine.elements import arithmetic, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import operand, operands
from tilewright.pto.machine.registers import active, chosen, compared, flags, lanes_of, lit, regrained, scratch
from tilewright.pto.machine.tiles import bytes_view, check_range, common, cover, read, read_all, static, write
from tilewright.pto.machine.values import Predicate, Tile, Vector
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import declare
from tilewright.pto.ops.arithmetic import predicate
from tilewright.pto.text.form import register, tile
from tilewright.pto.types import SCALARS, Mask

BYTE = SCALARS["ui8"]


def comparison(op: Op) -> CmpType:
    """Return which comparison an op makes."""
    word = word_of(op.attributes.get("cmpMode", op.attributes.get("cmp_mode", op.attributes.get("cmp", "eq"))))
    return CmpType[word.upper()]


@declare(
    "pto.tcmp",
    tile("tt", "z"),
    is_by_source=True,
    law=comparable,
    words=COMPARISON,
    example="(%x: t8x64xf32, %y: t8x64xf32, %out: t8x64xui8); {op} ins(%x, %y) outs(%out) {cmpMode = #pto<cmp lt>}",
    means='np.pad(np.packbits(x < y, 1, "little"), ((0, 0), (0, 56)))',
)
def _compare(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Compare over the first source's valid part; eight columns a byte, the lowest bit first."""
    lhs, rhs = read_all(m, source), operand(m, op.ins[1], source)
    mask = m.b.tile("cmp", lhs, rhs, int(comparison(op)))
    if not m.placed(target):
        return
    rows, cols = (m.b.index(n) if isinstance(n, int) else None for n in tile_type(mask).valid)
    region = rows or source.valid[0], cols or _bytes(m, source.valid[1])
    m.b.store(_bit_rows(m, target, region, source), mask)


@declare(
    "pto.tcmps",
    tile("te", "z"),
    is_by_source=True,
    words=COMPARISON,
    example="(%x: t8x64xf32, %n: f32, %out: t8x64xui8); {op} ins(%x, %n) outs(%out) {cmpMode = #pto<cmp lt>}",
    means='np.pad(np.packbits(x < n, None, "little"), (0, 448)).reshape(8, 64)',
)
def _compare_number(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Compare the source's valid part with a number; bits lie as if the destination had no rows, the lowest first.

    Elements of four bytes are one string of bits, row behind row; shorter ones begin each row at a chunk of 16 bytes,
    of 32 where they are bytes. What is left of a last chunk is zero.
    """
    values, (rows, cols) = read_all(m, source), source.valid
    most_rows, most_cols = static(source.valid, source.limits)
    if source.type.element.nbytes == 4:
        values, rows, cols = _in_one_row(m, values, source), m.b.index(1), m.b.mul(rows, cols)
        most_rows, most_cols = 1, most_rows * most_cols
    mask = m.b.tile("cmp", values, operand(m, op.ins[1], source), int(comparison(op)))
    if not m.placed(target):
        return
    chunk = 32 if source.type.element.nbytes == 1 else 16
    pitch = m.b.mul(m.b.scalar("floordiv", m.b.add(cols, 8 * chunk - 1), m.b.index(8 * chunk)), chunk)
    have = target.type.rows * target.type.cols * target.type.element.nbytes
    check_range(m, m.b.mul(rows, pitch), have, f"these bits leave a tile of {have} bytes")
    start, width = replace(target.place, element=BYTE), -(-most_cols // (8 * chunk)) * chunk
    blank = m.b.tile("full", (most_rows, width), BYTE.dtype, 0)
    blank = blank if known(m.b.mul(rows, pitch)) else m.b.tile("set_validshape", blank, rows, pitch)
    m.b.store(bytes_view(m, start, (rows, pitch), (pitch, 1)), blank)
    m.b.store(bytes_view(m, start, (rows, _bytes(m, cols)), (pitch, 1)), mask)


def _in_one_row(m: Machine, values: Expr, source: Tile) -> Expr:
    """Return the valid elements of a tile row behind row."""
    (rows, cols), (most_rows, most_cols) = source.valid, static(source.valid, source.limits)
    count = m.b.mul(rows, cols)
    if known(count) is not None:
        return m.b.tile("reshape", values, (1, most_rows * most_cols))
    dtype = source.type.element.dtype
    buffer = scratch(m, most_rows * most_cols * dtype.get_byte())
    viewed = partial(m.b.do, "tensor.as_strided", buffer=buffer, offset=0, dtype=dtype)
    m.b.store(viewed(shape=(rows, cols), strides=(cols, m.b.index(1))), values)
    row = m.b.index(1), count
    return m.b.load(viewed(shape=row, strides=(count, m.b.index(1))), (1, most_rows * most_cols), row)


def _bytes(m: Machine, columns: Expr) -> Expr:
    return m.b.scalar("floordiv", m.b.add(columns, 7), m.b.index(8))


def _bit_rows(m: Machine, tile: Tile, region: tuple[Expr, Expr], about: Tile) -> Expr:
    """Return the bytes of each row of a tile that hold bits about the elements of another."""
    pitch = tile.type.cols * tile.type.element.nbytes
    rows, width = (known(extent) or 0 for extent in region)
    if rows > tile.type.rows or width > pitch:
        raise OutOfBoundsError(f"{rows} rows of {width} bytes of bits leave a tile of {tile.type.rows} rows of {pitch}")
    limits = about.type.rows, (about.type.cols + 7) // 8
    for extent, limit, have in zip(region, limits, (tile.type.rows, pitch), strict=True):
        if known(extent) is None and limit > have:
            check_range(m, extent, have, f"bits leave a tile of {tile.type.rows} rows of {pitch} bytes")
    return bytes_view(m, replace(tile.place, element=BYTE), region, (pitch, 1))


def _mask(m: Machine, tile: Tile, target: Tile) -> Expr:
    """Return the packed bits that choose among the elements of a destination."""
    width = (target.type.cols + 255) // 256 * 32
    shape = (known(target.valid[0]) or target.type.rows, width)
    if not m.placed(tile):
        return m.b.tile("full", shape, BYTE.dtype, 0)
    region = target.valid[0], _bytes(m, target.valid[1])
    return m.b.load(_bit_rows(m, tile, region, target), shape, region)


@declare(
    "pto.tsel",
    tile("zttz?"),
    example="(%m: t8x64xui8, %x: t8x64xf32, %y: t8x64xf32, %out: t8x64xf32); {op} ins(%m, %x, %y) outs(%out)",
    means='np.where(np.unpackbits(m, 1, 64, "little"), x, y)',
)
def _select(m: Machine, op: Op, target: Tile, mask: Tile) -> None:
    """Elements of one tile where a bit is set, of another elsewhere."""
    bits, lhs, rhs = _mask(m, mask, target), op.ins[1], op.ins[2]
    cover(m, target, m.b.tile("sel", bits, operand(m, lhs, target), operand(m, rhs, target)))


@declare(
    "pto.tsels",
    tile("ztzx?|ztex?"),
    example="(%m: t8x64xui8, %x: t8x64xf32, %n: f32, %out: t8x64xf32); {op} ins(%m, %x, %n) outs(%out)",
    means='np.where(np.unpackbits(m, 1, 64, "little"), x, n)',
)
def _select_number(m: Machine, op: Op, target: Tile, mask: Tile) -> None:
    """Elements of a tile where a bit is set, a number elsewhere."""
    bits, source, number = _mask(m, mask, target), op.ins[1], op.ins[-1]
    cover(m, target, m.b.tile("sels", bits, operand(m, source, target), scalar=operand(m, number, target)))


_PARTIAL = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


@declare(
    "pto.tpartadd tpartmul tpartmax tpartmin",
    tile("tt"),
    law=partly,
    means={"tpartadd": "x + y", "tpartmul": "x * y", "tpartmax": "np.maximum(x, y)", "tpartmin": "np.minimum(x, y)"},
)
def _partly(m: Machine, op: Op, target: Tile, first: Tile, second: Tile) -> None:
    """Where both sources hold data they meet; elsewhere the one that does is copied."""
    name = _PARTIAL[op.name.removeprefix("pto.tpart")]
    if target.valid not in (first.valid, second.valid):
        _write_layers(m, name, first, second, target)
        return
    larger, smaller = (first, second) if first.valid == target.valid else (second, first)
    if larger.valid != smaller.valid:
        _write_pieces(m, name, (larger, smaller, target), larger is first)
        return
    lhs, rhs = operand(m, op.ins[0], target), operand(m, op.ins[1], target)
    cover(m, target, arithmetic(m, name, lhs, rhs))


def _write_layers(m: Machine, name: str, first: Tile, second: Tile, target: Tile) -> None:
    """Copy both sources, one over the other, and over them what they make where both hold data."""
    both, limit = _shared(m, first, second, target), target.limits
    met = arithmetic(m, name, read(m, first, both, limit), read(m, second, both, limit))
    for layer in (*_sides(m, first, second, target), met):
        write(m, target, layer)


def _shared(m: Machine, first: Tile, second: Tile, target: Tile) -> tuple[Expr, Expr]:
    """Return how much both sources hold of a destination."""
    left, right = common(m, first, target), common(m, second, target)
    return m.b.least(left[0], right[0]), m.b.least(left[1], right[1])


def _sides(m: Machine, first: Tile, second: Tile, target: Tile) -> list[Expr]:
    """Return what each source holds of a destination."""
    return [read(m, each, common(m, each, target), target.limits) for each in (first, second)]


def _write_pieces(m: Machine, name: str, tiles: tuple[Tile, Tile, Tile], in_order: bool) -> None:
    larger, smaller, target = tiles
    region = common(m, larger, smaller)
    (rows, cols), type_ = target.limits, target.type
    limit = (
        rows if type_.valid_rows is None else type_.valid_rows,
        cols if type_.valid_cols is None else type_.valid_cols,
    )
    whole, some, part = read_all(m, larger, limit), read(m, smaller, region, limit), read(m, larger, region, limit)
    met = arithmetic(m, name, part, some) if in_order else arithmetic(m, name, some, part)
    write(m, target, m.b.tile("assemble", whole, met, (0, 0)))


@declare(
    "pto.tpartargmax tpartargmin",
    tile("zzz?z?", "zz?"),
    law=partly,
    example="(%x: t8x64xf32, %y: t8x64xf32, %i: t8x64xi32, %j: t8x64xi32, %out: t8x64xf32, "
    "%at: t8x64xi32)"
    "; {op} ins(%x, %y, %i, %j) outs(%out, %at)",
    means={
        "tpartargmax": "np.maximum(x, y), np.where(x >= y, i, j)",
        "tpartargmin": "np.minimum(x, y), np.where(x <= y, i, j)",
    },
)
def _better(m: Machine, op: Op) -> None:
    """Of two values the larger or smaller, or the only one, with its index; the first where they are equal."""
    if len(op.ins) != 4 or len(op.outs) != 2:
        raise UnsupportedFeatureError(
            "values and indices of both sources are needed", help="ins(a, b, i, j) outs(v, k)"
        )
    how = CmpType.GE if op.name == "pto.tpartargmax" else CmpType.LE
    first, second, i, j, target, places = (m.get(v, Tile) for v in (*op.ins, *op.outs))
    if all(each.valid == target.valid for each in (first, second, i, j, places)):
        a, b = (operand(m, v, target) for v in op.ins[:2])
        layers = [where(m, a, how, b, a, b)], [where(m, a, how, b, *(operand(m, v, places) for v in op.ins[2:]))]
    else:
        both, limit = _shared(m, first, second, target), target.limits
        a, b = read(m, first, both, limit), read(m, second, both, limit)
        found = where(m, a, how, b, read(m, i, both, limit), read(m, j, both, limit))
        layers = (
            [*_sides(m, first, second, target), where(m, a, how, b, a, b)], [*_sides(m, i, j, places), found],
        )  # fmt: skip
    for out, row in zip((target, places), layers, strict=True):
        put = cover if len(row) == 1 else write
        for each in row:
            put(m, out, each)


# registers


_COMPARED = predicate([word.lower() for word in CmpType.__members__])


@declare("pto.vsel", register("vvm"), means="np.where(m, x, y)")
def _select_lanes(m: Machine, op: Op, then: Vector, other: Vector, mask: Predicate) -> Expr:
    """Lanes of one vector where a mask is set, of another elsewhere."""
    return chosen(m, active(m, mask, then.element.nbytes), then.expr, other.expr)


@declare(
    "pto.vcmp",
    register("vvm", "m", "predicate"),
    rule=_COMPARED,
    example='(%x: v64xf32, %y: v64xf32, %m: m32); %r = {op} %x, %y, %m, "lt" -> m32',
    means="x < y",
)
@declare(
    "pto.vcmps",
    register("vem", "m", "predicate"),
    rule=_COMPARED,
    example='(%x: v64xf32, %n: f32, %m: m32); %r = {op} %x, %n, %m, "lt" -> m32',
    means="x < n",
)
def _compare_lanes(m: Machine, op: Op) -> Expr:
    """Flags of the lanes where a comparison holds, of those that the op's mask has."""
    lhs, rhs = operands(m, op)
    how = CmpType[str(op.attributes["predicate"]).upper()]
    on, among = flags(m, compared(m, lhs, how, rhs), lanes_of(lhs)), lit(m, op, element_of(lhs).get_byte())
    on = on if among is None else m.b.tile("and_", on, among)
    return regrained(m, on, op.results[0].of(Mask).bits // 8)
