"""Arguments: what a call in a body passes, each with the text it was written as."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ArgumentCountError, OperandError, UnsupportedFeatureError
from tilewright.frontend.names import nearest
from tilewright.pto.traced.enumerations import Word
from tilewright.pto.traced.places import Place
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import Scalar


@dataclass(frozen=True)
class Argument:
    """One argument."""

    value: Any
    node: ast.expr


@dataclass
class Arguments:
    """The arguments of one call; handlers take from them what they know."""

    name: str
    """What is called, as the author wrote it."""
    node: ast.Call
    word: str = ""
    """The last word of the name of the op that is called, whatever the author calls it."""
    args: list[Argument] = field(default_factory=list[Argument])
    kwargs: dict[str, Argument] = field(default_factory=dict[str, Argument])

    @classmethod
    def of(cls, t: Tracer, node: ast.Call) -> Arguments:
        """Return the arguments of a call, evaluated in order."""
        given = cls(ast.unparse(node.func), node)
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                parts = t.evaluate(arg.value)
                given.args += [Argument(part, arg.value) for part in _spread(t, parts, arg)]
            else:
                value = t.evaluate(arg)
                parts = (value.pointer, value.offset) if isinstance(value, Place) else (_plain(value),)
                given.args += [Argument(part, arg) for part in parts]
        for keyword in node.keywords:
            if keyword.arg is None:
                help = "write the keywords out"
                raise t.error(UnsupportedFeatureError, keyword.value, "a call here has no `**`", help=help)
            given.kwargs[keyword.arg] = Argument(_plain(t.evaluate(keyword.value)), keyword.value)
        return given

    def bind(self, t: Tracer, *names: str, optional: tuple[str, ...] = ()) -> dict[str, Argument]:
        """Return the arguments by name; ArgumentCountError for missing, unknown and repeated ones."""
        everything = (*names, *optional)
        return self.bound(t, everything, everything, names)

    def bound(
        self, t: Tracer, positional: Sequence[str], names: Sequence[str], required: Sequence[str]
    ) -> dict[str, Argument]:
        """Return the arguments by name, given the names that may come by position and those that must come."""
        bound = dict(zip(positional, self.args, strict=False))
        signature = f"{self.name}({', '.join(name if name in required else f'{name}=...' for name in names)})"
        for name, argument in self.kwargs.items():
            if name not in names:
                help = nearest(name, list(names)) or signature
                raise t.error(ArgumentCountError, argument.node, f"`{self.name}` has no parameter `{name}`", help=help)
            if name in bound:
                raise t.error(ArgumentCountError, argument.node, f"`{self.name}` got `{name}` twice", help=signature)
        if len(self.args) > len(positional):
            message = f"`{self.name}` takes {len(positional)} arguments, got {len(self.args)}"
            raise t.error(ArgumentCountError, self.args[len(positional)].node, message, help=signature)
        missing = [name for name in required if name not in bound and name not in self.kwargs]
        if missing:
            raise t.error(ArgumentCountError, self.node, f"`{self.name}` needs `{missing[0]}`", help=signature)
        return {**bound, **self.kwargs}


def _plain(value: Any) -> Any:
    """Return the text that a word such as `pto.Pipe.V` stands for; other values as they are."""
    return value.value if isinstance(value, Word) else value


def listed(argument: Argument) -> list[Argument]:
    """Return the parts of a tuple, each with its text where that is there, or the one argument."""
    if is_sequence(argument.value):
        nodes = argument.node.elts if isinstance(argument.node, (ast.Tuple, ast.List)) else None
        parts = argument.value
        where = nodes if nodes is not None and len(nodes) == len(parts) else [argument.node] * len(parts)
        return [Argument(part, node) for part, node in zip(parts, where, strict=True)]
    return [argument]


def scalar_type(t: Tracer, argument: Argument) -> Scalar:
    """Return a scalar type that a body names."""
    value = argument.value
    if isinstance(value, Scalar) and not value.is_packed:
        return value
    help = "scalar types are pto.f32, pto.f16, pto.bf16, pto.i32, pto.index and others"
    shown = str(value) if isinstance(value, Scalar) else describe(value)
    raise t.error(OperandError, argument.node, f"a scalar type is needed here, got {shown}", help=help)


def _spread(t: Tracer, parts: object, node: ast.Starred) -> Sequence[object]:
    if not is_sequence(parts):
        raise t.error(OperandError, node, f"`*` needs a tuple, got {describe(parts)}", help="write the arguments out")
    return parts
