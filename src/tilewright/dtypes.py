"""Scalar types: what one element of a tensor, a tile or a scalar can be."""

from __future__ import annotations

import importlib
import math
import struct
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tilewright.arrays import ml_dtypes, np

__all__ = ["BF16", "BOOL", "DataType", "FP16", "FP32", "FP4", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "HF4", "HF8"]
__all__ += ["INDEX", "INT16", "INT32", "INT4", "INT64", "INT8", "TASK_ID", "UINT16", "UINT32", "UINT4", "UINT64"]
__all__ += ["FP64", "UINT8"]

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Family(Enum):
    """The arithmetic a scalar type takes part in."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    HANDLE = "handle"


@dataclass(frozen=True, slots=True)
class DataType:
    """One scalar type: its name in the language, its width and its family."""

    name: str
    bits: int
    family: Family
    numpy_name: str | None
    c_name: str

    BOOL: ClassVar[DataType]
    INT4: ClassVar[DataType]
    INT8: ClassVar[DataType]
    INT16: ClassVar[DataType]
    INT32: ClassVar[DataType]
    INT64: ClassVar[DataType]
    UINT4: ClassVar[DataType]
    UINT8: ClassVar[DataType]
    UINT16: ClassVar[DataType]
    UINT32: ClassVar[DataType]
    UINT64: ClassVar[DataType]
    FP4: ClassVar[DataType]
    FP8E4M3FN: ClassVar[DataType]
    FP8E5M2: ClassVar[DataType]
    FP8E8M0: ClassVar[DataType]
    FP16: ClassVar[DataType]
    FP32: ClassVar[DataType]
    FP64: ClassVar[DataType]
    BF16: ClassVar[DataType]
    HF4: ClassVar[DataType]
    HF8: ClassVar[DataType]
    INDEX: ClassVar[DataType]
    TASK_ID: ClassVar[DataType]
    DEFAULT_CONST_INT: ClassVar[DataType]
    DEFAULT_CONST_FLOAT: ClassVar[DataType]

    def get_bit(self) -> int:
        """Return the width in bits."""
        return self.bits

    def get_byte(self) -> int:
        """Return the storage of one element in bytes, at least 1."""
        return max(1, self.bits // 8)

    def to_string(self) -> str:
        """Return the lower-case name, as in `fp32`."""
        return self.name

    def to_c_type_string(self) -> str:
        """Return the C spelling of the type."""
        return self.c_name

    def is_float(self) -> bool:
        """Return whether this is a floating-point type."""
        return self.family is Family.FLOAT

    def is_int(self) -> bool:
        """Return whether this is a signed or unsigned integer type."""
        return self.family in (Family.SIGNED, Family.UNSIGNED)

    def is_signed_int(self) -> bool:
        """Return whether this is a signed integer type."""
        return self.family is Family.SIGNED

    def is_unsigned_int(self) -> bool:
        """Return whether this is an unsigned integer type."""
        return self.family is Family.UNSIGNED

    def code(self) -> int:
        """Return the position of this type in `ALL`, stable within one release."""
        return ALL.index(self)

    @property
    def symbol(self) -> str:
        """The name a kernel author writes after `pl.`."""
        return _SYMBOLS.get(self.name, self.name.upper())

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type that stores one element; TypeError for types no array can hold."""
        if self.numpy_name is None:
            raise TypeError(f"no NumPy array can hold {self.name} elements")
        return _numpy_dtype(self.numpy_name)

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and largest value; infinities for floating-point types that have them."""
        if self.family is Family.BOOL:
            return 0, 1
        if self.is_int():
            top = 2 ** (self.bits - self.is_signed_int())
            return (-top if self.is_signed_int() else 0), top - 1
        if self.name in _FINITE:
            return -_FINITE[self.name], _FINITE[self.name]
        return float("-inf"), float("inf")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DataType.{self.symbol}"


_SYMBOLS = {"bfloat16": "BF16"}
_FINITE = {"fp8e4m3fn": 448.0, "fp4": 6.0}
"""Floating-point types without infinities, and their largest value."""

_B, _S, _U, _F, _H = Family.BOOL, Family.SIGNED, Family.UNSIGNED, Family.FLOAT, Family.HANDLE

BOOL = DataType("bool", 1, _B, "bool", "bool")
INT4 = DataType("int4", 4, _S, "int4", "int4_t")
INT8 = DataType("int8", 8, _S, "int8", "int8_t")
INT16 = DataType("int16", 16, _S, "int16", "int16_t")
INT32 = DataType("int32", 32, _S, "int32", "int32_t")
INT64 = DataType("int64", 64, _S, "int64", "int64_t")
UINT4 = DataType("uint4", 4, _U, "uint4", "uint4_t")
UINT8 = DataType("uint8", 8, _U, "uint8", "uint8_t")
UINT16 = DataType("uint16", 16, _U, "uint16", "uint16_t")
UINT32 = DataType("uint32", 32, _U, "uint32", "uint32_t")
UINT64 = DataType("uint64", 64, _U, "uint64", "uint64_t")
FP4 = DataType("fp4", 4, _F, "float4_e2m1fn", "fp4_t")
FP8E4M3FN = DataType("fp8e4m3fn", 8, _F, "float8_e4m3fn", "fp8e4m3fn_t")
FP8E5M2 = DataType("fp8e5m2", 8, _F, "float8_e5m2", "fp8e5m2_t")
FP8E8M0 = DataType("fp8e8m0", 8, _F, "float8_e8m0fnu", "fp8e8m0_t")
FP16 = DataType("fp16", 16, _F, "float16", "half")
FP32 = DataType("fp32", 32, _F, "float32", "float")
FP64 = DataType("fp64", 64, _F, "float64", "double")
BF16 = DataType("bfloat16", 16, _F, "bfloat16", "bfloat16")
HF4 = DataType("hf4", 4, _F, None, "hf4_t")
HF8 = DataType("hf8", 8, _F, None, "hf8_t")
INDEX = DataType("index", 64, _S, "int64", "int64_t")
TASK_ID = DataType("task_id", 64, _H, "int64", "uint64_t")

ALL = (
    BOOL, INT4, INT8, INT16, INT32, INT64, UINT4, UINT8, UINT16, UINT32, UINT64,
    FP4, FP8E4M3FN, FP8E5M2, FP8E8M0, FP16, FP32, BF16, HF4, HF8, INDEX, TASK_ID, FP64,
)  # fmt: skip
"""Every scalar type, in the order of `DataType.code`."""

for _dtype in ALL:
    setattr(DataType, _dtype.symbol, _dtype)
DataType.DEFAULT_CONST_INT, DataType.DEFAULT_CONST_FLOAT = INT64, FP32

BY_NAME = {dtype.name: dtype for dtype in ALL}

SIGNED = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
UNSIGNED = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}
"""The integers by their bytes, with a sign and without."""

TORCH_NAMES = {
    "float16": FP16,
    "float32": FP32,
    "float64": FP64,
    "bfloat16": BF16,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint8": UINT8,
    "uint16": UINT16,
    "uint32": UINT32,
    "uint64": UINT64,
    "bool": BOOL,
    "float8_e4m3fn": FP8E4M3FN,
    "float8_e5m2": FP8E5M2,
    "float8_e8m0fnu": FP8E8M0,
}
"""The element types torch tensors can have, by torch's own name."""

TORCH_PACKED = {"float4_e2m1fn_x2": FP4}
"""Types of torch whose elements hold two of ours each, the first in the lower half of the byte."""

STORABLE = tuple(t for t in ALL if t.numpy_name is not None and t not in (INDEX, TASK_ID))
"""The types a caller's array can have."""


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(name if name in np.sctypeDict else getattr(ml_dtypes, name))


@cache
def from_numpy(dtype: np.dtype[Any]) -> DataType:
    """Return the scalar type stored by arrays of `dtype`; TypeError lists the supported ones."""
    name: str = cast(Any, dtype).name  # which other libraries' types are asked by: none is loaded in vain
    for candidate in STORABLE:
        if candidate.numpy_name == name and candidate.numpy == dtype:
            return candidate
    supported = ", ".join(t.name for t in STORABLE)
    raise TypeError(f"Unsupported array dtype {dtype}; supported: {supported}")


def like(value: object) -> DataType | None:
    """Return the element type that a dtype of torch or NumPy, or a name, stands for; None for anything else."""
    if isinstance(value, str):
        return BY_NAME.get(value)
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return TORCH_NAMES.get(str(value).removeprefix("torch."))
    is_numpy = isinstance(value, type) or kind.__module__.partition(".")[0] == "numpy"
    try:
        return from_numpy(np.dtype(cast(Any, value))) if is_numpy else None
    except TypeError:
        return None


def from_torch(dtype: Any) -> DataType:
    """Return the scalar type stored by tensors of a torch `dtype`; TypeError lists the supported ones."""
    known, name = TORCH_NAMES | TORCH_PACKED, str(dtype).removeprefix("torch.")
    if name not in known:
        raise TypeError(f"Unsupported torch dtype {dtype}; supported: {', '.join(known)}")
    return known[name]


def to_torch(dtype: DataType) -> Any:
    """Return torch's type for elements of `dtype`; TypeError lists those it has one for. Loads torch."""
    torch: Any = importlib.import_module("torch")
    for name, known in (TORCH_NAMES | TORCH_PACKED).items():
        if known == dtype and hasattr(torch, name):  # older versions lack the narrow ones
            return getattr(torch, name)
    supported = ", ".join(str(t) for n, t in (TORCH_NAMES | TORCH_PACKED).items() if hasattr(torch, n))
    raise TypeError(f"torch has no dtype for {dtype}; it has one for {supported}")


def promote(lhs: DataType, rhs: DataType) -> DataType:
    """Return the type of ops of the PTO family, as in `pl.add`: float beats integer, then width, then signedness."""
    if lhs == rhs:
        return lhs
    if lhs.is_float() != rhs.is_float():
        return lhs if lhs.is_float() else rhs
    if lhs.bits != rhs.bits:
        return lhs if lhs.bits > rhs.bits else rhs
    if lhs.is_float() or lhs.is_signed_int():
        return lhs
    return rhs


def meet(lhs: DataType, rhs: DataType) -> DataType | None:
    """Return the narrowest type that holds the numbers of two scalar types; None where there is none.

    No integers hold both those of uint64 and negative ones, and a type of floats holds no other's integers.
    """
    if lhs == rhs or {lhs, rhs} == {INDEX, INT64}:
        return lhs if lhs == rhs else INDEX
    narrow, wide = (lhs, rhs) if lhs.bits < rhs.bits else (rhs, lhs)
    if lhs.is_float() and rhs.is_float():
        return wide if wide.bits > narrow.bits else FP32
    if not (lhs.is_int() and rhs.is_int()):
        return None
    if lhs.family is rhs.family or (wide.is_signed_int() and wide.bits > narrow.bits):
        return wide
    unsigned = lhs if lhs.is_unsigned_int() else rhs
    return SIGNED.get(2 * unsigned.get_byte())


def common(lhs: DataType, rhs: DataType) -> DataType | None:
    """Return the type that elements of two types meet in by value, as in `lhs + rhs`; None where there is none.

    Floats win over integers and numbers over bools; otherwise it is the narrowest type that holds the numbers of both.
    """
    if lhs.is_float() == rhs.is_float() and BOOL not in (lhs, rhs):
        return meet(lhs, rhs)
    return promote(lhs, rhs)


def objection(value: int | float | bool, dtype: DataType) -> str:
    """Return why a Python number is none of `dtype`, or nothing.

    Floats are every float, rounded, also to infinity. Integers have to lie within the finite numbers of a type, and are
    rounded too where those are floats; a float without a fraction counts as one.
    """
    if dtype.is_float() and isinstance(value, float):
        return ""
    low, high = finite_limits(dtype)
    if not low <= value <= high:  # nor does NaN
        return f"{dtype} reaches from {low} to {high}"
    is_whole = dtype.is_float() or value == int(value)
    return "" if is_whole else f"{dtype} has no fractions; pl.cast(..., pl.FP32) converts what it meets"


def finite_limits(dtype: DataType) -> tuple[float, float]:
    """Return the smallest and largest number of a type that is not infinite."""
    return _finite_limits(dtype.name)  # whose hash is known: this is asked of every constant


@cache
def _finite_limits(name: str) -> tuple[float, float]:
    dtype = BY_NAME[name]
    if not dtype.is_float() or dtype.numpy_name is None:
        return dtype.limits
    info = cast(Any, ml_dtypes).finfo(dtype.numpy)
    return float(info.min), float(info.max)


def show_number(value: int | float | bool) -> str:
    """Return a number as messages write it: not all the digits of an integer that fills a line."""
    bits = value.bit_length() if isinstance(value, int) else 0
    return f"an integer of {bits} bits" if bits > 256 else str(value)


_SINGLE, _SURE = struct.Struct("<f"), 3e38
"""Single precision, and a number that it certainly holds."""


def round_scalar(value: int | float | bool, dtype: DataType) -> int | float | bool:
    """Return a Python number as a scalar of `dtype` holds it: floats round to nearest even, integers wrap.

    OverflowError for an integer beyond every float.
    """
    if dtype.family is Family.BOOL:
        return bool(value)
    if dtype.is_float() and (dtype.numpy_name is None or dtype is FP64):
        return float(value)  # a double itself, or one of values that have no arrays to be rounded in
    if dtype is FP32 and isinstance(value, float) and abs(value) < _SURE:
        return _SINGLE.unpack(_SINGLE.pack(value))[0]  # as below, in a tenth of the time
    if dtype.is_float():
        return float(round_to(np.asarray(value if isinstance(value, float) else _odd_float(int(value))), dtype))
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    return wrapped - (1 << dtype.bits) if dtype.is_signed_int() and wrapped >> (dtype.bits - 1) else wrapped


def round_to(values: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """Return exact `values` as elements of `dtype`: floats round to nearest even, integers wrap."""
    target = dtype.numpy
    if values.dtype == target:
        return values
    with np.errstate(all="ignore"):
        if dtype.is_int() and values.dtype.kind == "f":
            values = np.trunc(np.nan_to_num(values)).astype(np.int64)
        if dtype.bits < 8 and dtype.is_int():
            span = 1 << dtype.bits
            values = values.astype(np.int64) % span
            if dtype.is_signed_int():
                values = np.where(values >= span // 2, values - span, values)
        if dtype.is_float() and target.isbuiltin != 1:  # ml_dtypes' own, though some say of theirs that they are floats
            values = _odd_float32(_odd_float64(values))
        return values.astype(target)


def _odd_float(value: int) -> float:
    """Return an integer as a float, an inexact one with its last bit set: see `_odd_float32`."""
    spare = max(0, abs(value).bit_length() - 53)
    kept = abs(value) >> spare
    return math.ldexp(math.copysign(kept | (kept << spare != abs(value)), value), spare)


def _odd_float64(values: NDArray[Any]) -> NDArray[Any]:
    """Return `values` in float64, an inexact integer with its last bit set."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return values.astype(np.float64)
    large = (values >= 1 << 53) | (values <= -(1 << 53)) if values.dtype.kind == "i" else values >= 1 << 53
    low: Any = values & np.asarray(0x7FF, values.dtype)
    odd = (values - low) | np.where(low != 0, np.asarray(0x800, values.dtype), np.asarray(0, values.dtype))
    return np.where(large, odd, values).astype(np.float64)


def _odd_float32(values: NDArray[Any]) -> NDArray[Any]:
    """Return float64 `values` in float32, an inexact one with its last bit set.

    ml_dtypes rounds through float32. Rounded to nearest twice, a value just above a tie would end on the wrong side;
    the odd last bit remembers which side it was on.
    """
    nearest: Any = values.astype(np.float32)
    inexact = (nearest != values) & ~np.isnan(values)
    bits = nearest.view(np.uint32) - (inexact & (np.abs(nearest) > np.abs(values)))
    return (bits | inexact).astype(np.uint32).view(np.float32)
