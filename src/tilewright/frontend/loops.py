"""Loops: counted, conditional, and the values they carry."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeVar

from tilewright import errors
from tilewright.core.endings import ends
from tilewright.core.enums import ForKind
from tilewright.core.expr import ABSENT, Const, Expr, Var, constant, integer
from tilewright.core.numbers import TypedNumber
from tilewright.core.rewrite import loop_bounds
from tilewright.core.stmt import ForStmt, IterArg, SeqStmts, WhileStmt, YieldStmt
from tilewright.core.types import ScalarType, Type, unplaced
from tilewright.dtypes import BOOL, INDEX, UINT64, DataType
from tilewright.frontend import directives
from tilewright.frontend.arguments import Arguments, arguments, parameters_of
from tilewright.frontend.bodies import loop_body
from tilewright.frontend.scope import Bindings
from tilewright.frontend.state import Widened, YieldFrame
from tilewright.frontend.statements import is_directive
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.statements import check_else
from tilewright.frontend.walk.walker import Value
from tilewright.source import Span

KINDS = {
    "range": ForKind.Sequential,
    "parallel": ForKind.Parallel,
    "unroll": ForKind.Unroll,
    "pipeline": ForKind.Pipeline,
}


def loop(t: Translator, node: ast.For) -> None:
    """Translate a `for` over one of the language's own ranges."""
    check_else(t, node)
    named: Any = t.evaluate(node.iter.func) if isinstance(node.iter, ast.Call) else None
    callee: Any = named if isinstance(named, FunctionType) else None  # what else is called may have no hash
    if callee is directives.spmd and isinstance(node.iter, ast.Call):
        from tilewright.frontend.grids import blocks  # which few kernels need

        blocks(t, node, node.iter)
    elif callee is directives.while_ and isinstance(node.iter, ast.Call):
        _while_carrying(t, node, node.iter)
    elif callee is directives.split_aiv and isinstance(node.iter, ast.Call):
        from tilewright.frontend.grids import lanes

        lanes(t, node, node.iter)
    elif callee in directives.LOOPS and isinstance(node.iter, ast.Call):
        _counted(t, node, node.iter, directives.LOOPS[callee])
    elif named is range and isinstance(node.iter, ast.Call):
        _counted(t, node, node.iter, "range")
    else:
        from tilewright.frontend.unrolled_loops import elements, write_out

        write_out(t, node, elements(t, node.iter))


def _counted(t: Translator, node: ast.For, iterable: ast.Call, word: str) -> None:
    given = arguments(t, iterable, unread=("attrs",))
    start, stop, step = _bounds(t, given, iterable)
    kind = KINDS[word]
    is_written = word in ("range", "unroll") and t.evaluate(iterable.func) is not directives.range
    if is_written and _written_out(t, node, iterable, (start, stop, step)):
        return
    attrs = _options(t, given, iterable, word, (start, stop, step))
    if "attrs" in given.keyword_nodes:
        from tilewright.frontend.marks import attributes  # which few kernels need

        attrs |= attributes(t, given.keyword_nodes["attrs"], f"attrs= of pl.{word}()")
        kind = ForKind.Unroll if attrs.pop("unroll", None) is True else kind
    names, inits = _targets(t, node, given, iterable)
    if t.frame is not None and not inits and _is_empty((start, stop, step)):
        return
    t.scope.forget(node.body)
    loop_var = Var(
        names[0], ScalarType(_index_type(start, stop, step)), t.span(node.target), loop_bounds(start, stop, step)
    )
    t.scope.enter()
    t.scope.bind(names[0], loop_var, loop_var.span)
    iter_args = _carried(t, names[1:], inits, node)
    t.stages.append(attrs.get("stage", 1))
    frame, body = loop_body(t, node.body, word, names[1:])
    t.stages.pop()
    bound = t.scope.leave()
    body, results = _results(t, node, iter_args, frame, body, bound)
    t.scope.leak(bound, names)
    span = t.span(node)
    t.emit(ForStmt(loop_var, start, stop, step, body, kind, iter_args, tuple(results.values()), attrs, span))
    for name, var in results.items():
        t.define(name, var)


def _check_unrolled(t: Translator, node: ast.For | ast.Call, turns: int) -> None:
    """Raise where `pl.unroll` would write a body out too often."""
    from tilewright.frontend.unrolled_loops import UNROLL_LIMIT  # which few kernels need

    if turns > UNROLL_LIMIT:
        message = f"pl.unroll would write this body out {turns} times, more than {UNROLL_LIMIT}"
        raise t.error(errors.DirectiveError, node, message, help="use pl.range, or unroll an inner loop of fewer turns")


def _written_out(t: Translator, node: ast.For, iterable: ast.Call, limits: Sequence[Expr]) -> bool:
    """Write a loop out whose body asks for the number itself, between known limits; return whether it is one."""
    from tilewright.frontend.unrolled_loops import asks_for_numbers, check_turns, write_out  # few kernels count so

    if not asks_for_numbers(t, node) or not all(isinstance(limit, Const) for limit in limits):
        return False
    check_turns(t, iterable, _turns(limits))
    write_out(t, node, range(*(int(limit.value) for limit in limits if isinstance(limit, Const))))
    return True


def _bounds(t: Translator, given: Arguments, node: ast.Call) -> tuple[Expr, Expr, Expr]:
    bounds = [
        int(value) if isinstance(value, TypedNumber) and isinstance(value, int) else value for value in given.args
    ]
    values = [t.expr(value, where, "a loop bound") for value, where in zip(bounds, given.nodes, strict=True)]
    for value, where in zip(values, given.nodes, strict=True):
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int()):
            help = "use `//` to divide, or pl.cast(..., pl.INDEX)"
            raise t.error(errors.OperandError, where, f"a loop bound is an integer, got {value.type}", help=help)
        if value.type.dtype == UINT64 and not isinstance(value, Const):
            help = f"pl.cast({value}, pl.INDEX) counts as far as an index does"
            raise t.error(errors.OperandError, where, "a loop counts in index, which does not hold uint64", help=help)
    match values:
        case [stop]:
            return integer(0), stop, integer(1)
        case [start, stop]:
            return start, stop, integer(1)
        case [start, stop, step]:
            if isinstance(step, Const) and step.value == 0:
                help = "a step of 1 visits every index"
                raise t.error(errors.DirectiveError, given.nodes[2], "a loop's step cannot be zero", help=help)
            return start, stop, step
        case _:
            message = f"a loop takes stop, start and stop, or start, stop and step, got {len(values)} bounds"
            help = "pl.range(stop), pl.range(start, stop) or pl.range(start, stop, step)"
            raise t.error(errors.DirectiveError, node, message, help=help)


def _options(t: Translator, given: Arguments, node: ast.Call, word: str, limits: Sequence[Expr]) -> dict[str, Any]:
    allowed = parameters_of(getattr(directives, word))[1]
    for name in given.keyword_nodes:
        if name not in allowed and name != "attrs":
            message = f"Unknown keyword argument '{name}' in pl.{word}()"
            help = f"it takes bounds and {', '.join(sorted(allowed))}"
            raise t.error(errors.DirectiveError, given.keyword_nodes[name], message, help=help)
    if word == "unroll" and not all(isinstance(limit, Const) for limit in limits):
        unknown = [
            w for w, v in zip(given.nodes, given.args, strict=True) if isinstance(v, Expr) and v.__class__ is not Const
        ]
        help = "use pl.range, or a constant bound"
        spans = [t.span(where) for where in unknown or [node]]
        raise errors.DirectiveError("pl.unroll() needs bounds the compiler knows", spans=spans, help=help)
    if word == "unroll":
        _check_unrolled(t, node, _turns(limits))
    if word != "pipeline":
        return {}
    help = "stage=2 loads one iteration ahead"
    if "stage" not in given.kwargs:
        raise t.error(errors.DirectiveError, node, "pl.pipeline() requires stage=, its depth", help=help)
    stage = given.kwargs["stage"]
    if not isinstance(stage, int) or isinstance(stage, bool) or stage < 1:
        message = f"stage= of pl.pipeline() must be >= 1, and a constant, got {t.describe(stage)}"
        raise t.error(errors.DirectiveError, given.keyword_nodes["stage"], message, help=help)
    return {"stage": stage}


def _turns(limits: Sequence[Expr]) -> int:
    """Return how often a loop over constant bounds turns."""
    start, stop, step = (int(limit.value) for limit in limits if isinstance(limit, Const))
    return max(0, -((start - stop) // step))


def _is_empty(limits: Sequence[Expr]) -> bool:
    """Return whether a loop is known not to turn at all; its body then does nothing, and need not fit its operands."""
    return all(isinstance(limit, Const) for limit in limits) and _turns(limits) == 0


def _index_type(*limits: Expr) -> DataType:
    types = {limit.type.dtype for limit in limits if isinstance(limit, Const)}
    typed = types - {INDEX}
    return typed.pop() if len(typed) == 1 and all(isinstance(limit, Const) for limit in limits) else INDEX


def _targets(
    t: Translator, node: ast.For, given: Arguments, iterable: ast.Call
) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """Return the loop variable and carried names, and what the carried ones start as."""
    inits = given.kwargs.get("init_values", ())
    match node.target:
        case ast.Name(id=name) if not inits:
            return (name,), ()
        case ast.Tuple(elts=[ast.Name(id=name), ast.Tuple(elts=carried)]) if all(
            isinstance(c, ast.Name) for c in carried
        ):
            names = (name, *(c.id for c in carried if isinstance(c, ast.Name)))
        case _:
            message = "a loop binds its variable, and carried values in a tuple"
            help = "for i, (a, b) in pl.range(n, init_values=(a0, b0)):"
            raise t.error(errors.ParserSyntaxError, node.target, message, help=help)
    _check_carried(t, names[1:], inits, iterable)
    return names, inits


def _check_carried(t: Translator, names: Sequence[str], inits: Value, node: ast.AST) -> None:
    if not isinstance(inits, tuple) or len(inits) != len(names):  # pyright: ignore[reportUnknownArgumentType]
        count = len(inits) if isinstance(inits, tuple) else 1  # pyright: ignore[reportUnknownArgumentType]
        message = f"Mismatch: {len(names)} carried name(s) for {count} initial value(s)"
        help = "give each carried name one entry of init_values=(...)"
        raise t.error(errors.YieldMismatchError, node, message, help=help)


def _carried(t: Translator, names: Sequence[str], inits: Sequence[Value], node: ast.For) -> tuple[IterArg, ...]:
    """Return the values a loop carries, bound to the names its body uses; None starts as nothing."""
    result: list[IterArg] = []
    for name, init in zip(names, inits, strict=True):
        span = t.span(node.target)
        if init is None or (isinstance(init, Var) and id(init) in t.unset):
            var = Var(name, ScalarType(BOOL), span)  # its type is that of what the loop yields
            t.unset.add(id(var))
            result.append(IterArg(var, ABSENT if init is None else init))
            t.scope.bind(name, var, span)
            continue
        value = t.expr(init, node.iter, f"the initial value of `{name}`")
        var = Var(name, unplaced(t.widened.get(_carried_key(name, span), value.type)), span)
        result.append(IterArg(var, value))
        t.windows.carry(var, value)
        t.scope.bind(name, var, span)
    return tuple(result)


def _carried_key(name: str, span: Span) -> tuple[str, Span]:
    """Return under what a carried value's wider type is remembered: not as that of a variable of its name."""
    return f"{name} as carried", span


def _results(
    t: Translator, node: ast.For, iter_args: tuple[IterArg, ...], frame: YieldFrame, body: SeqStmts, bound: Bindings
) -> tuple[SeqStmts, dict[str, Var]]:
    """Return the body with its yield, and the variables that hold what the loop carried out.

    A body that yields nothing hands on what its carried names stand for at its end.
    """
    if not iter_args:
        return body, {}
    if frame.names is None:
        names = tuple(f"{arg.var.name_hint}_out" for arg in iter_args)
        values = tuple(t.expr(bound[name].value, node) for name in frame.carried)
        if not ends(body):
            body = SeqStmts((*body.stmts, YieldStmt(values, t.span(node))))
        types: tuple[Type, ...] = tuple(value.type for value in values)
    elif len(frame.names) != len(iter_args):
        from tilewright.frontend.branches import unnamed_yield

        raise unnamed_yield(frame.span or t.span(node))
    else:
        names, types = frame.names, frame.types
    results: dict[str, Var] = {}
    for arg, name, type_ in zip(iter_args, names, types, strict=True):
        if id(arg.var) in t.unset:
            arg.var.type = unplaced(type_)
        wider = t.joined(arg.var.type, unplaced(type_), frame.span or t.span(node))
        if wider is None:
            message = f"'{arg.var.name_hint}' is carried as one type and yielded as another"
            notes = [f"carried: {arg.var.type}", f"yielded: {type_}"]
            help = "start with a value of the type the body yields, for example with pl.cast"
            raise errors.YieldMismatchError(message, spans=[frame.span or t.span(node)], notes=notes, help=help)
        if wider != arg.var.type:
            raise Widened(_carried_key(arg.var.name_hint, arg.var.span), wider)
        results[name] = Var(name, arg.var.type, frame.span or t.span(node))
    return body, results


def repeat(t: Translator, node: ast.While) -> None:
    """Translate a `while`."""
    check_else(t, node)
    t.scope.forget(node.body)
    before = len(t.stmts)
    test = t.condition(node.test)
    if len(t.stmts) != before:  # it reads memory or folds a tile, which each turn does anew
        del t.stmts[before:]
        leaves = t.strict_ssa or _goes_on_early(node.body)
        t.execute(_leaving(node) if leaves else _asking_again(t, node))
        return
    test = constant(test) if isinstance(test, bool) else test
    t.scope.enter()
    _, body = loop_body(t, node.body, "while")
    t.scope.leak(t.scope.leave())
    t.emit(WhileStmt(test, body, span=t.span(node)))


def _goes_on_early(body: Sequence[ast.stmt]) -> bool:
    """Return whether a `continue` below a loop's body begins the next turn of that loop."""
    for stmt in body:
        inner = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, ast.stmt)]
        if isinstance(stmt, ast.Continue) or (not isinstance(stmt, (ast.For, ast.While)) and _goes_on_early(inner)):
            return True
    return False


def _leaving(node: ast.While) -> list[ast.stmt]:
    """Return a loop that tests its condition first in its body, and leaves there."""
    leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
    return [_written(ast.While(ast.Constant(True), [ast.copy_location(leave, node.test), *node.body], []), node)]


def _asking_again(t: Translator, node: ast.While) -> list[ast.stmt]:
    """Return a loop whose condition is a variable, asked for before it and at the end of each turn."""
    name = f"while.{node.lineno}"
    t.scope.shared |= {name}
    asked = _written(ast.Assign([ast.Name(name, ast.Store())], node.test), node.test)
    return [asked, _written(ast.While(ast.Name(name, ast.Load()), [*node.body, asked], []), node)]


S = TypeVar("S", bound=ast.stmt)


def _written(stmt: S, where: ast.AST) -> S:
    return ast.fix_missing_locations(ast.copy_location(stmt, where))


def _test(t: Translator, node: ast.expr, where: ast.AST) -> Expr:
    """Return the condition of a loop; ConditionError unless every round can compute it anew."""
    before = len(t.stmts)
    test = t.condition(node)
    if len(t.stmts) != before:
        help = "bind what it reads to a name before the loop, and again at the end of the body"
        raise t.error(errors.ConditionError, where, "the condition of a loop is scalar arithmetic", help=help)
    return constant(test) if isinstance(test, bool) else test


def _while_carrying(t: Translator, node: ast.For, iterable: ast.Call) -> None:
    given = arguments(t, iterable)
    elements = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    names = tuple(e.id for e in elements if isinstance(e, ast.Name))
    inits = given.kwargs.get("init_values", ())
    if len(names) != len(elements) or given.args:
        help = "for (x,) in pl.while_(init_values=(x0,)):"
        raise t.error(errors.ParserSyntaxError, node.target, "pl.while_ binds its carried values", help=help)
    _check_carried(t, names, inits, iterable)
    t.scope.forget(node.body)
    t.scope.enter()
    iter_args = _carried(t, names, inits, node)
    test = _leading_condition(t, node)
    frame, body = loop_body(t, node.body[1:], "while", names)
    bound = t.scope.leave()
    body, results = _results(t, node, iter_args, frame, body, bound)
    t.scope.leak(bound, names)
    t.emit(WhileStmt(test, body, iter_args, tuple(results.values()), t.span(node)))
    for name, var in results.items():
        t.define(name, var)


def _leading_condition(t: Translator, node: ast.For) -> Expr:
    first = node.body[0]
    if not (
        isinstance(first, ast.Expr)
        and is_directive(t, first.value, directives.cond)
        and isinstance(first.value, ast.Call)
    ):
        help = "write `pl.cond(condition)` above this line"
        raise t.error(errors.MisplacedDirectiveError, first, "a pl.while_ body starts with pl.cond(...)", help=help)
    if len(first.value.args) != 1:
        raise t.error(errors.DirectiveError, first, "pl.cond() takes one condition", help="join several with `and`")
    return _test(t, first.value.args[0], first)
