"""Loops: `for` over ranges, and `while`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from tilewright.errors import NotStaticError, OperandError, PlainRangeError, UnsupportedFeatureError
from tilewright.frontend.walk.bindings import Binding, ended
from tilewright.frontend.walk.statements import bind_target, check_else
from tilewright.pto.module import Clause, Op, Value
from tilewright.pto.traced.branches import condition
from tilewright.pto.traced.carried import Carried
from tilewright.pto.traced.liveness import read_in
from tilewright.pto.traced.namespace import StaticRange
from tilewright.pto.traced.rounds import asked, asking, breaks, counting, joined
from tilewright.pto.traced.scalars import as_index
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_runtime, is_sequence
from tilewright.pto.types import INDEX

MOST_UNROLLED = 4096
"""How many rounds of a loop are written out at most."""


def loop(t: Tracer, node: ast.For) -> None:
    """Trace a `for`: over a range when the kernel runs, over anything else now."""
    check_else(t, node)
    if isinstance(node.iter, ast.Call) and t.evaluate(node.iter.func) is builtins.range:
        if breaks(node) and isinstance(node.target, ast.Name):
            return _left(t, node, node.target, _bounds(t, node.iter))
        return _counted(t, joined(node), node.iter)
    _unrolled(t, node if breaks(node) else joined(node), _items(t, node.iter))


def _left(t: Tracer, node: ast.For, target: ast.Name, bounds: tuple[Value, Value, Value]) -> None:
    """Trace a counted loop that is left from inside."""
    names = f"{target.id}.turn", f"{target.id}.stop", f"{target.id}.step"
    for name, bound in zip(names, bounds, strict=True):
        t.let(name, bound, node.iter)
    t.let(target.id, bounds[0], target)
    repeat(t, counting(node, names))
    t.names[target.id] = Binding(None, t.span(target), *ended(target.id))


def _items(t: Tracer, node: ast.expr) -> Sequence[object]:
    """Return what is known now to loop over."""
    items = t.evaluate(node)
    items = items.items if isinstance(items, StaticRange) else items
    if not is_sequence(items) and not isinstance(items, range):
        help = "write `for i in range(...)`; pto.static_range and tuples are unrolled"
        raise t.error(PlainRangeError, node, f"a loop cannot run over {describe(items)}", help=help)
    if len(items) > MOST_UNROLLED:
        help = "write `for i in range(...)`, which counts when the kernel runs"
        message = f"a loop over {len(items)} items cannot be unrolled"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    return items


def comprehension(t: Tracer, node: ast.ListComp | ast.GeneratorExp) -> tuple[object, ...]:
    """Return the items of a comprehension, each traced now; what it names ends with it."""
    before = dict(t.names)
    found = tuple(_comprehended(t, node.elt, node.generators))
    t.names = before
    return found


def _comprehended(t: Tracer, item: ast.expr, over: Sequence[ast.comprehension]) -> Iterator[object]:
    if not over:
        yield t.evaluate(item)
        return
    for each in _items(t, over[0].iter):
        bind_target(t, over[0].target, each, over[0].iter)
        if all(_holds(t, choice) for choice in over[0].ifs):
            yield from _comprehended(t, item, over[1:])


def _holds(t: Tracer, node: ast.expr) -> bool:
    choice = t.evaluate(node)
    if is_runtime(choice):
        message = f"this chooses now, and {describe(choice)} is only known when the kernel runs"
        raise t.error(NotStaticError, node, message, help="write a loop with an `if`")
    return bool(choice)


def _unrolled(t: Tracer, node: ast.For, items: Sequence[object]) -> None:
    """Trace the body once for each item."""
    for item in items:
        if t.returned is None:
            bind_target(t, node.target, item, node.iter)
            t.execute(node.body, read_in(node.body))


def _counted(t: Tracer, node: ast.For, call: ast.Call) -> None:
    """Trace a loop that counts when the kernel runs."""
    if not isinstance(node.target, ast.Name):
        help = "`for i in range(...)`"
        raise t.error(UnsupportedFeatureError, node.target, "a loop counts with one variable", help=help)
    bounds = _bounds(t, call)
    target = node.target.id
    inside = read_in(node.body) | t.unseen
    carried = Carried.of(t, node, inside, own=target)
    while True:
        variable = _variable(t, node.target, bounds[0])
        arguments = carried.enter(carried.before)
        with t.writer.region((variable, *arguments)) as region:
            t.let(target, variable, node.target)
            carried.trace(inside)
        if carried.is_settled():
            break
    kept = carried.finish([region])
    region.arguments = (variable, *(arguments[place] for place in kept))
    clauses = (Clause("iter_args", carried.inits, t.span(node)),) if kept else ()
    span = t.span(node.iter)
    t.writer.emit(Op("scf.for", bounds, clauses, results=carried.results, regions=(region,), span=span))
    t.names[target] = Binding(None, t.span(node.target), *ended(target))


def _variable(t: Tracer, target: ast.Name, start: Value) -> Value:
    variable = Value(t.writer.fresh(target.id), INDEX, t.span(target))
    if start in t.writer.never_negative:
        t.writer.never_negative.add(variable)
    return variable


def _bounds(t: Tracer, call: ast.Call) -> tuple[Value, Value, Value]:
    if call.keywords or not 1 <= len(call.args) <= 3 or any(isinstance(arg, ast.Starred) for arg in call.args):
        help = "range(stop), range(start, stop) or range(start, stop, step)"
        raise t.error(OperandError, call, "range takes one to three numbers", help=help)
    values = [t.evaluate(arg) for arg in call.args]
    if len(values) == 3 and isinstance(values[2], int) and values[2] <= 0:
        help = "count up, and compute the number you mean from the loop variable"
        raise t.error(UnsupportedFeatureError, call.args[2], "loops count upwards", help=help)
    numbers = [as_index(t, value, arg) for value, arg in zip(values, call.args, strict=True)]
    if len(numbers) == 1:
        numbers.insert(0, as_index(t, 0, call))
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else as_index(t, 1, call)


def repeat(t: Tracer, node: ast.While) -> None:
    """Trace a `while`."""
    check_else(t, node)
    if breaks(node):
        node = asking(node)
    if flag := asked(node):
        t.let(flag, True, node)
    node = joined(node)
    inside = read_in([node.test, *node.body]) | t.unseen
    carried = Carried.of(t, node, inside)
    while True:
        tested = carried.enter(carried.before)
        with t.writer.region(tested) as before:
            test = condition(t, node.test)
        if test is False and not tested:
            return carried.abandon()
        arguments = carried.enter(t.names)
        with t.writer.region(arguments) as after:
            carried.trace(inside)
        if carried.is_settled():
            break
    if not isinstance(test, Value):
        help = "let the condition depend on something that the body changes"
        raise t.error(UnsupportedFeatureError, node.test, "this loop never ends", help=help)
    kept = carried.finish([before, after], tested, test)
    before.arguments, after.arguments = (tuple(args[place] for place in kept) for args in (tested, arguments))
    before.ops.append(Op("scf.condition", (test, *before.arguments), span=t.span(node.test)))
    regions = (before, after)
    t.writer.emit(Op("scf.while", carried.inits, results=carried.results, regions=regions, span=t.span(node)))
