"""PyPTO's words for a broken rule of an op, in texts that import PyPTO: what the tests of their authors match."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from tilewright.core.expr import Expr
from tilewright.core.op import Kind, OpSpec
from tilewright.core.types import TensorType
from tilewright.errors import ArgumentCountError, InvalidOperationError, OperandError
from tilewright.frontend.walk.walker import Value
from tilewright.source import Source

_IMPORTS = re.compile(r"\s*(import|from)\s+pypto\b")


def reworded(
    error: InvalidOperationError, source: Source, spec: OpSpec, args: Sequence[Value], node: ast.Call
) -> InvalidOperationError:
    """Return an error about an op; in a text that imports PyPTO it names the op first, and has the broken rule's cause.

    The cause is what the rule raises there: a TypeError for a wrong kind or number of operands, else a ValueError.
    """
    if any(map(_IMPORTS.match, source.lines)) and error.__cause__ is None:
        error.__cause__ = (TypeError if isinstance(error, (OperandError, ArgumentCountError)) else ValueError)(
            error.message
        )
        if not error.message.startswith("pl."):
            error.message = f"pl.{_space(spec, args, node)} operation '{spec.name}': {error.message}"
    return error


def _space(spec: OpSpec, args: Sequence[Value], node: ast.Call) -> str:
    """Return the namespace of the op that was meant: the one that was written, or that of what it is given."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Attribute):
        return node.func.value.attr
    is_tensor = any(isinstance(arg, Expr) and isinstance(arg.type, TensorType) for arg in args)
    return (Kind.TENSOR if is_tensor and Kind.TENSOR in spec.kinds else spec.kinds[0]).value
