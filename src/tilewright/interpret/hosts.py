"""Host functions as they run: once, to tell what every rank is to do, and which ranks share which windows.

A host function computes nothing. It lays out buffers and dispatches, so running it gives a plan: the dispatches of each
rank in order, with collectives between them. The domain of a buffer is the ranks that its windows are dispatched to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from tilewright.core.enums import Level, ParamDirection
from tilewright.core.expr import Call, Const, Invoke, Var
from tilewright.core.program import Function, Program
from tilewright.core.region import Array, Region
from tilewright.core.visitor import invocations
from tilewright.core.world import WORLD, Membership
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError
from tilewright.interpret.dependences import By, Dependences
from tilewright.interpret.evaluator import Frame, Value
from tilewright.interpret.machine import Machine
from tilewright.interpret.rows import Given, check_row, check_rows
from tilewright.interpret.shadow import reach
from tilewright.interpret.skipped import results_of
from tilewright.ops.collectives import check_domain
from tilewright.ops.window_buffers import nbytes
from tilewright.passes import control_plane
from tilewright.passes.aliases import Footprint, Footprints
from tilewright.records import entity, mutable, record
from tilewright.source import UNKNOWN, Span

SLICE, READ, CREATE, NARROW = "tensor.slice", "tensor.read", "tensor.create", control_plane.NARROW
"""What takes a row of a tensor, looks at an element of one, makes one, and says how much of one is valid."""
NOT_HERE = "a host function lays out windows and dispatches: this is for the functions that it dispatches"


@entity
class WindowBuffer:
    """Memory of one size on every rank of a domain."""

    size: int
    ranks: set[int] = field(default_factory=set[int])
    """The domain: whom its windows are dispatched to."""

    def window(self, shape: tuple[int, ...], dtype: DataType) -> Window:
        """Return a window of it; ExecutionError where that is larger."""
        needed = nbytes(shape, dtype)
        if needed > self.size:
            message = f"a window of {list(shape)} {dtype} takes {needed} bytes, and the buffer has {self.size}"
            raise ExecutionError(message, help="make the buffer as large as its largest window")
        return Window(self, shape, dtype)

    @property
    def domain(self) -> tuple[int, ...]:
        """The ranks that have it, in order."""
        return tuple(sorted(self.ranks))


@record
class Window:
    """The start of a buffer as elements of a shape, on whichever rank it is looked at."""

    buffer: WindowBuffer
    shape: tuple[int, ...]
    dtype: DataType
    valid: tuple[int, ...] | None = None
    """How much of it holds data, where not all does: what a collective looks at, and nobody else."""

    def live(self, elements: Any) -> Any:
        """Return what is valid of the elements of one rank."""
        return elements if self.valid is None else elements[tuple(slice(extent) for extent in self.valid)]

    def check_whole(self, function: str) -> None:
        """Raise where it is valid in part: functions see windows as a whole."""
        if self.valid is not None:
            message = f"a window of {[*self.shape]} that is valid in {[*self.valid]} is for collectives of the host"
            raise ExecutionError(message, help=f"dispatch `{function}` with all of it, and pl.set_validshape there")

    def narrowed(self, rows: int, columns: int) -> Window:
        """Return the window with so many rows and columns of it valid; ExecutionError where it has fewer."""
        if not (0 <= rows <= self.shape[-2] and 0 <= columns <= self.shape[-1]):
            raise ExecutionError(f"a valid part of [{rows}, {columns}] does not fit {[*self.shape[-2:]]}")
        valid = (*self.shape[:-2], rows, columns)
        return replace(self, valid=None if valid == self.shape else valid)


@record
class Dispatch:
    """A function that one rank is to run."""

    rank: int
    function: str
    args: tuple[Any, ...]
    """Regions of the caller's memory, windows and numbers."""
    span: Span = UNKNOWN
    is_counted: bool = False
    """Whether its rank was counted, not written as a number."""


@record
class Collective:
    """What all ranks of a domain do together, one statement of the host."""

    name: str
    windows: Mapping[str, Window]
    options: Mapping[str, Any]
    span: Span = UNKNOWN

    @property
    def domain(self) -> tuple[int, ...]:
        """The ranks that take part."""
        return next(iter(self.windows.values())).buffer.domain


@record
class Turn:
    """One thing that a rank does, and how many turns of others have to be over before: pairs of rank and number."""

    action: Dispatch | Collective
    needs: tuple[tuple[int, int], ...] = ()


@mutable
class Plan:
    """What a host function has the ranks do, in order.

    The turns of a rank follow each other. Those of others come first where they touch what one writes of the caller's
    memory, or write what it reads (`dependences.py`); a collective is done by the first of its domain, once all have
    come, and the others go on after it.
    """

    size: int
    buffers: list[WindowBuffer] = field(default_factory=list[WindowBuffer])
    actions: list[Dispatch | Collective] = field(default_factory=list["Dispatch | Collective"])
    turns: list[list[Turn]] = field(default_factory=list["list[Turn]"])
    filled: list[tuple[Array, Any]] = field(default_factory=list["tuple[Array, Any]"])
    """The tensors that the host function makes, and what number all elements of each are when ranks begin."""

    def settle(self, footprints: Mapping[str, Footprint], *, adds_in_turn: bool = False) -> None:
        """Work out domains and turns, once all is planned; buffers that were dispatched to nobody have all ranks.

        With `adds_in_turn` what adds to memory comes after all that others have done to it, as what reads it does.
        """
        for buffer in self.buffers:
            if not buffer.ranks:
                buffer.ranks.update(range(self.size))
        self.turns = [[] for _ in range(self.size)]
        order = Dependences()
        for action in self.actions:
            if isinstance(action, Collective):
                self._meet(action)
                continue
            found, own = footprints[action.function], self.turns[action.rank]
            reads = found.reads | found.adds if adds_in_turn else found.reads
            read, written = (_touched(action, positions) for positions in (reads, found.writes))
            has_windows = any(isinstance(arg, Window) for arg in action.args)
            by = By(action.rank, len(own) + 1, (action.function, action.span), has_windows=has_windows)
            own.append(Turn(action, order.needs(by, read, written)))

    def _meet(self, action: Collective) -> None:
        try:
            check_domain(action.windows, action.options, len(action.domain))
        except ExecutionError as error:
            error.locate([action.span])
            raise
        leader, *others = action.domain
        arrived = tuple((rank, len(self.turns[rank])) for rank in others)
        self.turns[leader].append(Turn(action, arrived))
        for rank in others:
            self.turns[rank].append(Turn(action, ((leader, len(self.turns[leader])),)))


def _touched(action: Dispatch, positions: Iterable[int]) -> list[tuple[int, int]]:
    """Return where the caller's memory begins and ends among some arguments of a dispatch."""
    return [reach(arg.data) for k in positions if isinstance(arg := action.args[k], Region)]


@mutable
class _Planning:
    """The world of a host function, which only lays out."""

    plan: Plan
    at: Span = UNKNOWN
    """The statement that runs."""

    def size(self) -> int:
        return self.plan.size

    def buffer(self, size: int) -> WindowBuffer:
        made = WindowBuffer(size)
        self.plan.buffers.append(made)
        return made

    def collective(self, name: str, windows: Mapping[str, Window], options: Mapping[str, Any]) -> None:
        self.plan.actions.append(Collective(name, windows, options, self.at))

    def membership(self, elements: Array) -> Membership:
        raise ExecutionError(NOT_HERE)

    def wait(self, cell: Array, expected: Sequence[range], wanted: str) -> None:
        raise ExecutionError(NOT_HERE)

    def look(self, cell: Array, expected: Sequence[range]) -> bool:
        raise ExecutionError(NOT_HERE)

    def told(self, cell: Array, value: int, is_set: bool) -> None:
        raise ExecutionError(NOT_HERE)


class HostMachine(Machine):
    """Runs a host function, which leaves a plan and the values that it returns."""

    def __init__(self, program: Program, size: int, footprints: Footprints | None = None) -> None:
        super().__init__(program)
        self.plan = Plan(size)
        self.footprints = Footprints(program) if footprints is None else footprints
        self._planning = _Planning(self.plan)
        self._written: list[tuple[int, int, Dispatch]] = []
        """Where what was dispatched writes to the caller's memory, of so many actions."""
        self._noted = 0

    def planned(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a host function returns, its plan made."""
        token = WORLD.set(self._planning)
        try:
            results = self.run(name, args)
        finally:
            WORLD.reset(token)
        self._check_rows(name, args)
        self.plan.settle(self.footprints)
        return results

    def _check_rows(self, name: str, args: Sequence[Value]) -> None:
        given = zip(self.functions[name].params, args, strict=True)
        tensors = {p.name_hint: arg.data for p, arg in given if isinstance(arg, Region) and arg.data.ndim > 1}
        check_rows(tensors, self._given(), self.plan.size)

    def _given(self) -> list[Given]:
        return [(a.rank, a.args, a.span, a.is_counted) for a in self.plan.actions if isinstance(a, Dispatch)]

    def run(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a function of the host returns; Python's own functions run on rank 0, when their turn comes."""
        function = self.functions[name]
        if not function.is_sub_worker:
            return super().run(name, args)
        self.plan.actions.append(Dispatch(0, name, tuple(args), function.span))
        written = [arg for arg, d in zip(args, function.param_directions, strict=True) if d is not ParamDirection.In]
        return tuple(written[: len(function.return_types)])

    def evaluate(self, call: Call, bound: Mapping[str, Value]) -> Value:
        """Return what an op gives for its arguments."""
        self._planning.at = call.span
        if call.op.name == NARROW and isinstance(window := bound["x"], Window):
            return window.narrowed(bound["valid_rows"], bound["valid_cols"])
        if call.op.name == SLICE and isinstance(call.args[0], Var) and isinstance(whole := bound["x"], Region):
            number = bound["offset"][0]
            if number >= whole.data.shape[0]:
                check_row(call.args[0].name_hint, whole.data, number, self._given(), self.plan.size, call.span)
        result = super().evaluate(call, bound)
        if call.op.name == READ and isinstance(whole := bound["x"], Region):
            self._check_unwritten(whole.data[(*bound["indices"], None)])
        if call.op.name == CREATE and bound.get("init_value") is not None and isinstance(result, Region):
            self.plan.filled.append((result.data, bound["init_value"]))
        return result

    def _check_unwritten(self, element: Array) -> None:
        """Raise where a host function looks at what somebody may write whom it has dispatched."""
        for action in self.plan.actions[self._noted :]:
            if isinstance(action, Dispatch):
                self._written += [(*each, action) for each in _touched(action, self.footprints[action.function].writes)]
        self._noted = len(self.plan.actions)
        low, high = reach(element)
        writer = next((by for start, stop, by in self._written if start < high and low < stop), None)
        if writer is not None:
            message = f"a host function looks at elements before `{writer.function}` has written them"
            help = "it runs once, before all that it dispatches: let a function that it dispatches decide"
            raise ExecutionError(message, notes=[f"`{writer.function}` is dispatched at {writer.span}"], help=help)

    def invoked(self, frame: Frame, call: Invoke) -> tuple[Value, ...]:
        """Return what a call gives: that of a chip is dispatched, to the only rank where it does not say which."""
        if call.device is None and self.functions[call.op.name].level is Level.HOST:
            return super().invoked(frame, call)
        return self.dispatch(frame, call)

    def dispatch(self, frame: Frame, call: Invoke) -> tuple[Value, ...]:
        """Note a dispatch; return what the function gives back of its arguments."""
        args = [self.value(frame, arg) for arg in call.args]
        rank = 0 if call.device is None else self.value(frame, call.device)
        said = f"device={rank}"
        if call.device is None and self.plan.size > 1:
            said, rank = f"`{call.op.name}` is dispatched without device=", -1
        if not 0 <= rank < self.plan.size:
            message = f"{said}, and there are {self.plan.size} rank(s)"
            help = f"for r in pl.range(pld.world_size()): {call.op.name}(..., device=r)"
            error = ExecutionError(message, spans=[call.span], help=help)
            error.function = self.author(frame)
            raise error
        for window in args:
            if isinstance(window, Window):
                window.check_whole(call.op.name)
                window.buffer.ranks.add(rank)
        is_counted = call.device is not None and not isinstance(call.device, Const)
        self.plan.actions.append(Dispatch(rank, call.op.name, tuple(args), call.span, is_counted))
        return results_of(self.functions, call, args)


def chip_program(program: Program, name: str) -> Program:
    """Return the program of a function that is dispatched, with all that it calls."""
    found: dict[str, Function] = {}

    def add(name: str) -> None:
        if name not in found:
            found[name] = program[name]
            for call in invocations(program[name].body):
                add(call.op.name)

    add(name)
    return Program(name, tuple(f for f in program.function_list if f.name in found), program[name].span)


def dispatched(program: Program) -> tuple[str, ...]:
    """Return the names of the functions that hosts dispatch."""
    calls = (call for host in program.hosts for call in invocations(host.body))
    names = (call.op.name for call in calls if isinstance(call, Invoke))
    return tuple(dict.fromkeys(name for name in names if program[name].level is not Level.HOST))
