"""Other names for an op: `adds` is `add` whose right operand is a scalar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from tilewright.core.annotations import outside_kernel
from tilewright.core.op import Parameter, Role, add_spelling, spec_of
from tilewright.core.types import ScalarType

F = TypeVar("F", bound=Callable[..., Any])


def listed_form(function: F, listed: Callable[..., Any]) -> F:
    """Return a second spelling of an op that is another one where it is given a list."""
    spec = spec_of(function)
    assert spec is not None, "only an op has another form"

    def public(*_args: object, **_kwargs: object) -> NoReturn:
        outside_kernel(f"pl.{spec.name}")

    public.__name__ = public.__qualname__ = spec.name
    public.__doc__ = spec.doc
    add_spelling(public, replace(spec, listed=listed))
    return public  # pyright: ignore[reportReturnType]


def scalar_form(function: F, name: str = "", *, converts: bool = True) -> F:
    """Return a second spelling of an op that insists on a scalar right operand, converted to the elements it meets."""
    spec = spec_of(function)
    assert spec is not None, "only an op has a scalar form"

    name = name or f"{spec.name.rstrip('_')}s"

    def public(*_args: object, **_kwargs: object) -> NoReturn:
        outside_kernel(f"pl.{name}")

    def restricted(p: Parameter) -> Parameter:
        if p.name != "rhs":
            return p
        return replace(p, role=Role.NUMBER, types=(ScalarType,), also=("scalar",), converts=converts)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"{spec.doc} The right operand is a scalar."
    add_spelling(public, replace(spec, parameters=tuple(map(restricted, spec.parameters))))
    return public  # pyright: ignore[reportReturnType]
