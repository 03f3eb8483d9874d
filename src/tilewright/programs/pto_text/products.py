"""Products: what the cube computes, from tiles that move to its memories."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP8E4M3FN, UINT8
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.meeting import valid_of_all
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import LINE, Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    as_valid,
    by_rows,
    filled_around,
    in_vec,
    least,
    matrix,
    part_of,
    seen_as,
    whole_of,
    writes,
)
from tilewright.programs.pto_text.writer import CUBE, Writer
from tilewright.records import record


@record
class Factors:
    """What a product is of, where the cube multiplies."""

    op: str
    tiles: tuple[Tile, ...]
    valid: Pair
    room: tuple[int, int]


PLAIN = ("matmul", "matmul_acc", "batch_matmul", "batch_matmul_acc", "gemv", "gemv_acc")
"""Products that are not scaled, alone or added to a matrix."""
BIASED = ("matmul_bias", "gemv_bias")
"""Those that are added to a row."""


def reach_of(w: Writer, call: Call, given: Given) -> Pair:
    """Return how much of a product is valid: rows of the left side, columns of the right, within what is added to."""
    (rows, _), (_, columns) = (
        given[name].valid[::-1] if given.get(turned) else given[name].valid
        for name, turned in (("lhs", "a_trans"), ("rhs", "b_trans"))
    )
    if given.get("acc") is None:
        return rows, columns
    return least(w, rows, given["acc"].valid[0]), least(w, columns, given["acc"].valid[1])


@writes(*(f"tile.{name}" for name in PLAIN))
@partial(each_matrix, reach=reach_of)
def _product(w: Writer, call: Call, given: Given) -> Tile:
    return _multiplied(w, call, given, _factors(w, given))


def _factors(w: Writer, given: Given) -> Factors:
    """Write both sides of a product to where the cube multiplies."""
    sides = (given["lhs"], bool(given.get("a_trans"))), (given["rhs"], bool(given.get("b_trans")))
    a, b = (_turned(w, tile) if is_turned else tile for tile, is_turned in sides)
    a, b = _filled(w, a, MemorySpace.Left), _filled(w, b, MemorySpace.Right)
    return Factors("tmatmul", (a, b), (a.valid[0], b.valid[1]), (a.room[0], b.room[1]))


def _turned(w: Writer, tile: Tile) -> Tile:
    x = in_vec(w, tile)
    return w.op("ttrans", [x], w.tile("turned", x.dtype, (x.shape[1], x.shape[0]), (x.valid[1], x.valid[0])))


_SCALED = ("matmul_mx", "matmul_mx_acc")


@writes(*(f"tile.{name}" for name in _SCALED))
def _scaled(w: Writer, call: Call, given: Given) -> Tile:
    return _multiplied(w, call, given, _scaled_factors(w, call, given))


@writes("tile.matmul_mx_bias")
def _scaled_with_bias(w: Writer, call: Call, given: Given) -> Tile:
    return _biased(w, call, given, _scaled_factors(w, call, given))


def _scaled_factors(w: Writer, call: Call, given: Given) -> Factors:
    """Write both sides of a scaled product, and a power of two for every 32 of their elements along the inner axis."""
    sides = {"lhs": _filled_up(w, given["lhs"], 1), "rhs": _filled_up(w, given["rhs"], 0)}
    plain = _factors(w, sides)
    a, b = plain.tiles
    left, right = (_exponents(w, given[name]) for name in ("lhs_scale", "rhs_scale"))
    return replace(plain, op="tmatmul.mx", tiles=(a, left, b, right), valid=reach_of(w, call, {**given, "acc": None}))


def _filled_up(w: Writer, tile: Tile, depth: int) -> Tile:
    """Return a side of a scaled product as far as PTO multiplies it, which sums over groups of 32 and knows how many.

    There are zeros behind its depth, and what only the run knows of the other axis is all of that.
    """
    is_deep, other = tile.valid[depth].known == tile.shape[depth], tile.valid[1 - depth].known
    if is_deep and other:
        return tile
    whole = whole_of(w, tile.shape)
    if is_deep:
        return part_of(w, tile, (w.constant(0), w.constant(0)), tile.shape, whole)
    bytes_ = filled_around(w, "deep", UINT8, tile.shape, 0, tile.valid)
    w.op("tmov", [in_vec(w, tile)], replace(bytes_, valid=w.unknown(tile.valid)))
    w.resize(bytes_, whole)
    return seen_as(w, bytes_, tile.dtype, tile.shape, bytes_.room)


def _exponents(w: Writer, tile: Tile) -> Tile:
    """Write exponents to where the cube scales, as rows of their own length."""
    there = in_vec(w, tile)
    whole = w.constant(there.shape[0]), w.constant(there.shape[1])
    part = part_of(w, there, (w.constant(0), w.constant(0)), there.shape, whole)
    for memory in (MemorySpace.Mat, MemorySpace.LeftScale):
        part = w.op("tmov", [part], w.tile("exponents", tile.dtype, tile.shape, whole, memory, room=tile.shape))
    return part


def _multiplied(w: Writer, call: Call, given: Given, factors: Factors) -> Tile:
    acc, (shape, type_), first = given.get("acc"), matrix(call), cast("Number | None", given.get("init_cond"))
    if acc is not None and acc.memory is MemorySpace.Acc:
        return _summed(w, acc, factors, first)
    hint, memory = call.op.spec.name, MemorySpace.Acc
    place = w.tile(hint, type_.dtype, shape, factors.valid, memory, room=factors.room)
    product = w.op(factors.op, factors.tiles, place)
    if acc is None or (acc.name in w.zeros and first is None):
        return product
    made = in_vec(w, product)  # since nothing leads back to an accumulator
    valid = valid_of_all(w, (acc, made), shape)
    acc, made, out = as_valid(w, acc, valid), as_valid(w, made, valid), w.tile(hint, type_.dtype, shape, valid)
    if first is None:
        return by_rows(w, "tadd", [acc, made], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op("tmov", [made], out)
        otherwise()
        by_rows(w, "tadd", [acc, made], out)
    return out


def _filled(w: Writer, tile: Tile, memory: MemorySpace) -> Tile:
    """Write a tile to one of the memories from which the cube multiplies, by way of the one that fills them."""
    is_small, (rows, cols) = tile.dtype == FP8E4M3FN and memory is MemorySpace.Left, tile.shape
    room = (rows, cols) if is_small and not rows % 16 and not cols % LINE else None
    if tile.memory is not MemorySpace.Mat:
        tile = _put(w, tile if w.core == CUBE else in_vec(w, tile), MemorySpace.Mat, room)
    return _put(w, tile, memory, room or tile.room)


def _put(w: Writer, tile: Tile, memory: MemorySpace, room: tuple[int, int] | None) -> Tile:
    return w.op("tmov", [tile], w.tile(tile.name[1:], tile.dtype, tile.shape, tile.valid, memory, room=room))


@writes(*(f"tile.{name}" for name in BIASED))
@partial(each_matrix, reach=reach_of)
def _with_bias(w: Writer, call: Call, given: Given) -> Tile:
    return _biased(w, call, given, _factors(w, given))


def _biased(w: Writer, call: Call, given: Given, factors: Factors) -> Tile:
    """Write a product that begins with a row for each of its rows."""
    (shape, type_), row = matrix(call), in_vec(w, given["bias"])
    for memory in (MemorySpace.Mat, MemorySpace.Bias):
        row = w.op("tmov", [row], w.tile("bias", type_.dtype, row.shape, row.valid, memory, room=(1, factors.room[1])))
    out = w.tile(call.op.spec.name, type_.dtype, shape, factors.valid, MemorySpace.Acc, room=factors.room)
    return w.op(f"{factors.op}.bias", [*factors.tiles, row], out)


def _summed(w: Writer, acc: Tile, factors: Factors, first: Number | None) -> Tile:
    """Write a product that is added to an accumulator: in place where a loop carries that, or else to a new one."""
    begins = w.sums.get(acc.name)
    is_open = None in (number.known for number in acc.valid)
    if acc.name not in w.sums:
        out = w.tile("matmul_acc", acc.dtype, acc.shape, factors.valid, MemorySpace.Acc, room=factors.room)
    else:
        out = replace(acc, valid=w.unknown(factors.valid)) if is_open else acc
        if is_open:
            w.resize(out, factors.valid)
    if begins is not None:
        start = computed(w, "eq", [*begins], BOOL)
        first = start if first is None else computed(w, "or_", [first, start], BOOL)
    if first is None:
        return w.op(f"{factors.op}.acc", [acc, *factors.tiles], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op(factors.op, factors.tiles, out)
        otherwise()
        w.op(f"{factors.op}.acc", [acc, *factors.tiles], out)
    return out
