"""Aliases: who may share memory with whom, and what functions do to the tensors they are given.

A tensor lies in the memory of its owners: parameters, and variables bound to what makes a buffer. Views and writes lie
where their operand does; loops, branches and calls hand memory on. Whoever asks names no back end: dead code, outlined
kernels, callers from outside and emitted code all ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.access import Access
from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType, ParamDirection
from tilewright.core.expr import Call, Expr, Invoke, MakeTuple, Submit, TupleGetItem, Var
from tilewright.core.op import Effect
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, WhileStmt
from tilewright.core.types import TensorType, TupleType
from tilewright.core.visitor import expressions, statements
from tilewright.forks import computed_once
from tilewright.passes.flow import Flow
from tilewright.records import record

Owners: TypeAlias = frozenset[Var]
Positions: TypeAlias = frozenset[int]
"""Of parameters, in their function."""

NOBODY: Owners = frozenset()


@record
class Footprint:
    """What a function does to its parameters: which it reads, writes and adds to, and which its results may be."""

    reads: Positions = frozenset()
    writes: Positions = frozenset()
    adds: Positions = frozenset()
    gives: Positions = frozenset()


class Aliases(Flow):
    """The memory that each tensor of a function may lie in.

    Functions without a footprint do everything to what they are given.
    """

    def __init__(self, body: SeqStmts, footprints: Mapping[str, Footprint] | None = None) -> None:
        self.body = body
        self.footprints = footprints or {}
        super().__init__(body)

    def owners(self, expr: Expr) -> Owners:
        """Return whose memory the tensors of an expression may lie in."""
        return frozenset(v for v in self.values(expr) if isinstance(v, Var)) if _holds_tensors(expr) else NOBODY

    def follows(self, var: Var) -> bool:
        """Only tensors lie in memory."""
        return _holds_tensors(var)

    def handed_on(self, expr: Expr) -> Sequence[Expr] | None:
        """Return the operand whose memory an expression's is; a call makes a buffer or gives back arguments."""
        match expr:
            case Call():
                given = arguments(expr)[expr.op.spec.alias] if expr.op.spec.alias else None
                return (given,) if isinstance(given, Expr) else None
            case Invoke() | Submit():
                gives = self.footprint(expr).gives
                return tuple(expr.args[p] for p in gives if _holds_tensors(expr.args[p])) or None
            case MakeTuple():
                return [element for element in expr.elements if _holds_tensors(element)]
            case TupleGetItem():
                return (expr.value,)
            case _:
                return None

    def footprint(self, call: Invoke | Submit) -> Footprint:
        """Return what a call does to its arguments."""
        every = frozenset(range(len(call.args)))
        return self.footprints.get(call.op.name) or Footprint(every, every, frozenset(), every)

    @computed_once
    def made(self) -> Mapping[Var, Call]:
        """The variables bound to new buffers, with the calls that make them."""
        assigned = ((stmt.var, stmt.value) for stmt in statements(self.body) if isinstance(stmt, AssignStmt))
        return {v: c for v, c in assigned if isinstance(c, Call) and c.op.spec.effect is Effect.ALLOCATE}

    @computed_once
    def _local(self) -> frozenset[int]:
        leaving = NOBODY
        for stmt in statements(self.body):
            if isinstance(stmt, ReturnStmt):
                leaving = leaving.union(*map(self.owners, stmt.values))
            elif isinstance(stmt, (ForStmt, WhileStmt, IfStmt)):
                leaving = leaving.union(*map(self.owners, stmt.return_vars))
        # copies of a statement share its call: all of their buffers have to stay
        kept = {id(call) for var, call in self.made.items() if var in leaving}
        return frozenset(id(call) for call in self.made.values()) - kept

    def is_local(self, call: Call) -> bool:
        """Return whether the buffer a call makes is gone when the statements around it end."""
        return id(call) in self._local

    def classes(self, shared: Sequence[tuple[Var, Var]] = ()) -> Mapping[Var, Var]:
        """Return a variable that stands for each tensor's class; tensors of different classes never share memory.

        A parameter is in a class of its own, unless `shared` says that a caller passes one buffer twice.
        """
        parents: dict[Var, Var] = {}

        def top(var: Var) -> Var:
            while var in parents:
                var = parents[var]
            return var

        joined = ((var, other) for var in self.known for other in self.owners(var))
        for var, other in (*joined, *shared):
            if (a := top(var)) is not (b := top(other)):
                parents[a] = b
        return {var: top(var) for var in parents}

    def accesses(self, body: SeqStmts | None = None) -> Iterator[tuple[Access, Owners]]:
        """Yield what the statements of a body, or of the function, do to whose memory."""
        for stmt in statements(self.body if body is None else body):
            for expr in expressions(stmt):
                if isinstance(expr, (Invoke, Submit)):
                    yield from self._called(expr)
                elif isinstance(expr, Call):
                    yield from self._operation(expr)

    def _called(self, call: Invoke | Submit) -> Iterator[tuple[Access, Owners]]:
        found = self.footprint(call)
        for access, positions in zip(Access, (found.reads, found.writes, found.adds), strict=True):
            for position in positions:
                yield access, self.owners(call.args[position])

    def _operation(self, call: Call) -> Iterator[tuple[Access, Owners]]:
        """A write reads what else it is given, and its target too where it adds to it; a view reads nothing."""
        spec = call.op.spec
        if (spec.alias is not None and spec.writes is None) or not any(map(_holds_tensors, call.args)):
            return
        given = arguments(call)
        target = given[spec.writes] if spec.writes is not None else None
        if isinstance(target, Expr):
            yield Access.WRITE, self.owners(target)
            if spec.is_atomic or given.get("atomic") is AtomicType.Add:
                yield Access.ADD, self.owners(target)
        sources = [arg for arg in call.args if arg is not target]
        if target is not None and len(call.args) - len(sources) > 1:
            sources.append(target) if isinstance(target, Expr) else None
        for source in sources:
            yield Access.READ, self.owners(source)


def _holds_tensors(expr: Expr) -> bool:
    return isinstance(expr.type, (TensorType, TupleType))


class Footprints(Mapping[str, Footprint]):
    """What every function of a program does to its parameters, and the aliases inside each."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found: dict[str, Footprint] = {}
        self._aliases: dict[str, Aliases] = {}

    def __getitem__(self, name: str) -> Footprint:
        if name not in self._found:
            function = self._program[name]
            own = _stated(function) if function.is_sub_worker else footprint(function.params, self.aliases(name))
            self._found[name] = own
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.function_names)

    def __len__(self) -> int:
        return len(self._program.function_list)

    def aliases(self, name: str) -> Aliases:
        """Return the aliases of a function, its calls known."""
        if name not in self._aliases:
            self._aliases[name] = Aliases(self._program[name].body, self)
        return self._aliases[name]


def _stated(function: Function) -> Footprint:
    """Return what a function that Python runs says that it does."""
    says = list(enumerate(function.param_directions))
    reads = frozenset(k for k, direction in says if direction is not ParamDirection.Out)
    return Footprint(reads, frozenset(k for k, direction in says if direction is not ParamDirection.In))


def footprint(params: Sequence[Var], aliases: Aliases) -> Footprint:
    """Return what a body does to the parameters around it."""
    touched: dict[Access, Owners] = dict.fromkeys(Access, NOBODY)
    for access, owners in aliases.accesses():
        touched[access] |= owners
    returns = [stmt for stmt in statements(aliases.body) if isinstance(stmt, ReturnStmt)]
    given = NOBODY.union(*(aliases.owners(value) for stmt in returns for value in stmt.values))

    def positions(owners: Owners) -> Positions:
        return frozenset(i for i, param in enumerate(params) if param in owners)

    return Footprint(*(positions(touched[access]) for access in Access), gives=positions(given))


def directions(params: Sequence[Var], body: SeqStmts) -> tuple[ParamDirection, ...]:
    """Return how a body uses what it is given, through views too; what other functions do with it counts as both."""
    found = footprint(params, Aliases(body))
    used = {(True, False): ParamDirection.Out, (True, True): ParamDirection.InOut}
    keys = [(i in found.writes, i in found.reads or i in found.adds) for i in range(len(params))]
    return tuple(used.get(key, ParamDirection.In) for key in keys)


def actual_directions(program: Program, entry: Function) -> tuple[ParamDirection, ...]:
    """Return a function's directions as it declares them, with what it writes undeclared as `InOut`.

    A parameter without a direction may be written all the same, by the function itself or by one that it calls. Whoever
    calls from outside has to know: their array may be read-only, or overlap another.
    """
    written = Footprints(program)[entry.name].writes
    return tuple(
        ParamDirection.InOut if declared is ParamDirection.In and position in written else declared
        for position, declared in enumerate(entry.param_directions)
    )
