"""Looks: operands that an op looks at where others are valid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64


def look_at_met(e: FunctionEmitter, call: Call, name: str, operand: Tile | Scalar, valid: Sequence[Value]) -> None:
    """Check that an operand holds data wherever a broadcast looks at it."""
    if isinstance(operand, Tile):
        own = valid[len(valid) - len(operand.valid) :]
        needed = [i64(1) if n == 1 else v for n, v in zip(operand.type.shape, own, strict=True)]
        empty = [e.b.compare("icmp sle", extent, i64(0)) for extent in valid if static(extent) is None]
        nothing = reduce(lambda x, y: e.b.op("or", x, y), empty) if empty else None
        if not any(static(extent) == 0 for extent in valid):
            e.look(call, name, operand, needed, unless=nothing)
