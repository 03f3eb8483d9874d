"""PTO types: what a value of a PTO module can be.

Types are plain frozen values: two spellings of one type parse to equal objects, so comparing them is the ABI check.
`str(type)` is the canonical text.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

from tilewright import dtypes
from tilewright.dtypes import DataType
from tilewright.errors import OutsideKernelError
from tilewright.records import record
from tilewright.source import calling_line


class Space(Enum):
    """A memory of the machine; the value is its canonical word in pointers."""

    GM = "gm"
    VEC = "ub"
    MAT = "l1"
    LEFT = "l0a"
    RIGHT = "l0b"
    ACC = "l0c"
    BIAS = "bt"
    SCALING = "fb"

    @property
    def loc(self) -> str:
        """The word a tile buffer uses for this memory."""
        return self.name.lower()


SPACES = {word: space for space in Space for word in (space.value, space.loc)}
"""Every word that names a memory space."""

TILES_LIVE = f"tiles live in {', '.join(space.loc for space in (*Space,)[1:-1])} or {Space.SCALING.loc}"
"""The memories that have tiles, as help says it: all but global memory."""


@record
class Scalar:
    """A number; signless integers behave as signed ones but are types of their own."""

    name: str

    @property
    def dtype(self) -> DataType:
        """The element type that stores it: for a packed type, which nothing here computes with, that of its bytes."""
        return _DTYPES.get(self.name) or _STORED[self.name]

    @property
    def is_packed(self) -> bool:
        """Whether this is a type of fewer bits than a byte has, or of bits that no type here has."""
        return self.name in _STORED

    @property
    def is_launchable(self) -> bool:
        """Whether launches pass numbers of it."""
        return self.name in _LAUNCHABLE

    @property
    def bits(self) -> int:
        """The width of one element in memory."""
        return 8 if self.name == "i1" else self.dtype.bits

    @property
    def nbytes(self) -> int:
        """The bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self.name in _DTYPES and self.dtype.is_float()

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type, `index` and `i1` included."""
        return not self.is_float and self.name in _DTYPES

    def __call__(self, value: Any) -> Any:
        """Numbers of a type, as `pto.f32(0.5)`, are made inside a kernel only."""
        message = f"`{self}` makes numbers of a kernel and cannot run as plain Python"
        help = "use it inside a function decorated with @pto.jit"
        raise OutsideKernelError(message, spans=[calling_line()], help=help)

    def __str__(self) -> str:
        return self.name if self.name in _PLAIN else f"!pto.{self.name}"


_DTYPES = {
    "i1": dtypes.BOOL,
    **{f"{sign}i{bits}": getattr(dtypes, f"INT{bits}") for sign in ("", "s") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": getattr(dtypes, f"UINT{bits}") for bits in (8, 16, 32, 64)},
    "f16": dtypes.FP16,
    "bf16": dtypes.BF16,
    "f32": dtypes.FP32,
    "f64": dtypes.FP64,
    "f8E4M3FN": dtypes.FP8E4M3FN,
    "f8E5M2": dtypes.FP8E5M2,
    "f8E8M0FNU": dtypes.FP8E8M0,
    "index": dtypes.INDEX,
}
_BUILTIN = {
    "f8E4M3": dtypes.UINT8,
    **{f"vector<2x{name}>": dtypes.UINT32 for name in ("f16", "bf16")},
    **{f"vector<2x{name}>": dtypes.UINT16 for name in ("f8E4M3FN", "f8E5M2")},
    **{f"vector<4x{name}>": dtypes.UINT32 for name in ("f8E4M3FN", "f8E5M2")},
    **{f"vector<8x{name}>": dtypes.UINT64 for name in ("f8E4M3FN", "f8E5M2")},
    **{
        f"vector<2x{name}>": dtypes.UNSIGNED[2 * size] for name, size in (("i8", 1), ("i16", 2), ("i32", 4), ("f32", 4))
    },
}
_PLAIN = frozenset(_DTYPES) | _BUILTIN.keys()
_STORED = {
    "hif8": dtypes.UINT8,
    "hif8x2": dtypes.UINT16,
    "f4E1M2x2": dtypes.UINT8,
    "f4E2M1x2": dtypes.UINT8,
    **_BUILTIN,
}
_LAUNCHABLE = frozenset(_DTYPES) - {"f64", "f8E4M3FN", "f8E5M2", "f8E8M0FNU"}
PACKED = frozenset(_STORED)
"""Element types that memory holds and copies move, and that everything refuses which computes."""

SCALARS = {name: Scalar(name) for name in (*_DTYPES, *sorted(PACKED))}
"""Every scalar type by its word."""

INDEX, I1, I64, F32 = SCALARS["index"], SCALARS["i1"], SCALARS["i64"], SCALARS["f32"]

Dims: TypeAlias = tuple[int | None, ...]
"""Extents; None is `?`."""


@record
class Ptr:
    """An address in one memory space, counted in elements."""

    element: Scalar
    space: Space = Space.GM

    def __str__(self) -> str:
        return f"!pto.ptr<{self.element}, {self.space.value}>"


@record
class TensorView:
    """A strided window on global memory: `shape` is what the type says, the op has the real extents."""

    shape: Dims
    element: Scalar
    partition: bool = False

    def __str__(self) -> str:
        word = "partition_tensor_view" if self.partition else "tensor_view"
        return f"!pto.{word}<{''.join(f'{show(d)}x' for d in self.shape)}{self.element}>"


@record
class TileBuf:
    """A two-dimensional buffer in local memory with a layout and a valid region."""

    space: Space
    element: Scalar
    rows: int
    cols: int
    valid_rows: int | None
    valid_cols: int | None
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes it takes in its memory."""
        return self.rows * self.cols * self.element.nbytes

    def __str__(self) -> str:
        return (
            f"!pto.tile_buf<loc={self.space.loc}, dtype={self.element}, rows={self.rows}, cols={self.cols}, "
            f"v_row={show(self.valid_rows)}, v_col={show(self.valid_cols)}, blayout={self.blayout}, "
            f"slayout={self.slayout}, fractal={self.fractal}, pad={self.pad}"
            f"{f', compact={self.compact}' if self.compact else ''}>"
        )


@record
class VReg:
    """A vector register: always 256 bytes."""

    lanes: int
    element: Scalar

    def __str__(self) -> str:
        return f"!pto.vreg<{self.lanes}x{self.element}>"


@record
class Mask:
    """A predicate register seen in lanes of 8, 16 or 32 bits."""

    bits: int

    @property
    def lanes(self) -> int:
        """How many lanes it covers."""
        return 2048 // self.bits

    def __str__(self) -> str:
        return f"!pto.mask<b{self.bits}>"


@record
class Opaque:
    """A type that is carried and printed but never looked into, as in `!pto.align`."""

    text: str

    def __str__(self) -> str:
        return self.text


Type: TypeAlias = Scalar | Ptr | TensorView | TileBuf | VReg | Mask | Opaque

ALIGN = Opaque("!pto.align")


def show(extent: int | None) -> str:
    """Return an extent as text."""
    return "?" if extent is None else str(extent)
