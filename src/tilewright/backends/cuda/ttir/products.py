"""Products: matrices multiplied; what is not valid of their common axis counts as zero.

Matrix units take a common axis of some length at least, and give wrong numbers for a shorter one: such products are
computed in fp32 or int32, which have no least length, and those of 64 bits get zeros. Products of fp32 are exact to it:
where they are large, each number is three shorter ones to the matrix units. Integers are bytes to them.
"""

from __future__ import annotations

from math import prod

from tilewright.backends.cuda.ttir import digits, extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.large import is_large, product
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import of_rank, operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import MATRIX_UNITS, Extent, Scalar, Tile, element_of, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import FP16, FP32, FP64, INT8, INT32, INT64, UINT64, DataType
from tilewright.ops.matmul import MISSING_ROWS
from tilewright.ops.product_types import SMALL_FLOATS

LEAST = {FP64: 16, INT64: MATRIX_UNITS[INT8], UINT64: MATRIX_UNITS[INT8]}
"""How long the common axis is made of products that are computed on the matrix units whatever it is."""
LEAST_OF_PARTS = 8
TOGETHER = 128
"""Products of floats of 8 bits that the matrix units add up by themselves, to 13 bits; sums of those are fp32."""
ALL = 1 << 30
WIDE = 200_000
"""Bytes of shared memory of a block on GPUs whose matrix units give whole products."""
MOST_STEPS = 1 << 19
"""Multiplications of a product of fp32 that are written out; compilers take minutes for more."""


@recipe("tile.matmul", "tile.gemv", "tile.batch_matmul")
def _matmul(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _product(k, call, bound["lhs"], bound["rhs"])


@recipe("tile.matmul_acc", "tile.gemv_acc", "tile.batch_matmul_acc")
def _matmul_acc(k: Kernel, call: Call, bound: Bound) -> Tile:
    value = bound["acc"].value
    anew: Scalar | None = bound.get("init_cond")
    if anew is not None:
        value = k.t.select(anew.value, zeros(k, value), value)
    return added(k, call, bound["acc"], _product(k, call, bound["lhs"], bound["rhs"], value))


def added(k: Kernel, call: Call, acc: Tile, product: Tile) -> Tile:
    """Return a product that has been added to an accumulator: it is valid where both are."""
    valid = [extents.least(k.t, a, b) for a, b in zip(acc.valid, product.valid, strict=True)]
    return k.tile(product.value, tile_type(call), valid)


@recipe("tile.matmul_bias", "tile.gemv_bias")
def _matmul_bias(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _product(k, call, bound["lhs"], bound["rhs"], operand(k, bound["bias"], tile_type(call)))


def _product(k: Kernel, call: Call, lhs: Tile, rhs: Tile, acc: Value | None = None) -> Tile:
    """Return a product, added to an accumulator where there is one."""
    type_, common = tile_type(call), lhs.valid[-1]
    _check_rows(k, call, common, rhs.valid[-2])
    a, b = cut(k, lhs, -1, common), cut(k, rhs, -2, common)
    left, right = (k.t.small.get(each) for each in (a, b))
    dtype, kept = _computed_in(lhs.type.dtype, a.shape[-1]), type_.dtype.get_byte()
    (a, of_a), (b, of_b) = (_as(k, each, lhs.type.dtype, dtype) for each in (a, b))
    a, b = (_batched(k, each, type_) for each in (a, b))
    if (least := LEAST.get(type_.dtype)) is not None:
        a, b = _lengthened(k, a, -1, least), _lengthened(k, b, -2, least)
    shape, element = (*a.shape[:-1], b.shape[-1]), element_of(type_.dtype)
    is_apart = acc is not None and len(shape) < len(acc.shape)  # Triton loads no blocks ahead around such a sum
    start = literal(k.t, 0, Value("", element, shape)) if acc is None or is_apart else under(k, acc, shape)
    together = ALL if call in k.facts.coarse else TOGETHER
    described = _of_small(left, right, start, together) if left and right else ""

    def dot(x: Value, y: Value, before: Value) -> Value:
        if dtype == INT8:
            factors = digits.digits(k.t, x, of_a, kept), digits.digits(k.t, y, of_b, kept)
            return digits.product(k.t, *factors, before, plain)
        return plain(x, y, before)

    def plain(x: Value, y: Value, before: Value) -> Value:
        parts = f", inputPrecision = {_precision(prod(before.shape), x.shape[-1])}" if dtype == FP32 else ""
        said = f"tt.dot {x}, {y}, {before}{parts} : {x.type} * {y.type} -> {before.type}"
        return k.t.op(said, before.element, before.shape, "" if x is not a else described)

    through_memory = _is_large(k, call, a, b, start)
    k.facts.is_large |= through_memory
    value = product(k.t, a, b, start, dot) if through_memory else dot(a, b, start)
    k.facts.products.append((prod(shape[:-1]), shape[-1]))
    value = under(k, value, padded(type_.shape))
    if acc is not None and is_apart:
        value = k.t.simple("arith.addf" if type_.dtype.is_float() else "arith.addi", acc, value)
    return k.tile(value, type_, _valid(type_, lhs, rhs))


def _is_large(k: Kernel, call: Call, a: Value, b: Value, start: Value) -> bool:
    """Return whether there is no room for factors, or for what becomes of a product that nothing makes shorter.

    Products of older matrix units are handed on in parts.
    """
    is_short = k.t.room < WIDE or tile_type(call).shape in k.facts.shortened
    return is_large(k.t, a, b) or (not is_short and is_large(k.t, start))


def _of_small(a: Value, b: Value, start: Value, together: int) -> str:
    """Return a product of floats of 8 bits on the matrix units, which add up some of them less exactly than fp32."""
    return f"tt.dot {a}, {b}, {start} {{maxNumImpreciseAcc = {together} : i32}} : {a.type} * {b.type} -> {start.type}"


def _precision(count: int, length: int) -> str:
    """Return how fp32 is multiplied: one by one, which is as many instructions, or as exactly in three parts."""
    return "tf32x3" if count * length > MOST_STEPS and length >= LEAST_OF_PARTS else "ieee"


def _valid(type_: TileType, lhs: Tile, rhs: Tile) -> list[Extent]:
    """Return what is valid of a product; along batches that its factors do not span, all."""
    rank = len(type_.shape)
    found: list[Extent] = []
    for axis in range(-rank, -2):
        spanning = [each for each in (lhs, rhs) if len(each.valid) >= -axis and each.type.shape[axis] != 1]
        found.append(spanning[0].valid[axis] if spanning else type_.shape[axis])
    return [*found, lhs.valid[-2], rhs.valid[-1]]


def _batched(k: Kernel, value: Value, type_: TileType) -> Value:
    """Return a factor with one axis for all batches of a product, where that has more than one."""
    batch = padded(type_.shape)[:-2]
    if prod(batch) == 1:
        return under(k, value, value.shape[-2:])
    whole = extents.spread(k.t, of_rank(k, value, len(batch) + 2), (*batch, *value.shape[-2:]))
    return under(k, whole, (prod(batch), *value.shape[-2:]))


def under(k: Kernel, value: Value, shape: tuple[int, ...]) -> Value:
    """Return elements under another shape."""
    return value if value.shape == shape else k.t.shaped("tt.reshape", value, shape)


def _lengthened(k: Kernel, value: Value, axis: int, least: int) -> Value:
    """Return a factor with zeros behind its common axis, which then is long enough."""
    while value.shape[axis] < least:
        value = k.t.doubled(value, zeros(k, value), axis % len(value.shape))
    return value


def _check_rows(k: Kernel, call: Call, columns: Extent, rows: Extent) -> None:
    if columns == rows or (isinstance(columns, int) and isinstance(rows, int)):
        return  # what is known was checked with the types
    missing = k.t.compare("cmpi sgt", extents.held(k.t, columns), extents.held(k.t, rows))
    k.fail(missing, f"a matrix product reads data that is not there\n{MISSING_ROWS}", call.span)


def _computed_in(dtype: DataType, length: int) -> DataType:
    """Return the type that elements are multiplied in; floats of 8 bits are fp16, too, and integers some bytes."""
    is_long = dtype in LEAST
    if dtype in SMALL_FLOATS:
        dtype = FP16
    if dtype.is_int():
        dtype = INT8
    if is_long or length >= MATRIX_UNITS.get(dtype, 1 << 20):
        return dtype
    return FP32 if dtype.is_float() else INT32


def _as(k: Kernel, value: Value, source: DataType, target: DataType) -> tuple[Value, DataType]:
    """Return elements to be multiplied, and what they are."""
    if target == INT8:
        return digits.narrowed(k.t, value, source)
    return as_element(k.t, value, source, target), target


def cut(k: Kernel, tile: Tile, axis: int, common: Extent) -> Value:
    """Return a tile with zeros where the common axis is not valid."""
    axis %= len(tile.valid)
    if tile.is_zero_outside and tile.valid[axis] == common:
        return tile.value
    everywhere = {other: extent for other, extent in enumerate(tile.value.shape)} | {axis: common}
    mask = k.mask(tile, everywhere)
    return tile.value if mask is None else k.t.select(mask, tile.value, zeros(k, tile.value))
