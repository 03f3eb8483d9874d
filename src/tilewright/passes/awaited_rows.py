"""Awaited rows: a function that reads a window's rows step by step begins with those that are here.

    for block in pl.range(8):
        y = pl.store(pl.matmul(pl.load(gathered, [block * 64, 0], [64, 64]), right), [block * 64, 0], y)

becomes a loop whose turns begin elsewhere and go around, and each waits for its rows. Nothing that a turn does may
depend on those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilewright.core.access import Access
from tilewright.core.build import scalar
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, ConstInt, Invoke, Submit, Var, integer
from tilewright.core.op import Effect
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.core.visitor import expressions, statements
from tilewright.dtypes import INT64
from tilewright.passes import ssa
from tilewright.passes.aliases import Aliases, Footprints
from tilewright.passes.row_loops import STORE, calls, is_write_of, loaded_rows, names, row_loops, stored_rows
from tilewright.records import record


@record
class AwaitedRows:
    """A function that waits for rows, with a window of signals and the first step to take behind its parameters."""

    function: Function
    rows: int
    """How many rows each step reads, those of all steps one behind the other."""
    steps: int


def awaited_rows(
    program: Program, name: str, position: int, wait: Callable[[int], Function | None]
) -> AwaitedRows | None:
    """Return a function that waits before each step of a loop which reads all that it does of a parameter.

    `wait` says how, for so many steps, by a function of the signals and a step. None where it says nothing, where rows
    are not read in their order, or where turns cannot come in another one.
    """
    program = ssa.run(program)
    function, aliases = program[name], Footprints(program).aliases(name)
    for loop in row_loops(function):
        rows = _rows(function, loop, function.params[position], aliases)
        assert isinstance(loop.stop, ConstInt)
        steps = int(loop.stop.value)
        if rows is not None and _is_free(function, loop, aliases) and (waiting := wait(steps)) is not None:
            return AwaitedRows(_waiting(function, loop, waiting), rows, steps)
    return None


def _rows(function: Function, loop: ForStmt, param: Var, aliases: Aliases) -> int | None:
    """Return how many rows of a window each turn of a loop reads, all that its function does with it."""

    def touches(body: SeqStmts) -> int:
        return sum(param in owners for _, owners in aliases.accesses(body))

    made = _made(loop)
    loads = [call for call in calls(loop.body) if loaded_rows(call, loop, made, param) is not None]
    if not loads or not len(loads) == touches(loop.body) == touches(function.body):
        return None
    rows = {loaded_rows(call, loop, made, param) for call in loads}
    return rows.pop() if len(rows) == 1 else None


def _made(loop: ForStmt) -> Mapping[Var, Call]:
    assigned = (s for s in statements(loop.body) if isinstance(s, AssignStmt))
    return {s.var: s.value for s in assigned if isinstance(s.value, Call)}


def _is_free(function: Function, loop: ForStmt, aliases: Aliases) -> bool:
    """Return whether turns do nothing but to store rows of their own, of tensors that no turn reads."""
    if any(isinstance(e, (Invoke, Submit)) for s in statements(loop.body) for e in expressions(s)):
        return False
    if not all(isinstance(arg.var.type, TensorType) for arg in loop.iter_args):
        return False
    found = [*calls(loop.body)]
    if any(call.op.spec.effect not in (Effect.PURE, Effect.READ) and call.op.name != STORE for call in found):
        return False
    written = {param for param in function.params for call in found if is_write_of(call, param, aliases)}
    owners = [each for access, each in aliases.accesses(loop.body) if access is not Access.WRITE]
    made = _made(loop)
    return all(_is_stored_by_rows(function, loop, param, made, aliases) for param in written) and not any(
        each & written for each in owners
    )


def _is_stored_by_rows(
    function: Function, loop: ForStmt, param: Var, made: Mapping[Var, Call], aliases: Aliases
) -> bool:
    same = {param, *names(function, param)}
    stores = [call for call in calls(loop.body) if is_write_of(call, param, aliases)]
    return all(stored_rows(call, loop, made, same) is not None for call in stores)


class _Waiting(Rewriter):
    """Has the turns of one loop begin elsewhere, and with what waits for their rows."""

    def __init__(self, loop: ForStmt, first: Var, waiting: Function, signals: Var) -> None:
        super().__init__()
        self._loop = loop
        self._first = first
        self._waiting = waiting
        self._signals = signals

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a counted loop."""
        if stmt is not self._loop:
            return super().for_loop(stmt)
        assert isinstance(stmt.stop, ConstInt)
        old, steps = stmt.loop_var, int(stmt.stop.value)
        turn = Var("turn", old.type, bounds=(0, steps - 1))
        value = scalar("mod", scalar("add", turn, self._first), integer(steps))
        step = Var(old.name_hint, value.type, old.span, (0, steps - 1))
        signals, given = self._waiting.params
        waits = Rewriter(replaced={signals: self._signals, given: step}, fresh=True).body(self._waiting.body)
        body = Rewriter(replaced={old: step}).body(stmt.body)
        stmts = (AssignStmt(step, value), *waits.stmts, *body.stmts)
        return (replace(stmt, loop_var=turn, body=SeqStmts(stmts)),)


def _waiting(function: Function, loop: ForStmt, waiting: Function) -> Function:
    """Return a function with two more parameters: what it waits by, and the step that it begins with."""
    given, _ = waiting.params
    signals, first = Var(given.name_hint, given.type), Var("first", ScalarType(INT64))
    made = function.with_body(_Waiting(loop, first, waiting, signals).body(function.body))
    directions = (*made.param_directions, ParamDirection.InOut, ParamDirection.In)
    return replace(made, params=(*made.params, signals, first), param_directions=directions)
