"""Nodes: the records IR is made of.

A node is frozen for the type checker, which is where changing one would be written. At run time it is a plain record
with slots: programs have tens of thousands of them, and a dataclass that enforces itself takes three times as long to
make. Nodes are compared by identity unless their class says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tilewright.records import constructed_first

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
    def node(cls: type[T]) -> type[T]:
        """Make a class of annotated fields a node."""
        ...
else:

    def node(cls):
        """Make a class of annotated fields a node."""
        made = dataclass(slots=True, init=False, eq=False, repr=False)(cls)
        if "__init__" not in vars(cls):
            made.__init__ = constructed_first(made)
        return made
