"""Names: the one place where a kernel's text meets the Python objects around it.

Every value a kernel takes from outside itself goes through a `Resolver`, which notes what it handed out. What was not
read cannot have mattered.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from types import CellType, FunctionType, ModuleType
from typing import Any

MISSING: Any = object()
"""Stands for nothing being there."""


class Access(Enum):
    """How a value was reached."""

    GLOBAL = "global"
    CELL = "closure variable"
    BUILTIN = "builtin"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True, eq=False)
class Read:
    """One value taken from outside: who took it, how it is reached, and what was there."""

    access: Access
    path: tuple[str, ...]
    holder: Any
    """The dict, cell or object that holds it; for a builtin, the dict of the module that does not."""
    value: Any
    parent: Read | None = None
    """What the holder itself was read from."""

    @property
    def key(self) -> str:
        """The name under which the holder has it."""
        return self.path[-1]

    def again(self, holder: Any) -> Any:
        """Return what is there now, `MISSING` for nothing; `holder` may have been replaced meanwhile."""
        match self.access:
            case Access.GLOBAL:
                return holder.get(self.key, MISSING)
            case Access.CELL:
                return _contents(holder)
            case Access.BUILTIN:
                return holder.get(self.key, vars(builtins).get(self.key, MISSING))
            case Access.ATTRIBUTE:
                return getattr(holder, self.key, MISSING)


@dataclass
class Resolver:
    """Looks names up as Python would: enclosing functions, then the module, then the builtins."""

    function: Any
    """The function itself; a type checker would take an attribute that is a function for a method."""
    cells: Mapping[str, CellType]
    instance: tuple[str, object] | None = None
    """The name that stands for a method's instance, and the instance."""
    reads: dict[tuple[str, ...], Read] = field(default_factory=dict[tuple[str, ...], Read])

    @classmethod
    def of(cls, function: FunctionType, instance: tuple[str, object] | None = None) -> Resolver:
        """Return the resolver of a function's free names."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return cls(function, cells, instance)

    def lookup(self, name: str) -> object:
        """Return the value of a free name; KeyError when nobody has bound it."""
        module = self.function.__globals__
        cell = self.cells.get(name)
        if cell is not None and (value := _contents(cell)) is not MISSING:
            return self._noted(Read(Access.CELL, (name,), cell, value))
        if name in module:
            return self._noted(Read(Access.GLOBAL, (name,), module, module[name]))
        if hasattr(builtins, name):
            return self._noted(Read(Access.BUILTIN, (name,), module, getattr(builtins, name)))
        raise KeyError(name)

    def annotation_lookup(self, name: str) -> object:
        """Return the value of a free name as Python would in an annotation; NameError when nobody has bound it."""
        try:
            return self.lookup(name)
        except KeyError:
            raise NameError(f"name '{name}' is not defined") from None

    def attribute(self, path: tuple[str, ...], owner: object, name: str) -> object:
        """Return an attribute of a value found under `path`; AttributeError when it has none."""
        value = getattr(owner, name)
        parent = self.reads.get(path)
        is_own = self.instance is not None and path[:1] == (self.instance[0],)
        if (parent is not None or is_own) and not _is_ours(owner):
            self._noted(Read(Access.ATTRIBUTE, (*path, name), owner, value, parent))
        return value

    def _noted(self, read: Read) -> Any:
        self.reads[read.path] = read
        return read.value

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


def _is_ours(owner: object) -> bool:
    """Return whether a value is a module of this package: what it holds does not change."""
    return isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] == __name__.partition(".")[0]


def nearest(name: str, candidates: list[str], prefix: str = "") -> str:
    """Return a help line that names the closest spelling, `prefix` before it, or nothing."""
    close = get_close_matches(name, [c for c in candidates if not c.startswith("_")], n=1, cutoff=0.6)
    return f"did you mean `{prefix}{close[0]}`?" if close else ""
