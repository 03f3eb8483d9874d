"""Type text: how each PTO type is spelled.

A spelling is read once; the mistakes it can hold are raised without a place, which the parser knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from tilewright.pto.errors import PtoTypeTextError
from tilewright.pto.memrefs import OpenMemRef, memref
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.types import (
    PACKED,
    SCALARS,
    SPACES,
    TILES_LIVE,
    Dims,
    Mask,
    Opaque,
    Ptr,
    Scalar,
    Space,
    TensorView,
    TileBuf,
    Type,
    VReg,
    show,
)

BUILTIN_SHAPED = ("memref", "vector")
"""Types of other dialects, which are carried and not looked into, but for memrefs that name their memory."""
_MEMREF = re.compile(
    r"memref<([^,]+?)\s*(?:,\s*strided<\[([^\]]*)\][^>]*>)?\s*,\s*(#pto\.address_space<\s*\w+\s*>)\s*>\Z"
)
_NAMED = re.compile(r"!([\w.]+)(?:<(.*)>)?\Z", re.DOTALL)
_DIM = re.compile(r"\s*(\?|\d{1,18})\s*x", re.ASCII)
_LARGEST_DIM = 1 << 40

TILE_KEYS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact")
_COMPACT_KEYS = ("valid", "blayout", "slayout", "fractal", "pad", "compact")
_NEEDED_KEYS = ("loc", "dtype", "rows", "cols")
CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "blayout": ("row_major", "col_major"),
        "slayout": ("none_box", "row_major", "col_major"),
        "fractal": ("32", "512", "1024"),
        "pad": ("0", "1", "2", "3"),
        "compact": ("0", "1", "2"),
    }
)
"""What each key of a tile buffer may say."""
_DEFAULTS = {key: str(getattr(TileBuf, key)) for key in CHOICES}
_PAD_WORDS = {"null": "0", "zero": "1", "max": "2", "min": "3"}
_COMPACT_WORDS = {"null": "0", "normal": "1", "row_plus_one": "2"}


@lru_cache(maxsize=4096)
def read_type(text: str) -> Type:
    """Return the type that `text` spells in full, such as `f32` or `!pto.ptr<f32, gm>`."""
    scalar = SCALARS.get(text)
    if scalar is not None and str(scalar) == text:
        return scalar
    if text.partition("<")[0] in BUILTIN_SHAPED and text.endswith(">"):
        return _builtin(_squeezed(text))
    match = _NAMED.match(text)
    if match is None:
        raise PtoTypeTextError(f"`{text}` is no type", help=_type_help(text))
    return _named(text, match[1], match[2])


def read_elided(text: str, family: str) -> Type:
    """Return the type that `<...>` spells where its `family` (such as `ptr`) goes without saying."""
    return read_type(f"!pto.{family}{text}")


def family_of(type: Type) -> str:
    """Return the word that `!pto.` puts before the angle brackets of this type, or nothing."""
    if isinstance(type, TensorView):
        return "partition_tensor_view" if type.partition else "tensor_view"
    return _FAMILIES.get(type.__class__, "")


def brief_text(type: Type) -> str:
    """Return a type as messages show it: a tile buffer in its short spelling."""
    if type.__class__ is not TileBuf:
        return str(type)
    assert isinstance(type, TileBuf)
    fields = [f"{type.space.loc}, {type.rows}x{type.cols}x{type.element}"]
    if (type.valid_rows, type.valid_cols) != (type.rows, type.cols):
        fields.append(f"valid={show(type.valid_rows)}x{show(type.valid_cols)}")
    settled = {key: str(getattr(type, key)) for key in _DEFAULTS}
    fields += [f"{key}={word}" for key, word in settled.items() if word != _DEFAULTS[key]]
    return f"!pto.tile_buf<{', '.join(fields)}>"


_FAMILIES: dict[type, str] = {Ptr: "ptr", TileBuf: "tile_buf", VReg: "vreg", Mask: "mask"}


def _named(text: str, name: str, inner: str | None) -> Type:
    family = name.removeprefix("pto.")
    found = _READERS.get(family) if name.startswith("pto.") else None
    if found is not None:
        read, example = found
        if inner is None:
            raise PtoTypeTextError(f"`{text}` needs what it is made of, as in `!pto.{family}<{example}>`")
        return read(inner)
    if inner is None and family in PACKED:
        return SCALARS[family]
    if family in _OPAQUE and name.startswith("pto."):
        return Opaque(_squeezed(text))
    known = [f"pto.{word}" for word in (*_READERS, *_OPAQUE, *PACKED)]
    raise PtoTypeTextError(f"`!{name}` is no type of PTO", help=nearest(name, known, "!"))


def _builtin(text: str) -> Type:
    """Return a memref as what its memory makes of it; all else is never looked into."""
    match = _MEMREF.match(text)
    if match is None:
        return OpenMemRef(text) if text.startswith("memref") else Opaque(text)
    strides = [word.strip() for word in (match[2] or "").split(",") if word.strip()]
    steps = tuple(int(word) if word.isdecimal() else None for word in strides)
    return memref(text, *_shaped(match[1]), steps, _space(match[3]))


def _squeezed(text: str) -> str:
    return re.sub(r"\s*,\s*", ", ", re.sub(r"\s+", " ", text))


def _type_help(text: str) -> str:
    return nearest(text, [word for word in SCALARS if word not in PACKED])


def _element(text: str) -> Scalar:
    word = text.strip().removeprefix("!pto.")
    scalar = SCALARS.get(word)
    if scalar is None:
        raise PtoTypeTextError(f"`{text.strip()}` is no element type", blame=(text.strip(),), help=_type_help(word))
    return scalar


def _ptr(inner: str) -> Ptr:
    element, comma, space = inner.partition(",")
    return Ptr(_element(element), _space(space) if comma else Space.GM)


def _space(text: str) -> Space:
    word = text.strip()
    if word.startswith("#pto.address_space<") and word.endswith(">"):
        word = word[19:-1].strip()
    space = SPACES.get(word)
    if space is None:
        raise PtoTypeTextError(f"`{word}` is no memory space", blame=(word,), help=nearest(word, SPACES))
    return space


def _tile_space(text: str) -> Space:
    """Return a memory that tiles lie in: each but `gm`, which views and pointers are for."""
    space = _space(text)
    if space is Space.GM:
        message = f"a tile lies in local memory, and its `loc` is `{text.strip()}`"
        raise PtoTypeTextError(message, blame=(f"loc={text}", text), help=TILES_LIVE)
    return space


def _shaped(inner: str) -> tuple[Dims, Scalar]:
    """Return the dims and element of text such as `16x?xf32`."""
    dims: list[int | None] = []
    position = 0
    while match := _DIM.match(inner, position):
        dims.append(None if match[1] == "?" else _extent(match[1]))
        position = match.end()
    return tuple(dims), _element(inner[position:])


def _extent(text: str) -> int:
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else -1
    if not 0 <= number <= _LARGEST_DIM:
        help = "extents are whole numbers, or `?` where they may vary"
        raise PtoTypeTextError(f"`{text}` is no extent", blame=(text,), help=help)
    return number


def _view(inner: str, partition: bool) -> TensorView:
    dims, element = _shaped(inner)
    if not dims:
        raise PtoTypeTextError("a tensor view needs its extents, as in `!pto.tensor_view<16x?xf32>`")
    return TensorView(dims, element, partition)


def _vreg(inner: str) -> VReg:
    dims, element = _shaped(inner)
    if len(dims) != 1 or dims[0] is None:
        raise PtoTypeTextError("a vector register has one number of lanes, as in `!pto.vreg<64xf32>`")
    bits = element.bits
    if dims[0] * bits != 2048:
        message = f"a vector register has 256 bytes, {dims[0]} x {element} are {dims[0] * bits // 8}"
        raise PtoTypeTextError(message, help=f"write `!pto.vreg<{2048 // bits}x{element}>`")
    return VReg(dims[0], element)


def _mask(inner: str) -> Mask:
    word = inner.strip()
    if word not in ("b8", "b16", "b32"):
        raise PtoTypeTextError(f"`{word}` is no width of a mask", blame=(word,), help="write `b8`, `b16` or `b32`")
    return Mask(int(word[1:]))


def _tile_buf(inner: str) -> TileBuf:
    parts = [part.strip() for part in inner.split(",")]
    fields = _key_values(parts, TILE_KEYS) if "=" in parts[0] else _compact_fields(parts)
    missing = [key for key in _NEEDED_KEYS if key not in fields]
    if missing:
        raise PtoTypeTextError(f"a tile buffer needs `{missing[0]}`", help=f"add `{missing[0]}=...`")
    rows, cols = _dimension("rows", fields), _dimension("cols", fields)
    settled = {key: choice(key, fields.get(key, _DEFAULTS[key])) for key in _DEFAULTS}
    layout, numbers = (settled["blayout"], settled["slayout"]), (settled["fractal"], settled["pad"], settled["compact"])
    space, element = _tile_space(fields["loc"]), _element(fields["dtype"])
    valid = _valid("v_row", fields.get("v_row"), rows), _valid("v_col", fields.get("v_col"), cols)
    return TileBuf(space, element, rows, cols, *valid, *layout, *map(int, numbers))


def _key_values(parts: list[str], known: tuple[str, ...]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            message = f"expected `key=value` in a tile buffer, found `{part}`"
            raise PtoTypeTextError(message, blame=(part,), help=f"its keys are {', '.join(known)}")
        if key not in known:
            raise PtoTypeTextError(f"a tile buffer has no key `{key}`", blame=(part,), help=nearest(key, known))
        if key in fields:
            raise PtoTypeTextError(f"`{key}` is given twice", blame=(part,), help="keep one of them")
        fields[key] = value
    return fields


def _compact_fields(parts: list[str]) -> dict[str, str]:
    """Return the fields of `vec, 16x64xf32, valid=..., ...` as the other spelling has them."""
    if len(parts) < 2:
        raise PtoTypeTextError("a tile buffer needs its shape, as in `!pto.tile_buf<vec, 16x64xf32>`")
    dims, element = _shaped(parts[1])
    if len(dims) != 2:
        raise PtoTypeTextError(f"a tile buffer has rows and columns, found {len(dims)} extents")
    fields = _key_values(parts[2:], _COMPACT_KEYS)
    valid = fields.pop("valid", "x".join(map(show, dims))).split("x")
    if len(valid) != 2:
        raise PtoTypeTextError("`valid` has rows and columns, as in `valid=8x64`")
    shape = {"rows": show(dims[0]), "cols": show(dims[1]), "v_row": valid[0].strip(), "v_col": valid[1].strip()}
    return {"loc": parts[0], "dtype": str(element), **shape, **fields}


def _dimension(key: str, fields: Mapping[str, str]) -> int:
    extent = _extent(fields[key]) if fields[key] != "?" else 0
    if not extent:
        message = f"`{key}` of a tile buffer is a positive number, got `{fields[key]}`"
        raise PtoTypeTextError(message, blame=(f"{key}={fields[key]}",))
    return extent


def _valid(key: str, text: str | None, extent: int) -> int | None:
    if text is None:
        return extent
    if text in ("?", "-1"):
        return None
    valid = _extent(text)
    if valid > extent:
        message = f"`{key}` is {valid}, more than the {extent} the tile buffer has"
        raise PtoTypeTextError(message, blame=(f"{key}={text}", "valid"), help="a valid region lies inside its tile")
    return valid


def choice(key: str, text: str) -> str:
    """Return what a key of a tile buffer says, as its type spells it."""
    word = {"pad": _PAD_WORDS, "compact": _COMPACT_WORDS}.get(key, {}).get(text, text)
    if word not in CHOICES[key]:
        help = f"it is one of {', '.join(CHOICES[key])}"
        raise PtoTypeTextError(f"`{key}` cannot be `{text}`", blame=(f"{key}={text}", text), help=help)
    return word


_READERS: dict[str, tuple[Callable[[str], Type], str]] = {
    "ptr": (_ptr, "f32, gm"),
    "tensor_view": (lambda inner: _view(inner, partition=False), "16x?xf32"),
    "partition_tensor_view": (lambda inner: _view(inner, partition=True), "16x16xf32"),
    "tile_buf": (_tile_buf, "vec, 16x64xf32"),
    "vreg": (_vreg, "64xf32"),
    "mask": (_mask, "b32"),
}
"""What reads each family of types, and what one is made of."""
_OPAQUE = (
    "align",
    "eventid_array",
    "local_array",
    "multi_tile_buf",
    "pipe",
    "async_session",
    "async_event",
    "tile",
    "tile_view",
)
