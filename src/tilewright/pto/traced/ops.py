"""Ops: a call in a body as an op of the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import OperandError
from tilewright.pto.module import Op, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Syntax
from tilewright.pto.traced.arguments import Arguments
from tilewright.pto.traced.namespace import Operation, Scope
from tilewright.pto.traced.operands import Operands
from tilewright.pto.traced.tracer import Tracer

Handler = Callable[[Tracer, Arguments], Any]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register what calls of some names do, instead of what their form says."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def call(t: Tracer, operation: Operation, given: Arguments) -> Any:
    """Return what a call of an op gives: a value, a tuple of them, or None."""
    handler = HANDLERS.get(operation.name)
    given.word = operation.name.rpartition(".")[2]
    if handler is not None:
        return handler(t, given)
    form = OPS[operation.op].form
    if form.syntax is Syntax.REGION:
        given.bind(t)
        return Scope(operation.op)
    return emit(t, operation.op, given)


def emit(t: Tracer, name: str, given: Arguments) -> Any:
    """Add the op that a call describes; return its results, whose types follow from the operands."""
    form, span = OPS[name].form, t.span(given.node)
    placed = Operands(t, name, form, given)
    placed.read()
    operands, clauses = placed.values(), placed.clauses()
    values = (*operands, *(value for clause in clauses for value in clause.values))
    types = placed.inference(value.type for value in values).results(form)
    if types is None:
        help = "pass the element type of the result as `dtype=`"
        raise OperandError(f"the type of `{given.name}` does not follow from this", spans=[span], help=help)
    made = tuple(Value("", type_, span) for type_ in types)
    t.writer.emit(Op(name, operands, clauses, placed.attributes, made, span=span))
    if name.startswith("pto.get_"):
        t.writer.never_negative.update(made)
    return made[0] if len(made) == 1 else made or None
