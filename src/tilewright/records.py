"""Records: classes of annotated fields, quick to declare.

A record is frozen for the type checker, which is where changing one would be written, and a plain object at run time.
What a dataclass generates, compiles and runs for each class takes most of the time an import takes; here a class learns
its fields when somebody first asks, and how to construct, compare and hash what it makes when it first does: most of
the classes that are imported for a call make nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import _FIELD, MISSING, Field, dataclass, field, fields  # pyright: ignore
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from tilewright.constructors import FINISHED, PLAIN

T = TypeVar("T")

_Plain = dataclass(init=False, eq=False, repr=False)(type("Plain", (), {"__doc__": "A record without fields."}))
_PARAMS = vars(_Plain)["__dataclass_params__"]
"""How all records were made, for dataclasses that are derived from one."""

Stated: TypeAlias = tuple[object, bool, object]
"""What a class states of a field: its default, its Field or MISSING, whether it is given by name, its annotation."""

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


def declared(cls: Any, own: dict[str, Stated] | None = None) -> Any:
    """Return a class as one of annotated fields: its own as they were found, or as they are when somebody asks."""
    cls.__dataclass_fields__, cls.__dataclass_params__ = _Fields(cls, own), _PARAMS
    if "__init__" not in vars(cls):
        cls.__init__ = _constructed_first(cls)
    return cls


class _Fields:
    """The fields of one record and of its bases, in their place until somebody asks for them."""

    def __init__(self, cls: Any, own: dict[str, Stated] | None) -> None:
        self._cls = cls
        self._own = own

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        found = {name: _field(name, *stated) for name, stated in _stated(self._cls).items()}
        self._cls.__dataclass_fields__ = found
        return found

    def own(self) -> dict[str, Stated]:
        """Return what the class itself states of its fields."""
        return stated_by(self._cls) if self._own is None else self._own


def stated_by(cls: Any) -> dict[str, Stated]:
    """Return what a class itself states of its fields, as `dataclass` finds it."""
    by_name, found = False, dict[str, Stated]()
    members = cast("Mapping[str, Any]", vars(cls))
    for name, annotation in members.get("__annotations__", {}).items():
        text = str(annotation)
        if "KW_ONLY" in text:
            by_name = True
        elif not text.startswith(("ClassVar", "typing.ClassVar")):
            found[name] = members.get(name, MISSING), by_name, annotation
    return found


def _stated(cls: Any) -> dict[str, Stated]:
    """Return what a class and its bases state of their fields, which takes a tenth of the time that Fields take."""
    found: dict[str, Stated] = {}
    for base in reversed(cls.__mro__):
        known: Any = base.__dict__.get("__dataclass_fields__", {})
        if isinstance(known, _Fields):
            found |= known.own()
        else:
            theirs = cast("Mapping[str, Any]", known)
            found |= {name: (f, f.kw_only, f.type) for name, f in theirs.items() if f._field_type is _FIELD}
    return found


def _field(name: str, given: object, by_name: bool, annotation: object) -> Field[Any]:
    """Return the Field that a dataclass makes of what is stated of one."""
    made: Any = cast("object", given if isinstance(given, Field) else field(default=given))
    made.name, made.type, made._field_type = name, annotation, _FIELD
    made.kw_only = by_name if made.kw_only is MISSING else made.kw_only
    return made


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
    names = [name for name, (given, *_) in _stated(cls).items() if not isinstance(given, Field) or given.compare]
    return attrgetter(*names) if names else type


def _constructed_first(cls: Any) -> Callable[..., None]:
    """Return a constructor that makes the real one, and calls it."""

    def __init__(self: object, *args: object, **named: object) -> None:
        cls.__init__ = made = _Plan(cls).constructor()
        made(self, *args, **named)

    return __init__


def prepare(*classes: Any) -> None:
    """Make the constructors of records now, for whoever makes one while somebody waits."""
    for cls in classes:
        cls.__init__ = _Plan(cls).constructor()


class _Plan:
    """What a constructor does with what it is given."""

    def __init__(self, cls: Any) -> None:
        self.name = f"{cls.__qualname__}.__init__"
        self.places: list[str] = []
        self.names: list[str] = []
        self.defaults: dict[str, Any] = {}
        """What fields are that nobody gives, MISSING for those that are made then."""
        self.factories: list[tuple[str, Any, bool]] = []
        self.steps = hasattr(cls, "__post_init__")
        for name, (given, by_name, _) in _stated(cls).items():
            if isinstance(given, Field):
                self._add_field(name, given, by_name)
                continue
            (self.names if by_name else self.places).append(name)
            if given is not MISSING:
                self.defaults[name] = given

    def _add_field(self, name: str, given: Any, by_name: bool) -> None:
        if given.init:
            (self.names if (by_name if given.kw_only is MISSING else given.kw_only) else self.places).append(name)
            if given.default is not MISSING or given.default_factory is not MISSING:
                self.defaults[name] = given.default
        if given.default_factory is not MISSING:
            self.factories.append((name, given.default_factory, given.init))

    def finish(self, made: Any) -> None:
        """Do what comes once what was given is kept: the other fields, and the class's own step."""
        for name, make, may_be_given in self.factories:
            if not may_be_given or getattr(made, name) is MISSING:
                setattr(made, name, make())
        if self.steps:
            made.__post_init__()

    def constructor(self) -> Callable[..., None]:
        """Return the constructor that a dataclass of the same fields has, which takes ten times as long to make one."""
        names = (*self.places, *self.names)
        code = _assigning(len(self.places), len(self.names), bool(self.factories or self.steps))
        code = code.replace(co_names=names + code.co_names[len(names) :], co_varnames=("self", *names))
        defaults = tuple([self.defaults[name] for name in self.places if name in self.defaults])
        made = FunctionType(code, {"finish": self.finish}, self.name, defaults)
        made.__qualname__ = self.name  # which messages of Python's have
        made.__kwdefaults__ = {name: self.defaults[name] for name in self.names if name in self.defaults}
        return made


def _assigning(by_place: int, by_name: int, is_finished: bool) -> CodeType:
    """Return the code of a constructor of so many fields, whatever they are called."""
    written = FINISHED if is_finished else PLAIN
    return _compiled(by_place, by_name, is_finished) if by_name or by_place >= len(written) else written[by_place]


@cache
def _compiled(by_place: int, by_name: int, is_finished: bool) -> CodeType:
    """Return the code of a constructor that is not written out."""
    names = [f"field{n}" for n in range(by_place + by_name)]
    heads = ["self", *names[:by_place], *(["*"] if by_name else []), *names[by_place:]]
    body = [*(f"self.{name} = {name}" for name in names), "finish(self)" if is_finished else "pass"]
    scope: dict[str, Any] = {}
    exec(f"def __init__({', '.join(heads)}):\n " + "\n ".join(body), scope)
    return scope["__init__"].__code__


def _shown(self: Any) -> str:
    """Return a record as the call that makes it."""
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"
