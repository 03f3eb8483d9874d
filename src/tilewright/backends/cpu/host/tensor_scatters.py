"""Scatters into tensors: into a copy of one, or rows into one itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import moved, product, times
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.indexed import Largest
from tilewright.backends.cpu.compute.scatters import put_row, put_rows
from tilewright.backends.cpu.compute.selections import put_columns
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.backends.cpu.host.tensors import buffer, loaded, made_for, put
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64
from tilewright.ops.indices import pattern_of
from tilewright.ops.scatter import SMALLER
from tilewright.ops.scatter_update import SHAPES


@lowers("tensor.scatter")
def _scatter(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    source, index = bound["src"], bound["index"]
    if bound["dst"] is not None:
        pattern, given, target = pattern_of(bound["mask_pattern"]), bound["input"], bound["dst"]
        wanted = given.shape[0], times(e, given.shape[1], i64(pattern.step))
        _check_same(e, call, wanted, target.shape, SMALLER)
        covers = given.valid == given.shape and static(target.strides[-1]) == 1
        with made_for(e, call, target.shape, target.dtype) as made:
            if not covers:
                put(e, loaded(target, target.shape), made)
            put_columns(e, given, made, pattern, target if covers else None)
        return made
    target = bound["input"]
    _check_same(e, call, source.shape, index.shape, SMALLER)
    _check_same(e, call, index.shape, target.shape, SMALLER, wrong="icmp sgt")
    made = _copy(e, call, target)
    with rows_of(e, source.valid[:-1]) as (row,):
        e.worked(PIECE)
        come, at, go = (moved(e, tensor, (row, i64(0))) for tensor in (source, index, made))
        if e.checked:
            largest = Largest(e, index.dtype)
            largest.see(at, index.strides[-1], index.valid[-1])
            largest.stop_outside(call, target.shape[1], "index", index.valid[-1])
        put_row(e, source, come, index, at, go, i64(1), source.valid[-1])
    return made


def _copy(e: FunctionEmitter, call: Call, source: Tensor) -> Tensor:
    made = buffer(e, call, source.shape, source.dtype)
    put(e, loaded(source, source.shape), made)
    return made


def _check_same(
    e: FunctionEmitter, call: Call, want: Sequence[Value], have: Sequence[Value], help: str, wrong: str = "icmp ne"
) -> None:
    """Emit the end of the function where extents differ from others, or are wrong beside them in another way."""
    for a, b in zip(want, have, strict=True):
        if a != b and (static(a) is None or static(b) is None):
            e.stop(e.b.compare(wrong, a, b), f"what is scattered does not fit\n{help}", call)


@lowers("tensor.scatter_update")
def _scatter_update(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    target, index, source = bound["input"], bound["index"], bound["src"]
    axes = 1 if len(target.shape) == 2 else 2
    counted = (product(e, index.shape),) if axes == 1 else index.shape
    _check_same(e, call, source.shape, (*counted, *target.shape[axes:]), SHAPES)
    put_rows(e, call, source, index, target)
    return target
