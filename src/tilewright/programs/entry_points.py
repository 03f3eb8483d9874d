"""Entry points: a program's entries by name, and what the only one takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tilewright.call.graph_breaks import unread
from tilewright.call.torch_state import INSTEAD
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Program
from tilewright.core.types import Type
from tilewright.programs.entry import Entry
from tilewright.programs.metadata import ParamInfo, entry_of


class EntryPoints(ABC):
    """A program that is called: its only entry by itself, several by their names, as items and as attributes.

    What an entry takes and gives is asked of the only one; ValueError where there are several, which have each its own.
    """

    declared: Program
    """What its entries declare, and where it was compiled here all the rest of the program."""
    _entries: dict[str, Entry]
    """Those that somebody has asked for."""

    @unread(INSTEAD)
    def __call__(self, *args: Any, config: object = None, **named: Any) -> Any:
        """Run the program's only entry; see `Entry`."""
        if len(self.declared.entries) > 1:
            names = ", ".join(self.entry_names)
            raise TypeError(f"program {self.declared.name} has several entries: call one of {names} by name")
        return self.entry(*args, config=config, **named)

    def __getitem__(self, name: str) -> Entry:
        """Return one entry of a program that has several."""
        if name not in self.entry_names:
            raise KeyError(f"program {self.declared.name} has no entry {name!r}; it has {', '.join(self.entry_names)}")
        if name not in self._entries:
            self._entries[name] = self._entry(name)
        return self._entries[name]

    def __getattr__(self, name: str) -> Entry:
        """Return one entry of a program that has several, as an attribute."""
        program: Program | None = self.__dict__.get("declared")  # there is none while a copy is being made
        if program is not None and any(name == entry.name for entry in program.entries):
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def entry(self) -> Entry:
        """The only entry; ValueError where there are several."""
        return self[entry_of(self.declared).name]

    @abstractmethod
    def _entry(self, name: str) -> Entry:
        """Return an entry that nobody has asked for yet."""

    @property
    def entry_names(self) -> list[str]:
        """The names of the entries, in the order they were written."""
        return [entry.name for entry in self.declared.entries]

    @property
    def orchestration_names(self) -> list[str]:
        """The names of the entries, as the PTO family calls them."""
        return self.entry_names

    @property
    def param_names(self) -> list[str]:
        """The entry's parameters, in order."""
        return self.entry.param_names

    @property
    def param_infos(self) -> list[ParamInfo]:
        """What each of the entry's parameters is: its name, direction, shape and element type."""
        return self.entry.param_infos

    @property
    def output_indices(self) -> list[int]:
        """The positions of parameters that are only written."""
        return self.entry.output_indices

    @property
    def return_types(self) -> tuple[Type, ...]:
        """The types of what the entry returns."""
        return self.entry.return_types

    @property
    def has_return(self) -> bool:
        """Whether the entry returns anything."""
        return bool(self.return_types)

    def directions(self) -> tuple[ParamDirection, ...]:
        """Return what the only entry really does with each of its parameters."""
        return self.entry.directions
