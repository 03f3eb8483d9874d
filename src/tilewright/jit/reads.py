"""Read sets: what a program was compiled from besides its arguments.

The front end notes every value it takes from outside a kernel. Here those notes become two things: a question that can
be asked again, whether everything is as it was, and the guards by which the native dispatcher asks it at every call.
Only leaves count. An object that was merely passed through on the way to an attribute may be replaced by another whose
attribute is the same.
"""

from __future__ import annotations

import builtins
import ctypes
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from types import FunctionType
from typing import Any, cast

from tilewright.backends.cpu.dispatch import Probe
from tilewright.core.annotations import DynVar
from tilewright.dtypes import DataType
from tilewright.frontend.names import MISSING, Access, Read, Resolver


@dataclass(frozen=True)
class Drift:
    """A value that has changed since a program was compiled."""

    function: str
    module: str
    name: str
    kind: str
    old: object
    new: object
    is_own: bool = False
    """Whether it is an attribute of the instance that a method is bound to."""

    def __str__(self) -> str:
        now = "is gone" if self.new is MISSING else f"is {self.new!r} now"
        return (
            f"{self.kind} `{self.name}`, which `{self.function}` of module {self.module} reads, "
            f"was {self.old!r} when it was compiled and {now}"
        )


class ReadSet:
    """What one program was compiled from, by the resolvers of all the functions in it."""

    def __init__(self, resolvers: Sequence[Resolver]) -> None:
        self.resolvers = tuple(resolvers)
        self.codes = [_Code.of(resolver.function) for resolver in self.resolvers]
        self.leaves = [_Leaf(resolver, read) for resolver in self.resolvers for read in leaves(resolver)]

    def drift(self) -> Drift | None:
        """Return the first value that is no longer what it was, or None."""
        for code in self.codes:
            if (found := code.drift()) is not None:
                return found
        return next((found for leaf in self.leaves if (found := leaf.drift()) is not None), None)

    @property
    def origins(self) -> list[tuple[str, int]]:
        """The file and first line of each function that was read."""
        codes = [resolver.function.__code__ for resolver in self.resolvers]
        return [(code.co_filename, code.co_firstlineno) for code in codes]

    def is_same(self) -> bool:
        """Return whether every value is the very object that it was, not merely worth the same."""
        return all(_now(read) is read.value for resolver in self.resolvers for read in resolver.reads.values())

    def renewed(self) -> ReadSet:
        """Return this set with the objects that are there now."""
        return ReadSet([_renewed(resolver) for resolver in self.resolvers])

    @cached_property
    def guards(self) -> Guards | None:
        """The same question as the native dispatcher asks it, None where identity cannot answer it."""
        return None if any(_has_set(leaf.read.value) for leaf in self.leaves) else Guards.of(self)


@dataclass(frozen=True)
class _Code:
    """A function's own code and defaults."""

    function: FunctionType
    held: tuple[tuple[str, object], ...]

    @staticmethod
    def of(function: FunctionType) -> _Code:
        names = ("__code__", "__defaults__", "__kwdefaults__")
        return _Code(function, tuple((name, getattr(function, name)) for name in names))

    def drift(self) -> Drift | None:
        for name, old in self.held:
            new = getattr(self.function, name)
            if new is not old and (name == "__code__" or frozen(new) != frozen(old)):
                return Drift(self.function.__qualname__, self.function.__module__, name, "attribute", old, new)
        return None


class _Leaf:
    """A value that was used, and what it was worth."""

    def __init__(self, resolver: Resolver, read: Read) -> None:
        self.resolver = resolver
        self.read = read
        self.worth = frozen(read.value)

    def drift(self) -> Drift | None:
        new = _now(self.read)
        if new is self.read.value and not _is_mutable(new):
            return None
        if new is not MISSING and frozen(new) == self.worth:
            return None
        function = self.resolver.function
        own = self.resolver.instance is not None and self.read.path[0] == self.resolver.instance[0]
        name = ".".join(self.read.path)
        return Drift(
            function.__qualname__, function.__module__, name, self.read.access.value, _shown(self.worth), new, own
        )


def _now(read: Read) -> Any:
    """Return what a path leads to now."""
    if read.parent is None:
        return read.again(read.holder)
    holder = _now(read.parent)
    return MISSING if holder is MISSING else read.again(holder)


def _renewed(resolver: Resolver) -> Resolver:
    fresh = replace(resolver, reads={})
    for path, read in resolver.reads.items():
        parent = fresh.reads.get(path[:-1]) if read.parent is not None else None
        holder = read.holder if parent is None else parent.value
        fresh.reads[path] = Read(read.access, path, holder, read.again(holder), parent)
    return fresh


def leaves(resolver: Resolver) -> Iterator[Read]:
    """Yield the reads that nothing else was read through."""
    passed = {id(read.parent) for read in resolver.reads.values() if read.parent is not None}
    yield from (read for read in resolver.reads.values() if id(read) not in passed)


def frozen(value: object) -> object:
    """Return what a value is worth: equal for values that a kernel cannot tell apart, and for no others."""
    if value is None or isinstance(value, (str, bytes, Enum, DataType)) or type(value) in (int, bool):
        return type(value), value
    if type(value) is float:
        return float, struct.pack("<d", value)
    if isinstance(value, DynVar):
        return DynVar, value.name
    if type(value) in (tuple, list, set, frozenset, dict):
        return type(value), tuple(_parts(value))
    return _Same(value)


def _parts(value: Any) -> Iterator[object]:
    if isinstance(value, dict):
        for key, item in cast("Mapping[object, object]", value).items():
            yield frozen(key), frozen(item)
    elif isinstance(value, (set, frozenset)):
        yield frozenset(map(frozen, cast("set[object]", value)))
    else:
        yield from map(frozen, value)


@dataclass(frozen=True, eq=False)
class _Same:
    """A value that only equals itself."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _shown(worth: object) -> object:
    """Return a frozen value as messages show it."""
    if isinstance(worth, _Same):
        return worth.value
    kind, inner = cast("tuple[type, Any]", worth)
    if kind is float:
        return struct.unpack("<d", inner)[0]
    if kind is dict:
        return {_shown(key): _shown(item) for key, item in inner}
    if kind in (set, frozenset):
        return set(map(_shown, *inner))
    parts = map(_shown, inner) if kind in (tuple, list) else ()
    return tuple(parts) if kind is tuple else list(parts) if kind is list else inner


def _is_mutable(value: object) -> bool:
    """Return whether a value may change in place in a way a kernel can tell."""
    if isinstance(value, (list, dict, set)):
        return True
    return isinstance(value, tuple) and any(map(_is_mutable, cast("tuple[object, ...]", value)))


@dataclass(frozen=True)
class Guards:
    """A read set as tests of identity: items of dicts, references inside objects, accesses done again."""

    watched: list[tuple[dict[Any, Any], dict[Any, Any]]]
    held: list[tuple[object, object]]
    """Pairs of a cell and what it must hold, and functions whose code and defaults must stay."""
    probes: list[tuple[int, Any, Any, Any]]

    @staticmethod
    def of(reads: ReadSet) -> Guards:
        """Return the guards of a read set."""
        guards = Guards([], [], [])
        guards.held.extend((code.function, None) for code in reads.codes)
        for resolver in reads.resolvers:
            for read in resolver.reads.values():
                guards._add(read)
        for leaf in reads.leaves:
            guards._add_parts(leaf.read.value)
        return guards

    def _add(self, read: Read) -> None:
        match read.access:
            case Access.GLOBAL:
                self._watch(read.holder, read.key, read.value)
            case Access.CELL:
                self.held.append((read.holder, read.value))
            case Access.BUILTIN:
                self._watch(read.holder, read.key, MISSING)
                self._watch(builtins.__dict__, read.key, read.value)
            case Access.ATTRIBUTE:
                self.probes.append((Probe.ATTRIBUTE, read.holder, read.key, read.value))

    def _watch(self, holder: dict[Any, Any], key: str, value: object) -> None:
        for known, items in self.watched:
            if known is holder:
                items[key] = value
                return
        self.watched.append((holder, {key: value}))

    def _add_parts(self, value: object) -> None:
        """Add what must stay inside a container that can change in place."""
        if not _is_mutable(value):
            return
        held = cast("Sequence[object] | Mapping[object, object]", value)
        self.probes.append((Probe.SIZE, held, None, len(held)))
        items = held.items() if isinstance(held, dict) else enumerate(cast("Sequence[object]", held))
        for key, item in items:
            self.probes.append((Probe.ITEM, held, key, item))
            self._add_parts(item)

    def fields(self) -> list[tuple[int, int]]:
        """Return where the references lie that must stay, and what they are."""
        found = [reference(owner, value) for owner, value in self.held]
        return [place for places in found for place in places]


def _has_set(value: object) -> bool:
    """Return whether there is a set in a value: it can change without any item telling."""
    if isinstance(value, set):
        return True
    if isinstance(value, dict):
        return any(map(_has_set, cast("Mapping[object, object]", value).values()))
    return isinstance(value, (list, tuple)) and any(map(_has_set, cast("Sequence[object]", value)))


def reference(owner: object, value: object) -> list[tuple[int, int]]:
    """Return where an object refers to another, as addresses and references; for a function, its code and defaults."""
    if isinstance(owner, FunctionType):
        return [(id(owner) + at, _word(id(owner) + at)) for at in _function_fields()]
    words = range(2, owner.__sizeof__() // 8)
    return [(id(owner) + 8 * k, id(value)) for k in words if _word(id(owner) + 8 * k) == id(value)][:1]


@cache
def _function_fields() -> tuple[int, ...]:
    """Return where in a function object its code, defaults and keyword defaults lie."""

    def sample(a: int = 12345, *, b: int = 54321) -> int:
        return a + b

    wanted = [id(sample.__code__), id(sample.__defaults__), id(sample.__kwdefaults__)]
    words = [_word(id(sample) + 8 * k) for k in range(sample.__sizeof__() // 8)]
    return tuple(8 * words.index(word) for word in wanted)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value
