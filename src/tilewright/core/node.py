"""Nodes: the records IR is made of.

A node is frozen for the type checker, which is where changing one would be written. At run time it is a plain record
with slots: programs have tens of thousands of them, and a dataclass that enforces itself takes three times as long to
make. Nodes are compared by identity unless their class says otherwise.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from tilewright.records import declared, stated_by

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
    def node(cls: type[T]) -> type[T]:
        """Make a class of annotated fields a node."""
        ...
else:

    def node(cls):
        """Make a class of annotated fields a node: another one of its name, since slots are settled with the class."""
        own = stated_by(cls)
        held = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
        body = {name: value for name, value in vars(cls).items() if name not in own and name not in _UNSLOTTED}
        slots = tuple(name for name in own if name not in held)
        made = type(cls)(cls.__name__, cls.__bases__, {**body, "__slots__": slots, "__qualname__": cls.__qualname__})
        return declared(made, own)


_UNSLOTTED = ("__dict__", "__weakref__")
"""What a class has for objects without slots."""
