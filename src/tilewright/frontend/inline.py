"""Inline templates: `@pl.inline` functions, written out at each call."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.core.annotations import outside_kernel
from tilewright.core.expr import Var
from tilewright.core.stmt import AssignStmt
from tilewright.errors import ArgumentCountError, UnsupportedFeatureError
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.names import Resolver, defaults_of
from tilewright.frontend.tracebacks import brief

if TYPE_CHECKING:  # what translates: programs that others compiled do without
    from tilewright.frontend.arguments import Arguments
    from tilewright.frontend.translator import Translator
    from tilewright.frontend.walk.walker import Value


class InlineFunction:
    """A template: its body is translated anew at every call, with the arguments in place of its parameters."""

    def __init__(self, captured: Captured) -> None:
        self.function = captured.function
        self._captured: tuple[CodeType, Captured] = captured.function.__code__, captured

    @property
    def captured(self) -> Captured:
        """The function's syntax; read again where its code was replaced."""
        code = self.function.__code__
        if self._captured[0] is not code:
            self._captured = code, _template(self.function)
        return self._captured[1]

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The function's own name."""
        return self.function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Templates only mean something inside a kernel."""
        outside_kernel(self.__name__)

    def expand(
        self,
        t: Translator,
        given: Arguments,
        node: ast.Call,
        resolver: Resolver | None = None,
        dims: Mapping[str, Value] | None = None,
    ) -> Value:
        """Translate the body into `t`'s program, where `dims` have extents; return what the template returns."""
        captured = self.captured
        reader = resolver or t.callees.kernels.reader(self.function, captured)
        inner = t.entered(self.function, captured, reader, node)
        inner.outputs, inner.dims = set(), {**t.dims, **(dims or {})}
        for name, value in self._bound(t, captured.node.args, given, node).items():
            inner.scope.bind(name, _own(inner, name, value, node), t.span(node))
            if name in inner.scope.shared:
                inner.note_known(name, value)
        body = captured.node.body
        last = body[-1]
        inner.execute(body[:-1] if isinstance(last, ast.Return) else body)
        return inner.handed_back(last) if isinstance(last, ast.Return) else None

    def _bound(self, t: Translator, parameters: ast.arguments, given: Arguments, node: ast.Call) -> dict[str, Value]:
        names = [arg.arg for arg in parameters.args + parameters.kwonlyargs]
        bound = dict(zip(names, given.args, strict=False))
        unknown = [name for name in given.kwargs if name not in names or name in bound]
        values = {**defaults_of(self.function), **bound, **given.kwargs}
        missing = [name for name in names if name not in values]
        if unknown or missing or len(given.args) > len(names):
            problem = f"expects {len(names)} argument(s), got {len(given.args) + len(given.kwargs)}"
            if unknown:
                problem = f"{'got' if unknown[0] in names else 'has no parameter'} `{unknown[0]}`"
                problem += " twice" if unknown[0] in names else ""
            signature = f"{self.__name__}({', '.join(names)})"
            raise t.error(ArgumentCountError, node, f"`{self.__name__}` {problem}", help=signature)
        return values


def _own(inner: Translator, name: str, value: Value, node: ast.Call) -> Value:
    """Return an argument the template may assign: a copy where its blocks do, so that the caller's stays."""
    if name not in inner.scope.shared:
        return value
    expr = inner.expr(value, node)
    copy = Var(name, expr.type, expr.span)
    inner.variables.add(id(copy))
    inner.emit(AssignStmt(copy, expr, expr.span))
    return copy


@brief
def inline(function: FunctionType) -> InlineFunction:
    """Make a function a template that kernels write out where they call it."""
    return InlineFunction(_template(function))


def _template(function: FunctionType) -> Captured:
    captured = capture(function)
    returns_once(captured)
    return captured


def returns_once(captured: Captured) -> None:
    """Raise when a template returns anywhere but at its end."""
    for statement in ast.walk(captured.node):
        if isinstance(statement, ast.Return) and statement is not captured.node.body[-1]:
            message = f"inline function `{captured.node.name}` returns once, at its end"
            help = "bind the result in each branch, and return it after them"
            raise UnsupportedFeatureError(message, spans=[captured.span(statement)], help=help)
