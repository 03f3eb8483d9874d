"""Reductions and expansions: rows and columns folded to one element, one element met with a row or column.

Registers are folded whole, in blocks of 32 bytes, or in pairs; lanes that a mask leaves out take no part.
"""

from __future__ import annotations

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UNSIGNED
from tilewright.errors import AttributeValueError, UnsupportedFeatureError
from tilewright.ops.builder import element_of
from tilewright.pto.fold_laws import is_turned, met_by_columns, met_by_rows, reduced
from tilewright.pto.machine.elements import arithmetic, cast, constant_tile, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    chosen,
    compared,
    extended,
    flags,
    full,
    iota,
    lanes_of,
    lit,
    regrained,
    reshaped,
    scratch,
    window,
    written,
)
from tilewright.pto.machine.tiles import cover, read, read_all, write
from tilewright.pto.machine.values import Tile, Vector
from tilewright.pto.module import Number, Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import register, tile
from tilewright.pto.types import Mask, VReg

_FOLDS = ("sum", "max", "min", "prod")
_FOLD = "(%x: t8x64xf32, %out: !pto.tile_buf<vec, {}>); {{op}} ins(%x) outs(%out)"


@declare(
    "pto.trowsum trowmax trowmin trowprod",
    tile("tz?"),
    law=reduced,
    example=_FOLD.format("8x8xf32, valid=8x1"),
    means={f"trow{word}": f"x.{word}(1, keepdims=True)" for word in _FOLDS},
)
@declare(
    "pto.tcolsum tcolmax tcolmin tcolprod",
    tile("tz?"),
    law=reduced,
    example=_FOLD.format("1x64xf32"),
    means={f"tcol{word}": f"x.{word}(0, keepdims=True)" for word in _FOLDS},
)
@declare(
    "pto.trowargmax trowargmin",
    tile("zz?", "z"),
    law=reduced,
    example=_FOLD.format("8x8xi32, valid=8x1"),
    means={f"trow{word}": f"x.{word}(1)[:, None]" for word in ("argmax", "argmin")},
)
@declare(
    "pto.tcolargmax tcolargmin",
    tile("zz?", "z"),
    law=reduced,
    example=_FOLD.format("1x64xi32"),
    means={f"tcol{word}": f"x.{word}(0)" for word in ("argmax", "argmin")},
)
def _fold(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """What each row or column folds to, or the first place along it that holds that."""
    axis, word = op.name[5:8], op.name[8:]
    values = read_all(m, source)
    spare = [values] if word.startswith("arg") else []
    folded = m.b.tile(f"{axis}_{word}", values, *spare)
    write(m, target, cast(m, folded, target.type.element.dtype), covers=_folded(m, axis, source))


def _folded(m: Machine, axis: str, source: Tile) -> tuple[Expr, Expr]:
    """Return the extents of a fold."""
    return (source.valid[0], m.b.index(1)) if axis == "row" else (m.b.index(1), source.valid[1])


def _vector(m: Machine, axis: str, source: Tile, target: Tile, column: int = 0) -> Expr:
    """Return the column or row that meets a destination."""
    if axis == "row":
        region, limit = (target.valid[0], m.b.index(1)), (target.type.rows, 1)
    else:
        region, limit = (m.b.index(1), target.valid[1]), (1, target.type.cols)
    at = (m.b.index(0), m.b.index(column)) if column else None
    return read(m, source, region, limit, at)


@declare("pto.trowexpand tcolexpand", tile("t"), means={"trowexpand": "x[:, :1]", "tcolexpand": "x[:1]"})
def _expand(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """A column over all columns, or a row over all rows."""
    axis = op.name[5:8]
    blank = constant_tile(m, target, constant(0, target.type.element.dtype))
    cover(m, target, m.b.tile(f"{axis}_expand", blank, _vector(m, axis, source, target)))


_MEET = "(%x: t8x64xf32, %y: !pto.tile_buf<vec, {}>, %out: t8x64xf32); {{op}} ins(%x, %y) outs(%out)"
_MET = {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "max": "np.maximum(x, y)",
    "min": "np.minimum(x, y)", "expdif": "np.exp(x - y)",
}  # fmt: skip
"""What becomes of an element and the one of its row or column."""


@declare(
    f"pto.{' '.join(f'trowexpand{word}' for word in _MET)}",
    tile("ttz?"),
    law=met_by_rows,
    example=_MEET.format("8x1xf32, blayout=col_major"),
    means={f"trowexpand{word}": sentence for word, sentence in _MET.items()},
)
@declare(
    f"pto.{' '.join(f'tcolexpand{word}' for word in _MET)}",
    tile("tt"),
    law=met_by_columns,
    example=_MEET.format("1x64xf32"),
    means={f"tcolexpand{word}": sentence for word, sentence in _MET.items()},
)
def _meet(m: Machine, op: Op, target: Tile, first: Tile, second: Tile) -> None:
    """A tile met with a column or a row, over all of it."""
    axis, name = op.name[5:8], op.name[14:]
    groups = op.attributes.get("src1Col", 1)
    count = groups.value if isinstance(groups, Number) else groups
    if axis == "row" and isinstance(count, int) and count > 1:
        _meet_groups(m, name, (first, second, target), count)
        return
    turned = is_turned(op)
    whole, vector = (second, first) if turned else (first, second)
    x, each = read(m, whole, target.valid, target.limits), _vector(m, axis, vector, target)
    if turned and name == "expdif":
        cover(m, target, m.b.tile("exp", arithmetic(m, "sub", m.b.tile("row_expand", x, each), x)))
        return
    cover(m, target, _met(m, axis, name, x, each))


_QUOTIENTS = ("i8", "i16", "i32")
"""The integers, of any sign, that A5 divides by a row or column."""


def _met(m: Machine, axis: str, name: str, x: Expr, vector: Expr) -> Expr:
    """Return a tile met with a column or row; integers are divided as tiles are."""
    dtype = element_of(x)
    if name != "div" or dtype.is_float():
        return m.b.tile(f"{axis}_expand_{name}", x, vector)
    if m.arch != "a5" or f"i{dtype.bits}" not in _QUOTIENTS:
        legal = ("f16", "f32", *(_QUOTIENTS if m.arch == "a5" else ()))
        message = f"`pto.t{axis}expanddiv` takes no {dtype} on {m.arch.upper()}"
        raise UnsupportedFeatureError(message, help=f"it takes {', '.join(legal)}")
    return arithmetic(m, name, x, m.b.tile(f"{axis}_expand", x, vector))


def _meet_groups(m: Machine, name: str, tiles: tuple[Tile, Tile, Tile], groups: int) -> None:
    """Each column of the second tile meets as many columns of the first."""
    first, second, target = tiles
    if target.type.cols % groups:
        message = f"`src1Col` is {groups}, which does not divide {target.type.cols} columns"
        raise AttributeValueError(message, help="let each column of the second tile meet as many of the first")
    width = target.type.cols // groups
    made: Expr | None = None
    for group in range(groups):
        at = (m.b.index(0), m.b.index(group * width))
        x = read(m, first, (target.valid[0], m.b.index(width)), (target.type.rows, width), at)
        met = _met(m, "row", name, x, _vector(m, "row", second, target, group))
        made = met if made is None else m.b.tile("concat", made, met)
    assert made is not None
    write(m, target, made)


# registers


_BY_BLOCK = {"add": "sum", "max": "max", "min": "min"}


def _taking_part(m: Machine, op: Op) -> Expr:
    """Return the lanes of an op's operand, those that take no part replaced by what changes nothing."""
    row = m.get(op.operands[0], Vector).expr
    on = lit(m, op, element_of(row).get_byte())
    if on is None:
        return row
    low, high = element_of(row).limits
    start = {"add": 0, "max": low, "min": high}[op.name[-3:]]
    return chosen(m, on, row, full(m, lanes_of(row), element_of(row), start))


def _by_group(m: Machine, op: Op, row: Expr, groups: int) -> Expr:
    """Return one element for each group of neighbours."""
    square = reshaped(m, row, groups, lanes_of(row) // groups)
    return reshaped(m, m.b.tile(f"row_{op.name[-3:].replace('add', 'sum')}", square), 1, groups)


_FOLDED = {
    "vcadd": "np.append(x.sum(), 0 * x[1:])",
    **{f"vcg{word}": f"np.append(x.reshape(8, 8).{fold}(1), 0 * x[8:])" for word, fold in _BY_BLOCK.items()},
    "vcpadd": "np.append(x.reshape(32, 2).sum(1), 0 * x[32:])",
}


@declare("pto.vcadd vcgadd vcgmax vcgmin vcpadd", register("um?", "u"), means=_FOLDED)
def _fold_lanes(m: Machine, op: Op) -> Expr:
    """All lanes to the first, blocks of 32 bytes to the first eight, or neighbours to the lower half."""
    type_ = op.results[0].of(VReg)
    row = cast(m, _taking_part(m, op), type_.element.dtype)
    groups = {"pto.vcg": 8, "pto.vcp": lanes_of(row) // 2}.get(op.name[:7], 1)
    return extended(m, _by_group(m, op, row, groups), type_.lanes)


@declare(
    "pto.vcmax vcmin",
    register("um?", "u"),
    means={f"vc{word}": f"np.append([x.{word}(), x.arg{word}()], 0 * x[2:])" for word in ("max", "min")},
    example="(%x: v64xi32); %r = {op} %x -> v64xi32",
)
def _extreme(m: Machine, op: Op) -> Expr:
    """The largest or smallest element in the first lane, in the second its index as an integer's bits."""
    row, type_ = _taking_part(m, op), op.results[0].of(VReg)
    best = _by_group(m, op, row, 1)
    none = full(m, lanes_of(row), dtypes.INT32, lanes_of(row) - 1)
    at = m.b.tile("row_min", where(m, row, CmpType.EQ, best, iota(m, lanes_of(row)), none))
    bits = UNSIGNED[type_.element.nbytes]
    buffer = scratch(m, zero=True)
    m.b.store(window(m, buffer, type_.element.dtype, 1), best)
    m.b.store(window(m, buffer, bits, 1, first=1), cast(m, at, bits))
    return written(m, op, buffer)


@declare(
    "pto.vcbmax vcbmin",
    register("vm", "vm"),
    example="(%x: v64xf32, %m: m32); %b, %at = {op} %x, %m : v64xf32, m32 -> v64xf32, m32"
    "; %r = pto.vsel %b, %x, %at -> v64xf32",
    means={
        f"vcb{word}": f"r = np.where(m & (x == x[m].{word}()), np.append(x[m].{word}(), 0 * x[1:]), x)"
        for word in ("max", "min")
    },
)
def _extreme_places(m: Machine, op: Op) -> tuple[Expr, Expr]:
    """The largest or smallest of the lanes that take part, in the first lane, and a mask of all those that are it."""
    row, type_ = _taking_part(m, op), op.results[0].of(VReg)
    best = _by_group(m, op, row, 1)
    on = flags(m, compared(m, row, CmpType.EQ, _everywhere(m, best, lanes_of(row))), lanes_of(row))
    among = lit(m, op, type_.element.nbytes)
    places = on if among is None else m.b.tile("and_", on, among)
    return extended(m, best, type_.lanes), regrained(m, places, op.results[1].of(Mask).bits // 8)


def _everywhere(m: Machine, number: Expr, lanes: int) -> Expr:
    """Return a row that is all one number."""
    return full(m, lanes, element_of(number), m.b.tile("read", number, (0, 0)))
