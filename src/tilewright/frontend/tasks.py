"""Tasks: kernels dispatched by name, and what they wait for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.core.build import call
from tilewright.core.expr import Expr, Invoke, Submit, integer
from tilewright.core.program import Function
from tilewright.core.types import ArrayType, ScalarType, TupleType
from tilewright.dtypes import TASK_ID
from tilewright.errors import ArgumentCountError, DirectiveError, OperandError
from tilewright.frontend.arguments import UNREAD, Arguments, arguments, parameters_of
from tilewright.frontend.deferred import settle
from tilewright.frontend.invocations import invoke
from tilewright.frontend.kernels import Kernel, KernelKind
from tilewright.frontend.options import Options
from tilewright.frontend.predicates import predicate
from tilewright.frontend.properties import Method
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS


def dependencies(t: Translator, node: ast.expr | None) -> tuple[Expr, ...]:
    """Return the tasks that `deps=` lists; None entries are tasks that never were."""
    if node is None:
        return ()
    entries = [(value, where) for value, where in _entries(t, node) if value is not None]
    is_whole = [isinstance(value, Expr) and isinstance(value.type, ArrayType) for value, _ in entries]
    elements = [where for _, where in entries if isinstance(where, ast.Subscript)]
    if any(is_whole) and elements:
        message = "deps= lists a whole array or elements of arrays, not both"
        raise t.error(OperandError, elements[0], message, help="list the whole array alone, or each element")
    found = tuple(task for value, where in entries for task in _tasks(t, value, where))
    settle(t, found)
    return found


def _entries(t: Translator, node: ast.expr) -> Iterator[tuple[Value, ast.expr]]:
    if isinstance(node, (ast.List, ast.Tuple)):
        yield from ((t.operand(element), element) for element in node.elts)
        return
    if isinstance(node, ast.ListComp):
        yield from _generated(t, node)
        return
    given = t.operand(node)
    if not isinstance(given, (tuple, list)):
        message = f"deps= takes a list of task ids, got {t.describe(given)}"
        raise t.error(OperandError, node, message, help="deps=[first, second]")
    yield from ((value, node) for value in sequence(given))


def _generated(t: Translator, node: ast.ListComp) -> Iterator[tuple[Value, ast.expr]]:
    """Yield the entries of a list comprehension over numbers that the compiler knows."""
    generator, help = node.generators[0], "deps=[tasks[i] for i in range(4)]"
    if len(node.generators) > 1 or generator.is_async or not isinstance(generator.target, ast.Name):
        raise t.error(DirectiveError, node, "a comprehension in deps= has one `for` and one name", help=help)
    t.scope.enter()
    for number in _numbers(t, generator.iter):
        t.scope.bind(generator.target.id, number, t.span(generator.target))
        conditions = [t.condition(condition) for condition in generator.ifs]
        if not all(isinstance(condition, bool) for condition in conditions):
            message = "a comprehension in deps= chooses by what the compiler knows"
            raise t.error(OperandError, generator.ifs[0], message, help=help)
        if all(conditions):
            yield t.operand(node.elt), node.elt
    t.scope.leave()


def _numbers(t: Translator, node: ast.expr) -> Sequence[int]:
    is_range = isinstance(node, ast.Call) and t.evaluate(node.func) is builtins.range
    given = [t.operand(arg) for arg in node.args] if is_range and isinstance(node, ast.Call) else ()
    if is_range and all(type(value) is int for value in given) and 1 <= len(given) <= 3:
        return range(*given)
    values = () if is_range else t.operand(node)
    if is_range or not isinstance(values, (tuple, list)) or not all(type(v) is int for v in sequence(values)):
        message = f"a comprehension in deps= goes over integers that the compiler knows, got `{ast.unparse(node)}`"
        raise t.error(OperandError, node, message, help="deps=[tasks[i] for i in range(4)]")
    return sequence(values)


def _tasks(t: Translator, value: Value, node: ast.expr) -> Iterator[Expr]:
    """Yield the task ids that an entry of `deps=` stands for."""
    type_ = value.type if isinstance(value, Expr) else None
    if type_ == ScalarType(TASK_ID):
        yield value
    elif isinstance(type_, ArrayType) and type_.dtype == TASK_ID:
        spec = OPS["array.get_element"].spec
        for position in range(type_.extent):
            yield t.expr(call(spec, {"array": value, "index": integer(position)}, t.span(node)), node)
    else:
        message = f"deps= entries are task ids or arrays of them, got {t.describe(value)}"
        help = "a task id is what `as tid` and the last result of pl.submit(...) name"
        raise t.error(OperandError, node, message, help=help)


def task_dummy(t: Translator, node: ast.Call) -> Expr:
    """Return the task that does nothing, after others."""
    if node.args:
        message = "pl.system.task_dummy() takes no positional arguments"
        raise t.error(OperandError, node.args[0], message, help="pl.system.task_dummy(deps=[first, second])")
    given = {keyword.arg or "**": keyword.value for keyword in node.keywords}
    for name, where in given.items():
        if name != "deps":
            message = f"pl.system.task_dummy() does not accept keyword argument '{name}'"
            raise t.error(ArgumentCountError, where, message, help="it takes deps")
    if "deps" not in given:
        message = "pl.system.task_dummy() requires keyword argument 'deps'"
        raise t.error(ArgumentCountError, node, message, help="pl.system.task_dummy(deps=[first, second])")
    return call(OPS["system.task_dummy"].spec, {"deps": dependencies(t, given["deps"])}, t.span(node))


_GRID_ONLY = ("core_num", "sync_start")


def submit(t: Translator, node: ast.Call) -> Submit:
    """Return the task that `pl.submit` and `pl.spmd_submit` dispatch."""
    directive: Any = t.evaluate(node.func)
    allowed = parameters_of(directive)[1]
    given = arguments(t, node, unread=(*allowed, *UNREAD))
    written = {name: where for name, where in given.keyword_nodes.items() if name in allowed}
    options = Options(t, node, f"pl.{directive.__name__}()", written)
    for name in _GRID_ONLY:
        if name in given.keyword_nodes and name not in allowed:
            message = f"pl.submit() does not accept keyword argument '{name}'"
            raise t.error(ArgumentCountError, given.keyword_nodes[name], message, help="pl.spmd_submit does")
    if "core_num" in allowed and "core_num" not in options:
        help = "core_num=n runs the kernel once per block; pl.submit runs it once"
        raise options.error("core_num", "pl.spmd_submit() requires the core_num keyword", help)
    check_group(t, options, ("deps", "predicate", "allow_early_resolve"))
    rest = Arguments(given.args[1:], _others(given.kwargs, allowed), given.nodes[1:], given.keyword_nodes)
    called = _dispatched(t, given.args[0] if given.args else None, rest, node)
    results = called.type.elements if isinstance(called.type, TupleType) else (called.type,)
    deps = dependencies(t, options.given.get("deps"))
    flags = options.flags("allow_early_resolve", *(("sync_start",) if "sync_start" in allowed else ()))
    return Submit(
        called.op,
        called.args,
        deps,
        core_count(options, "core_num") if "core_num" in options else None,
        TupleType((*results, ScalarType(TASK_ID))),
        called.span,
        predicate(t, options.given.get("predicate"), deps),
        _dumped(t, options, called),
        tuple(flags.items()),
    )


def core_count(options: Options, name: str) -> Expr:
    """Return how many blocks a grid has; DirectiveError unless it is a positive integer."""
    t, node = options.t, options.where(name)
    count = t.operand(node)
    number = getattr(count, "value", count)
    is_scalar = isinstance(count, Expr) and isinstance(count.type, ScalarType) and count.type.dtype.is_int()
    if type(number) is not int and not is_scalar:
        message = f"{name} of {options.name} must be an integer expression, got {t.describe(count)}"
        raise options.error(name, message, f"{name}=8")
    if isinstance(number, int) and number <= 0:
        raise options.error(name, f"{name} of {options.name} must be a positive integer, got {number}", f"{name}=8")
    return t.expr(count, node)


def check_group(t: Translator, options: Options, names: Sequence[str]) -> None:
    """Raise where a dispatch inside `pl.cluster()` says what only a task of its own can."""
    for name in names if t.clusters else ():
        if name in options:
            message = f"{options.name} with {name}= cannot be nested inside pl.cluster()"
            raise options.error(name, message, "a group is one task: say it about the group, or dispatch outside of it")


def _others(kwargs: Mapping[str, Value], allowed: Sequence[str]) -> dict[str, Value]:
    return {name: value for name, value in kwargs.items() if name not in allowed}


def _dumped(t: Translator, options: Options, called: Invoke) -> tuple[Expr, ...]:
    """Return the arguments that a dispatch shows; OperandError for what is no argument of it."""
    found = options.tensors("dumps")
    for value, entry in zip(found, getattr(options.given.get("dumps"), "elts", ()), strict=False):
        if not any(value is arg for arg in called.args):
            message = f"dumps= of {options.name} names '{ast.unparse(entry)}', which is not an argument of the call"
            raise t.error(OperandError, entry, message, help="name tensors that are passed")
    return (*found, *(arg for arg in called.args if id(arg) in t.tagged and not any(arg is one for one in found)))


def _dispatched(t: Translator, callee: Value, given: Arguments, node: ast.Call) -> Invoke:
    """Return the call that a task makes."""
    if isinstance(callee, Method):
        return invoke(t, t.callees.method(callee.name, t.span(node)), given, node, completes=True)
    if isinstance(callee, Function):
        return invoke(t, t.callees.free(callee, t.span(node)), given, node, completes=True)
    if isinstance(callee, Kernel) and callee.kind is not KernelKind.INLINE:
        called = t.callees.kernels.call(t, callee, given, node)
        assert isinstance(called, Invoke)
        return called
    name = ast.unparse(node.func)
    help = f"{name}(self.kernel, x, y)" if t.frame is None else f"{name}(helper, x, y), `helper` being @pl.jit.incore"
    message = f"the first argument of {name} is a function of the program, as in {name}(self.kernel, ...)"
    raise t.error(DirectiveError, node.args[0] if node.args else node, message, help=help)
