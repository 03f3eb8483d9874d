"""Aliases: modules of another package's name that are ours, found when they are imported and not before.

An alias is our module itself, under a second name: `pypto.language` *is* `tilewright.language`, so that kernels of
either spelling share their code. A finder in front of all others answers for the package's name, and one behind all
others says of what our modules have not what it is called there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilewright.records import record

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # the class itself takes longer to import than all that is done here

OURS = "tilewright"


@record
class Package:
    """A package of others: its own modules by name where ours differ, and the faces that are called alike."""

    name: str
    modules: Mapping[str, str]
    faces: Sequence[str]

    def home(self, fullname: str) -> str | None:
        """Return the module of ours that stands for one of the package's, or None."""
        if fullname in self.modules:
            return self.modules[fullname]
        below = fullname.removeprefix(f"{self.name}.")
        ours = f"{OURS}.{below}"
        return ours if below.partition(".")[0] in self.faces and _exists(ours) else None

    def missing(self, fullname: str) -> str:
        """Return what is said of a name that is not there."""
        return f"{fullname} is not in {OURS}'s compat module"


def install(package: Package) -> None:
    """Let a package's names be imported; ImportError where that package itself is loaded already."""
    loaded = sys.modules.get(package.name)
    if loaded is not None and loaded is not sys.modules.get(package.modules[package.name]):
        raise ImportError(f"{package.name} has been imported already: import {OURS}'s compat module before it")
    if not any(isinstance(finder, Names) and finder.package.name == package.name for finder in sys.meta_path):
        names = Names(package)
        sys.meta_path.insert(0, names)
        sys.meta_path.append(Absent(names))


class Names(Loader):
    """Finds and loads a package's modules: each is put in place as the module of ours that it stands for."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.aliased: dict[str, str] = {}
        """The package's name of each of our modules that goes by one."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how to load one of the package's modules; ModuleNotFoundError for one that is not here."""
        if fullname.partition(".")[0] != self.package.name:
            return None
        if self.package.home(fullname) is None:
            raise ModuleNotFoundError(self.package.missing(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make a module, which ours replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put our module in place of the one that was made."""
        name = module.__name__
        ours = import_module(self.package.home(name) or name)
        if self.aliased.setdefault(ours.__name__, name) == name:
            ours.__dict__["__getattr__"] = self._answer(name, vars(ours).get("__getattr__"))
            ours.__dict__.setdefault("__path__", [])  # so that what is not part of it is looked for, and named
        sys.modules[name] = ours

    def _answer(self, name: str, inner: Callable[[str], Any] | None) -> Callable[[str], Any]:
        def answer(attribute: str) -> Any:
            try:
                if inner is not None:
                    return inner(attribute)
            except AttributeError:
                pass
            raise AttributeError(self.package.missing(f"{name}.{attribute}"))

        return answer


class Absent:
    """Says by the package's name what nobody has found in a module that goes by one, as in `from pypto import x`."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for what would be part of an aliased module."""
        owner, _, last = fullname.rpartition(".")
        if owner in self.names.aliased and not last.startswith("__"):
            name = f"{self.names.aliased[owner]}.{last}"
            raise ModuleNotFoundError(self.names.package.missing(name), name=name)


def _exists(name: str) -> bool:
    """Return whether there is such a module of ours; it is about to be used, so it is loaded."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return False
    return True
