"""Declarations: what annotates the parameters of a `@pto.jit` function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.pto.types import SCALARS, SPACES, Mask, Ptr, Scalar, Space, VReg


@dataclass(frozen=True, slots=True)
class Marker:
    """An annotation that is no type of PTO text: what a parameter is for."""

    name: str

    def __str__(self) -> str:
        return f"pto.{self.name}"

    def __repr__(self) -> str:
        return str(self)


constexpr = const_expr = Marker("const_expr")
"""A value that the kernel is compiled for, as in `*, rows: pto.const_expr = 16`."""

Tile, TensorView, PartitionTensorView = map(Marker, ("Tile", "TensorView", "PartitionTensorView"))
"""What functions with `entry=False` take besides pointers and scalars."""


def ptr(dtype: Scalar, space: str = "ub") -> Ptr:
    """Return the type of an address in a memory space, counted in elements of `dtype`.

    Launches pass addresses in `"gm"`; TypeError and ValueError for what is no element type or memory space.
    """
    given: tuple[Any, Any] = dtype, space
    if not isinstance(given[0], Scalar):
        raise TypeError(f"pto.ptr takes an element type such as pto.f32, got {dtype!r}")
    if not isinstance(given[1], str):
        raise TypeError(f"pto.ptr takes the name of a memory space such as 'gm', got {space!r}")
    found = SPACES.get(space.lower())
    if found is None:
        raise ValueError(f"pto.ptr knows no memory space {space!r}; it knows {', '.join(SPACES)}")
    return Ptr(dtype, found)


def gm_ptr(dtype: Scalar) -> Ptr:
    """Return the type of an address in global memory."""
    return ptr(dtype, Space.GM.value)


def vreg_type(lanes: int, dtype: Scalar) -> VReg:
    """Return the type of a register; ValueError unless it has 256 bytes."""
    if lanes * dtype.bits != 2048:
        raise ValueError(f"a register of {dtype} has {2048 // dtype.bits} lanes, got {lanes}")
    return VReg(lanes, dtype)


def mask_type(width: str) -> Mask:
    """Return the type of a mask: `"b8"`, `"b16"` or `"b32"`."""
    if width not in _WIDTHS:
        raise ValueError(f"a mask is {', '.join(_WIDTHS)}, got {width!r}")
    return Mask(_WIDTHS[width])


_WIDTHS = {f"b{bits}": bits for bits in (8, 16, 32)}


Path: TypeAlias = tuple[object, ...]
"""The names or numbers of fields, each inside the one before."""


@dataclass(frozen=True)
class StructType:
    """The fields of a struct, by name or by number: scalars and structs."""

    fields: tuple[tuple[object, Scalar | StructType], ...]

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Scalar]]:
        """Yield every scalar, with the path that leads to it."""
        for name, type_ in self.fields:
            if isinstance(type_, StructType):
                yield from type_.leaves((*path, name))
            else:
                yield (*path, name), type_


def struct_type(*fields: Scalar | StructType | tuple[object, Scalar | StructType]) -> StructType:
    """Return a type of fields: `(name, type)` pairs, or types that are numbered; TypeError for other fields."""
    pairs = [each if isinstance(each, tuple) and len(each) == 2 else (n, each) for n, each in enumerate(fields)]
    given: list[object] = [type_ for _, type_ in pairs]
    for each in given:
        if not isinstance(each, Scalar | StructType):
            raise TypeError(f"a field of pto.struct_type is a scalar such as pto.f32 or a struct, got {each!r}")
    return StructType(tuple(pairs))


def tensor_spec(*_: Any, **__: Any) -> Marker:
    """Return an annotation that every `@pto.jit` function refuses: launches pass addresses, not tensors."""
    return Marker("tensor_spec")


def vreg(*_: Any, **__: Any) -> Marker:
    """Return an annotation that every `@pto.jit` function refuses: registers do not outlive a block."""
    return Marker("vreg")


def mask(*_: Any, **__: Any) -> Marker:
    """Return an annotation that every `@pto.jit` function refuses: registers do not outlive a block."""
    return Marker("mask")


def struct(*_: Any, **__: Any) -> Marker:
    """Return an annotation that every `@pto.jit` function refuses: launches pass addresses and numbers."""
    return Marker("struct")


i1, index = SCALARS["i1"], SCALARS["index"]
i8, i16, i32, i64 = (SCALARS[f"i{bits}"] for bits in (8, 16, 32, 64))
si8, si16, si32, si64 = (SCALARS[f"si{bits}"] for bits in (8, 16, 32, 64))
ui8, ui16, ui32, ui64 = (SCALARS[f"ui{bits}"] for bits in (8, 16, 32, 64))
f16, bf16, f32, f64 = (SCALARS[name] for name in ("f16", "bf16", "f32", "f64"))
f8e4m3, f8e5m2, hif8 = (SCALARS[name] for name in ("f8E4M3FN", "f8E5M2", "hif8"))
f8e8m0, hif8x2, f4e1m2x2, f4e2m1x2 = (SCALARS[name] for name in ("f8E8M0FNU", "hif8x2", "f4E1M2x2", "f4E2M1x2"))
f16x2, bf16x2, f32x2 = (SCALARS[f"vector<2x{name}>"] for name in ("f16", "bf16", "f32"))
i8x2, i16x2, i32x2 = (SCALARS[f"vector<2x{name}>"] for name in ("i8", "i16", "i32"))
f8e4m3x2, f8e4m3x4, f8e4m3x8 = (SCALARS[f"vector<{count}xf8E4M3FN>"] for count in (2, 4, 8))
f8e5m2x2, f8e5m2x4, f8e5m2x8 = (SCALARS[f"vector<{count}xf8E5M2>"] for count in (2, 4, 8))
float16, float32 = f16, f32
int1, int8, int16, int32, int64 = i1, i8, i16, i32, i64
mask_b8, mask_b16, mask_b32 = map(mask_type, _WIDTHS)
