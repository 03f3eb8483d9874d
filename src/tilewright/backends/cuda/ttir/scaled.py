"""Scaled products: 32 steps of a plain product at a time, each multiplied by its powers of two and added up.

The sum of 32 products of small floats is well within fp32 whatever the powers are, and so are they: the exponents of
both sides are added first, and half of that is multiplied by at a time.
"""

from __future__ import annotations

from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, literal
from tilewright.backends.cuda.ttir.formats import to_f32
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.products import added, cut, under
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reduce import fold
from tilewright.backends.cuda.ttir.text import Value, type_of
from tilewright.backends.cuda.ttir.tiles import operand, tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.dtypes import FP8E4M3FN, FP8E8M0, FP16, FP32, FP64, UINT32
from tilewright.ops.mx import GROUP, MISSING, SHORT

NOT_A_NUMBER = 255


@recipe("tile.matmul_mx")
def _product(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _scaled(k, call, bound)


@recipe("tile.matmul_mx_acc")
def _product_acc(k: Kernel, call: Call, bound: Bound) -> Tile:
    return added(k, call, bound["acc"], _scaled(k, call, bound, bound["acc"].value))


@recipe("tile.matmul_mx_bias")
def _product_bias(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _scaled(k, call, bound, operand(k, bound["bias"], tile_type(call)))


def _scaled(k: Kernel, call: Call, bound: Bound, acc: Value | None = None) -> Tile:
    """Return a product of small floats with exponents, added to an accumulator where there is one."""
    t, type_, lhs, rhs = k.t, tile_type(call), bound["lhs"], bound["rhs"]
    scales: list[Tile] = [bound["lhs_scale"], bound["rhs_scale"]]
    _check_groups(k, call, lhs, rhs, scales)
    depth = lhs.valid[1]
    a, b = (as_element(t, each, FP8E4M3FN, FP16) for each in (cut(k, lhs, 1, depth), cut(k, rhs, 0, depth)))
    (m, inner), n = a.shape, b.shape[1]
    groups = inner // GROUP
    a = t.turned(under(k, a, (m, groups, GROUP)), [1, 0, 2])
    b, shape = under(k, b, (groups, GROUP, n)), (groups, m, n)
    start = literal(t, 0, Value("", "f32", shape))
    types = f"{a.type} * {b.type} -> {type_of('f32', shape)}"
    parts = Elements(t, t.op(f"tt.dot {a}, {b}, {start} : {types}", "f32", shape), FP32)
    k.facts.products.append((prod(shape[:-1]), shape[-1]))
    total = _summed(k, parts, scales, lhs.type.shape[1] // GROUP)
    if acc is not None:
        total = t.simple("arith.addf", as_element(t, acc, FP32, FP64), total)
    return k.tile(as_element(t, total, FP64, FP32), type_, (lhs.valid[0], rhs.valid[1]))


def _summed(k: Kernel, parts: Elements, scales: list[Tile], groups: int) -> Value:
    """Return the products of groups, each by its powers of two, added up; what is behind the last group is nothing."""
    t, shape = k.t, parts.value.shape
    left, right = (_codes(k, scale) for scale in scales)
    rows = t.turned(left.value, [1, 0])
    codes = [
        parts.of(extents.spread(t, under(k, value, one), shape), UINT32)
        for value, one in ((rows, (shape[0], shape[1], 1)), (right.value, (shape[0], 1, shape[2])))
    ]
    both = codes[0] + codes[1]
    first = UFUNCS["right_shift"](both, both.like(1))
    scaled = parts
    for half in (first, both - first):
        byte = t.convert("arith.trunci", half.value, "i8")
        scaled = scaled * parts.of(to_f32(t, byte, FP8E8M0))
    is_none = (codes[0] == NOT_A_NUMBER) | (codes[1] == NOT_A_NUMBER)
    scaled = scaled.function("where", (is_none, float("nan"), scaled))
    inside = k.inside(shape, (groups, *shape[1:]))
    if inside is not None:
        scaled = parts.of(t.select(inside, scaled.value, scaled.like(0.0).value))
    wide = scaled.of(as_element(t, scaled.value, FP32, FP64), FP64)
    return fold(k, wide, 0, "add")


def _codes(k: Kernel, scale: Tile) -> Elements:
    return Elements(k.t, k.t.convert("arith.extui", scale.value, "i32"), UINT32)


def _check_groups(k: Kernel, call: Call, lhs: Tile, rhs: Tile, scales: list[Tile]) -> None:
    """Note an error where one side is given more than the other, or exponents are missing."""
    t, (rows, depth), (found, columns) = k.t, lhs.valid, rhs.valid
    groups = lhs.type.shape[1] // GROUP
    for a, b in ((depth, found), (extents.counted(t, depth, GROUP), groups)):
        if a != b:
            uneven = t.compare("cmpi ne", extents.held(t, a), extents.held(t, b))
            k.fail(uneven, f"a scaled product is not given as much as it needs\n{SHORT}", call.span)
    needed = zip((*scales[0].valid, *scales[1].valid), (rows, groups, groups, columns), strict=True)
    for have, want in needed:
        if have != want and not (isinstance(have, int) and isinstance(want, int) and have >= want):
            k.fail(t.compare("cmpi slt", extents.held(t, have), extents.held(t, want)), MISSING, call.span)
