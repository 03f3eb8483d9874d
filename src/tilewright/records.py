"""Records: classes of annotated fields, quick to make.

A record is frozen for the type checker, which is where changing one would be written, and a plain object at run time.
What a frozen dataclass generates, compiles and runs for each class takes most of the time an import takes; here all
records share one way to compare, hash and show themselves, and a constructor is generated when it is first called:
most of the classes that are imported for a call make nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

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
else:

    def entity(cls):
        """Make a class a record that is compared by identity."""
        cls.__doc__ = cls.__doc__ or cls.__name__  # or it would be made up, which takes longer than all the rest
        made = dataclass(init=False, eq=False, repr=False)(cls)
        if "__init__" not in vars(cls):
            made.__init__ = constructed_first(made)
        if made.__repr__ is object.__repr__:
            made.__repr__ = _shown
        return made

    def record(cls):
        """Make a class a record that is compared by what it holds."""
        made = entity(cls)
        names = [f.name for f in fields(made) if f.compare]
        content = attrgetter(*names) if names else type

        def same(self: Any, other: object) -> bool:
            return content(self) == content(other) if type(other) is type(self) else NotImplemented

        def hashed(self: Any) -> int:
            return hash(content(self))

        if "__eq__" not in vars(made):
            made.__eq__ = same
        if vars(made).get("__hash__") is None:
            made.__hash__ = hashed
        return made


def constructed_first(cls: Any) -> Callable[..., None]:
    """Return a constructor that makes the real one, and calls it."""

    def __init__(self: object, *args: object, **named: object) -> None:
        cls.__init__ = made = _constructor(cls)
        made(self, *args, **named)

    return __init__


def _constructor(cls: Any) -> Callable[..., None]:
    """Return the constructor that a dataclass of the same fields has, which takes ten times as long to make one."""
    wanted = [*cls.__dataclass_fields__.values()]
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
            head, value = f"{name}=MISSING", f"default_{name}() if {name} is MISSING else {name}"
        elif each.default is not MISSING:
            scope[f"default_{name}"] = each.default
            head = f"{name}=default_{name}"
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
