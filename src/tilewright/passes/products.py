"""Products among the ops of a kernel: which they are, and what their right operands are read from."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.types import TileType
from tilewright.dtypes import BF16, FP16, FP32, INT8, UINT8, DataType

PRODUCTS = ("matmul", "batch_matmul", "gemv")
SUMS = ("matmul_acc", "batch_matmul_acc", "gemv_acc")
BIASED = ("matmul_bias", "gemv_bias")

EXACT = {FP32: (INT8, UINT8, FP16, BF16), FP16: (INT8, UINT8), BF16: (INT8, UINT8)}
"""Which elements keep their value as others."""


def read_from(made: Mapping[Var, Call], operand: Var) -> Var | None:
    """Return the loaded tile that an operand is, or is a cast of that changes no value."""
    call = made.get(operand)
    source = arguments(call)["x"] if call is not None and call.op.spec.name == "cast" else operand
    if not isinstance(source, Var) or source not in made or made[source].op.spec.name != "load":
        return None
    return source if source is operand or _dtype(source) in EXACT.get(_dtype(operand), ()) else None


def _dtype(tile: Var) -> DataType:
    assert isinstance(tile.type, TileType)
    return tile.type.dtype
