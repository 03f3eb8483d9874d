"""Store targets: where what is gathered goes, memory of its own or that of the store which follows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext

from tilewright.backends.cpu.compute.addresses import moved, view_of
from tilewright.backends.cpu.compute.streaming import emit_streaming, streaming_pays
from tilewright.backends.cpu.compute.tiles import fitting
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.types import TileType
from tilewright.native.llvm import Value, i64
from tilewright.passes.store_targets import Target


@contextmanager
def gathered(
    e: FunctionEmitter, type_: TileType, valid: tuple[Value, ...]
) -> Generator[tuple[Tile, Tensor], None, None]:
    """Give a tile, and the memory that what is emitted inside fills for it; nothing runs where a store does not fit."""
    if e.step.target is None:
        result = e.fresh(type_, valid)
        yield result, view_of(e, result)
        return
    with stored_at(e, e.step.target, tuple(map(i64, type_.shape)), valid) as window:
        yield Tile(type_, valid), window


@contextmanager
def stored_at(
    e: FunctionEmitter, target: Target, shape: Sequence[Value], valid: Sequence[Value]
) -> Generator[Tensor, None, None]:
    """Give the part of a tensor that a store goes to; what is emitted inside runs where that fits."""
    e.flush()  # what is recorded may write there, or read what is there
    tensor = e.value(target.tensor)
    offsets = [e.scalar(offset) for offset in target.offsets.elements]
    assert isinstance(tensor, Tensor)
    fits = fitting(e, target.call, valid, tensor, offsets)
    pointer, strides = moved(e, tensor, e.indices(offsets)), tensor.strides[-len(shape) :]
    with nullcontext() if fits is None else e.b.when(fits):
        yield Tensor(pointer, tuple(shape), strides, tuple(valid), tensor.dtype, tensor.root)


def fill_rows(e: FunctionEmitter, made: Tensor, width: Value, emit: Callable[[bool], None]) -> None:
    """Emit what fills memory with rows: past the caches where it is part of a large tensor, plainly elsewhere."""
    tensor = None if e.step.target is None else e.value(e.step.target.tensor)
    pays = streaming_pays(e, tensor, made.pointer, static(width)) if isinstance(tensor, Tensor) else None
    emit_streaming(e, pays, emit)
