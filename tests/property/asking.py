"""Asking the front end: the type of an expression, given what the names in it stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import tilewright.language as pl
from property.values import Value
from tilewright.core.expr import Expr, Symbol, constant
from tilewright.core.types import Type
from tilewright.errors import KernelError
from tilewright.frontend import functions as _functions  # pyright: ignore[reportUnusedImport]  # noqa: F401 - signs the syntax in
from tilewright.frontend.capture import capture
from tilewright.frontend.names import Resolver
from tilewright.frontend.state import Translator
from tilewright.source import UNKNOWN


def stub() -> None:
    """Stand for the function that an expression is asked about in."""
    pl.func_attr({})


class NoCallees:
    """Expressions that are asked about call ops only."""

    def method(self, name: str, span: object) -> NoReturn:
        """Refuse to find a method."""
        raise KeyError(name)

    def free(self, function: object, span: object) -> NoReturn:
        """Refuse to take a function in."""
        raise KeyError(function)


_CAPTURED = capture(stub)  # pyright: ignore[reportArgumentType]


def type_of(text: str, values: Mapping[str, Value], symbols: Iterable[str] = ()) -> Type | None:
    """Return the type an expression has where `values` are visible, or None where the front end refuses it."""
    translator = Translator(_CAPTURED, Resolver.of(stub), NoCallees())  # pyright: ignore[reportArgumentType]
    for name in symbols:
        translator.scope.bind(name, Symbol(name), UNKNOWN)
    for name, value in values.items():
        translator.scope.bind(name, value.var, UNKNOWN)
    try:
        result: Any = translator.evaluate(ast.parse(text, mode="eval").body)
    except KernelError:
        return None
    if isinstance(result, (bool, int, float)):
        result = constant(result)
    return result.type if isinstance(result, Expr) else None
