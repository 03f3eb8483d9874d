"""Foreign names: what other libraries call something that the language has, said where that is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

LIBRARIES = {"numpy": "np.", "torch": "torch.", "triton": "tl.", "numba": ""}
"""The libraries whose users find their way here, and what stands before the names of each."""

_FIELD = "elsewhere"


def called(same: str = "", *, numpy: str = "", torch: str = "", triton: str = "", numba: str = "") -> Callable[[F], F]:
    """Say what other libraries call a function of the language, in words apart.

    The libraries in `same` have it under the language's own name. A name with a dot stands as it is.
    """
    given = {"numpy": numpy, "torch": torch, "triton": triton, "numba": numba}

    def note(function: F) -> F:
        found = {
            library: [*([function.__name__.rstrip("_")] if library in same.split() else []), *names.split()]
            for library, names in given.items()
        }
        spelled = {
            library: tuple(name if "." in name else f"{LIBRARIES[library]}{name}" for name in names)
            for library, names in found.items()
            if names
        }
        setattr(function, _FIELD, spelled)
        return function

    return note


def elsewhere(function: object) -> Mapping[str, tuple[str, ...]]:
    """Return what each library calls a function of the language, those that have none of it left out."""
    return getattr(function, _FIELD, {})
