"""Calls: ops, functions of the program, inlined templates, and the little Python that runs while compiling."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from tilewright.core.annotations import Arithmetic, dynamic
from tilewright.core.expr import Call, Const, Expr, GlobalVar, Invoke, Submit, TupleGetItem, constant
from tilewright.core.extents import bounds
from tilewright.core.op import Kind, OpSpec, Role, spec_of
from tilewright.core.operands import bind
from tilewright.core.program import Function
from tilewright.core.signature import result_type
from tilewright.core.types import ScalarType, TensorType, TileType, TupleType, Type
from tilewright.dtypes import INDEX, INT64, TASK_ID, DataType
from tilewright.errors import (
    ArgumentCountError,
    DTypeMismatchError,
    KernelError,
    MisplacedDirectiveError,
    NotStaticError,
    OperandError,
    OutOfBoundsError,
    ParserTypeError,
    ShapeMismatchError,
    StaticAssertionError,
    StaticEvaluationError,
    UncallableError,
    UnsupportedFeatureError,
)
from tilewright.frontend import directives
from tilewright.frontend.accumulators import accumulated
from tilewright.frontend.branches import predicate
from tilewright.frontend.dynamic import bind_dynamic
from tilewright.frontend.expressions import BindDynamic, apply, as_python, check_plain, grown, power, show
from tilewright.frontend.foreign import meant
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Kernel, KernelKind
from tilewright.frontend.lambdas import is_lambda, unfollowed
from tilewright.frontend.signature import Dim
from tilewright.frontend.state import Translator, Value, expression, sequence
from tilewright.frontend.value_keys import is_data
from tilewright.ops.registry import OPS
from tilewright.records import record
from tilewright.source import Span


@record
class Method:
    """`self.name` inside a program: one of its functions."""

    name: str


class ProgramSelf:
    """What `self` is inside a program: its functions by name."""

    def __getattr__(self, name: str) -> Method:
        return Method(name)


@record
class Arguments:
    """The arguments of a call, with where each was written."""

    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    nodes: tuple[ast.expr, ...]
    keyword_nodes: Mapping[str, ast.expr]


def arguments(t: Translator, node: ast.Call) -> Arguments:
    """Return the evaluated arguments of a call, in order."""
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            raise _starred(t.span(arg))
    for keyword in node.keywords:
        if keyword.arg is None:
            raise _starred(t.span(keyword.value))
    args = tuple(t.operand(arg) for arg in node.args)
    keyword_nodes = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    return Arguments(
        args, {name: t.operand(value) for name, value in keyword_nodes.items()}, tuple(node.args), keyword_nodes
    )


def _starred(span: Span) -> UnsupportedFeatureError:
    message, help = "arguments are written out, not starred", "write each argument, by position or by name"
    return UnsupportedFeatureError(message, spans=[span], help=help)


def _values(t: Translator, node: ast.Call) -> Arguments:
    """Return the arguments of a call that becomes part of the program, none of them data from outside."""
    given = arguments(t, node)
    values, nodes = (*given.args, *given.kwargs.values()), (*given.nodes, *given.keyword_nodes.values())
    for value, where in zip(values, nodes, strict=True):
        t.check_no_data(value, where)
    return given


@expression(ast.Call)
def _call(t: Translator, node: ast.Call) -> Value:
    callee = t.evaluate(node.func)
    spec = spec_of(callee)
    if spec is not None:
        return _op(t, spec, node)
    handler = _DIRECTIVES.get(callee) if isinstance(callee, FunctionType) else None
    if handler is not None:
        return handler(t, node)
    if isinstance(callee, Method):
        return invoke(t, t.callees.method(callee.name, t.span(node)), _values(t, node), node)
    if isinstance(callee, Function):
        return invoke(t, t.callees.free(callee, t.span(node)), _values(t, node), node)
    if isinstance(callee, InlineFunction):
        return callee.expand(t, _values(t, node), node)
    if isinstance(callee, Kernel):
        return t.callees.kernels.call(t, callee, _values(t, node), node)
    if isinstance(callee, BindDynamic):
        return bind_dynamic(t, callee, node)
    return _python(t, callee, arguments(t, node), node)


def _op(t: Translator, spec: OpSpec, node: ast.Call) -> Value:
    given = _values(t, node)
    try:
        bound = bind(spec, given.args, given.kwargs)
    except KernelError as error:
        error.locate([t.span(given.keyword_nodes.get(name, node)) for name in error.blame] or [t.span(node)])
        _advise(error, spec, given.args)
        raise
    spans = dict(zip((p.name for p in spec.parameters), given.nodes, strict=False)) | dict(given.keyword_nodes)
    _check_attributes(t, spec, bound, spans, node)
    summed = accumulated(t, spec, bound, node, spans)
    if summed is not None:
        return summed
    try:
        result = apply(t, spec, bound, node, spans)
    except OperandError as error:
        _advise(error, spec, given.args)
        raise
    except OutOfBoundsError:
        if not _may_be_cut(t, bound):
            raise
        result = apply(t, spec, {**bound, "clamp": True}, node, spans)
    _check_namespace(t, result, node)
    return result


def _advise(error: KernelError, spec: OpSpec, args: Sequence[Value]) -> None:
    """Tell authors who take an op on numbers for one on tiles what the latter is called."""
    is_scalar = spec.kinds == (Kind.SCALAR,)
    if is_scalar and any(isinstance(a, Expr) and isinstance(a.type, (TensorType, TileType)) for a in args):
        error.help = meant(spec.name) or error.help


def _may_be_cut(t: Translator, bound: Mapping[str, Value]) -> bool:
    """Return whether a load that starts inside its tensor may take what is there.

    Where an argument decides the extent, a tile that is larger than the whole tensor is as good as a ragged last one.
    """
    tensor, offsets = bound.get("tensor"), bound.get("offsets")
    if t.frame is None or bound.get("clamp") is not False or not isinstance(tensor, Expr):
        return False
    shape = tensor.type.shape if isinstance(tensor.type, TensorType) else ()
    starts = [bounds(t.expr(offset, t.captured.node)) for offset in sequence(offsets)]
    return any(isinstance(extent, Dim) for extent in shape) and all(
        reach is None or not isinstance(extent, int) or 0 <= reach[0] < max(extent, 1)
        for reach, extent in zip(starts, shape, strict=False)
    )


def _check_attributes(
    t: Translator, spec: OpSpec, bound: Mapping[str, Value], spans: Mapping[str, ast.AST], node: ast.AST
) -> None:
    for p in spec.parameters:
        value = bound[p.name]
        if p.role is Role.ATTRIBUTE and isinstance(value, Expr) and not isinstance(value, Const):
            raise NotStaticError(
                f"`{p.name}` of `{spec.name}` must be known before the program runs, got {value.type}",
                spans=[t.span(spans.get(p.name, node))],
                help="pass a constant, or a Python value from outside the kernel",
            )


def _check_namespace(t: Translator, result: Expr, node: ast.Call) -> None:
    """Raise when `pl.tile.x` was given tensors, or `pl.tensor.x` tiles."""
    if not (
        isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Attribute) and isinstance(result, Call)
    ):
        return
    asked, got = node.func.value.attr, result.op.kind
    if {asked, got.value} == {Kind.TILE.value, Kind.TENSOR.value} and len(result.op.spec.kinds) > 1 and result.args:
        raise OperandError(
            f"`{ast.unparse(node.func)}` takes {asked}s, got {got.value}s",
            spans=[t.span(node)],
            help=f"pl.{node.func.attr} takes either",
        )


def invoke(t: Translator, function: Function, given: Arguments, node: ast.Call) -> Invoke:
    """Return the call of another function, its arguments checked against its parameters."""
    args = _bound(t, function, given, node)
    return Invoke(GlobalVar(function.name), args, result_type(function, args), t.span(node))


def _bound(t: Translator, function: Function, given: Arguments, node: ast.Call) -> tuple[Expr, ...]:
    unknown = [
        name for name in given.kwargs if name not in {p.name_hint for p in function.params} | {"attrs", "device"}
    ]
    if unknown:
        raise ArgumentCountError(
            f"`{function.name}` has no parameter `{unknown[0]}`",
            spans=[t.span(given.keyword_nodes[unknown[0]])],
            help=_signature(function),
        )
    names = [p.name_hint for p in function.params]
    values = dict(zip(names, given.args, strict=False)) | {k: v for k, v in given.kwargs.items() if k in names}
    count = len(given.args) + sum(k in names for k in given.kwargs)
    if count != len(function.params) or len(values) != len(function.params):
        message = f"`{function.name}` expects {len(function.params)} argument(s), got {count}"
        raise ArgumentCountError(message, spans=[t.span(node)], help=_signature(function))
    spans = dict(zip(names, given.nodes, strict=False)) | dict(given.keyword_nodes)
    return tuple(_argument(t, function, p, values[p.name_hint], spans[p.name_hint]) for p in function.params)


def _signature(function: Function) -> str:
    return f"{function.name}({', '.join(f'{p.name_hint}: {p.type}' for p in function.params)})"


def _argument(t: Translator, function: Function, param: Any, value: Value, node: ast.expr) -> Expr:
    number = value.value if isinstance(value, Const) else value
    if isinstance(number, (bool, int, float)) and isinstance(param.type, ScalarType):
        if _is_literal_of(number, param.type.dtype):
            return constant(number, param.type.dtype, t.span(node))
    arg = t.expr(value, node, f"`{param.name_hint}` of `{function.name}`")
    problem = fitting(param.type, arg.type)
    if problem:
        kind, help = _PROBLEMS.get(
            problem, (ShapeMismatchError, "pass a window of it, or give the parameter that shape")
        )
        raise kind(
            f"`{param.name_hint}` of `{function.name}` is {param.type}, got {arg.type}: {problem}",
            spans=[t.span(node)],
            notes=[f"`{param.name_hint}` is declared at {param.span}"] if param.span.is_known else (),
            help=help,
        )
    return arg


_PROBLEMS: Mapping[str, tuple[type[ParserTypeError], str]] = {
    "the ranks differ": (ShapeMismatchError, "pl.reshape changes the number of axes"),
    "the element types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    "the types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    "the kinds differ": (OperandError, "tensors, tiles and scalars are different kinds of values"),
}
"""The mistake behind each way an argument does not fit, and what to try; what is not here is a matter of shape."""


def _is_literal_of(number: int | float | bool, dtype: DataType) -> bool:
    """Return whether a number of the text stands for one of a parameter's kind."""
    return dtype.is_float() or (dtype.is_int() and not isinstance(number, float))


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
        return "" if param == arg or {param.dtype, arg.dtype} == {INDEX, INT64} else "the types differ"
    return (
        ""
        if type(param) is type(arg) and param == arg
        else "the kinds differ"
        if type(param) is not type(arg)
        else "the types differ"
    )


def unpack(t: Translator, value: Value, node: ast.AST) -> Value:
    """Return a multi-value result as a tuple of values, one variable each being emitted as it is used."""
    if isinstance(value, Expr) and isinstance(value.type, TupleType):
        whole = t.expr(value, node)
        return tuple(TupleGetItem(whole, i, e, t.span(node)) for i, e in enumerate(value.type.elements))
    return value


def _options_of(directive: Any) -> frozenset[str]:
    """Return what a directive takes by name alone."""
    given = inspect.signature(directive).parameters.values()
    return frozenset(p.name for p in given if p.kind is inspect.Parameter.KEYWORD_ONLY)


_SUBMIT_OPTIONS = {directive: _options_of(directive) for directive in (directives.submit, directives.spmd_submit)}


def _submit(t: Translator, node: ast.Call) -> Submit:
    directive: Any = t.evaluate(node.func)
    given, allowed = arguments(t, node), _SUBMIT_OPTIONS[directive]
    kwargs = {name: value for name, value in given.kwargs.items() if name not in allowed}
    rest = Arguments(given.args[1:], kwargs, given.nodes[1:], given.keyword_nodes)
    called = _dispatched(t, given.args[0] if given.args else None, rest, node)
    results = called.type.elements if isinstance(called.type, TupleType) else (called.type,)
    deps = given.kwargs.get("deps", ())
    core_num = given.kwargs.get("core_num")
    if core_num is None and "core_num" in allowed:
        help = "core_num=n runs the kernel once per block; pl.submit runs it once"
        raise ArgumentCountError("pl.spmd_submit needs the number of blocks", spans=[t.span(node)], help=help)
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
    raise OperandError(f"`{name}` dispatches a function of the program", spans=[t.span(node)], help=help)


def _static_print(t: Translator, node: ast.Call) -> None:
    given = arguments(t, node)
    span = t.span(node)
    shown = " ".join([f"static_print [{span.filename}:{span.line}]:", *(show(value) for value in given.args)])
    t.tell(lambda: print(shown))


def _static_assert(t: Translator, node: ast.Call) -> None:
    given = arguments(t, node)
    if not 1 <= len(given.args) <= 2:
        help = 'pl.static_assert(condition, "what must hold")'
        raise ArgumentCountError("pl.static_assert takes a condition and a message", spans=[t.span(node)], help=help)
    condition = given.args[0].value if isinstance(given.args[0], Const) else given.args[0]
    if isinstance(condition, Expr):
        raise NotStaticError(
            f"`{ast.unparse(node.args[0])}` is not known before the program runs",
            spans=[t.span(node.args[0])],
            help="a static assertion is about shapes and constants: check run-time values before the call",
        )
    if not condition:
        message = given.args[1] if len(given.args) > 1 else ast.unparse(node.args[0])
        names = {n.id: t.evaluate(n) for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
        known = [f"{name} is {show(value)}" for name, value in names.items() if isinstance(value, (int, float, Expr))]
        raise StaticAssertionError(f"static_assert failed: {message}", spans=[t.span(node.args[0])], notes=known)


def _const(t: Translator, node: ast.Call) -> Const:
    given = arguments(t, node)
    values = dict(zip(("value", "dtype"), given.args, strict=False)) | dict(given.kwargs)
    if not isinstance(values.get("value"), (bool, int, float)) or not isinstance(values.get("dtype"), DataType):
        raise OperandError("pl.const takes a number and a dtype", spans=[t.span(node)], help="pl.const(1, pl.INT32)")
    return directives.const(values["value"], values["dtype"])


def _func_attr(t: Translator, node: ast.Call) -> None:
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Dict):
        help = 'pl.func_attr({"name": value})'
        raise OperandError("pl.func_attr takes a dict literal", spans=[t.span(node)], help=help)
    for key, value in zip(node.args[0].keys, node.args[0].values, strict=True):
        if key is None:
            raise OperandError("pl.func_attr takes a dict literal", spans=[t.span(node)])
        t.attrs[str(t.evaluate(key))] = t.evaluate(value)


def _transparent(t: Translator, node: ast.Call) -> Value:
    given = arguments(t, node)
    return given.args[0] if given.args else None


def _misplaced(t: Translator, node: ast.Call) -> None:
    callee, name = t.evaluate(node.func), ast.unparse(node.func)
    help = _PLACES.get(callee, f"write `with {name}(...):`" if callee in directives.SCOPES else "")
    help = help or f"write `for i in {name}(...):`"
    raise MisplacedDirectiveError(f"`{name}` means nothing here", spans=[t.span(node)], help=help)


_PLACES: dict[Any, str] = {
    directives.yield_: "write `r = pl.yield_(value)` at the end of a loop body or branch",
    directives.cond: "write `pl.cond(condition)` first in the body of a `pl.while_` loop",
}

_DIRECTIVES: dict[Any, Any] = {
    directives.submit: _submit,
    directives.spmd_submit: _submit,
    directives.static_print: _static_print,
    directives.static_assert: _static_assert,
    directives.const: _const,
    directives.func_attr: _func_attr,
    directives.no_dep: _transparent,
    directives.dump_tag: _transparent,
    directives.yield_: _misplaced,
    directives.cond: _misplaced,
    **dict.fromkeys([*directives.LOOPS, *directives.SCOPES], _misplaced),
}

_STATIC_BUILTINS = (len, abs, int, float, bool, round, sum, divmod, pow, min, max, tuple, list, isinstance, str)


_SHAPED_ONLY = (len, tuple, list)
"""Builtins that do not look at what a container holds."""


def _python(t: Translator, callee: object, given: Arguments, node: ast.Call) -> Value:
    """Return a call that Python itself makes while compiling, on values the compiler knows."""
    values = (*given.args, *given.kwargs.values())
    if (callee is min or callee is max) and any(isinstance(v, Expr) for v in values):
        return _extreme(t, "min" if callee is min else "max", given, node)
    if any(isinstance(v, Expr) for v in values) or not (_is_static_callable(callee) or is_lambda(callee)):
        raise _not_callable(t, callee, node)
    if callee is not isinstance:
        check_plain(t, node, *values, deeply=callee not in _SHAPED_ONLY)
    if is_lambda(callee):
        _read_lambda(t, callee, node)
    try:
        known = power if callee is pow else callee
        return known(*map(as_python, given.args), **given.kwargs)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
    except Exception as error:
        raise StaticEvaluationError(f"cannot evaluate `{ast.unparse(node)}`: {error}", spans=[t.span(node)]) from None


def _is_static_callable(callee: object) -> bool:
    if isinstance(callee, MethodType):
        return isinstance(callee.__self__, DataType)
    if isinstance(callee, type):
        return callee in (int, float, bool, tuple, list, str) or callee.__module__.startswith("tilewright.core")
    if isinstance(callee, BuiltinFunctionType):
        return callee in _STATIC_BUILTINS or callee.__module__ == math.__name__
    return any(callee is known for known in (dynamic, directives.split, directives.cross_core_slot))


def _read_lambda(t: Translator, function: Any, node: ast.Call) -> None:
    """Note what a lambda reads; raise where that cannot be followed."""
    name = unfollowed(t.callees.kernels.reader(function), _is_static_callable)
    if name:
        raise StaticEvaluationError(
            f"`{ast.unparse(node.func)}` reads `{name}`, which the cache cannot follow into a lambda",
            spans=[t.span(node)],
            help="pass it what it needs as arguments, or write it as a @pl.jit.inline function",
        )


def _extreme(t: Translator, name: str, given: Arguments, node: ast.Call) -> Value:
    result, *rest = given.args
    for value in rest:
        result = apply(t, OPS[f"scalar.{name}"].spec, {"lhs": result, "rhs": value}, node, {})
    return result


_CONVERSIONS: Mapping[object, str] = {
    float: "pl.cast({}, pl.FP32) converts what only the running program knows",
    int: "pl.cast({}, pl.INT32) converts what only the running program knows",
    bool: "a comparison asks what only the running program knows: `{} != 0`",
}
"""What to write for Python's own conversions, which are for numbers the compiler knows."""


_CALLS = "a kernel calls ops (pl.*), functions of its program, and functions decorated for it"


def _not_callable(t: Translator, callee: object, node: ast.Call) -> KernelError:
    name = ast.unparse(node.func)
    if callee is builtins.range:
        fix = "loops are written `for i in pl.range(...)`"
    elif callee is builtins.print:
        fix = meant("print")
    elif isinstance(owner := getattr(callee, "__self__", None), (list, tuple)):
        fix = grown(name.rpartition(".")[0], owner)
    elif is_data(owner):
        fix = "data of other libraries is read before the call: pass the tensor, or the number, as an argument"
    elif isinstance(callee, FunctionType):
        kinds = "@pl.inline or @pl.function" if t.frame is None else "@pl.jit.inline or @pl.jit.incore"
        fix = f"decorate `{name}` with {kinds} so that a kernel can call it"
    elif not callable(callee) or isinstance(callee, (ModuleType, Arithmetic)):
        fix = "this is not a function"
    elif isinstance(callee, type) and callee in _CONVERSIONS and node.args:
        fix = _CONVERSIONS[callee].format(ast.unparse(node.args[0]))
    else:
        fix = meant(name.rpartition(".")[2]) or _CALLS
    return UncallableError(f"Unsupported function call: `{name}`", spans=[t.span(node.func)], help=fix)
