"""Scaled products: 32 steps of a plain product at a time, each multiplied by its powers of two and added up.

The sum of 32 products of small floats is well within fp32 whatever the powers are, and so are they: the exponents of
both sides are added first, and half of that is multiplied by at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.convert import to_elements
from tilewright.backends.cpu.compute.copies import (
    as_tensor,
    clear_bytes,
    copy_elements,
    element_at,
    known_or,
    tile_type,
    with_adjacent_rows,
)
from tilewright.backends.cpu.compute.gemm_blocks import GemmSpec
from tilewright.backends.cpu.compute.matrix_products import run_gemm
from tilewright.backends.cpu.compute.nodes import MapNode
from tilewright.backends.cpu.compute.products import least_part
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import Group, StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Place, Tile, static
from tilewright.backends.cpu.emit.work import ELEMENTS
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import FP8E8M0, FP32
from tilewright.native.llvm import F32, FALSE, I32, Value, i64
from tilewright.native.terms import Term
from tilewright.ops.mx import GROUP, MISSING, SHORT

BIAS = 127
"""What an exponent is stored with, of fp32 as of fp8e8m0."""
NOT_A_NUMBER = 255
UNEVEN = f"a scaled product is not given as much as it needs\n{SHORT}"


@lowers("tile.matmul_mx")
def _product(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    valid = _valid(call, bound)
    result = e.fresh(tile_type(call), valid)
    assert result.place is not None
    clear_bytes(e, result.place.pointer, result.type.nbytes)
    return _add(e, call, bound, result)


@lowers("tile.matmul_mx_acc")
def _product_acc(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, acc = tile_type(call), bound["acc"]
    valid = known_or(type_, least_part(e, acc.valid, _valid(call, bound), type_.shape))
    e.look(call, "acc", acc, valid)
    return _add(e, call, bound, _copied(e, e.stored(acc), e.fresh(type_, valid)))


@lowers("tile.matmul_mx_bias")
def _product_bias(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    valid = _valid(call, bound)
    e.look(call, "bias", bound["bias"], (i64(1), valid[1]))
    place = e.stored(bound["bias"])
    row = Place(place.pointer, (0, place.strides[-1]))
    return _add(e, call, bound, _copied(e, row, e.fresh(tile_type(call), valid)))


def _valid(call: Call, bound: Bound) -> tuple[Value, ...]:
    return known_or(tile_type(call), (bound["lhs"].valid[0], bound["rhs"].valid[1]))


def _copied(e: FunctionEmitter, source: Place, result: Tile) -> Tile:
    assert result.place is not None
    copy_elements(e, FP32, source, result.place, result.valid)
    return result


def _add(e: FunctionEmitter, call: Call, bound: Bound, result: Tile) -> Tile:
    """Emit a scaled product added to a tile, group by group."""
    kept, result.owners = result.owners, variables(call.args)  # until it has one of its own
    left, right = (_decoded(e, call, bound[name]) for name in ("lhs", "rhs"))
    scales = [with_adjacent_rows(e, bound[name]) for name in ("lhs_scale", "rhs_scale")]
    depth = _depth(e, call, bound)
    part = e.fresh(TileType(result.type.shape, FP32, result.type.valid), result.valid)
    part.owners = variables(call.args)
    m, n = result.valid
    spec = GemmSpec(e.program.target, FP32, FP32, static(m), static(n), result.type.shape[1])
    work = result.type.nbytes // 4 * GROUP // ELEMENTS
    groups = e.b.op("sdiv", e.b.op("add", depth, i64(GROUP - 1)), i64(GROUP))
    with e.b.loop(i64(0), groups, i64(1)) as group:
        start = e.b.op("mul", group, i64(GROUP))
        steps = e.b.intrinsic("llvm.smin", e.b.op("sub", depth, start), i64(GROUP))
        a, b, c = (tile.place for tile in (left, right, part))
        assert a is not None and b is not None and c is not None
        run_gemm(
            e, spec, work, element_at(e, FP32, a, (i64(0), start)), i64(a.strides[0]), i64(1),
            element_at(e, FP32, b, (start, i64(0))), i64(b.strides[0]), c.pointer, i64(c.strides[0]),
            m, n, steps, FALSE,
        )  # fmt: skip
        column = _scale(e, scales[0], (i64(0), group), (scales[0].type.shape[0], 1))
        row = _scale(e, scales[1], (group, i64(0)), (1, scales[1].type.shape[1]))
        _store(e, (result, part, column, row), result)
    result.owners = kept
    return result


def _store(e: FunctionEmitter, operands: tuple[Tile, ...], result: Tile) -> None:
    total = Tile(result.type, result.valid, node=MapNode(operands, function=_scaled_sum))
    e.run(Group(total.rows, [total], [StoreSink(total, tensor=as_tensor(result), offsets=(i64(0), i64(0)))]))


def _decoded(e: FunctionEmitter, call: Call, tile: Tile) -> Tile:
    """Return a tile of small floats as fp32."""
    rows = with_adjacent_rows(e, tile)
    e.stored(rows)
    type_ = TileType(tile.type.shape, FP32, tile.type.valid)
    result = e.fresh(type_, tile.valid)
    result.owners = variables(call.args)
    floats = Tile(type_, tile.valid, node=MapNode((rows,), function=to_elements(FP32)))
    e.run(Group(floats.rows, [floats], [StoreSink(floats, tensor=as_tensor(result), offsets=(i64(0), i64(0)))]))
    return result


def _depth(e: FunctionEmitter, call: Call, bound: Bound) -> Value:
    """Return how many products are summed; sides or scales that do not reach as far are an error."""
    lhs, rhs, most = bound["lhs"], bound["rhs"], bound["lhs"].type.shape[1]
    depth, low = lhs.valid[1], most - most % GROUP - GROUP
    _check(e, call, ((depth, rhs.valid[0], "icmp ne"), (depth, i64(low + 1), "icmp slt")), UNEVEN)
    left, right, groups = bound["lhs_scale"].valid, bound["rhs_scale"].valid, i64(most // GROUP)
    pairs = ((left[0], lhs.valid[0]), (left[1], groups), (right[0], groups), (right[1], rhs.valid[1]))
    _check(e, call, [(have, want, "icmp slt") for have, want in pairs], MISSING)
    return e.b.intrinsic("llvm.smin", depth, rhs.valid[0]) if depth != rhs.valid[0] else depth


def _check(e: FunctionEmitter, call: Call, pairs: Sequence[tuple[Value, Value, str]], message: str) -> None:
    for have, want, wrong in pairs:
        a, b = static(have), static(want)
        if have != want and (a is None or b is None or (wrong == "icmp slt" and a < b)):
            e.stop(e.b.compare(wrong, have, want), message, call)


def _scale(e: FunctionEmitter, tile: Tile, at: tuple[Value, Value], shape: tuple[int, int]) -> Tile:
    """Return the exponents of one group: a column on the left, a row on the right."""
    place = e.stored(tile)
    pointer = element_at(e, FP8E8M0, place, at)
    return Tile(TileType(shape, FP8E8M0, shape), tuple(map(i64, shape)), place=Place(pointer, place.strides))


def _scaled_sum(total: Lanes, part: Lanes, left: Lanes, right: Lanes) -> Lanes:
    """Return a sum with a part added that is multiplied by two powers of two."""
    b = total.b
    x, y = (Term(b, exponent.value).to("zext", I32) for exponent in (left, right))
    power = x + y - 2 * BIAS
    half = power >> 1
    scaled = Term(b, part.value) * _power(half) * _power(power - half)
    for exponent in (x, y):
        scaled = exponent.compare("", "eq", NOT_A_NUMBER).choose(scaled.like(float("nan")), scaled)
    return Lanes(b, (Term(b, total.value) + scaled).value, FP32)


def _power(exponent: Term) -> Term:
    """Return two to the exponents, zero for the least: what that is multiplied by is no number of fp32 any more."""
    return ((exponent + BIAS) << 23).to("bitcast", F32)
