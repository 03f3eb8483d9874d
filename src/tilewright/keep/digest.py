"""Digests: values as bytes that mean the same in every process.

What tells values apart in a process, the key of each, is written out: every part is a tag, a length and its bytes, so
that no two keys share an encoding. What a key knows by identity goes by its name or its code here; what has neither
means nothing to another process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, cast

from tilewright.core.annotations import DynExpr, DynVar
from tilewright.digests import sha256
from tilewright.dtypes import DataType
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.value_keys import Same, value_key


class NotEncodable(Exception):
    """A value that means nothing outside its process."""


def digest(*values: object) -> bytes:
    """Return the SHA-256 of some values; NotEncodable for one that only this process knows."""
    return sha256(_encoded(values)).digest()


def _encoded(value: object) -> bytes:
    return _key_bytes(value_key(value))


def _key_bytes(key: object) -> bytes:
    """Return the bytes of a value's key, or of a part of one."""
    if isinstance(key, tuple):
        return _joined(b"(", map(_key_bytes, cast("tuple[object, ...]", key)))
    if isinstance(key, frozenset):
        return _joined(b"<", sorted(map(_key_bytes, cast("frozenset[object]", key))))
    if isinstance(key, bytes):
        return _tagged(b"B", key)
    if isinstance(key, str):
        return _tagged(b"S", key.encode(errors="surrogatepass"))
    if isinstance(key, (int, type(None))):
        return _tagged(b"I", repr(key).encode())
    return _identity(key.value if isinstance(key, Same) else key)


def _identity(value: object) -> bytes:
    """Return the bytes of a value that keys know by identity, and others by its name or its code."""
    if isinstance(value, Enum):
        return _joined(b"E", (_place(type(value)), *map(_encoded, (value.name, value.value))))
    if isinstance(value, (DataType, DynVar)):
        return _tagged(b"Y" if isinstance(value, DataType) else b"V", value.name.encode())
    if isinstance(value, DynExpr):
        return _joined(b"X", map(_encoded, (value.operation, value.operands)))
    if isinstance(value, ModuleType):
        return _tagged(b"M", value.__name__.encode())
    if isinstance(value, Kernel):
        return _joined(b"K", (*map(_encoded, (value.kind.value, value.level)), function_bytes(value.function)))
    if isinstance(value, InlineFunction):
        return _joined(b"L", (function_bytes(value.captured.function),))
    if isinstance(value, FunctionType):
        return function_bytes(value)
    if isinstance(value, (type, BuiltinFunctionType)):
        return _place(value)
    if type(value).__module__ == "typing":
        return _joined(b"R", (_place(type(value)), _encoded(repr(value))))
    raise NotEncodable(f"{type(value).__name__} objects mean nothing to another process")


def function_bytes(function: Any) -> bytes:
    """Return the bytes of a function: its code, and what its parameters default to."""
    parts = (function.__qualname__, function.__defaults__, function.__kwdefaults__)
    return _joined(b"F", (_code(function.__code__), *map(_encoded, parts)))


def _code(code: CodeType) -> bytes:
    constants = [
        _code(constant) if isinstance(constant, CodeType) else _encoded(constant) for constant in code.co_consts
    ]
    parts = (
        *(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_linetable),
    )
    return _joined(b"O", (*map(_encoded, parts), *constants))


def _place(value: Any) -> bytes:
    if "<locals>" in value.__qualname__:
        raise NotEncodable(f"{value.__qualname__} is known only where it was made")
    return _joined(b"C", map(_key_bytes, (str(value.__module__), str(value.__qualname__))))


def _tagged(tag: bytes, data: bytes) -> bytes:
    return tag + struct.pack("<I", len(data)) + data


def _joined(tag: bytes, parts: Iterable[bytes]) -> bytes:
    found = list(parts)
    return tag + struct.pack("<I", len(found)) + b"".join(found)
