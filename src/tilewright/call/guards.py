"""Guards: a read set as tests of identity, for calls that do not ask Python.

Where every object is the very one it was, nothing can have changed. The opposite does not hold: a guard that fails only
says that Python has to look, and to make the guards anew where everything is what it was.

All tests are on objects that were looked at once: what they expect is what was compared with the record, whatever other
threads change meanwhile. None of them runs anybody's code; what can only be reached by running some, as a property, has
no guards.
"""

from __future__ import annotations

import builtins
import ctypes
import sys
from collections.abc import Callable
from dataclasses import field
from enum import Enum
from functools import cache
from inspect import getattr_static
from operator import is_not
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from tilewright.call.words import Probe
from tilewright.dtypes import DataType
from tilewright.forks import computed_once
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.launchable import Launchable
from tilewright.frontend.names import Access, Read, Resolver
from tilewright.frontend.value_keys import MISSING, kind_of, value_key
from tilewright.keep.reads import ReadSet
from tilewright.named_tuples import NamedTuple
from tilewright.records import mutable


class Unguarded(Exception):
    """Something that only Python can look at again, or that has changed."""


FUNCTION = ("__code__", "__defaults__", "__kwdefaults__", "__annotations__")
"""What of a function changes what it does."""


@mutable
class Guards:
    """Tests of identity: items of dicts, references inside objects, accesses done again, dicts left alone."""

    watched: list[tuple[dict[Any, Any], dict[Any, Any]]] = field(
        default_factory=list[tuple[dict[Any, Any], dict[Any, Any]]]
    )
    """Dicts, and what each holds by key; `MISSING` for a key that it must not have."""
    fields: list[tuple[Any, str, Any]] = field(default_factory=list[tuple[Any, str, Any]])
    """Cells and functions, an attribute of each, and what that is."""
    probes: list[tuple[Probe, Any, Any, Any]] = field(default_factory=list[tuple[Probe, Any, Any, Any]])
    """Kinds of accesses, objects, keys, and what is found there."""
    versions: list[tuple[dict[Any, Any], int]] = field(default_factory=list[tuple[dict[Any, Any], int]])

    @staticmethod
    def of(reads: ReadSet) -> Guards | None:
        """Return the guards of a read set as it is now, None where they cannot be, or something has changed."""
        try:
            return _Maker().made(reads)
        except Unguarded:
            return None

    @staticmethod
    def obstacle(reads: ReadSet) -> str:
        """Return what of a read set cannot be guarded, or nothing."""
        try:
            _Maker().made(reads)
        except Unguarded as error:
            return str(error) or "something it reads cannot be looked at without Python"
        return ""

    @computed_once
    def hold(self) -> Callable[[], bool]:
        """A function that tells whether all tests hold, as the dispatcher would find them.

        It is Python with each test written out, which takes a third of what going through their lists would: a memo
        asks before each call.
        """
        scope: dict[str, Any] = {"MISSING": MISSING, "found": _found, "version_of": version_of}

        def name(value: object) -> str:
            called = f"value{len(scope)}"
            scope[called] = value
            return called

        tests: list[str] = []
        for holder, items in self.watched:
            absent = frozenset(key for key, value in items.items() if value is MISSING)
            get = name(holder.get)
            tests += [f"{name(holder.keys().isdisjoint)}({name(absent)})"] * bool(absent)
            tests += [f"{get}({name(k)}, MISSING) is {name(v)}" for k, v in items.items() if v is not MISSING]
        tests += [f"{name(owner)}.{attribute} is {name(value)}" for owner, attribute, value in self.fields]
        tests += [f"version_of({name(holder)}) == {version}" for holder, version in self.versions]
        tests += [f"found({name(probe)})" for probe in self.probes]
        body = f"  return {' and '.join(tests) or True}\n except ValueError:\n  return False"  # an empty cell
        exec(f"def hold():\n try:\n{body}", scope)
        return scope["hold"]


def _found(probe: tuple[Probe, Any, Any, Any]) -> bool:
    kind, owner, key, value = probe
    if kind is Probe.FILE:
        return owner.is_same
    try:
        if kind is Probe.SIZE:
            return len(owner) == value
        return (getattr(owner, key) if kind is Probe.ATTRIBUTE else owner[key]) is value
    except (AttributeError, LookupError):
        return False


class _Maker:
    """Guards being made: everything is looked at once, and compared with the record."""

    def __init__(self) -> None:
        self.guards = Guards()
        self.live: dict[int, Any] = {}
        self.held: dict[int, tuple[Any, Any, Any]] = {}

    def made(self, reads: ReadSet) -> Guards:
        for resolver in reads.resolvers:
            self._function(resolver)
        for resolver in reads.resolvers:
            for read in resolver.reads.values():
                try:
                    self._add(read)
                except Unguarded:
                    raise Unguarded(f"it reads {read.access.value} `{read.name}`, which only Python can") from None
        for leaf in reads.leaves:
            value = self.live[id(leaf.read)]
            if value_key(value, seen=self._inside) != leaf.read.value_key:
                raise Unguarded
        return self.guards

    def _function(self, resolver: Resolver) -> None:
        """Guard a function's code, defaults and annotations."""
        function = resolver.function
        found = function.__defaults__, function.__kwdefaults__, function.__annotations__
        self.held[id(function)] = found
        for name, value in zip(FUNCTION, (resolver.code, *found), strict=True):
            self.guards.fields.append((function, name, value))

    def _value(self, read: Read) -> Any:
        """Return what a path leads to, looked at once."""
        if id(read) not in self.live:
            self.live[id(read)] = self._looked_up(read)
        return self.live[id(read)]

    def _looked_up(self, read: Read) -> Any:
        if read.access is Access.DEFAULT:
            return self._default(read)
        if read.access is Access.ANNOTATION:
            return self.held[id(read.holder)][2].get(read.key)
        holder = read.holder if read.parent is None else self._value(read.parent)
        value = read.again(holder)
        if value is MISSING:
            raise Unguarded
        return value

    def _default(self, read: Read) -> Any:
        defaults, named, _ = self.held[id(read.holder)]
        code: CodeType = read.holder.__code__
        positional = code.co_varnames[: code.co_argcount][::-1]
        values: dict[str, Any] = dict(zip(positional, (defaults or ())[::-1], strict=False)) | (named or {})
        if read.key not in values:
            raise Unguarded
        return values[read.key]

    def _add(self, read: Read) -> None:
        value = self._value(read)
        match read.access:
            case Access.GLOBAL:
                self._watch(read.holder, read.key, value)
            case Access.CELL:
                self.guards.fields.append((read.holder, "cell_contents", value))
            case Access.BUILTIN:
                self._watch(read.holder, read.key, MISSING)
                self._watch(builtins.__dict__, read.key, value)
            case Access.DEFAULT:
                named = self.held[id(read.holder)][1]
                if named is not None and read.key in named:
                    self._watch(named, read.key, value)
            case Access.ANNOTATION:
                held = self.held[id(read.holder)][2]
                self._watch(held, read.key, value if read.key in held else MISSING)
            case Access.INSTANCE:
                pass
            case Access.ATTRIBUTE:
                self._attribute(self._holder(read), read.key, value)
            case Access.ITEM:
                self._item(self._holder(read), read.key, value)

    def _holder(self, read: Read) -> Any:
        return read.holder if read.parent is None else self._value(read.parent)

    def _watch(self, holder: dict[Any, Any], key: str, value: object) -> None:
        for known, items in self.guards.watched:
            if known is holder:
                if items.setdefault(key, value) is not value:
                    raise Unguarded
                return
        self.guards.watched.append((holder, {key: value}))

    def _attribute(self, owner: Any, name: str, value: object) -> None:
        if isinstance(owner, DataType) or (isinstance(owner, Enum) and name in ("name", "value")):
            return
        if type(owner) is ModuleType and owner.__dict__.get(name, MISSING) is value:
            self._watch(owner.__dict__, name, value)
        elif isinstance(owner, Launchable):
            self._kernel(owner, name, value)
        elif runs_nothing(owner, name):
            self.guards.probes.append((Probe.ATTRIBUTE, owner, name, value))
        else:
            raise Unguarded

    def _kernel(self, kernel: Launchable, name: str, value: object) -> None:
        """Guard the text of a kernel that is launched: whatever is read of it follows from that."""
        found: Guards | None = kernel.guards()
        if found is None or getattr(kernel, name) != value:
            raise Unguarded
        for holder, items in found.watched:
            for key, value in items.items():
                self._watch(holder, key, value)
        self.guards.fields += found.fields
        self.guards.probes += found.probes
        self.guards.versions += found.versions

    def _item(self, owner: Any, key: Any, value: object) -> None:
        kind = kind_of(owner)
        if issubclass(kind, tuple):
            return
        if kind is list and type(key) is int:
            self.guards.probes.append((Probe.ITEM, owner, key, value))
        elif kind is dict and type(key) in (int, str):
            self._watch(owner, key, value)
        elif kind is dict:
            self._left_alone(owner, list(owner.items()))
            if owner.get(key, MISSING) is not value:
                raise Unguarded
        else:
            raise Unguarded

    def _inside(self, value: Any, items: list[Any]) -> None:
        """Guard what a container holds, as it was found."""
        kind = kind_of(value)
        if not issubclass(kind, (list, set, dict)):
            return
        if kind is list:
            self.guards.probes.append((Probe.SIZE, value, None, len(items)))
            self.guards.probes += [(Probe.ITEM, value, place, item) for place, item in enumerate(items)]
        elif kind is dict:
            self._left_alone(value, items)
        else:
            raise Unguarded

    def _left_alone(self, holder: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
        """Guard all of a dict, and the order of its keys."""
        version = version_of(holder)
        now, found = ([part for item in pairs for part in item] for pairs in (list(holder.items()), items))
        if not version or len(now) != len(found) or any(map(is_not, now, found)):
            raise Unguarded
        self.guards.versions.append((holder, version))


class _Sample(NamedTuple):
    x: int


_DONE_BY_C = (MemberDescriptorType, GetSetDescriptorType, kind_of(vars(_Sample)["x"]))
"""The kinds of attributes that objects of C and slots have, and those of named tuples."""


def runs_nothing(owner: Any, name: str) -> bool:
    """Return whether taking an attribute runs nobody's code; binding a kernel to an instance runs ours."""
    kind = kind_of(owner)
    if isinstance(kind.__getattribute__, FunctionType):
        return False
    first: Any = getattr_static(kind, name, MISSING)
    if hasattr(kind_of(first), "__set__") or hasattr(kind_of(first), "__delete__"):
        return isinstance(first, _DONE_BY_C)
    if name in getattr(owner, "__dict__", ()) and not isinstance(owner, type):
        return True
    found: Any = getattr_static(owner, name, MISSING)
    if found is MISSING:  # __getattr__ makes it up
        return False
    getter = getattr(kind_of(found), "__get__", None)
    return isinstance(found, Kernel) or not isinstance(getter, FunctionType)


@cache
def version_offset() -> int:
    """Return where in a dict its version lies, 0 where this Python has none that moves with each change."""
    sample: dict[str, int] = {"a": 1}
    place = 24
    seen = {ctypes.c_uint64.from_address(id(sample) + place).value}
    for value in (2, 3):
        sample["a"] = value
        seen.add(ctypes.c_uint64.from_address(id(sample) + place).value)
    return place if sys.implementation.name == "cpython" and sys.version_info < (3, 12) and len(seen) == 3 else 0


def version_of(holder: dict[Any, Any]) -> int:
    """Return a number that changes with every change of a dict, 0 where there is none."""
    place = version_offset()
    return ctypes.c_int64.from_address(id(holder) + place).value if place else 0


@cache
def slot_offset(kind: type[Any], name: str) -> int | None:
    """Return where in objects of a class what a slot refers to lies, None where it is no slot."""
    if not isinstance(vars(kind).get(name), MemberDescriptorType):
        return None
    sample, value = object.__new__(kind), object()
    setattr(sample, name, value)
    words = (ctypes.c_int64 * (sample.__sizeof__() // 8)).from_address(id(sample))
    return 8 * list(words).index(id(value))


@cache
def field_offset(kind: type, name: str) -> int:
    """Return where in a cell or a function what it refers to by an attribute lies."""
    value = object()

    def sample(a: object = value, *, b: object = value) -> object:
        return a, b, value

    owner: Any = sample
    if kind is not FunctionType:
        (owner,) = (c for c in sample.__closure__ or () if c.cell_contents is value)
    elif name == "__annotations__":
        sample.__annotations__  # noqa: B018 - makes a dict of what may be a tuple
    words = (ctypes.c_int64 * (owner.__sizeof__() // 8)).from_address(id(owner))
    return 8 * list(words).index(id(getattr(owner, name)))
