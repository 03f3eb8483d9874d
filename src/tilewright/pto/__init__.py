"""PTO: kernels written as PTO text or in its embedded form, as `from tilewright import pto`.

Besides the names below every op of PTO is one, as `pto.vadd` or `pto.tile.add`, inside the body of a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.programs.pto_text.values import NoPtoError
from tilewright.pto.compiled import CompiledKernelHandle
from tilewright.pto.declarations import (
    PartitionTensorView,
    TensorView,
    Tile,
    bf16,
    const_expr,
    constexpr,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    float16,
    float32,
    gm_ptr,
    hif8,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    int1,
    int8,
    int16,
    int32,
    int64,
    mask,
    mask_b8,
    mask_b16,
    mask_b32,
    mask_type,
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
    vreg_type,
)
from tilewright.pto.decorator import jit
from tilewright.pto.handle import KernelHandle
from tilewright.pto.module import Module
from tilewright.pto.source import parse
from tilewright.pto.specialization import merge_jit_modules
from tilewright.pto.traced.enumerations import (
    PAT,
    BarrierType,
    BLayout,
    CmpMode,
    DeinterleaveDist,
    InterleaveDist,
    MaskPattern,
    MemorySpace,
    PartMode,
    Pipe,
    PositionMode,
    PostUpdate,
    PredicateDist,
    PredicatePart,
    RoundMode,
    SatMode,
    SLayout,
    SplitMode,
    VcvtPartMode,
    VcvtRoundMode,
    VcvtSatMode,
    VPackPart,
    VStoreDist,
)
from tilewright.pto.traced.namespace import operation, scalar, section, sync, tile
from tilewright.pto.traced.subkernels import cube, func, simd, simt, tileop

if TYPE_CHECKING:
    from tilewright.pto.traced.namespace import Operation

__all__ = [
    "BLayout",
    "BarrierType",
    "CmpMode",
    "CompiledKernelHandle",
    "DeinterleaveDist",
    "InterleaveDist",
    "KernelHandle",
    "MaskPattern",
    "MemorySpace",
    "Module",
    "NoPtoError",
    "PAT",
    "PartMode",
    "PartitionTensorView",
    "Pipe",
    "PositionMode",
    "PostUpdate",
    "PredicateDist",
    "PredicatePart",
    "RoundMode",
    "SLayout",
    "SatMode",
    "SplitMode",
    "TensorView",
    "Tile",
    "VPackPart",
    "VStoreDist",
    "VcvtPartMode",
    "VcvtRoundMode",
    "VcvtSatMode",
    "bf16",
    "const_expr",
    "constexpr",
    "cube",
    "f16",
    "f32",
    "f8e4m3",
    "f8e5m2",
    "float16",
    "float32",
    "func",
    "gm_ptr",
    "hif8",
    "i1",
    "i16",
    "i32",
    "i64",
    "i8",
    "index",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "jit",
    "mask",
    "mask_b16",
    "mask_b32",
    "mask_b8",
    "mask_type",
    "merge_jit_modules",
    "parse",
    "ptr",
    "scalar",
    "section",
    "si16",
    "si32",
    "si64",
    "si8",
    "simd",
    "simt",
    "struct",
    "sync",
    "tensor_spec",
    "tile",
    "tileop",
    "ui16",
    "ui32",
    "ui64",
    "ui8",
    "vreg",
    "vreg_type",
]


def __getattr__(name: str) -> Operation:
    """Return the op of a name."""
    found = None if name.startswith("_") else operation(name)
    if found is None:
        raise AttributeError(f"module 'tilewright.pto' has no attribute {name!r}")
    return found
