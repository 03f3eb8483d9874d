"""Invocations: calls of the program's other functions, made in place or dispatched as tasks."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tilewright.core.build import call, scalar
from tilewright.core.expr import Const, Expr, GlobalVar, Invoke, Submit, TupleGetItem, constant
from tilewright.core.program import Function
from tilewright.core.signature import result_type
from tilewright.core.types import ScalarType, TensorType, TupleType, Type
from tilewright.dtypes import BOOL, INDEX, INT64, TASK_ID, DataType
from tilewright.errors import ArgumentCountError, DTypeMismatchError, OperandError, ParserTypeError, ShapeMismatchError
from tilewright.frontend.arguments import Arguments, arguments, parameters_of
from tilewright.frontend.branches import predicate
from tilewright.frontend.kernels import Kernel, KernelKind
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class Method:
    """`self.name` inside a program: one of its functions."""

    name: str


class ProgramSelf:
    """What `self` is inside a program: its functions by name."""

    def __getattr__(self, name: str) -> Method:
        return Method(name)


def invoke(t: Translator, function: Function, given: Arguments, node: ast.Call) -> Invoke:
    """Return the call of another function, its arguments checked against its parameters."""
    args = _bound(t, function, given, node)
    return Invoke(GlobalVar(function.name), args, result_type(function, args), t.span(node))


def _bound(t: Translator, function: Function, given: Arguments, node: ast.Call) -> tuple[Expr, ...]:
    unknown = [
        name for name in given.kwargs if name not in {p.name_hint for p in function.params} | {"attrs", "device"}
    ]
    if unknown:
        message = f"`{function.name}` has no parameter `{unknown[0]}`"
        raise t.error(ArgumentCountError, given.keyword_nodes[unknown[0]], message, help=_signature(function))
    names = [p.name_hint for p in function.params]
    values = dict(zip(names, given.args, strict=False)) | {k: v for k, v in given.kwargs.items() if k in names}
    count = len(given.args) + sum(k in names for k in given.kwargs)
    if count != len(function.params) or len(values) != len(function.params):
        message = f"`{function.name}` expects {len(function.params)} argument(s), got {count}"
        raise t.error(ArgumentCountError, node, message, help=_signature(function))
    spans = dict(zip(names, given.nodes, strict=False)) | dict(given.keyword_nodes)
    return tuple(_argument(t, function, p, values[p.name_hint], spans[p.name_hint]) for p in function.params)


def _signature(function: Function) -> str:
    return f"{function.name}({', '.join(f'{p.name_hint}: {p.type}' for p in function.params)})"


def _argument(t: Translator, function: Function, param: Any, value: Value, node: ast.expr) -> Expr:
    number = value.value if isinstance(value, Const) else value
    if isinstance(number, (bool, int, float)) and isinstance(param.type, ScalarType):
        if _is_literal_of(number, param.type.dtype):
            return constant(bool(number) if param.type.dtype == BOOL else number, param.type.dtype, t.span(node))
    arg = t.expr(value, node, f"`{param.name_hint}` of `{function.name}`")
    problem = fitting(param.type, arg.type)
    if problem:
        kind, help = _PROBLEMS.get(
            problem, (ShapeMismatchError, "pass a window of it, or give the parameter that shape")
        )
        message = f"`{param.name_hint}` of `{function.name}` is {param.type}, got {arg.type}: {problem}"
        notes = [f"`{param.name_hint}` is declared at {param.span}"] if param.span.is_known else ()
        raise t.error(kind, node, message, help=help, notes=notes)
    return as_parameter(arg, param.type)


def as_parameter(arg: Expr, param: Type) -> Expr:
    """Return an argument that fits a parameter as what it is there: numbers are converted, any but zero being true."""
    if not isinstance(param, ScalarType) or not isinstance(arg.type, ScalarType) or fits_as_it_is(param, arg.type):
        return arg
    if param.dtype == BOOL:
        return scalar("ne", arg, constant(0, arg.type.dtype), span=arg.span)
    bound = {"x": arg, "target_type": param.dtype, "mode": "none"}
    return call(OPS["scalar.cast"].spec, bound, arg.span)


def fits_as_it_is(param: ScalarType, arg: ScalarType) -> bool:
    """Return whether a number needs no conversion."""
    return param == arg or {param.dtype, arg.dtype} == {INDEX, INT64}


_PROBLEMS: Mapping[str, tuple[type[ParserTypeError], str]] = {
    "the ranks differ": (ShapeMismatchError, "pl.reshape changes the number of axes"),
    "the element types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    "the types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    "the kinds differ": (OperandError, "tensors, tiles and scalars are different kinds of values"),
}
"""The mistake behind each way an argument does not fit, and what to try; what is not here is a matter of shape."""


def _is_literal_of(number: int | float | bool, dtype: DataType) -> bool:
    """Return whether a number of the text stands for one of a parameter's kind."""
    return dtype.is_float() or ((dtype.is_int() or dtype == BOOL) and not isinstance(number, float))


def fitting(param: Type, arg: Type) -> str:
    """Return why an argument does not fit a parameter, or nothing."""
    if isinstance(param, TensorType) and isinstance(arg, TensorType):
        if len(param.shape) != len(arg.shape):
            return "the ranks differ"
        if param.dtype != arg.dtype:
            return "the element types differ"
        for axis, (want, have) in enumerate(zip(param.shape, arg.shape, strict=True)):
            if isinstance(want, int) and isinstance(have, int) and want != have:
                return f"axis {axis} differs"
        return ""
    if isinstance(param, ScalarType) and isinstance(arg, ScalarType):
        if fits_as_it_is(param, arg) or (arg.dtype.is_int() and (param.dtype.is_int() or param.dtype == BOOL)):
            return ""
        return "" if arg.dtype.is_float() and param.dtype.is_float() else "the types differ"
    if type(param) is not type(arg):
        return "the kinds differ"
    return "" if param == arg else "the types differ"


def parts(t: Translator, value: Value, source: ast.expr) -> Value:
    """Return a multi-value result as a tuple of values, one variable each being emitted as it is used."""
    if isinstance(value, Expr) and isinstance(value.type, TupleType):
        whole = t.expr(value, source)
        return tuple(TupleGetItem(whole, i, e, t.span(source)) for i, e in enumerate(value.type.elements))
    return value


def submit(t: Translator, node: ast.Call) -> Submit:
    """Return the task that `pl.submit` and `pl.spmd_submit` dispatch."""
    directive: Any = t.evaluate(node.func)
    given, (_, allowed) = arguments(t, node), parameters_of(directive)
    kwargs = {name: value for name, value in given.kwargs.items() if name not in allowed}
    rest = Arguments(given.args[1:], kwargs, given.nodes[1:], given.keyword_nodes)
    called = _dispatched(t, given.args[0] if given.args else None, rest, node)
    results = called.type.elements if isinstance(called.type, TupleType) else (called.type,)
    deps = given.kwargs.get("deps", ())
    core_num = given.kwargs.get("core_num")
    if core_num is None and "core_num" in allowed:
        help = "core_num=n runs the kernel once per block; pl.submit runs it once"
        raise t.error(ArgumentCountError, node, "pl.spmd_submit needs the number of blocks", help=help)
    return Submit(
        called.op,
        called.args,
        tuple(t.expr(dep, node) for dep in deps if dep is not None),
        None if core_num is None else t.expr(core_num, node),
        TupleType((*results, ScalarType(TASK_ID))),
        called.span,
        predicate(t, given.kwargs.get("predicate"), given.keyword_nodes.get("predicate", node)),
    )


def _dispatched(t: Translator, callee: Value, given: Arguments, node: ast.Call) -> Invoke:
    """Return the call that a task makes."""
    if isinstance(callee, Method):
        return invoke(t, t.callees.method(callee.name, t.span(node)), given, node)
    if isinstance(callee, Function):
        return invoke(t, t.callees.free(callee, t.span(node)), given, node)
    if isinstance(callee, Kernel) and callee.kind is not KernelKind.INLINE:
        called = t.callees.kernels.call(t, callee, given, node)
        assert isinstance(called, Invoke)
        return called
    name = ast.unparse(node.func)
    help = f"{name}(self.kernel, x, y)" if t.frame is None else f"{name}(helper, x, y), `helper` being @pl.jit.incore"
    raise t.error(OperandError, node, f"`{name}` dispatches a function of the program", help=help)
