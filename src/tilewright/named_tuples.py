"""Named tuples, quick to declare.

`typing.NamedTuple` compiles the text of every annotation and a constructor for each class: a fifth of a millisecond,
which an import pays for classes that mostly make nothing in a call. Here constructors share their code.
"""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Named(type):
        """The type of named tuples: a class that is derived from `NamedTuple` itself declares fields."""

        def __new__(cls, name, bases, members):
            members.setdefault("__slots__", ())
            if bases != (tuple,) and NamedTuple in bases:
                members |= _declared(members)
            return super().__new__(cls, name, bases, members)

    class NamedTuple(tuple, metaclass=_Named):
        """A tuple whose elements have names, as that of `typing`."""

        _fields = ()
        _field_defaults = {}

        @classmethod
        def _make(cls, iterable):
            return cls(*iterable)

        def _replace(self, **named):
            return type(self)(**{**self._asdict(), **named})

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._asdict().items())})"


def _declared(members: dict[str, Any]) -> dict[str, Any]:
    """Return what the fields of a class add to it, in the place of what they are without being given."""
    types = members.get("__annotations__", {})
    names = tuple(types)
    defaults = {name: members[name] for name in names if name in members}
    code = _making(len(names)).replace(co_varnames=("cls", *names))
    made = FunctionType(code, _SCOPE, "__new__", tuple(defaults.values()))
    made.__annotations__ = types
    getters = {name: _getter(position, name) for position, name in enumerate(names)}
    return {**getters, "__new__": made, "__match_args__": names, "_fields": names, "_field_defaults": defaults}


_SCOPE: dict[str, Any] = {"make": tuple.__new__}  # pyright: ignore[reportUnknownMemberType]


def _getter(position: int, doc: str) -> Any:
    """Return what reads one element, as quickly as this Python can."""
    try:
        from _collections import _tuplegetter as getter  # pyright: ignore
    except ImportError:  # which other Pythons do without
        return property(itemgetter(position), doc=doc)
    return getter(position, doc)  # pyright: ignore[reportUnknownVariableType]


@cache
def _making(count: int) -> CodeType:
    """Return the code of a constructor of so many fields, whatever they are called."""
    names = "".join(f"field{n}, " for n in range(count))
    scope: dict[str, Any] = {}
    exec(f"def __new__(cls, {names}): return make(cls, ({names}))", scope)
    return scope["__new__"].__code__
