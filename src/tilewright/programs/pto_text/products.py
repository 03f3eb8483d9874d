"""Products: what the cube computes, from tiles that move to its memories."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Given, in_vec, matrix, moved, refuse, refuse_batches, result, writes
from tilewright.programs.pto_text.writer import Writer

_NAMES = ("matmul", "matmul_acc", "batch_matmul", "batch_matmul_acc", "gemv", "gemv_acc")


@writes(*(f"tile.{name}" for name in _NAMES))
def _product(w: Writer, call: Call, given: Given) -> Tile:
    return _multiplied(w, call, given)


def _multiplied(w: Writer, call: Call, given: Given) -> Tile:
    refuse_batches(call)
    acc, (lhs, rhs) = given.get("acc"), (given["lhs"], given["rhs"])
    is_turned = bool(given.get("a_trans") or given.get("b_trans"))
    refuse(call, is_turned, "of a transposed operand", "transpose the tile with `pl.transpose` first")
    shape, type_ = matrix(call)
    a = moved(w, moved(w, in_vec(w, lhs), MemorySpace.Mat), MemorySpace.Left)
    b = moved(w, moved(w, in_vec(w, rhs), MemorySpace.Mat), MemorySpace.Right)
    valid, room = (a.valid[0], b.valid[1]), (a.room[0], b.room[1])
    first: Number | None = given.get("init_cond")
    if acc is not None and acc.memory is MemorySpace.Acc:
        return _summed(w, acc, a, b, first)
    product = w.op("tmatmul", [a, b], w.tile(call.op.spec.name, type_.dtype, shape, valid, MemorySpace.Acc, room=room))
    if acc is None:
        return product
    made = in_vec(w, product)  # since nothing leads back to an accumulator
    out = w.tile(call.op.spec.name, type_.dtype, shape, made.valid)
    if first is None:
        return w.op("tadd", [acc, made], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op("tmov", [made], out)
        otherwise()
        w.op("tadd", [acc, made], out)
    return out


@writes("tile.matmul_bias", "tile.gemv_bias")
def _with_bias(w: Writer, call: Call, given: Given) -> Tile:
    """Write a product, and a row that is added to each of its rows where vectors are."""
    product, bias = in_vec(w, _multiplied(w, call, given)), in_vec(w, given["bias"])
    return w.op("tcolexpandadd", [product, bias], result(w, call, product.valid))


def _summed(w: Writer, acc: Tile, a: Tile, b: Tile, first: Number | None) -> Tile:
    """Write a product that is added to an accumulator: in place where a loop carries that, or else to a new one."""
    valid, begins = (a.valid[0], b.valid[1]), w.sums.get(acc.name)
    is_open = None in (number.known for number in acc.valid)
    if acc.name not in w.sums:
        out = w.tile("matmul_acc", acc.dtype, acc.shape, valid, MemorySpace.Acc, room=(a.room[0], b.room[1]))
    else:
        out = replace(acc, valid=w.unknown(valid)) if is_open else acc
        if is_open:
            w.resize(out, valid)
    if begins is not None:
        start = computed(w, "eq", [*begins], BOOL)
        first = start if first is None else computed(w, "or_", [first, start], BOOL)
    if first is None:
        return w.op("tmatmul.acc", [acc, a, b], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op("tmatmul", [a, b], out)
        otherwise()
        w.op("tmatmul.acc", [acc, a, b], out)
    return out
