"""DLPack: memory as a producer hands it over, read from its capsule; nothing of any framework is loaded for that.

The capsule is not consumed: whoever holds it holds the memory, and letting go of it gives the memory back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from tilewright.call.argument import CPU, Argument
from tilewright.dtypes import STORABLE
from tilewright.records import entity

DLPACK = {
    "bool": (6, 8), "fp16": (2, 16), "fp32": (2, 32), "fp64": (2, 64), "bfloat16": (4, 16),
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "fp8e4m3fn": (10, 8), "fp8e5m2": (12, 8),
}  # fmt: skip
"""What DLPack calls each element type: the code of its kind, and its bits."""

CUDA = 2
"""DLPack's number for memory of GPUs."""

HOST = (1, 3, 13)
"""Its numbers for plain, pinned and managed memory of the host."""

_LEGACY = 1
"""What the protocol calls the stream that has no handle."""

_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@entity
class Held:
    """What keeps memory that was handed over: the array and its capsule; and whether it may only be read."""

    value: Any
    capsule: Any
    is_sealed: bool
    is_versioned: bool
    """Whether its producer says what may be written."""


def handed_over(value: Any, stream: int | None = None) -> Argument:
    """Return a producer's memory, on a GPU or of the host; its owner is a `Held`.

    The producer is told which stream of a GPU the memory is used on, so that what it has started there before is done.
    TypeError for an element type that the language has not.
    """
    is_host = int(value.__dlpack_device__()[0]) in HOST
    capsule = _capsule(value, {} if is_host else {"stream": stream or _LEGACY})
    versioned = _named(capsule, b"dltensor_versioned", _Versioned)
    is_sealed = versioned is not None and bool(versioned.flags & _READ_ONLY)
    found: Any = versioned.tensor if versioned is not None else _named(capsule, b"dltensor", _Tensor)
    if found is None:
        raise ValueError(f"{type(value).__name__} hands over something else than DLPack says")
    names = {kind: name for name, kind in DLPACK.items()}
    name = names.get((found.code, found.bits)) if found.lanes == 1 else None
    dtype = next((known for known in STORABLE if known.name == name), None)
    if dtype is None:
        raise TypeError(f"Unsupported element type {getattr(value, 'dtype', '')}; supported: {', '.join(DLPACK)}")
    shape = tuple(found.shape[axis] for axis in range(found.rank))
    size, address = dtype.get_byte(), (found.data or 0) + found.offset
    steps = [found.strides[axis] for axis in range(found.rank)] if found.strides else _packed(shape)
    strides = tuple(size * step for step in steps)
    device = CPU if is_host else f"cuda:{found.number}"
    return Argument(address, shape, strides, dtype, device, Held(value, capsule, is_sealed, versioned is not None))


def _capsule(value: Any, options: Mapping[str, int]) -> Any:
    try:
        return value.__dlpack__(**options, max_version=(1, 0))
    except TypeError:  # it is older than the versions that say what may be written
        return value.__dlpack__(**options)


def _named(capsule: Any, name: bytes, kind: type[Any]) -> Any:
    """Return what a capsule of that name holds, None where it has another."""
    python = ctypes.pythonapi
    is_valid, pointer = python.PyCapsule_IsValid, python.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    return kind.from_address(pointer(capsule, name)) if is_valid(capsule, name) else None


def _packed(shape: tuple[int, ...]) -> list[int]:
    steps, step = list[int](), 1
    for extent in reversed(shape):
        steps.insert(0, step)
        step *= extent
    return steps
