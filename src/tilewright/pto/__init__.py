"""PTO: kernels written as PTO text or in its embedded form, as `from tilewright import pto`.

Besides the names below every op of PTO is one, as `pto.vadd` or `pto.tile.add`, inside the body of a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.pto.compiled import CompiledKernelHandle
from tilewright.pto.declarations import (
    PartitionTensorView,
    TensorView,
    Tile,
    bf16,
    const_expr,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    hif8,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    mask,
    ptr,
    si8,
    si16,
    si32,
    si64,
    struct,
    tensor_spec,
    ui8,
    ui16,
    ui32,
    ui64,
    vreg,
)
from tilewright.pto.decorator import jit
from tilewright.pto.handle import KernelHandle
from tilewright.pto.module import Module
from tilewright.pto.source import parse
from tilewright.pto.specialization import merge_jit_modules
from tilewright.pto.traced.enumerations import BarrierType, MemorySpace, Pipe
from tilewright.pto.traced.namespace import operation, section, sync, tile

if TYPE_CHECKING:
    from tilewright.pto.traced.namespace import Operation

__all__ = [
    "BarrierType",
    "CompiledKernelHandle",
    "KernelHandle",
    "MemorySpace",
    "Module",
    "PartitionTensorView",
    "Pipe",
    "TensorView",
    "Tile",
    "bf16",
    "const_expr",
    "f16",
    "f32",
    "f8e4m3",
    "f8e5m2",
    "hif8",
    "i1",
    "i16",
    "i32",
    "i64",
    "i8",
    "index",
    "jit",
    "mask",
    "merge_jit_modules",
    "parse",
    "ptr",
    "section",
    "si16",
    "si32",
    "si64",
    "si8",
    "struct",
    "sync",
    "tensor_spec",
    "tile",
    "ui16",
    "ui32",
    "ui64",
    "ui8",
    "vreg",
]


def __getattr__(name: str) -> Operation:
    """Return the op of a name."""
    found = None if name.startswith("_") else operation(name)
    if found is None:
        raise AttributeError(f"module 'tilewright.pto' has no attribute {name!r}")
    return found
