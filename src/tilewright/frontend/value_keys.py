"""Value keys: what tells values from outside apart in a kernel.

Values with equal keys give the same code, whatever objects they are. Numbers, text and containers count by type and
content, bit for bit. Modules, classes and functions count by identity. Any other object counts by its type alone: what
a kernel takes out of it is read, and counts, on its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any, TypeAlias, cast

from tilewright.arrays import np
from tilewright.core import annotations as ann
from tilewright.core.types import MemRef
from tilewright.dtypes import DataType
from tilewright.records import entity

MISSING: Any = object()
"""Stands for nothing being there."""

_Around: TypeAlias = tuple[object, ...]

_NUMBERS = (int, float, complex, str, bytes)
_SELVES = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType)
STATED = (
    *(ann.Tensor, ann.Tile, ann.Scalar, ann.Array, ann.Directed, ann.Maybe, ann.TupleAnnotation),
    *(ann.TensorView, ann.TileView, MemRef),
)
"""What annotations are made of: objects that say nothing but their fields, and are not changed once made."""


@entity
class Same:
    """The key of a value that only equals itself."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


Seen: TypeAlias = Callable[[Any, "list[Any]"], None]
"""Told of each container on the way, and of what it was found to hold."""


def kind_of(value: object) -> type:
    """Return the type of a value."""
    return type(value)


def value_key(value: object, around: _Around = (), seen: Seen | None = None) -> object:
    """Return the key of a value: equal for values that a kernel cannot tell apart, and for no others."""
    if value is None or type(value) in (int, bool, str, bytes):
        return type(value), value
    if isinstance(value, (Enum, DataType)):
        return Same(value)
    if isinstance(value, (MethodType, BuiltinMethodType)) and not isinstance(value.__self__, (ModuleType, type(None))):
        return type(value), value.__name__, value_key(value.__self__, around)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if is_known_by_identity(value):
        return Same(value)
    if isinstance(value, np.generic) or isinstance(value, _NUMBERS):
        return type(cast(object, value)), number_bits(value)
    if any(value is outer for outer in around):
        return "again", next(place for place, outer in enumerate(around) if outer is value)
    if isinstance(value, (tuple, list, set, frozenset, dict)) or isinstance(value, STATED):
        return type(cast(object, value)), tuple(_parts(value, (*around, cast(object, value)), seen))
    if isinstance(value, range):
        return range, (value.start, value.stop, value.step)
    signature = getattr(type(value), "__cache_signature__", None)
    if signature is not None:
        return type(value), value_key(signature(value), (*around, value))
    return (type(value), repr(value)) if _prints_itself(value) else ("instance", type(value))


def _parts(value: Any, around: _Around, seen: Seen | None) -> Iterator[object]:
    held: Any = fields_of(value) if isinstance(value, STATED) else value
    items: list[Any] = list(cast("Mapping[object, object]", held).items() if isinstance(held, dict) else held)
    if seen is not None:
        seen(value, items)
    if isinstance(value, (set, frozenset)):
        yield frozenset(value_key(item, around, seen) for item in items)
    elif isinstance(held, dict):
        yield from ((value_key(key, around), value_key(item, around, seen)) for key, item in items)
    else:
        yield from (value_key(item, around, seen) for item in items)


def fields_of(value: Any) -> dict[str, object]:
    """Return what a value is made of, whether it has a dict or slots."""
    held: dict[str, object] | None = getattr(value, "__dict__", None)
    slots: Sequence[str] = getattr(value, "__slots__", ())
    return {name: getattr(value, name) for name in slots} if held is None else held


def _prints_itself(value: object) -> bool:
    """Return whether a value prints as what it is: another library's element type, or an annotation of Python's."""
    is_torch_dtype = (type(value).__module__, type(value).__name__) == ("torch", "dtype")
    return is_torch_dtype or isinstance(value, (np.dtype, UnionType, GenericAlias))


def number_bits(value: Any) -> bytes:
    """Return a number or text, perhaps of a class derived from Python's, as bytes."""
    if isinstance(value, np.generic):
        return cast("Any", value).tobytes()
    if isinstance(value, int):
        return str(int.__index__(value)).encode()
    if isinstance(value, float):
        return struct.pack("<d", float.__float__(value))
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    return str.__str__(value).encode(errors="surrogatepass") if isinstance(value, str) else bytes(value)


def is_known_by_identity(value: object) -> bool:
    """Return whether a value is itself and nothing else: a module, a class, a function, a part of a program."""
    if isinstance(value, _SELVES) or type(value).__module__ == "typing":
        return True
    is_ours = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return is_ours and not isinstance(value, (*STATED, DataType, Enum))


def is_plain(value: object) -> bool:
    """Return whether everything about a value is in its key, so that Python may compute with it."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(is_plain, cast("Sequence[object]", value)))
    if isinstance(value, dict):
        items = cast("Mapping[object, object]", value).items()
        return all(is_plain(key) and is_plain(item) for key, item in items)
    return not is_instance(value)


def is_instance(value: object) -> bool:
    """Return whether a value is an object whose parts have to be read one by one."""
    found = value_key(value)
    return isinstance(found, tuple) and found[:1] == ("instance",)


def is_data(value: object) -> bool:
    """Return whether a value is an array or tensor, which DLPack hands over."""
    return hasattr(type(value), "__dlpack__")


def is_mutable(value: object) -> bool:
    """Return whether a value may change in place in a way its key tells."""
    if isinstance(value, (list, dict, set)):
        return True
    return isinstance(value, tuple) and any(map(is_mutable, cast("tuple[object, ...]", value)))


def settled(value: Any) -> Any:
    """Return a value that nobody else changes: containers are copied, and those in them."""
    return _settled(value, {})


def _settled(value: Any, done: dict[int, Any]) -> Any:
    if not is_mutable(value):
        return value
    place = id(value)
    if place in done:
        return done[place]
    if isinstance(value, list):
        copy: Any = []
        done[place] = copy
        copy.extend(_settled(item, done) for item in list(cast("list[object]", value)))
        return copy
    if isinstance(value, dict):
        done[place] = copy = {}
        copy.update((key, _settled(item, done)) for key, item in list(cast("dict[object, object]", value).items()))
        return copy
    if isinstance(value, set):
        return set(cast("set[object]", value))
    parts = [_settled(item, done) for item in value]
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)
