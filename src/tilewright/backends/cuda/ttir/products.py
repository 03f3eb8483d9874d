"""Products: matrices multiplied; what is not valid of their common axis counts as zero.

Matrix units take a common axis of some length at least, and give wrong numbers for a shorter one: such products are
computed in fp32 or int32, which have no least length. Products of fp32 are exact to fp32.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import Value, type_of
from tilewright.backends.cuda.ttir.tiles import operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import MATRIX_UNITS, Extent, Scalar, Tile
from tilewright.core.expr import Call
from tilewright.dtypes import FP32, INT32, DataType
from tilewright.ops.matmul import MISSING_ROWS


@recipe("tile.matmul", "tile.gemv")
def _matmul(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _product(k, call, bound["lhs"], bound["rhs"])


@recipe("tile.matmul_acc", "tile.gemv_acc")
def _matmul_acc(k: Kernel, call: Call, bound: Bound) -> Tile:
    acc, value = bound["acc"], bound["acc"].value
    anew: Scalar | None = bound.get("init_cond")
    if anew is not None:
        value = k.t.select(anew.value, zeros(k, value), value)
    product = _product(k, call, bound["lhs"], bound["rhs"], value)
    valid = [extents.least(k.t, a, b) for a, b in zip(acc.valid, product.valid, strict=True)]
    return k.tile(product.value, tile_type(call), valid)


@recipe("tile.matmul_bias", "tile.gemv_bias")
def _matmul_bias(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _product(k, call, bound["lhs"], bound["rhs"], operand(k, bound["bias"], tile_type(call)))


def _product(k: Kernel, call: Call, lhs: Tile, rhs: Tile, acc: Value | None = None) -> Tile:
    """Return a product, added to an accumulator where there is one."""
    type_ = tile_type(call)
    if len(type_.shape) != 2:
        raise refused(f"`{call.op.name}` of more than two axes", call.span)
    _check_rows(k, call, lhs.valid[1], rhs.valid[0])
    common = lhs.valid[1]
    a, b = _cut(k, lhs, 1, common), _cut(k, rhs, 0, common)
    dtype = _computed_in(lhs.type.dtype, a.shape[1])
    a, b = (_as(k, each, lhs.type.dtype, dtype) for each in (a, b))
    shape = a.shape[0], b.shape[1]
    element = "f32" if type_.dtype.is_float() else "i32"
    start = literal(k.t, 0, Value("", element, shape)) if acc is None else acc
    precision = ", inputPrecision = ieee" if dtype == FP32 else ""
    types = f"{a.type} * {b.type} -> {type_of(element, shape)}"
    value = k.t.op(f"tt.dot {a}, {b}, {start}{precision} : {types}", element, shape)
    k.facts.products.append(shape)
    return k.tile(value, type_, (lhs.valid[0], rhs.valid[1]))


def _check_rows(k: Kernel, call: Call, columns: Extent, rows: Extent) -> None:
    if columns == rows or (isinstance(columns, int) and isinstance(rows, int)):
        return  # what is known was checked with the types
    missing = k.t.compare("cmpi sgt", extents.held(k.t, columns), extents.held(k.t, rows))
    k.fail(missing, f"a matrix product reads data that is not there\n{MISSING_ROWS}", call.span)


def _computed_in(dtype: DataType, length: int) -> DataType:
    """Return the type that elements are multiplied in."""
    if length >= MATRIX_UNITS.get(dtype, 1 << 20):
        return dtype
    return FP32 if dtype.is_float() else INT32


def _as(k: Kernel, value: Value, source: DataType, target: DataType) -> Value:
    return value if source.bits == target.bits and source.is_int() else as_element(k.t, value, source, target)


def _cut(k: Kernel, tile: Tile, axis: int, common: Extent) -> Value:
    """Return a tile with zeros where the common axis is not valid."""
    if tile.is_zero_outside and tile.valid[axis] == common:
        return tile.value
    everywhere = {other: extent for other, extent in enumerate(tile.value.shape)} | {axis: common}
    mask = k.mask(tile, everywhere)
    return tile.value if mask is None else k.t.select(mask, tile.value, zeros(k, tile.value))
