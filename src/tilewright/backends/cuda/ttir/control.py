"""Control flow: loops and branches of a kernel, and the ways out of them.

Regions of Triton IR have one end. So what follows a branch that may leave its loop, or its function, is written into
the branches that go on; and a loop that may be left hands on whether it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from tilewright.backends.cuda.schedule import SPECIALIZED
from tilewright.backends.cuda.ttir import carried, extents
from tilewright.backends.cuda.ttir.carried import Handed
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import refused, statement
from tilewright.backends.cuda.ttir.text import I1, I64, Value
from tilewright.backends.cuda.ttir.values import Binding, Extent, Tensor
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.program import Function
from tilewright.core.stmt import (
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    LoopStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TensorType, Type
from tilewright.core.visitor import expressions, statements
from tilewright.passes.exits import ends_early, leaves, returns, returns_early
from tilewright.records import record
from tilewright.source import Span

Exit: TypeAlias = "YieldStmt | BreakStmt | ContinueStmt | ReturnStmt | None"
"""How a path through statements ends; None where it runs off their end."""

Write: TypeAlias = "Callable[[], list[Value]]"

GONE = ReturnStmt()
"""The end of a path behind a loop in which the function has returned."""

LEFT, RETURNED = -1, -2
"""Stand for the next turn of a loop that has none: it was left, or the function returned in it."""

HIDDEN = "mov.b64 $0, $1;"
"""Hands a number on, which Triton then does not know: where a loop has no turns, it fails over what is in them."""

LEAVE = "bind it in the loop, leave that with `break`, and return it behind"
COPIES = 64
"""How often what follows branches is written at most."""


@record
class Way:
    """What the paths through some statements lead to: the types of what they hand on, and what writes it."""

    types: Sequence[Value]
    end: Callable[[Exit], list[Value]]
    copies: int = 1


@statement(ReturnStmt)
@statement(YieldStmt)
def _given(k: Kernel, stmt: ReturnStmt | YieldStmt) -> tuple[Binding, ...]:
    return tuple(k.value(value) for value in stmt.values)


@statement(Function)
def _function(k: Kernel, function: Function) -> tuple[Binding, ...]:
    """Write a function's body; return its results, which tensors are not computed for, whichever return is taken."""
    types: Sequence[Type] = function.return_types
    places = [Var("result", type_) for type_ in types if not isinstance(type_, TensorType)]
    tensors: list[list[Tensor]] = []

    def end(exit: Exit) -> list[Value]:
        if exit is GONE or not isinstance(exit, ReturnStmt):
            return _nothing_computed(places, function.span)
        found = [k.value(value) for value in exit.values]
        tensors.append([each for each in found if isinstance(each, Tensor)])
        if any(_places(each) != _places(tensors[0]) for each in tensors):
            raise refused("returns of one tensor or another", exit.span, "write to one of them, and return that")
        return carried.values(k, places, [each for each in found if not isinstance(each, Tensor)])

    if not returns_early(function.body):
        return k.body(function.body)
    outer, k.returned = k.returned, end
    given = _path(k, tuple(function.body), Way(carried.fresh(k, places), end))
    k.returned = outer
    carried.bind(k, places, given)
    made, kept = iter(places), iter(tensors[0] if tensors else ())
    return tuple(next(kept) if isinstance(type_, TensorType) else k.bindings[next(made)] for type_ in types)


def _places(tensors: Sequence[Tensor]) -> list[object]:
    return [(each.pointer, each.shape, each.strides, each.valid) for each in tensors]


def _nothing_computed(places: Sequence[Var], span: Span) -> list[Value]:
    if places:
        raise refused("a return of what a kernel computes, out of a loop", span, LEAVE)
    return []


def write_turn(k: Kernel, body: SeqStmts) -> None:
    """Write the turn of a loop that is the whole of a kernel: it hands on nothing."""
    _path(k, tuple(body), Way((), lambda exit: []))


def _path(k: Kernel, stmts: Sequence[Stmt], way: Way) -> list[Value]:
    """Write statements up to where their paths end; return what is handed on there."""
    for number, stmt in enumerate(stmts):
        if isinstance(stmt, (YieldStmt, BreakStmt, ContinueStmt, ReturnStmt)):
            k.t.span = stmt.span if stmt.span.is_known else k.t.span
            return way.end(stmt)
        if isinstance(stmt, IfStmt) and leaves(stmt):
            return _branches(k, stmt, stmts[number + 1 :], way)
        if isinstance(stmt, (ForStmt, WhileStmt)) and returns((stmt,)):
            return _unless(k, _loop(k, stmt), stmts[number + 1 :], way)
        k.body(SeqStmts((stmt,)))
    return way.end(None)


def _branches(k: Kernel, stmt: IfStmt, rest: Sequence[Stmt], way: Way) -> list[Value]:
    """Write a branch that may leave, and what follows it in each branch that goes on."""
    if way.copies > COPIES:
        help = "leave in fewer places, or call a function for some of them"
        raise refused("so many branches that leave a loop or a function, one after the other,", stmt.span, help)

    def on(exit: Exit) -> list[Value]:
        if exit is not None and not isinstance(exit, YieldStmt):
            return way.end(exit)
        values: Sequence[Expr] = () if exit is None else exit.values
        k.bindings.update(zip(stmt.return_vars, [k.value(value) for value in values], strict=True))
        return _path(k, rest, Way(way.types, way.end, 2 * way.copies))

    inside = Way(way.types, on, way.copies)
    both = [tuple(stmt.then_body), tuple(stmt.else_body or SeqStmts())]
    return _either(k, k.scalar(stmt.condition).value, way.types, [partial(_path, k, each, inside) for each in both])


def _unless(k: Kernel, gone: Value, rest: Sequence[Stmt], way: Way) -> list[Value]:
    """Write what follows a loop in which the function may have returned."""
    return _either(k, gone, way.types, [partial(way.end, GONE), partial(_path, k, rest, way)])


def _either(
    k: Kernel, condition: Value, types: Sequence[Value], write: Sequence[Callable[[], list[Value]]]
) -> list[Value]:
    """Write two branches; return what the one that is taken hands on."""
    made = [k.t.fresh(each.element, each.shape) for each in types]
    results = f" -> ({_types(made)})" if made else ""
    with k.t.block(f"{_named(made)}scf.if {condition}{results} {{"), _apart(k) as apart:
        _hand_on(k, write[0]())
        apart()
        k.t.between("} else {")
        _hand_on(k, write[1]())
    return made


@contextmanager
def _apart(k: Kernel) -> Generator[Callable[[], None], None, None]:
    """Follow what branches do to memory one by one; the function that is given begins the next one."""
    start, met = (k.read, k.written), [set(k.read), set(k.written)]

    def following() -> None:
        met[0], met[1] = met[0] | k.read, met[1] | k.written
        k.read, k.written = set(start[0]), set(start[1])

    k.read, k.written = set(start[0]), set(start[1])
    yield following
    following()
    k.read, k.written = met


@statement(IfStmt)
def _if(k: Kernel, stmt: IfStmt) -> tuple[Binding, ...]:
    handed = Handed(k, stmt.return_vars, [bool(k.missing)] * len(stmt.return_vars))
    types = handed.fresh()
    way = Way(types, lambda exit: _on(handed, exit))
    both = [partial(_path, k, tuple(body), way) for body in (stmt.then_body, stmt.else_body or SeqStmts())]
    handed.bind(stmt.return_vars, _either(k, k.scalar(stmt.condition).value, types, both))
    return ()


@statement(WhileStmt)
@statement(ForStmt)
def _loops(k: Kernel, stmt: LoopStmt) -> tuple[Binding, ...]:
    _loop(k, stmt)
    return ()


def _loop(k: Kernel, stmt: LoopStmt) -> Value:
    """Write a loop; return whether the function returned in it."""
    never = k.t.constant("false", I1)
    if isinstance(stmt, ForStmt) and not ends_early(stmt):
        _counted(k, stmt)
        return never
    return _left(k, stmt)


def _ends(k: Kernel, stmt: ForStmt) -> tuple[Extent, Extent, Extent]:
    start, stop, step = (k.index(k.scalar(expr)) for expr in (stmt.start, stmt.stop, stmt.step))
    return start, stop, step


def _counted(k: Kernel, stmt: ForStmt) -> None:
    """Write a loop that makes all its turns; one that counts down, or by what only the running kernel knows, too."""
    start, stop, step = _ends(k, stmt)
    is_plain = isinstance(step, int) and step > 0
    ends = (start, stop, step) if is_plain else (0, turns(k, start, stop, step, stmt.span), 1)
    low, high, by = (extents.held(k.t, end) for end in ends)
    handed, index = Handed.around(k, stmt.iter_args), k.t.fresh(I64)
    starts = handed.values([arg.init for arg in stmt.iter_args])
    inside, outside = handed.fresh(), handed.fresh()
    pairs = ", ".join(f"{now} = {first}" for now, first in zip(inside, starts, strict=True))
    carries = f" iter_args({pairs}) -> ({_types(inside)})" if inside else ""
    before = len(k.facts.products)
    head = f"{_named(outside)}scf.for {index} = {low} to {high} step {by}{carries} : i64 {{"
    with k.t.block(head) as tail, _turn(k, stmt):
        turn: Extent = index if is_plain else extents.plus(k.t, start, extents.times(k.t, index, step))
        k.bindings[stmt.loop_var] = k.counted(turn)
        handed.bind(handed.vars, inside)
        _hand_on(k, _path(k, tuple(stmt.body), Way(inside, lambda exit: _on(handed, exit))))
        if len(k.facts.products) > before:
            tail.described = SPECIALIZED
    handed.bind(stmt.return_vars, outside)


def _on(handed: Handed, exit: Exit) -> list[Value]:
    return handed.values(exit.values) if exit is not None and handed.vars else []


@contextmanager
def _turn(k: Kernel, stmt: LoopStmt) -> Generator[None, None, None]:
    """Follow what the turns of a loop do to memory, of which each begins after the one before it."""
    touched = k.read, k.written
    k.read, k.written = set(k.read), set(k.written)
    if _stores(stmt.body):
        k.barrier()
    yield
    k.read, k.written = k.read | touched[0], k.written | touched[1]


def turns(k: Kernel, start: Extent, stop: Extent, step: Extent, span: Span) -> Extent:
    """Return how many turns a loop has; a step of zero is an error and means none."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step:
        return max(-((start - stop) // step), 0)
    t, zero = k.t, k.t.integer(0)
    by, distance = extents.held(t, step), extents.held(t, extents.minus(t, stop, start))
    is_zero = t.compare("cmpi eq", by, zero)
    k.fail(is_zero, "a loop's step cannot be zero", span)
    count = t.simple("arith.ceildivsi", distance, t.select(is_zero, t.integer(1), by))
    return t.select(is_zero, zero, t.simple("arith.maxsi", count, zero))


def _left(k: Kernel, stmt: LoopStmt) -> Value:
    """Write a loop that carries which turn is next, LEFT or RETURNED; return whether the function returned in it.

    Whether there is a next turn is found at the end of each: a loop that hands its turns fewer values than it looks at
    is more than Triton's layouts follow.
    """
    t, handed = k.t, Handed.around(k, stmt.iter_args)
    start: Extent = 0
    step: Extent = 1
    count: Extent = 0
    if isinstance(stmt, ForStmt):
        start, stop, step = _ends(k, stmt)
        count = turns(k, start, stop, step, stmt.span)
    begun = handed.values([arg.init for arg in stmt.iter_args])
    first = _next(k, stmt, handed, begun, t.integer(0), count)
    starts = [t.machine(HIDDEN, first, registers="=l,l"), *begun]
    looked, inside, outside = ([t.fresh(each.element, each.shape) for each in starts] for _ in range(3))
    pairs = ", ".join(f"{now} = {first}" for now, first in zip(looked, starts, strict=True))
    types = _types(looked)

    def end(exit: Exit) -> list[Value]:
        if isinstance(exit, ReturnStmt):
            if exit is not GONE and k.returned(exit):
                raise refused("a return of what a kernel computes, out of a loop", stmt.span, LEAVE)
            return [t.integer(RETURNED), *inside[1:]]
        given = _on(handed, exit)
        if isinstance(exit, BreakStmt):
            return [t.integer(LEFT), *given]
        return [_next(k, stmt, handed, given, t.simple("arith.addi", inside[0], t.integer(1)), count), *given]

    with t.block(f"{_named(outside)}scf.while ({pairs}) : ({types}) -> ({types}) {{"), _turn(k, stmt):
        more = t.compare("cmpi sge", looked[0], t.integer(0))
        t.do(f"scf.condition({more}) {', '.join(map(str, looked))} : {types}")
        t.between("} do {")
        t.between(f"^bb0({', '.join(f'{each}: {each.type}' for each in inside)}):")
        if isinstance(stmt, ForStmt):
            k.bindings[stmt.loop_var] = k.counted(extents.plus(t, start, extents.times(t, inside[0], step)))
        handed.bind(handed.vars, inside[1:])
        _hand_on(k, _path(k, tuple(stmt.body), Way(inside, end)))
    handed.bind(stmt.return_vars, outside[1:])
    return t.compare("cmpi eq", outside[0], t.integer(RETURNED))


def _next(k: Kernel, stmt: LoopStmt, handed: Handed, given: Sequence[Value], turn: Value, count: Extent) -> Value:
    """Return a turn of a loop if there is one, and LEFT if not, with what it would be handed."""
    kept = k.bindings, k.missing
    k.bindings, k.missing = dict(k.bindings), dict(k.missing)
    handed.bind(handed.vars, given)
    if isinstance(stmt, WhileStmt):
        more = k.scalar(stmt.condition).value
    else:
        more = k.t.compare("cmpi slt", turn, extents.held(k.t, count))
    k.bindings, k.missing = kept
    return k.t.select(more, turn, k.t.integer(LEFT))


def _hand_on(k: Kernel, found: Sequence[Value]) -> None:
    if found:
        k.t.do(f"scf.yield {', '.join(map(str, found))} : {_types(found)}")


def _named(values: Sequence[Value]) -> str:
    return f"{', '.join(map(str, values))} = " if values else ""


def _types(values: Sequence[Value]) -> str:
    return ", ".join(value.type for value in values)


def _stores(body: SeqStmts) -> bool:
    """Return whether statements may write to memory."""
    found = (expr for stmt in statements(body) for expr in expressions(stmt))
    return any(
        isinstance(expr, (Invoke, Submit))
        or (isinstance(expr, Call) and bool(expr.op.spec.writes) and isinstance(expr.type, TensorType))
        for expr in found
    )
