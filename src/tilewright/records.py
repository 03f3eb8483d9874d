"""Records: classes of annotated fields, quick to declare.

A record is frozen for the type checker, which is where changing one would be written, and a plain object at run time.
What a dataclass generates, compiles and runs for each class takes most of the time an import takes; here a class learns
its fields when somebody first asks, and how to construct, compare and hash what it makes when it first does: most of
the classes that are imported for a call make nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.forks import Lock

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(cls: type[T]) -> type[T]:
        """Make a class a record that is compared by what it holds."""
        ...

    @dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
    def entity(cls: type[T]) -> type[T]:
        """Make a class a record that is compared by identity."""
        ...

    @dataclass_transform(eq_default=False, field_specifiers=(field,))
    def mutable(cls: type[T]) -> type[T]:
        """Make a class a record whose fields change, and that is compared by identity."""
        ...
else:

    def entity(cls):
        """Make a class a record that is compared by identity."""
        cls.__doc__ = cls.__doc__ or cls.__name__  # or it would be made up, which takes longer than all the rest
        cls.__dataclass_fields__ = _Fields(cls)
        if "__init__" not in vars(cls):
            cls.__init__ = constructed_first(cls)
        if cls.__repr__ is object.__repr__:
            cls.__repr__ = _shown
        return cls

    mutable = entity

    def record(cls):
        """Make a class a record that is compared by what it holds."""
        made = entity(cls)
        if "__eq__" not in vars(made):
            made.__eq__ = _compared_first(made)
        if vars(made).get("__hash__") is None:
            made.__hash__ = _hashed_first(made)
        return made


class _Fields:
    """The fields of one record and of its bases, in their place until somebody asks for them."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        with _lock:
            if vars(self._cls)["__dataclass_fields__"] is self:
                dataclass(init=False, eq=False, repr=False)(self._cls)
        return self._cls.__dataclass_fields__


_lock = Lock()
"""Held while a class learns its fields: it is changed meanwhile."""


def _compared_first(cls: Any) -> Callable[[Any, object], bool]:
    """Return a comparison that makes the real one, and calls it."""

    def __eq__(self: Any, other: object) -> bool:
        content = _content(cls)

        def same(self: Any, other: object) -> bool:
            return content(self) == content(other) if type(other) is type(self) else NotImplemented

        cls.__eq__ = same
        return same(self, other)

    return __eq__


def _hashed_first(cls: Any) -> Callable[[Any], int]:
    """Return a hash that makes the real one, and calls it."""

    def __hash__(self: Any) -> int:
        content = _content(cls)

        def hashed(self: Any) -> int:
            return hash(content(self))

        cls.__hash__ = hashed
        return hashed(self)

    return __hash__


def _content(cls: Any) -> Callable[[Any], Any]:
    """Return what reads the fields that a record is compared by."""
    names = [f.name for f in fields(cls) if f.compare]
    return attrgetter(*names) if names else type


def constructed_first(cls: Any) -> Callable[..., None]:
    """Return a constructor that makes the real one, and calls it."""

    def __init__(self: object, *args: object, **named: object) -> None:
        cls.__init__ = made = _constructor(cls)
        made(self, *args, **named)

    return __init__


def _constructor(cls: Any) -> Callable[..., None]:
    """Return the constructor that a dataclass of the same fields has, which takes ten times as long to make one."""
    wanted = [f for f in fields(cls) if f.init or f.default_factory is not MISSING]
    if hasattr(cls, "__post_init__") or any(f.kw_only or f.default_factory is not MISSING for f in wanted):
        return _written(cls, wanted)
    names = tuple(f.name for f in wanted)
    code = _assigning(len(names)).replace(co_names=names, co_varnames=("self", *names))
    defaults = tuple(f.default for f in wanted if f.default is not MISSING)
    return FunctionType(code, {}, f"{cls.__qualname__}.__init__", defaults)


@cache
def _assigning(count: int) -> CodeType:
    """Return the code of a constructor with so many fields, whatever they are called: most records share one."""
    names = [f"field{n}" for n in range(count)]
    body = [f"self.{name} = {name}" for name in names] or ["pass"]
    scope: dict[str, Any] = {}
    exec(f"def __init__({', '.join(['self', *names])}):\n " + "\n ".join(body), scope)
    return scope["__init__"].__code__


def _written(cls: Any, wanted: Sequence[Field[Any]]) -> Callable[..., None]:
    """Return a constructor that does more than to keep what it is given."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    heads, named, body = ["self"], ["*"], ["pass"]
    for each in wanted:
        head = value = name = each.name
        if each.default_factory is not MISSING:
            scope[f"default_{name}"] = each.default_factory
            head, value = f"{name}=MISSING", f"default_{name}()"
            value += f" if {name} is MISSING else {name}" if each.init else ""
        elif each.default is not MISSING:
            scope[f"default_{name}"] = each.default
            head = f"{name}=default_{name}"
        if each.init:
            (named if each.kw_only else heads).append(head)
        body.append(f"self.{name} = {value}")
    body += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    exec(f"def __init__({', '.join(heads + named[len(named) == 1 :])}):\n " + "\n ".join(body), scope)
    scope["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return scope["__init__"]


def _shown(self: Any) -> str:
    """Return a record as the call that makes it."""
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"
