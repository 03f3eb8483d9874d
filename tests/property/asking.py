"""Asking the front end: the type of an expression, given what the names in it stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from property.values import Value

import tilewright.language as pl
from tilewright.core.expr import Expr, Symbol, constant
from tilewright.core.types import Type
from tilewright.errors import KernelError
from tilewright.frontend.capture import capture
from tilewright.frontend.kernel_builder import KernelBuilder
from tilewright.frontend.names import Resolver
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


def value_of(text: str, values: Mapping[str, Value], symbols: Iterable[str] = ()) -> Expr | int | float | None:
    """Return what an expression gives where `values` are visible, or None where the front end refuses it.

    A number is one that the front end itself knows.
    """
    translator = KernelBuilder(captured=_CAPTURED, resolver=Resolver.of(stub), callees=NoCallees())  # pyright: ignore[reportArgumentType]
    tree = ast.parse(text, mode="eval")
    for name in symbols:
        translator.scope.bind(name, Symbol(name), UNKNOWN)
    for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & values.keys():
        value = values[name]
        translator.scope.bind(name, value.var if value.literal is None else value.literal, UNKNOWN)
    try:
        result: Any = translator.evaluate(tree.body)
    except KernelError:
        return None
    return result if isinstance(result, (Expr, bool, int, float)) else None


def type_of(result: Expr | int | float | None) -> Type | None:
    """Return the type of what an expression gives, or None where the front end refuses it."""
    return constant(result).type if isinstance(result, (bool, int, float)) else None if result is None else result.type
