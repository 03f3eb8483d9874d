"""Serialization: programs as bytes, and back.

    data   := "TWIR" version:byte sha256(table):32 bytes  table
    table  := (length:varint entry)*           the last entry is the program or function
    entry  := tag:byte payload                 in at most `length` bytes, refs being varints that number earlier entries
      N F T                                    None, False, True
      I int, little-endian two's complement    D float64, little-endian    S str, UTF-8
      E "Class.member" of an enum              Y name of a scalar type     O name of an op
      ( refs                                   a tuple
      { refs                                   a mapping: key, value, key, value ...
      C ref refs                               a node: its class by name, then its fields in the order of declaration

Values that are equal byte for byte share one entry; variables, statements and functions, which are only equal to
themselves, have one each. Spans are dropped: bytes say what a program is, not where it was written. Equal input gives
equal bytes, in every process. Reading builds nothing but the classes below, and checks each field against its
annotation, so that data from anywhere gives a node of the IR or a ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from tilewright.core import enums
from tilewright.core.expr import (
    Absent,
    Call,
    Const,
    ConstBool,
    ConstFloat,
    ConstInt,
    GlobalVar,
    Invoke,
    MakeTuple,
    ParameterName,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
)
from tilewright.core.op import Op, get_op
from tilewright.core.program import Function, Program
from tilewright.core.stmt import IterArg, SeqStmts, Stmt
from tilewright.core.types import MemRef, NamedMemRef, Type
from tilewright.digests import sha256
from tilewright.dtypes import BY_NAME, DataType

MAGIC = b"TWIR"
VERSION = 4
_HEADER = len(MAGIC) + 1 + sha256().digest_size

_BY_IDENTITY: tuple[type[Any], ...] = (Var, IterArg, SeqStmts, *get_args(Stmt), Function, Program)
_BY_VALUE: tuple[type[Any], ...] = (
    *(Absent, Call, Const, ConstBool, ConstFloat, ConstInt, GlobalVar, Invoke),
    *(MakeTuple, MemRef, NamedMemRef, ParameterName, Submit, Symbol, TupleGetItem, *get_args(Type)),
)
_NAMES = {cls: cls.__name__ for cls in (*_BY_IDENTITY, *_BY_VALUE)}
_BY_NAME = {name: cls for cls, name in _NAMES.items()}
_ENUMS = {name: cls for name, cls in vars(enums).items() if isinstance(cls, type) and issubclass(cls, Enum)}

_Atom: TypeAlias = None | bool | int | float | str | Enum | DataType


def serialize(node: Program | Function) -> bytes:
    """Return a program or function as bytes that `deserialize` reads; its spans are not among them."""
    table = _Writer().table(node)
    return MAGIC + bytes([VERSION]) + sha256(table).digest() + table


def deserialize(data: bytes) -> Program | Function:
    """Return the program or function that `serialize` wrote; ValueError for any other data."""
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("this is not a serialized program: it does not start with TWIR")
    if len(data) < _HEADER:
        raise ValueError("this serialized program is cut off inside its header")
    if data[len(MAGIC)] != VERSION:
        raise ValueError(f"this program is in format {data[len(MAGIC)]}; this version of tilewright reads {VERSION}")
    table = data[_HEADER:]
    if sha256(table).digest() != data[len(MAGIC) + 1 : _HEADER]:
        raise ValueError("this serialized program is damaged: its checksum does not match")
    return _Reader().program(table)


@cache
def _fields(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.name not in ("span", "again"))


class _Writer:
    """One table being written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.refs: dict[int, bytes] = {}
        """The reference to each value, by identity; the program keeps them alive."""
        self.shared: dict[bytes, bytes] = {}
        """The reference to each entry that equal values share."""

    def table(self, root: object) -> bytes:
        """Return the table of `root`, everything in it before it."""
        stack = [root]
        while stack:
            missing = [part for part in _inside(stack[-1]) if id(part) not in self.refs]
            if missing:
                stack += reversed(missing)
            else:
                value = stack.pop()
                self.refs[id(value)] = self._write(value)
        return b"".join(_varint(len(entry)) + entry for entry in self.written)

    def _write(self, value: object) -> bytes:
        """Return the reference to the entry of `value`, which is written unless there is an equal one."""
        known = self.refs.get(id(value))
        if known is not None:
            return known
        entry = _scalar(value) or _tag(value) + b"".join(self.refs[id(part)] for part in _inside(value))
        if isinstance(value, _BY_IDENTITY):
            return self._append(entry)
        if entry not in self.shared:
            self.shared[entry] = self._append(entry)
        return self.shared[entry]

    def _append(self, entry: bytes) -> bytes:
        self.written.append(entry)
        return _varint(len(self.written) - 1)


def _inside(value: object) -> Sequence[Any]:
    """Return the values an entry refers to."""
    if isinstance(value, tuple):
        return cast("tuple[Any, ...]", value)
    if isinstance(value, Mapping):
        return [part for item in cast("Mapping[str, Any]", value).items() for part in item]
    name = _NAMES.get(type(value))
    return () if name is None else [name, *(getattr(value, field) for field in _fields(type(value)))]


def _tag(value: object) -> bytes:
    return b"(" if isinstance(value, tuple) else b"{" if isinstance(value, Mapping) else b"C"


def _scalar(value: object) -> bytes | None:
    """Return the entry of a value that refers to no other; None for one that does."""
    match value:
        case None:
            return b"N"
        case bool():
            return b"T" if value else b"F"
        case Enum():
            return f"E{type(value).__name__}.{value.name}".encode()
        case int():
            return b"I" + value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        case float():
            return b"D" + struct.pack("<d", value)
        case str():
            return b"S" + value.encode()
        case DataType():
            return b"Y" + value.name.encode()
        case Op():
            return b"O" + value.name.encode()
        case tuple() | Mapping():
            return None
        case _ if type(value) in _NAMES:
            return None
        case _:
            raise TypeError(f"no program holds a {type(value).__name__}")


def _varint(number: int) -> bytes:
    """Return a number in seven bits per byte, low bits first; the high bit says that more follow."""
    low = bytearray()
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


class _Reader:
    """One table being read."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.attributes: set[int] = set()
        """The tuples, by identity, that hold nothing but attributes."""

    def program(self, table: bytes) -> Program | Function:
        """Return what the last entry holds."""
        for entry in _entries(table):
            self.values.append(self._value(entry[:1], entry[1:]))
        root = self.values[-1] if self.values else None
        if not isinstance(root, (Program, Function)):
            raise ValueError("this serialized program is malformed: it ends in neither a program nor a function")
        return root

    def _value(self, tag: bytes, payload: bytes) -> Any:
        match tag:
            case b"(":
                return self._tuple(tuple(self._refs(payload)))
            case b"{":
                return self._mapping(list(self._refs(payload)))
            case b"C":
                return self._node(*self._refs(payload))
            case _:
                return _read_scalar(tag, payload)

    def _refs(self, payload: bytes) -> Iterator[Any]:
        at = 0
        while at < len(payload):
            number, at = _read_varint(payload, at)
            if number >= len(self.values):
                raise _malformed("an entry refers to a later one")
            yield self.values[number]

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if all(map(self._is_attribute, value)):
            self.attributes.add(id(value))
        return value

    def _mapping(self, parts: list[Any]) -> dict[str, Any]:
        keys, values = parts[::2], parts[1::2]
        if len(keys) != len(values) or not all(isinstance(key, str) for key in keys):
            raise _malformed("a mapping is not made of names and values")
        return dict(zip(keys, values, strict=True))

    def _node(self, name: Any = None, *values: Any) -> Any:
        cls = _BY_NAME.get(name) if isinstance(name, str) else None
        if cls is None:
            raise _malformed(f"there is no node {name!r}")
        names = _fields(cls)
        if len(values) != len(names):
            raise _malformed(f"{name} has {len(names)} fields, got {len(values)}")
        for field, value in zip(names, values, strict=True):
            if not self._fits(value, _hints(cls)[field]):
                raise _malformed(f"{name}.{field} cannot be {type(value).__name__}")
        return cls(**dict(zip(names, values, strict=True)))

    def _fits(self, value: Any, hint: Any) -> bool:
        """Return whether a value is what the annotation of its field says."""
        origin, args = get_origin(hint), get_args(hint)
        if hint is _Atom:
            return self._is_attribute(value)
        if origin in (Union, UnionType):
            return any(self._fits(value, arg) for arg in args)
        if origin is tuple:
            return isinstance(value, tuple) and self._all_fit(cast("tuple[Any, ...]", value), args)
        if origin is not None:
            return isinstance(value, dict) and all(map(self._is_attribute, cast("dict[str, Any]", value).values()))
        return type(value) is hint if hint in (bool, int, float, str, NoneType) else isinstance(value, hint)

    def _all_fit(self, values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
        wanted = hints[:1] * len(values) if hints[-1] is Ellipsis else hints
        return len(values) == len(wanted) and all(map(self._fits, values, wanted))

    def _is_attribute(self, value: object) -> bool:
        return isinstance(value, get_args(_Atom)) or id(value) in self.attributes


@cache
def _hints(cls: type[Any]) -> Mapping[str, Any]:
    """Return the types of a node's fields; `Attribute`, which is recursive, is stood for by `_Atom`."""
    return get_type_hints(cls, localns={"Attribute": _Atom, "Attributes": Mapping[str, _Atom]})


def _entries(table: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(table):
        length, at = _read_varint(table, at)
        if not 0 < length <= len(table) - at:
            raise _malformed("an entry is cut off")
        yield table[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    number, shift = 0, 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return number, at
    raise _malformed("a number is cut off")


def _read_scalar(tag: bytes, payload: bytes) -> Any:
    constants = {b"N": None, b"F": False, b"T": True}
    if tag in constants and not payload:
        return constants[tag]
    if tag == b"I":
        return int.from_bytes(payload, "little", signed=True)
    if tag == b"D" and len(payload) == 8:
        return struct.unpack("<d", payload)[0]
    text = _read_text(payload)
    if tag == b"S":
        return text
    if tag == b"O":
        return get_op(text)
    if tag == b"Y" and text in BY_NAME:
        return BY_NAME[text]
    owner, _, member = text.partition(".")
    if tag == b"E" and owner in _ENUMS and member in _ENUMS[owner].__members__:
        return _ENUMS[owner][member]
    raise _malformed(f"there is no value {(tag + payload)!r}")


def _read_text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise _malformed("a text is not UTF-8") from None


def _malformed(reason: str) -> ValueError:
    return ValueError(f"this serialized program is malformed: {reason}")
