"""Written calls: a call as its caller wrote it, with what of its configuration calls are told apart by.

A configuration can be changed at any time, and may be another object at each call. So calls go neither by it nor by
guards over it, but by what its attributes refer to when the call is made: the same objects, the same program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from enum import Enum
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar

from tilewright.named_tuples import NamedTuple
from tilewright.records import record

CONFIG = "config"
"""The keyword by which a call is told how to run."""


@record
class Configured:
    """The configuration of a call: its class, and what it referred to by some attributes, none of which can change."""

    kind: type[object]
    names: Sequence[str]
    values: Sequence[Any]

    @staticmethod
    def of(config: object, names: Sequence[str]) -> Configured | None:
        """Return a configuration as it is now, None where a value of it can change without being replaced."""
        values = [getattr(config, name) for name in names]
        is_fixed = all(value is None or isinstance(value, (bool, str, Enum)) for value in values)
        return Configured(type(config), names, values) if is_fixed else None

    @property
    def identities(self) -> list[int]:
        """The values, as calls are told apart by them."""
        return [*map(id, self.values)]

    def read(self, config: Any) -> list[int] | None:
        """Return the same of another configuration, None where that is of another class."""
        return [id(getattr(config, name)) for name in self.names] if type(config) is self.kind else None


class Written(NamedTuple):
    """A call as it was written: its arguments by position and by name, and its configuration, None without one.

    A configuration that calls cannot be told apart by is None, too: such calls are for Python.
    """

    args: Sequence[Any] = ()
    named: Mapping[str, Any] = MappingProxyType({})
    config: Configured | None = None
    trace: str | PathLike[str] | None = None
    """The file of the timeline that it is on."""


C = TypeVar("C")


def taken(config: C) -> tuple[C, Configured | None]:
    """Return a configuration as it is now, whatever becomes of it meanwhile, and what calls are told apart by it."""
    if not hasattr(type(config), "told"):
        return config, None
    held: Any = copy(config)
    return held, held.told
