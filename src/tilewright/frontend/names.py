"""Names: the one place where a kernel's text meets the Python objects around it.

Every value a kernel takes from outside itself goes through a `Resolver`, which notes what it handed out: where it
starts (a name, a default, an annotation, the instance of a method), the attributes and items that lead on from there,
and what was found. What was not read cannot have mattered. Containers are handed out as copies, so that what was noted
is what was used, whatever other threads do meanwhile.

A value may travel before something is taken out of it: bound to a local name, handed to a helper. So objects are known
again by identity, in all the functions of a program, under every path that has led to them.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias, cast

from tilewright.dtypes import DataType
from tilewright.errors import DriftError
from tilewright.frontend.containers import check_read_plainly
from tilewright.frontend.value_keys import (
    MISSING,
    Same,
    is_instance,
    is_known_by_identity,
    is_mutable,
    settled,
    value_key,
)
from tilewright.records import entity, mutable


class Access(Enum):
    """How a value was reached."""

    GLOBAL = "global"
    CELL = "closure variable"
    BUILTIN = "builtin"
    DEFAULT = "default"
    ANNOTATION = "annotation"
    INSTANCE = "instance"
    ATTRIBUTE = "attribute"
    ITEM = "item"


@entity
class Item:
    """A step along a path: what a container has under a key."""

    key: Any

    @property
    def _value_key(self) -> object:
        return Same(self.key) if is_instance(self.key) else value_key(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and other._value_key == self._value_key

    def __hash__(self) -> int:
        return hash(self._value_key)


Step: TypeAlias = str | Item
Path: TypeAlias = tuple[Step, ...]


@entity
class Read:
    """One value taken from outside: how it is reached, and what was there."""

    access: Access
    path: Path
    holder: Any
    """The dict, cell, function or object that had it; for a builtin, the dict of the module that does not."""
    value: Any
    given: Any
    """The value as the kernel saw it: a copy where it is a container."""
    value_key: object
    parent: Read | None = None
    """What the holder itself was read from."""

    @property
    def key(self) -> Any:
        """The name or key under which the holder has it."""
        return self.path[-1].key if isinstance(self.path[-1], Item) else self.path[-1]

    @property
    def root(self) -> Read:
        """The read that the path starts with."""
        return self if self.parent is None else self.parent.root

    @property
    def name(self) -> str:
        """The path as an author writes it."""
        return "".join([_shown(step) for step in self.path]).removeprefix(".")

    def now(self) -> Any:
        """Return what the path leads to now, `MISSING` for nothing."""
        holder = self.holder if self.parent is None else self.parent.now()
        return MISSING if holder is MISSING else self.again(holder)

    def again(self, holder: Any) -> Any:
        """Return what is there now; `holder` may have been replaced meanwhile."""
        match self.access:
            case Access.GLOBAL:
                return holder.get(self.key, MISSING)
            case Access.CELL:
                return _contents(holder)
            case Access.BUILTIN:
                return holder.get(self.key, vars(builtins).get(self.key, MISSING))
            case Access.DEFAULT:
                return defaults_of(holder).get(self.key, MISSING)
            case Access.ANNOTATION:
                return holder.__annotations__.get(self.key)
            case Access.INSTANCE:
                return holder
            case Access.ATTRIBUTE:
                return getattr(holder, self.key, MISSING)
            case Access.ITEM:
                try:
                    return holder[self.key]
                except (LookupError, TypeError):
                    return MISSING


def _shown(step: Step) -> str:
    return f"[{step.key!r}]" if isinstance(step, Item) else f".{step}"


class Changed(DriftError):
    """A value that was not the same at two places of one kernel: somebody changed it in between."""


_Source: TypeAlias = "tuple[Resolver, Read]"


@mutable
class Origins:
    """Where the objects that travel through the functions of one program come from."""

    known: dict[int, tuple[Any, list[_Source]]] = field(default_factory=dict[int, "tuple[Any, list[_Source]]"])

    def of(self, value: object) -> list[_Source]:
        """Return every path that has led to an object."""
        return self.known.get(id(value), (None, []))[1]

    def add(self, value: object, sources: Sequence[_Source], around: tuple[object, ...] = ()) -> None:
        """Note where a container or an object comes from, and so what a container holds."""
        known = self.known.setdefault(id(value), (value, []))[1]
        fresh = [(r, read) for r, read in sources if all(r is not s or read.path != other.path for s, other in known)]
        known += fresh
        if fresh and not any(value is outer for outer in around):
            for key, item in _items(value):
                if _travels(item):
                    inside = [(resolver, _inner(read, value, key, item)) for resolver, read in fresh]
                    self.add(item, inside, (*around, value))


def _travels(value: object) -> bool:
    """Return whether something that can change may be taken out of a value later."""
    if isinstance(value, (int, float, complex, str, bytes, set, frozenset, type(None), DataType, FunctionType)):
        return False
    return isinstance(value, (ModuleType, type)) or not is_known_by_identity(value)


def _items(value: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(value)) if isinstance(value, (tuple, list)) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _inner(read: Read, holder: Any, key: Any, value: Any) -> Read:
    return Read(Access.ITEM, (*read.path, Item(key)), holder, value, value, value_key(value), read)


@mutable
class Resolver:
    """Looks names up as Python would: enclosing functions, then the module, then the builtins."""

    function: Any
    """The function itself; a type checker would take an attribute that is a function for a method."""
    code: CodeType
    cells: Mapping[str, CellType]
    instance: Read | None = None
    """The instance of a bound method, under the name that stands for it."""
    origins: Origins = field(default_factory=Origins)
    reads: dict[tuple[Access, Path], Read] = field(default_factory=dict[tuple[Access, Path], Read])
    uses: Counter[tuple[Access, Path]] = field(default_factory=Counter[tuple[Access, Path]])
    """How often each value was used as a whole, not merely to take something out of it."""
    captured: Any = None
    """The function's syntax, where that was read too."""
    latest: tuple[Any, list[_Source]] = (MISSING, [])
    """What was handed out last, and the paths to it."""

    @classmethod
    def of(
        cls, function: FunctionType, instance: tuple[str, object] | None = None, origins: Origins | None = None
    ) -> Resolver:
        """Return the resolver of a function's free names, and of the instance of a method by its name."""
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        found = cls(function, code, cells, None, origins or Origins())
        if instance is not None:
            name, owner = instance
            found.instance = Read(Access.INSTANCE, (name,), owner, owner, owner, value_key(owner))
            found.origins.add(owner, [(found, found.instance)])
        return found

    def lookup(self, name: str) -> Any:
        """Return the value of a free name; KeyError when nobody has bound it."""
        module = self.function.__globals__
        cell = self.cells.get(name)
        if cell is not None and (value := _contents(cell)) is not MISSING:
            return self._started(Access.CELL, name, cell, value)
        if cell is not None:  # bound later, or never: what the module has under this name is something else
            raise KeyError(name)
        if (value := module.get(name, MISSING)) is not MISSING:
            return self._started(Access.GLOBAL, name, module, value)
        if (value := vars(builtins).get(name, MISSING)) is not MISSING:
            return self._started(Access.BUILTIN, name, module, value)
        raise KeyError(name)

    def annotation(self, name: str) -> Any:
        """Return what a parameter, or `return`, is annotated with; None for nothing."""
        return self._started(Access.ANNOTATION, name, self.function, self.function.__annotations__.get(name))

    def read_defaults(self) -> None:
        """Note what parameters default to; objects only where something is taken out of them."""
        for name, value in defaults_of(self.function).items():
            read = Read(Access.DEFAULT, (name,), self.function, value, settled(value), value_key(value))
            if _travels(value):
                self.origins.add(value, [(self, read)])
            if not is_instance(value):
                self._noted(read)

    def start(self, access: Access, name: str) -> Any:
        """Return the value that a path starts with; LookupError when there is none."""
        if access is Access.INSTANCE and self.instance is not None:
            self.latest = self.instance.value, [(self, self.instance)]
            return self.instance.value
        if access is Access.ANNOTATION:
            return self.annotation(name)
        if access is Access.DEFAULT:
            return self._started(Access.DEFAULT, name, self.function, defaults_of(self.function)[name])
        return self.lookup(name)

    def pass_through(self) -> None:
        """Take back that the value handed out last was used as a whole."""
        for resolver, read in self.latest[1]:
            resolver.uses[read.root.access, read.path] -= 1

    def _started(self, access: Access, name: str, holder: Any, value: Any) -> Any:
        known = self.reads.get((access, (name,)))
        if known is not None and known.value is value and not is_mutable(value):  # as nearly always
            self.uses[access, (name,)] += 1
            self.latest = value, [(self, known)]
            return value
        check_read_plainly(value)
        given = settled(value)
        return self._handed([(self, Read(access, (name,), holder, value, given, value_key(given)))], given)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a value; AttributeError when it has none."""
        value = getattr(owner, name)
        return value if is_ours(owner) else self._taken(owner, Access.ATTRIBUTE, name, value)

    def item(self, owner: Any, key: Any) -> Any:
        """Return what a container has under a key; whatever the container raises when it has nothing."""
        value = owner[key]
        if isinstance(key, slice) or not _is_hashable(key):
            return value
        return self._taken(owner, Access.ITEM, Item(key), value)

    def _taken(self, owner: Any, access: Access, step: Step, value: Any) -> Any:
        """Return what was found in a value, noted under every path that leads there."""
        came = self._taken_from(owner)
        if not came:
            return value
        check_read_plainly(value)
        given = settled(value)
        known = value_key(given)
        sources = [(r, Read(access, (*read.path, step), owner, value, given, known, read)) for r, read in came]
        return self._handed(sources, given)

    def rest(self) -> None:
        """Forget what was handed out last: the next value need not come from outside."""
        self.latest = MISSING, []

    def close(self) -> None:
        """Let go of the objects on their way through the program, once nothing more is taken out of them."""
        self.rest()
        self.origins.known.clear()

    def knows(self, value: object) -> bool:
        """Return whether a container or an object came from outside."""
        return bool(self.origins.of(value))

    def _taken_from(self, owner: object) -> list[_Source]:
        """Return the paths to a value that something is taken out of: it was not used as a whole."""
        value, sources = self.latest
        if value is not owner:
            return list(self.origins.of(owner))
        self.pass_through()
        return sources

    def _handed(self, sources: list[_Source], given: Any) -> Any:
        """Return a value to the kernel, noted under each of its paths."""
        for resolver, read in sources:
            resolver._noted(read)
        if _travels(given):
            self.origins.add(given, sources)
        self.latest = given, sources
        return given

    def _noted(self, read: Read) -> None:
        key = read.root.access, read.path
        known = self.reads.get(key)
        if known is not None and known.value_key != read.value_key:
            raise Changed(
                f"{read.access.value} `{read.name}`, which `{self.function.__qualname__}` of module "
                f"{self.function.__module__} reads, changed from {known.given!r} to {read.given!r} as it was compiled"
            )
        self.reads.setdefault(key, read)
        self.uses[key] += 1
        while (read := read.parent) is not None and read is not self.instance:  # pyright: ignore[reportAssignmentType]
            self.reads.setdefault((read.root.access, read.path), read)

    def leaves(self) -> Iterator[Read]:
        """Yield the reads whose values were used."""
        yield from (read for key, read in self.reads.items() if self.uses[key] > 0)

    def visible(self) -> list[str]:
        """Return every name that could have been meant."""
        return [
            *(name for name, cell in self.cells.items() if _contents(cell) is not MISSING),
            *self.function.__globals__,
        ]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def defaults_of(function: Any) -> dict[str, Any]:
    """Return the defaults of a function's parameters by name."""
    code, values = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    return dict(zip(positional[len(positional) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def free_name(name: str, taken: Collection[str], first: int = 1) -> str:
    """Return a name that is not taken: `name` itself, or with the first number from some one on that makes it free."""
    numbered = (f"{name}_{number}" for number in range(first, first + len(taken) + 1))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def is_ours(owner: object) -> bool:
    """Return whether a value is a module of this package: what it holds does not change."""
    return isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] == __name__.partition(".")[0]


def nearest(name: str, candidates: list[str], prefix: str = "") -> str:
    """Return a help line that names the closest spelling, `prefix` before it, or nothing."""
    from difflib import get_close_matches  # mistakes alone pay for it

    close = get_close_matches(name, [c for c in candidates if not c.startswith("_")], n=1, cutoff=0.6)
    return f"did you mean `{prefix}{close[0]}`?" if close else ""
