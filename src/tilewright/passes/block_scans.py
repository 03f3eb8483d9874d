"""Blocking of scans: each block is scanned by itself, and folded with what the blocks before it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Expr, Var, integer
from tilewright.core.operands import Argument
from tilewright.dtypes import FP32
from tilewright.passes.blocks import COMBINED, FOLDED, ZERO, Blocks, Offsets, sizes_of, tensor_type

FOLDS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
"""What the blocks before one are folded by."""


def scan(b: Blocks, value: Call, given: Mapping[str, Argument]) -> Var:
    """Write a scan along one of the last two axes, block by block; other axes take the place of the second last."""
    x, axis, is_reverse = given["x"], given["axis"], bool(given["reverse"])
    assert isinstance(x, Var) and isinstance(axis, int)
    rank = len(tensor_type(x).shape)
    place = axis % rank - rank
    if place >= -2:
        return _scan(b, value, x, place, is_reverse)
    turned = b.do("tensor.transpose", x=x, axis1=place, axis2=-2)
    return b.do("tensor.transpose", x=_scan(b, value, turned, -2, is_reverse), axis1=place, axis2=-2)


def _scan(b: Blocks, value: Call, x: Var, axis: int, is_reverse: bool) -> Var:
    spec, dtype = value.op.spec, tensor_type(value).dtype
    rounds = spec.combine in ("add", "multiply") and dtype.is_float() and dtype.bits < 32
    wide, fold = FP32 if rounds else dtype, f"tile.{'row' if axis == -1 else 'col'}_{FOLDS[spec.combine]}"
    shape, valid = b.extents(x), b.extents(x, valid=True)
    sizes = sizes_of(valid, 64, 256) if axis == -2 else sizes_of(valid, *FOLDED)
    depth, size = valid[axis], sizes[axis]
    made, first = b.create(shape, dtype), _last_block(depth, size) if is_reverse else ZERO

    def block(inner: Blocks, at: Offsets) -> None:
        def part(each: Blocks, along: Expr) -> tuple[Var, Var, Offsets]:
            where = list(at)
            where[axis] = along
            tile = each.cast(each.load(x, where, sizes), wide)
            scanned = each.do(f"tile.{spec.name}", x=tile, axis=axis, reverse=is_reverse)
            return scanned, each.do(fold, x=tile), where

        def step(each: Blocks, held: Sequence[Var], along: Expr) -> list[Var]:
            scanned, total, where = part(each, scalar("sub", first, along) if is_reverse else along)
            both = each.do(COMBINED[spec.combine], lhs=scanned, rhs=held[0])
            each.store(each.cast(both, dtype), where, made)
            return [each.do(COMBINED[spec.combine], lhs=held[0], rhs=total)]

        scanned, total, where = part(inner, first)
        inner.store(inner.cast(scanned, dtype), where, made)
        inner.carried([total], depth, size, step)

    outer = [*valid]
    outer[axis] = integer(1)
    steps = [*sizes]
    steps[axis] = 1
    b.each(outer, steps, block)
    return b.part(made, shape, valid)


def _last_block(depth: Expr, size: int) -> Expr:
    """Return where the last block along an axis begins."""
    before = scalar("floordiv", scalar("sub", depth, integer(1)), integer(size))
    return scalar("mul", scalar("max", before, ZERO), integer(size))
