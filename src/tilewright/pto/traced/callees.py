"""Callees: functions with `entry=False`, each once in the module for the types it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tilewright.errors import OperandError, RecursiveCallError, ReturnMismatchError
from tilewright.pto.declarations import Marker
from tilewright.pto.declared import name_span
from tilewright.pto.errors import PtoArgumentError
from tilewright.pto.module import Enumerated, Func, Op, SymbolRef, Value
from tilewright.pto.signature import Parameter, Signature
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.scalars import as_type
from tilewright.pto.traced.stated import is_a
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import Ptr, Scalar, Type
from tilewright.source import Span


@runtime_checkable
class Callee(Protocol):
    """What the tracer sees of a decorated function that a body calls."""

    function: Any
    name: str
    """The symbol it wants in a module."""
    is_entry: bool
    """Whether it is launched rather than called."""
    kernel_kind: str | None
    """The core that runs it, where it says one."""
    signature: Signature


def call_function(t: Tracer, callee: Callee, given: Arguments) -> None:
    """Add a call of a function, which joins the module where it is not there yet."""
    span = t.span(given.node)
    if callee.is_entry:
        help = "declare it with entry=False"
        raise PtoArgumentError(f"`{given.name}` is a kernel: it is launched, not called", spans=[span], help=help)
    parameters = callee.signature.runtime
    names = tuple(parameter.name for parameter in parameters)
    bound = given.bind(t, *names)
    operands = tuple(_operand(t, parameter, bound[parameter.name]) for parameter in parameters)
    func = _func(t, callee, names, operands, span)
    t.writer.emit(Op("func.call", operands, attributes={"callee": SymbolRef(func.name)}, span=span))


def _operand(t: Tracer, parameter: Parameter, argument: Argument) -> Value:
    """Return an argument as what its parameter's annotation says."""
    wanted, value = parameter.annotation, argument.value
    if isinstance(wanted, Scalar):
        return as_type(t, value, wanted, argument.node)
    if not isinstance(value, Value) or not _is_a(value.type, wanted):
        help = "pass what its annotation says"
        message = f"parameter `{parameter.name}` is {wanted}, got {describe(value)}"
        raise t.error(OperandError, argument.node, message, help=help)
    return value


def _is_a(type: Type, wanted: Ptr | Marker) -> bool:
    return type == wanted if isinstance(wanted, Ptr) else is_a(type, wanted)


def _func(t: Tracer, callee: Callee, names: tuple[str, ...], operands: tuple[Value, ...], span: Span) -> Func:
    types = tuple(operand.type for operand in operands)
    program, identity = t.program, id(callee)
    known = program.funcs.get((identity, types))
    if known is not None:
        return known
    if identity in program.calling:
        raise RecursiveCallError(f"`{callee.name}` calls itself", spans=[span])
    program.calling = (*program.calling, identity)
    inner = t.of(callee.function, program)
    func = traced(inner, program.symbol(callee.name), dict(zip(names, types, strict=True)))
    func.private = True
    if callee.kernel_kind is not None:
        func.attributes = {"pto.kernel_kind": Enumerated("kernel_kind", callee.kernel_kind)}
    program.calling = program.calling[:-1]
    program.funcs[identity, types] = func
    program.kept.append(callee)
    return func


def traced(t: Tracer, name: str, parameters: Mapping[str, Type], constants: Mapping[str, object] | None = None) -> Func:
    """Return the function that the body at whose start a tracer is describes."""
    node = t.captured.node
    written = {arg.arg: arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    arguments: list[Value] = []
    for each, type_ in parameters.items():
        where = written.get(each, node)
        argument = Value(t.writer.fresh(each), type_, t.span(where))
        arguments.append(argument)
        t.let(each, argument, where)
    for each, value in (constants or {}).items():
        t.let(each, value, written.get(each, node))
    t.execute(node.body)
    returned, span = t.returned, name_span(t.captured)
    if returned is not None and returned.value is not None:
        help = "write results through pointers, and `return` alone"
        raise ReturnMismatchError("a @pto.jit function returns nothing", spans=[returned.span], help=help)
    t.writer.emit(Op("func.return", span=span if returned is None else returned.span))
    return Func(name, tuple(arguments), body=t.writer.body(tuple(arguments)), span=span)
