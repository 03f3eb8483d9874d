"""Records: classes of annotated fields, quick to declare.

A record is frozen for the type checker, which is where changing one would be written, and a plain object at run time.
What a dataclass generates, compiles and runs for each class takes most of the time an import takes; here a class learns
its fields when somebody first asks, and how to construct, compare and hash what it makes when it first does: most of
the classes that are imported for a call make nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import _FIELD, MISSING, Field, dataclass, field, fields  # pyright: ignore
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

T = TypeVar("T")

_Plain = dataclass(init=False, eq=False, repr=False)(type("Plain", (), {"__doc__": "A record without fields."}))
_PARAMS = vars(_Plain)["__dataclass_params__"]
"""How all records were made, for dataclasses that are derived from one."""

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
        if cls.__repr__ is object.__repr__:
            cls.__repr__ = _shown
        return declared(cls)

    mutable = entity

    def record(cls):
        """Make a class a record that is compared by what it holds."""
        made = entity(cls)
        if "__eq__" not in vars(made):
            made.__eq__ = _compared_first(made)
        if vars(made).get("__hash__") is None:
            made.__hash__ = _hashed_first(made)
        return made


def declared(cls: Any, own: Mapping[str, Field[Any]] | None = None) -> Any:
    """Return a class as one of annotated fields: its own as they were found, or as they are when somebody asks."""
    cls.__dataclass_fields__, cls.__dataclass_params__ = _Fields(cls, own), _PARAMS
    if "__init__" not in vars(cls):
        cls.__init__ = _constructed_first(cls)
    return cls


class _Fields:
    """The fields of one record and of its bases, in their place until somebody asks for them."""

    def __init__(self, cls: Any, own: Mapping[str, Field[Any]] | None) -> None:
        self._cls = cls
        self._own = own

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        found: dict[str, Field[Any]] = {}
        for base in reversed(self._cls.__mro__[1:]):
            found |= getattr(base, "__dataclass_fields__", {})
        found |= own_fields(self._cls) if self._own is None else self._own
        self._cls.__dataclass_fields__ = found
        return found


def own_fields(cls: Any) -> dict[str, Field[Any]]:
    """Return the fields that a class itself declares, as `dataclass` finds them."""
    found: dict[str, Field[Any]] = {}
    by_name, members = False, cast("dict[str, object]", cls.__dict__)
    for name, annotation in cls.__annotations__.items():
        text = str(annotation)
        by_name = by_name or "KW_ONLY" in text
        if "KW_ONLY" in text or text.startswith(("ClassVar", "typing.ClassVar")):
            continue
        given: object = members.get(name, MISSING)
        each: Any = cast("object", given if isinstance(given, Field) else field(default=given))
        each.name, each.type, each._field_type = name, annotation, _FIELD
        each.kw_only = by_name if each.kw_only is MISSING else each.kw_only
        found[name] = each
    return found


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


def _constructed_first(cls: Any) -> Callable[..., None]:
    """Return a constructor that makes the real one, and calls it."""

    def __init__(self: object, *args: object, **named: object) -> None:
        cls.__init__ = made = _constructor(cls)
        made(self, *args, **named)

    return __init__


def prepare(*classes: Any) -> None:
    """Make the constructors of records now, for whoever makes one while somebody waits."""
    for cls in classes:
        cls.__init__ = _constructor(cls)


def _constructor(cls: Any) -> Callable[..., None]:
    """Return the constructor that a dataclass of the same fields has, which takes ten times as long to make one."""
    every, after = fields(cls), hasattr(cls, "__post_init__")
    factories = [f for f in every if f.default_factory is not MISSING]
    by_place = [f for f in every if f.init and not f.kw_only]
    by_name = [f for f in every if f.init and f.kw_only]
    names = tuple(f.name for f in by_place + by_name)
    code = _assigning(len(by_place), len(by_name), bool(factories or after))
    code = code.replace(co_names=names + code.co_names[len(names) :], co_varnames=("self", *names))
    scope = {"finish": _finishing(factories, after)}
    made = FunctionType(code, scope, f"{cls.__qualname__}.__init__", tuple(_defaults(by_place).values()))
    made.__kwdefaults__ = _defaults(by_name)
    return made


def _defaults(wanted: Sequence[Field[Any]]) -> dict[str, Any]:
    """Return what fields are that nobody gives, MISSING for those that are made then."""
    return {f.name: f.default for f in wanted if f.default is not MISSING or f.default_factory is not MISSING}


@cache
def _assigning(by_place: int, by_name: int, is_finished: bool) -> CodeType:
    """Return the code of a constructor of so many fields, whatever they are called: most records share one."""
    names = [f"field{n}" for n in range(by_place + by_name)]
    heads = ["self", *names[:by_place], *(["*"] if by_name else []), *names[by_place:]]
    body = [*(f"self.{name} = {name}" for name in names), "finish(self)" if is_finished else "pass"]
    scope: dict[str, Any] = {}
    exec(f"def __init__({', '.join(heads)}):\n " + "\n ".join(body), scope)
    return scope["__init__"].__code__


def _finishing(factories: Sequence[Field[Any]], after: bool) -> Callable[[Any], None]:
    """Return what a constructor does once it has kept what it was given: the other fields, and the class's own step."""
    made: list[Any] = [(f.name, f.default_factory, f.init) for f in factories]

    def finish(self: Any) -> None:
        for name, make, may_be_given in made:
            if not may_be_given or getattr(self, name) is MISSING:
                setattr(self, name, make())
        if after:
            self.__post_init__()

    return finish


def _shown(self: Any) -> str:
    """Return a record as the call that makes it."""
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"
