"""Digests: values as bytes that mean the same in every process.

Each value is a tag, a length and its bytes, so that no two values share an encoding. What has no meaning outside its
process, an object known by its identity, has none here either.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from tilewright.arrays import np
from tilewright.core.annotations import DynExpr, DynVar
from tilewright.dtypes import DataType
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.worth import STATED, fields_of, is_instance, worth


class NotEncodable(Exception):
    """A value that means nothing outside its process."""


def digest(*values: object) -> bytes:
    """Return the SHA-256 of some values; NotEncodable for one that only this process knows."""
    return hashlib.sha256(encoded(values)).digest()


def encoded(value: object) -> bytes:
    """Return a value's bytes; NotEncodable for one that only this process knows."""
    if value is None or value is True or value is False:
        return _tagged(b"N", repr(value).encode())
    if type(value) is int:
        return _tagged(b"I", str(value).encode())
    if type(value) is float:
        return _tagged(b"D", struct.pack("<d", value))
    if type(value) is str:
        return _tagged(b"S", value.encode(errors="surrogatepass"))
    if type(value) is bytes:
        return _tagged(b"B", value)
    if isinstance(value, (tuple, list)):
        kind = b"(" if isinstance(value, tuple) else b"["
        return _joined(kind, map(encoded, cast("Iterable[object]", value)))
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return _joined(b"{", (part for key, item in items for part in (encoded(key), encoded(item))))
    if isinstance(value, (set, frozenset)):
        return _joined(b"<", sorted(map(encoded, cast("set[object]", value))))
    return _named(value)


def _named(value: object) -> bytes:
    """Return the bytes of a value that others know by a name, or by its code."""
    if isinstance(value, Enum):
        return _joined(b"E", map(encoded, (*_place(type(value)), value.name, value.value)))
    if isinstance(value, DataType):
        return _tagged(b"Y", value.name.encode())
    if isinstance(value, DynVar):
        return _tagged(b"V", value.name.encode())
    if isinstance(value, DynExpr):
        return _joined(b"X", map(encoded, (value.operation, value.operands)))
    if isinstance(value, STATED):
        name = str(type(cast(object, value)).__name__)
        return _joined(b"A", map(encoded, (name, tuple(fields_of(value).items()))))
    if isinstance(value, ModuleType):
        return _tagged(b"M", value.__name__.encode())
    if isinstance(value, Kernel):
        return _joined(b"K", (encoded((value.kind.value, value.level)), function_bytes(value.function)))
    if isinstance(value, InlineFunction):
        return _joined(b"L", (function_bytes(value.captured.function),))
    if isinstance(value, FunctionType):
        return function_bytes(value)
    if isinstance(value, (MethodType, BuiltinFunctionType)) and not isinstance(
        value.__self__, (ModuleType, type(None))
    ):
        return _joined(b"H", map(encoded, (value.__name__, value.__self__)))
    if isinstance(value, (type, BuiltinFunctionType)):
        return _joined(b"C", map(encoded, _place(value)))
    return _told(value)


def _told(value: object) -> bytes:
    """Return the bytes of a value that says itself what it is worth."""
    found = worth(value)
    if isinstance(value, (int, float, str, bytes, complex, range, np.generic, np.dtype)):
        return _joined(b"T", (_class(type(value)), encoded(_inner(found))))  # pyright: ignore[reportUnknownArgumentType]
    if type(value).__module__ in ("typing", "types", "torch"):
        return _joined(b"R", (_class(type(value)), encoded(repr(value))))
    if is_instance(value):
        return _joined(b"J", (_class(type(value)),))
    raise NotEncodable(f"{type(value).__name__} objects mean nothing to another process")


def _inner(found: object) -> object:
    assert isinstance(found, tuple)
    return found[1]  # pyright: ignore[reportUnknownVariableType]


def _class(kind: type) -> bytes:
    return encoded(_place(kind))


def function_bytes(function: Any) -> bytes:
    """Return the bytes of a function: its code, and what its parameters default to."""
    parts = (function.__qualname__, function.__defaults__, function.__kwdefaults__)
    return _joined(b"F", (_code(function.__code__), *map(encoded, parts)))


def _code(code: CodeType) -> bytes:
    constants = [
        _code(c) if isinstance(c, CodeType) else encoded(c) if c is not ... else b"..." for c in code.co_consts
    ]
    parts = (
        *(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_linetable),
    )
    return _joined(b"O", (*map(encoded, parts), *constants))


def _place(value: Any) -> tuple[str, str]:
    if "<locals>" in value.__qualname__:
        raise NotEncodable(f"{value.__qualname__} is known only where it was made")
    return str(value.__module__), str(value.__qualname__)


def _tagged(tag: bytes, data: bytes) -> bytes:
    return tag + struct.pack("<I", len(data)) + data


def _joined(tag: bytes, parts: Iterable[bytes]) -> bytes:
    found = list(parts)
    return tag + struct.pack("<I", len(found)) + b"".join(found)
