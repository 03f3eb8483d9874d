"""Calls: ops, Python's own functions on known values, helpers written out, and functions of the module."""

from __future__ import annotations

import ast
import builtins
from functools import reduce
from types import FunctionType
from typing import Any

from tilewright.errors import ArgumentCountError, AttributeValueError, KernelError, ReturnMismatchError, UncallableError
from tilewright.frontend.names import defaults_of
from tilewright.frontend.walk.known import FUNCTIONS, SEQUENCES, called, is_mathematical
from tilewright.pto.declarations import const_expr, gm_ptr, mask_type, ptr, struct_type, vreg_type
from tilewright.pto.module import Op, Value
from tilewright.pto.traced import arithmetic, ops
from tilewright.pto.traced.allreduce import WARP, over_a_warp, over_items, over_lanes, over_warps
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.attributes import Method, address
from tilewright.pto.traced.callees import Callee, call_function
from tilewright.pto.traced.launches import Launch, LaunchScope, extents_of, launch
from tilewright.pto.traced.namespace import DIRECTIVES, Operation, Scope
from tilewright.pto.traced.nested import Nested, call_nested, parameters_of
from tilewright.pto.traced.nesting import alone, is_on_the_cube
from tilewright.pto.traced.scalars import literal, static_int
from tilewright.pto.traced.stated import as_parameter, as_returned, stated
from tilewright.pto.traced.subkernels import SubKernel, SubKernelKind, simt
from tilewright.pto.traced.tracer import Tracer, text_of
from tilewright.pto.traced.values import Handle, describe, is_runtime
from tilewright.pto.types import Scalar
from tilewright.records import record

_SHAPED_ONLY = (len, *(each for each in SEQUENCES if each is not range))
"""What looks at no value that it is given, only at how many there are."""
_STATIC = (*FUNCTIONS, *SEQUENCES, getattr, ptr, gm_ptr, mask_type, vreg_type, struct_type)
"""What Python computes while a body is traced, on values that it knows."""


def call(t: Tracer, node: ast.Call) -> Any:
    """Return what a call gives, as what is called says."""
    callee = t.evaluate(node.func)
    given = Arguments.of(t, node)
    if isinstance(callee, Operation):
        return ops.call(t, callee, given)
    if isinstance(callee, Method):
        return _method(t, callee, given)
    if isinstance(callee, Callee):
        return call_function(t, callee, given)
    if callee is simt:
        return LaunchScope(extents_of(t, given.args, node))
    if isinstance(callee, SubKernelKind):
        given.bind(t)
        return Scope(callee.scope, callee.name)
    if isinstance(callee, SubKernel | Nested) and callee.kind is simt:
        return launch(t, Launch(callee, extents_of(t, (), node)), given)
    if isinstance(callee, Launch):
        return launch(t, callee, given)
    if isinstance(callee, SubKernel | Nested):
        return _sub_kernel(t, callee, given)
    if isinstance(getattr(callee, "__self__", None), Handle):
        return callee(t, given)
    if isinstance(callee, FunctionType) and callee not in _STATIC:
        return _inlined(t, callee, given)
    if isinstance(callee, Scalar):
        argument = given.bind(t, "value")["value"]
        return literal(t, argument.value, callee, argument.node)
    if callee is const_expr:
        return given.bind(t, "value")["value"].value
    return _python(t, callee, given)


def _method(t: Tracer, method: Method, given: Arguments) -> Value | None:
    """Return what a method of a tile gives."""
    if method.name == "as_ptr":
        given.bind(t)
        return address(t, method.owner, given.node)
    number = given.bind(t, "value")["value"]
    given = Arguments(given.name, given.node, args=[number, Argument(method.owner, given.node)])
    return ops.emit(t, "pto.texpands", given)


def _python(t: Tracer, callee: Any, given: Arguments) -> Any:
    """Return what a function of Python's makes of known values; `min` and `max` also take scalars."""
    node, values = given.node, [argument.value for argument in given.args]
    if (callee is min or callee is max) and len(values) > 1 and is_runtime(tuple(values)):
        return reduce(lambda a, b: arithmetic.extreme(t, callee, a, b, node), values)
    if not is_mathematical(callee) and all(callee is not each for each in _STATIC):
        raise _uncallable(t, callee, given)
    runtime = next((a for a in (*given.args, *given.kwargs.values()) if is_runtime(a.value)), None)
    if runtime is not None and callee not in _SHAPED_ONLY:
        message = f"`{given.name}` runs while the kernel is compiled, and {describe(runtime.value)} is not known then"
        own = f"scalar.{given.name}"
        help = (
            f"pto.{own} takes it" if own in DIRECTIVES else "pto.cast converts scalars, and operators compute with them"
        )
        raise t.error(UncallableError, runtime.node, message, help=help)
    return called(t, callee, values, {name: argument.value for name, argument in given.kwargs.items()}, node)


def _uncallable(t: Tracer, callee: object, given: Arguments) -> KernelError:
    is_function = callable(callee)
    help = "kernels call ops, helper functions and Python's arithmetic" if is_function else "this is not a function"
    if callee is builtins.print:
        help = "pto.print prints a number, pto.tprint a tile"
    return t.error(UncallableError, given.node, f"`{given.name}` cannot be called in a kernel", help=help)


def _inlined(t: Tracer, function: FunctionType, given: Arguments, kind: SubKernelKind | None = None) -> Any:
    """Write a helper out where it is called; return what it returns, as a sub-kernel of some kind states it."""
    node = given.node
    captured = text_of(function)
    inner = t.entered(function, captured, t.program.resolver(function, captured), node)
    inner.names = {}
    inner.begin()
    says = {} if kind is None else {arg.arg: stated(inner, arg.annotation) for arg in parameters_of(captured.node)}
    for name, argument in _bound(t, inner, function, given).items():
        inner.let(name, as_parameter(t, says.get(name), name, argument), node)
    inner.execute(captured.node.body)
    returned = None if inner.returned is None else inner.returned.value
    if kind is None or not kind.is_helper:
        return returned
    wanted = kind.returns or stated(inner, captured.node.returns)
    return as_returned(t, wanted, given.name, Argument(returned, node))


def _sub_kernel(t: Tracer, callee: SubKernel | Nested, given: Arguments) -> Any:
    """Write a sub-kernel out, inside a scope where vectors run it; only helpers return something."""
    if callee.kind.is_helper:
        return _written_out(t, callee, given)
    with alone(t, callee.kind.name, given.node), t.writer.region() as region:
        returned = _written_out(t, callee, given)
    if returned is not None:
        help = "write it to a tile or to memory"
        message = f"a pto.{callee.kind.name} function returns nothing, got {describe(returned)}"
        raise t.error(ReturnMismatchError, given.node, message, help=help)
    if is_on_the_cube(t, callee.kind.name, region, given.node):
        t.writer.ops += region.ops  # a function has one section of the cube, and may call many of these
    else:
        t.writer.emit(Op(callee.kind.scope, regions=(region,), span=t.span(given.node)))
    return None


def _written_out(t: Tracer, callee: SubKernel | Nested, given: Arguments) -> Any:
    nested = isinstance(callee, Nested)
    return call_nested(t, callee, given) if nested else _inlined(t, callee.function, given, callee.kind)


def _bound(t: Tracer, inner: Tracer, function: FunctionType, given: Arguments) -> dict[str, Argument]:
    """Return what each parameter of a helper is given."""
    parameters = inner.captured.node.args
    if parameters.vararg is not None or parameters.kwarg is not None:
        help = "write each parameter out"
        message = f"`{function.__name__}` takes any number of arguments"
        raise t.error(ArgumentCountError, given.node, message, help=help)
    positional = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
    names = [*positional, *(arg.arg for arg in parameters.kwonlyargs)]
    inner.resolver.read_defaults()
    defaults = defaults_of(function)
    bound = given.bound(t, positional, names, [name for name in names if name not in defaults])
    return {name: Argument(value, given.node) for name, value in defaults.items()} | bound


@ops.handles(*(f"simt_allreduce_{word}" for word in ("sum", "max", "min")))
def _all_reduced(t: Tracer, given: Arguments) -> Any:
    """Return what the work items of each group of `threads` have together; without them, those of a warp."""
    word = given.word.rpartition("_")[2]
    if "threads" not in given.kwargs:
        given.word = f"redux_{word.replace('sum', 'add')}"
        return ops.HANDLERS[given.word](t, given)
    bound = given.bind(t, "value", optional=("threads", "scale", "thread_offset", "scratch"))
    asked = {"threads": 1, "scale": 1, "thread_offset": 0}
    for name in asked.keys() & bound.keys():
        asked[name] = static_int(t, bound[name].value, bound[name].node, f"`{name}`")
    threads, scale, first = asked.values()
    if min(threads, scale) < 1 or first < 0 or threads % scale:
        message = f"`{given.name}` has {threads} threads by {scale}, from {first} on"
        raise t.error(AttributeValueError, given.node, message, help="threads are a positive multiple of scale")
    return _reduced(t, given, bound, Group(threads, scale, first, word))


@record
class Group:
    """Which work items reduce what they have: so many, those equal modulo `scale`, and to what."""

    threads: int
    scale: int
    first: int
    word: str

    @property
    def is_of_bits(self) -> bool:
        """Whether numbers of items that meet differ in some bits."""
        return all(number & (number - 1) == 0 for number in (self.threads, self.scale)) and self.scale <= WARP

    @property
    def offsets(self) -> tuple[int, ...]:
        """The bits in which lanes of a warp differ."""
        most = min(self.threads, WARP)
        return tuple(1 << bit for bit in reversed(range(6)) if self.scale <= 1 << bit < most)


def _reduced(t: Tracer, given: Arguments, bound: dict[str, Argument], group: Group) -> Any:
    value, scratch, word = bound["value"].value, bound.get("scratch"), group.word

    def written(function: FunctionType, *values: Any) -> Any:
        args = [Argument(each, given.node) for each in values]
        return _inlined(t, function, Arguments(given.name, given.node, args=args))

    if group.threads > group.scale and group.is_of_bits:
        is_a_warp = group.scale == 1 and group.threads >= WARP
        value = written(over_a_warp, value, word) if is_a_warp else written(over_lanes, value, group.offsets, word)
    if group.threads <= group.scale or (group.is_of_bits and group.threads <= WARP):
        return value
    if scratch is None or scratch.value is None:
        message = f"`{given.name}` of {group.threads} threads needs `scratch`"
        raise t.error(ArgumentCountError, given.node, message, help="pass a pointer to ub, as many elements large")
    if group.is_of_bits:
        warps = group.threads // WARP
        return written(over_warps, value, scratch.value, warps, group.scale, group.first, word)
    return written(over_items, value, scratch.value, group.threads, group.scale, group.first, word)
