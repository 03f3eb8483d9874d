"""The body: statements of a program as lines of PTO text, kernels written out where they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilewright import dtypes as dt
from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import ScalarType, TupleType
from tilewright.core.visitor import evaluated
from tilewright.dtypes import TASK_ID
from tilewright.ops.convert import round_mode
from tilewright.passes.aliases import Footprints
from tilewright.passes.groups import Sides, sides_of
from tilewright.programs.pto_text import (
    arrays,
    cells,
    choices,
    copies,
    draws,
    elements,
    extremes,
    folds,
    indexed,
    lanes,
    lone_products,
    memory,
    ops,
    order,
    partial,
    parts,
    pipes,
    printing,
    products,
    ranked,
    rearranged,
    scans,
    shapes,
    singly,
    sorts,
    views,
)
from tilewright.programs.pto_text.chosen_tensors import ChosenTensors
from tilewright.programs.pto_text.exits import exits
from tilewright.programs.pto_text.handover import Frame
from tilewright.programs.pto_text.ops import rounded
from tilewright.programs.pto_text.pipes import KINDS, is_balanced, pipes_of, section
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.sums import uses
from tilewright.programs.pto_text.values import NoPtoError, Number, Tensor, Value
from tilewright.programs.pto_text.writer import Writer
from tilewright.programs.pto_text.writing import written
from tilewright.source import UNKNOWN

DONE = 0
"""The id of each task: those before it have ended where another one begins."""
WRITERS = (
    arrays, cells, choices, copies, draws, elements, extremes, folds, indexed, lanes, lone_products, memory, ops, order,
    partial, parts, pipes, printing, products, ranked, rearranged, scans, shapes, singly, sorts, views,
)  # fmt: skip
"""The modules whose functions say ops."""


def _each(made: Any) -> tuple[Any, ...]:
    """Return what a call gives, one or several."""
    return cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)


def _is_tuple(task: Submit) -> bool:
    """Return whether a task gives its id beside its results."""
    return isinstance(task.type, TupleType)


class Body(ChosenTensors):
    """The statements of one program on their way to text."""

    def __init__(self, program: Program, writer: Writer) -> None:
        super().__init__(writer, uses(program.functions.values()))
        self.program, self.footprints = program, Footprints(program)
        self.groups, self.sides = sides_of(program), cast("Sides | None", None)
        """The functions whose calls meet in pipes, and those calls of the one that is being written."""
        self.symbols: dict[str, Number] = {}
        """The extents that only a call knows."""

    def write(self, body: SeqStmts) -> None:
        """Write statements; NoPtoError, with its line, for what PTO text cannot say."""
        for number, stmt in enumerate(body):
            outer, span = self.w.span, getattr(stmt, "span", UNKNOWN)
            self.w.span = span if span.is_known else outer
            try:
                if self.leaves(stmt, [*body][number + 1 :]):
                    return
                if not self.chooses(stmt):
                    self.stmt(stmt)
            except NoPtoError as error:
                error.locate([self.w.span])
                raise
            self.w.span = outer

    def stmt(self, stmt: Stmt) -> None:
        """Write one statement."""
        match stmt:
            case AssignStmt() | EvalStmt() if self.sides is not None and self.sides.has(stmt):
                self._side(stmt)
            case AssignStmt() if stmt.var in self.rooms:
                given = arguments(cast("Call", stmt.value))
                value = self.value(given.get("init_value", given.get("value")))
                self.values[stmt.var] = memory.filled_with(self.w, self.rooms[stmt.var], value)
            case AssignStmt():
                self.w.is_wanted = self.uses.get(stmt.var, 0) > 0
                made = self.value(stmt.value)
                if made is not None:
                    self.values[stmt.var] = made
            case EvalStmt():
                self.w.is_wanted = False
                self.value(stmt.expr)
            case ForStmt():
                self.loop(stmt, self.number(stmt.start), self.number(stmt.step))
            case WhileStmt():
                self.repeat(stmt)
            case IfStmt():
                self.branch(stmt)
            case YieldStmt():
                self.hand_on([self.value(value) for value in stmt.values])
            case BreakStmt() | ContinueStmt() | ReturnStmt():
                self.leave(stmt)
            case _:
                kind = type(stmt).__name__.removesuffix("Stmt").lower()
                raise NoPtoError(f"this export has no words for a {kind} statement")

    def value(self, expr: Any) -> Any:
        """Return an operand as a value of the text; what is none, as it is."""
        match expr:
            case Var():
                if expr not in self.values:
                    raise NoPtoError("PTO text does not say what was there before")
                return self.values[expr]
            case Symbol():
                if expr.name not in self.symbols:
                    raise NoPtoError(f"this export does not know the extent `{expr.name}` here")
                return self.symbols[expr.name]
            case Const():
                return self.w.constant(expr.value, expr.dtype)
            case MakeTuple():
                return [converted(self.w, self.number(each), dt.INDEX) for each in expr.elements]
            case Call() if isinstance(expr.type, ScalarType) and expr.op.kind is Kind.SCALAR:
                if expr.op.spec.name == "cast":
                    mode = cast("str | int", arguments(expr)["mode"])
                    return rounded(self.w, self.number(expr.args[0]), expr.type.dtype, round_mode(mode).name)
                return computed(self.w, expr.op.spec.name, [self.number(arg) for arg in expr.args], expr.type.dtype)
            case Call():
                return written(self.w, expr, self.value)
            case Invoke():
                return self._inlined(self.program[expr.op.name], [self.value(arg) for arg in expr.args])
            case Submit():
                made = self._submitted(expr, [self.value(arg) for arg in expr.args])
                if not _is_tuple(expr):
                    return made
                return (*(made if isinstance(made, tuple) else (made,)), self.w.constant(DONE, TASK_ID))
            case TupleGetItem():
                return self.value(expr.value)[expr.index]
            case Absent():
                return None
            case Expr():
                raise NoPtoError(f"this export has no words for a {type(expr).__name__.lower()} here")
            case _:
                return expr

    def number(self, expr: Expr) -> Number:
        """Return an operand that is a number."""
        value = self.value(expr)
        if not isinstance(value, Number):
            raise NoPtoError("this export has no words for a number here")
        return value

    def _inlined(self, function: Function, values: Sequence[Value]) -> Value | tuple[Value, ...] | None:
        """Write a kernel out where it is called; return what it returns, one or several of its outputs."""
        self.values.update(zip(function.params, values, strict=True))
        outer, self.symbols = self.symbols, dict(self.symbols)
        for name in function.solutions:
            self.symbols.pop(name, None)  # a kernel's own, which only a formula of its parameters tells
        for name, (place, axis) in function.symbols.items():
            given = values[place]
            assert isinstance(given, Tensor)
            self.symbols[name] = given.shape[axis]
        around, self.sides = self.sides, self.groups.get(function.name)
        beside, self.aliases = self.aliases, self.footprints.aliases(function.name)
        self._begin_group(function)
        self.frames.append(Frame())
        rooms, self.rooms = self.rooms, {}
        self.write(function.body)
        self.rooms = rooms
        self.frames.pop()
        self.sides, self.aliases = around, beside
        results = self._results(function)
        self.symbols = outer
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, function: Function) -> list[Any]:
        """Return what a function gives, whichever way it ends."""
        returned = [stmt for stmt in exits(function.body) if isinstance(stmt, ReturnStmt) and stmt.values]
        results: list[list[Any]] = [[self.value(value) for value in stmt.values] for stmt in returned]
        if any(each != results[0] for each in results):
            message = f"`{function.name}` returns other values from inside than at its end"
            raise NoPtoError(message, help="return the same tensors everywhere, and store what they are to hold")
        return results[0] if results else [None]

    def _begin_group(self, function: Function) -> None:
        """Learn which pipes the sides of a function meet in, if they do."""
        if self.sides is None:
            return
        if self.w.pipes or self.w.loops:
            where = "in a loop" if self.w.loops else "after another one"
            message = f"this export has no words for the group `{function.name}` {where}"
            raise NoPtoError(message, help="let the entry run one group, once")
        if self.w.turns.known != 1 and not is_balanced(self.program, self.sides):
            message = f"the sides of `{function.name}` may leave tiles in a pipe, which the next block would take"
            raise NoPtoError(message, help="let each side take, in loops of known turns, what the other one pushes")
        self.w.pipes, self.w.lanes = pipes_of(self.program, self.sides), self.sides.lanes

    def _side(self, stmt: AssignStmt | EvalStmt) -> None:
        """Write a call that runs beside others, as the part of the entry that its core runs."""
        call, self.sides, sides = evaluated(stmt), None, self.sides
        assert isinstance(call, Invoke)
        function = self.program[call.op.name]
        with section(self.w, KINDS[function.func_type], self.w.pipes, self.w.entry):
            made = self.value(call)
        for each in _each(made):
            if not isinstance(each, Tensor | None):
                message = f"`{function.name}` gives a value beside tensors, which the other core would not have"
                raise NoPtoError(message, help="store it")
        if isinstance(stmt, AssignStmt):
            self.values[stmt.var] = made
        self.sides = sides

    def _submitted(self, task: Submit, values: Sequence[Value]) -> Value | tuple[Value, ...] | None:
        """Write a task: where its predicate holds, and once for each block that it runs on."""
        function = self.program[task.op.name]
        if task.predicate is not None:
            with self.w.block(f"scf.if {self.number(task.predicate).name}"):
                return self._blocks(task, function, values)
        return self._blocks(task, function, values)

    def _blocks(self, task: Submit, function: Function, values: Sequence[Value]) -> Value | tuple[Value, ...] | None:
        if task.core_num is None:
            return self._inlined(function, values)
        count, outer = self.number(task.core_num), (self.w.turn, self.w.turns)
        self.w.turn, self.w.turns = Number(self.w.name("block"), dt.INDEX), count
        ends = f"{self.w.turn.name} = {self.w.constant(0).name} to {count.name} step {self.w.constant(1).name}"
        with self.w.block(f"scf.for {ends}"):
            self.w.loops -= 1  # blocks know nothing of each other
            given = self._inlined(function, values)
            self.w.loops += 1
        self.w.turn, self.w.turns = outer
        return given
