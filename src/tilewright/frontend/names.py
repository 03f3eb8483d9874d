"""Names: the one place where a kernel's text meets the Python objects around it.

Every value a kernel takes from outside itself goes through a `Resolver`, which notes what it handed out. What was not
read cannot have mattered.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import FunctionType


@dataclass(frozen=True)
class Read:
    """One value taken from outside: where it is rooted, the way to it, and what was there."""

    root: str
    path: tuple[str, ...]
    value: object


@dataclass
class Resolver:
    """Looks names up as Python would: enclosing functions, then the module, then the builtins."""

    closure: Mapping[str, object]
    module: Mapping[str, object]
    reads: dict[tuple[str, tuple[str, ...]], Read] = field(default_factory=dict[tuple[str, tuple[str, ...]], Read])

    @classmethod
    def of(cls, function: FunctionType) -> Resolver:
        """Return the resolver of a function's free names."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        closure = {name: cell.cell_contents for name, cell in cells.items() if _is_filled(cell)}
        return cls(closure, function.__globals__)

    def lookup(self, name: str) -> object:
        """Return the value of a free name; KeyError when nobody has bound it."""
        for root, names in (("closure", self.closure), ("module", self.module), ("builtins", vars(builtins))):
            if name in names:
                return self._noted(root, (name,), names[name])
        raise KeyError(name)

    def annotation_lookup(self, name: str) -> object:
        """Return the value of a free name as Python would in an annotation; NameError when nobody has bound it."""
        try:
            return self.lookup(name)
        except KeyError:
            raise NameError(f"name '{name}' is not defined") from None

    def attribute(self, path: tuple[str, ...], owner: object, name: str) -> object:
        """Return an attribute of a value found under `path`; AttributeError when it has none."""
        return self._noted("attribute", (*path, name), getattr(owner, name))

    def _noted(self, root: str, path: tuple[str, ...], value: object) -> object:
        self.reads[root, path] = Read(root, path, value)
        return value

    def visible(self) -> list[str]:
        """Return every name that could have been meant."""
        return [*self.closure, *self.module]


def _is_filled(cell: object) -> bool:
    try:
        cell.cell_contents  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # noqa: B018
    except ValueError:
        return False
    return True


def nearest(name: str, candidates: list[str], prefix: str = "") -> str:
    """Return a help line that names the closest spelling, `prefix` before it, or nothing."""
    close = get_close_matches(name, [c for c in candidates if not c.startswith("_")], n=1, cutoff=0.6)
    return f"did you mean `{prefix}{close[0]}`?" if close else ""
