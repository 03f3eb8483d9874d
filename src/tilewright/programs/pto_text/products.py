"""Products: what the cube computes, from tiles that move to its memories."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP8E4M3FN
from tilewright.programs.pto_text.elements import element_of
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.meeting import valid_of_all
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import LINE, Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    as_valid,
    by_rows,
    in_vec,
    least,
    matrix,
    part_of,
    refuse,
    result,
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
    plain = _factors(w, given)
    a, b = plain.tiles
    known = [extent.known for extent in (*a.valid, *b.valid)]
    refuse(call, None in known, "of matrices of which only the run knows how much is valid")
    refuse(call, a.valid[1].known != a.shape[1], "over a group of less than 32 elements", "fill it up: `pl.fillpad`")
    left, right = (_exponents(w, given[name]) for name in ("lhs_scale", "rhs_scale"))
    return replace(plain, op="tmatmul.mx", tiles=(a, left, b, right))


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
    """Write a product, and a row that is added to each of its rows where vectors are."""
    product = in_vec(w, _multiplied(w, call, given, factors))
    bias = in_vec(w, given["bias"])
    if product.is_column:
        number = element_of(w, bias, w.constant(0))
        return by_rows(w, "tadds", [product, number], result(w, call, product.valid))
    bias = as_valid(w, bias, (bias.valid[0], product.valid[1]))
    return w.op("tcolexpandadd", [product, bias], result(w, call, product.valid))


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
