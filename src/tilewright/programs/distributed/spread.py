"""Spread reductions: host-level collectives that reduce, done by all of their ranks at once where these share memory.

Each rank reduces what falls to it, by a function that is dispatched to it; they meet before and after. Where the rows
of a `reduce_scatter` are made step by step, whoever makes them tells the others as it goes (`told_rows`), and they sum
rows while the rest is made: nobody waits for the last step of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.core.enums import ReduceOp
from tilewright.core.program import Function, Program
from tilewright.dtypes import INT32
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer, chip_program
from tilewright.passes.aliases import Footprints
from tilewright.passes.distant import reaches_peers
from tilewright.passes.told_rows import ToldRows, told_rows
from tilewright.records import record

SMALL = 1 << 17
"""Bytes of all ranks up to which one of them reduces for all: to meet once more takes as long."""


@record
class Spread:
    """A plan whose ranks reduce together, and the program that has what they run."""

    plan: Plan
    program: Program


def spread(plan: Plan, program: Program) -> Spread:
    """Return a plan whose ranks all share in its reductions, and its program; those given where it has none."""
    if not any(is_spread(action) for action in plan.actions):
        return Spread(plan, program)
    makers = _Makers(plan, program)
    made = _Spreading(program, makers)
    actions = [each for action in plan.actions for each in made.instead_of(action)]
    extended = program.with_functions([*program.function_list, *made.functions.values()])
    settled = Plan(plan.size, [*plan.buffers, *made.cells.values()], actions, filled=plan.filled)
    settled.settle(Footprints(extended))
    return Spread(settled, extended)


def is_spread(action: Dispatch | Collective) -> bool:
    """Return whether all ranks share in a collective: it reduces, and there is much to reduce."""
    if not isinstance(action, Collective) or action.name not in ("reduce_scatter", "allreduce"):
        return False
    target, count = action.windows["target"], len(action.domain)
    return count > 1 and target.valid is None and count * prod(target.shape) * target.dtype.get_byte() > SMALL


@record
class _Rows:
    """What makes the rows that a collective sums: dispatches to all of its ranks, of one function."""

    dispatches: tuple[Dispatch, ...]
    target: WindowBuffer
    name: str
    """What the function calls them."""
    told: ToldRows
    made: int
    """How many elements each step makes."""


class _Makers:
    """Who makes what the `reduce_scatter`s of a plan sum, of those that can tell how far they are."""

    def __init__(self, plan: Plan, program: Program) -> None:
        self.of: dict[int, _Rows] = {}
        """By the collective that sums them."""
        self._program = program
        self._footprints = Footprints(program)
        self._telling: set[int] = set()
        """The dispatches that tell how far they are with one of their windows."""
        self._told: dict[tuple[str, int], ToldRows | None] = {}
        given = [(a, arg) for a in plan.actions if isinstance(a, Dispatch) for arg in a.args if isinstance(arg, Window)]
        reached = {name for name in {a.function for a, _ in given} if reaches_peers(chip_program(program, name))}
        self._reached = {window.buffer for action, window in given if action.function in reached}
        """The buffers that ranks touch the parts of peers of."""
        written: dict[WindowBuffer, list[tuple[Dispatch, int]]] = {}
        for action in plan.actions:
            self._note(action, written)

    def _note(self, action: Dispatch | Collective, written: dict[WindowBuffer, list[tuple[Dispatch, int]]]) -> None:
        """Take note of an action, given who has written buffers since they were last in a collective."""
        if isinstance(action, Dispatch):
            for position in self._footprints[action.function].writes:
                if isinstance(window := action.args[position], Window):
                    written.setdefault(window.buffer, []).append((action, position))
            return
        makers = {window.buffer: written.pop(window.buffer, []) for window in action.windows.values()}
        if action.name == "reduce_scatter" and is_spread(action):
            rows = self._rows(action, makers[action.windows["target"].buffer])
            self.of |= {} if rows is None else {id(action): rows}

    def _rows(self, action: Collective, makers: Sequence[tuple[Dispatch, int]]) -> _Rows | None:
        functions = {(maker.function, position) for maker, position in makers}
        ranks = sorted(maker.rank for maker, _ in makers)
        if len(functions) != 1 or ranks != [*action.domain] or action.windows["target"].buffer in self._reached:
            return None
        ((name, position),) = functions
        if (name, position) not in self._told:
            from tilewright.frontend.reductions import telling  # which is read, line by line, when it is loaded

            self._told[name, position] = told_rows(chip_program(self._program, name), name, position, telling())
        told, shapes = self._told[name, position], {maker.args[position].shape for maker, _ in makers}
        if told is None or len(shapes) != 1 or any(id(maker) in self._telling for maker, _ in makers):
            return None
        made = told.rows * prod(shapes.pop()[1:])
        self._telling |= {id(maker) for maker, _ in makers}
        hint = told.function.params[position].name_hint
        return _Rows(tuple(maker for maker, _ in makers), action.windows["target"].buffer, hint, told, made)


class _Spreading:
    """What stands for the actions of a plan."""

    def __init__(self, program: Program, makers: _Makers) -> None:
        self.functions: dict[str, Function] = {}
        """What ranks run besides, by name."""
        self.cells: dict[WindowBuffer, WindowBuffer] = {}
        """The signals by which ranks tell each other how far a buffer is made."""
        self._program = program
        self._rows = makers.of
        self._targets = {id(maker): rows for rows in makers.of.values() for maker in rows.dispatches}

    def instead_of(self, action: Dispatch | Collective) -> Sequence[Dispatch | Collective]:
        """Return what ranks do instead of an action."""
        if isinstance(action, Dispatch):
            rows = self._targets.get(id(action))
            return [action if rows is None else self._telling(action, rows)]
        if not is_spread(action):
            return [action]
        meeting = Collective("barrier", {"target": action.windows["target"]}, {}, action.span)
        if action.name == "allreduce":
            return [meeting, *self._reducing(action), meeting]
        rows = self._rows.get(id(action))
        return [*([meeting] if rows is None else []), *self._summing(action, rows), meeting]

    def _telling(self, action: Dispatch, rows: _Rows) -> Dispatch:
        name = self._named(f"{action.function}_telling_{rows.name}", rows.told.function)
        return Dispatch(action.rank, name, (*action.args, self._told(rows.target)), action.span, action.is_counted)

    def _summing(self, action: Collective, rows: _Rows | None) -> list[Dispatch]:
        """Return what each rank does of a `reduce_scatter`."""
        from tilewright.frontend.reductions import summed_rows

        target, (made, steps) = action.windows["target"], (1, 0) if rows is None else (rows.made, rows.told.steps)
        name = self._named(f"sum_rows_{target.dtype}", summed_rows(target.dtype))
        args = target, self._told(target.buffer), made, steps
        return [Dispatch(rank, name, args, action.span) for rank in action.domain]

    def _reducing(self, action: Collective) -> list[Dispatch]:
        """Return what each rank does of an `allreduce`."""
        from tilewright.frontend.reductions import reduced_blocks

        target, op = action.windows["target"], ReduceOp(action.options["op"])
        name = self._named(f"reduce_blocks_{target.dtype}_{op.name}", reduced_blocks(target.dtype, op))
        flat = Window(target.buffer, (prod(target.shape),), target.dtype)
        return [Dispatch(rank, name, (flat,), action.span) for rank in action.domain]

    def _told(self, target: WindowBuffer) -> Window:
        """Return the signals of a buffer, which are zero before its rows are made and after they are summed."""
        if target not in self.cells:
            self.cells[target] = WindowBuffer(INT32.get_byte() * len(target.domain), set(target.domain))
        return self.cells[target].window((len(target.domain), 1), INT32)

    def _named(self, name: str, function: Function) -> str:
        """Return the name of a function that ranks run besides: its own, if nobody else's."""
        while name in self._program.function_names:
            name += "_"
        self.functions[name] = replace(function, name=name)
        return name
