"""Inline templates: `@pl.inline` functions, written out at each call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.core.annotations import outside_kernel
from tilewright.core.expr import Var
from tilewright.core.stmt import AssignStmt
from tilewright.errors import ArgumentCountError
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.handed_back import HandedBack
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
            self._captured = code, capture(self.function)
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
        return _returned(inner, captured.node.body)

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


def _returned(inner: Translator, body: Sequence[ast.stmt]) -> Value:
    """Translate a template's body up to its `return`; return what it gives there, None where it has none."""
    open_blocks = (inner.yields, inner.loops, inner.written)
    depths = [len(blocks) for blocks in open_blocks]
    inner.home = inner.stmts
    try:
        inner.execute(body)
    except HandedBack as handed:
        for blocks, depth in zip(open_blocks, depths, strict=True):
            del blocks[depth:]
        return handed.value
    return None


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
    return InlineFunction(capture(function))
