"""Ranked programs: a host function and the functions it dispatches, run by the ranks of this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from tilewright.arrays import np
from tilewright.backends.devices import Devices
from tilewright.backends.interface import find
from tilewright.call.thread_limit import thread_count
from tilewright.core.enums import ForKind, FunctionType, ParamDirection
from tilewright.core.expr import Submit
from tilewright.core.program import Function, Program
from tilewright.core.region import Region, whole
from tilewright.core.rewrite import loop_reach
from tilewright.core.stmt import ForStmt, SpmdScopeStmt
from tilewright.core.visitor import expressions, statements
from tilewright.forks import computed_once
from tilewright.frontend.sub_workers import as_tensors, body_of, told
from tilewright.interpret.hosts import HostMachine, Plan
from tilewright.passes import inline, ssa
from tilewright.passes.aliases import Footprints
from tilewright.programs.distributed.agreement import agreed, known_to_all
from tilewright.programs.distributed.chips import Chips
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.group import Group, group_of, group_size
from tilewright.programs.distributed.others import check_on_devices, distant, given_args, gpus, interpreted
from tilewright.programs.distributed.outlines import outline
from tilewright.programs.distributed.own_tensors import check_own_tensors
from tilewright.programs.distributed.processes import CalledOtherwise, ProcessRun, process_run
from tilewright.programs.distributed.returns import given_back
from tilewright.programs.distributed.rows import ROWS, SHARDS, Rows, is_taken_by_rows
from tilewright.programs.distributed.shared_memory import ProcessMemory, SharedMemory
from tilewright.programs.distributed.steps import steps_of
from tilewright.programs.distributed.team import TEAM, TeamRun, said, team_run
from tilewright.programs.distributed.turns import turn
from tilewright.programs.platforms import INTERPRETER
from tilewright.records import record

KEPT = 64
"""How many plans a program keeps, each for arguments of other shapes."""


@record
class _Planned:
    """A plan made ready, and which argument each result of the host function is."""

    run: TeamRun | ProcessRun
    returned: tuple[int, ...]
    number: int
    """How many plans there were before it, and itself: the same in all processes that made it together."""
    rows: tuple[int, ...] = ()
    """The arguments of which ranks are given their own rows alone, and processes have no other."""

    @property
    def is_over(self) -> bool:
        """Whether the processes that it was made for do not come to it any more."""
        return isinstance(self.run, ProcessRun) and self.run.is_over


class Ranked:
    """What runs a program of many ranks: the interpreter, or native code on a thread for each rank."""

    def __init__(self, program: Program, config: DistributedConfig, platform: str, chips: Chips) -> None:
        self.code = find(INTERPRETER).compile(program)
        self.program = program
        self.config = config
        self.platform = platform
        self.chips = chips
        self.windows: dict[Hashable, Any] | None = None
        """Those of the interpreter where windows keep what they hold from one run to the next."""
        self.bound: Mapping[str, Callable[[list[Any]], Any]] = {}
        """What sub-workers do, where that was said at run time."""
        self.plans: dict[Hashable, _Planned] = {}
        self._count = 0
        """How many plans there were."""

    def again(self, *, keeps_windows: bool, bound: Mapping[str, Callable[[list[Any]], Any]]) -> Ranked:
        """Return this program with windows of its own, and perhaps other sub-workers."""
        made = Ranked(self.program, self.config, self.platform, self.chips)
        made.windows, made.bound = {} if keeps_windows else None, bound
        return made

    @computed_once
    def sub_workers(self) -> Mapping[str, bool]:
        """The functions that Python runs, and whether their bodies have to be told."""
        return {f.name: body_of(f) is None for f in self.program.function_list if f.is_sub_worker}

    def _body(self, name: str) -> Callable[[list[Any]], Any] | None:
        """Return what a sub-worker does, given a list of arrays and numbers; None for what ranks run natively."""
        return self._told(name) if name in self.sub_workers else None

    def _told(self, name: str) -> Callable[[list[Any]], Any]:
        bound = self.bound.get(name)
        return told(self.program[name]) if bound is None else lambda args: bound(as_tensors(args))

    def address(self, name: str) -> None:
        """Return nothing: Python stands for the host function."""

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.config.device_ids)

    def run(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what a host function returns; tensors are written in place."""
        known_to_all()  # what goes wrong from here on
        rows = ROWS.get()
        if rows is not None and not self._takes_rows:
            rows.take([param.name_hint for param in self.program[name].params], args, ())
        if self.platform == INTERPRETER:
            return interpreted(self.program, self.size, name, args, self._told, self.windows)
        given = [_packed(arg, is_whole=not self._can_be_kept) for arg in args] if self.devices is None else args
        with turn() if _are_several(self.config) else nullcontext():  # of a worker's thread, too
            returned = self._run(name, given, rows)
        for arg, used in zip(args, given, strict=True):
            if used is not arg and arg.data.flags.writeable:
                arg.data[...] = used.data
        return tuple(args[position] for position in returned)

    def _run(self, name: str, args: Sequence[Any], rows: Rows | None) -> tuple[int, ...]:
        """Run natively; return which arguments the host function returns."""
        names = [param.name_hint for param in self.program[name].params]
        places = () if rows is None or not self._takes_rows else rows.places(names, args, self.size)
        key = (self._group(), name, places, self._gpu(args), *map(_kind, args))
        planned = self.plans.get(key)
        if planned is None or planned.is_over:
            planned = self._made(key, name, args, places)
        starts = {} if rows is None else rows.take(names, args, planned.rows)
        if isinstance(planned.run, TeamRun):
            bases = [arg.data.ctypes.data if isinstance(arg, Region) else 0 for arg in args]
            TEAM.run(planned.run, bases, self.config.timeout_s)
        else:
            try:
                self._run_together(planned.run, args, starts)
            except CalledOtherwise:  # which all find out together
                return self._run(name, args, rows)
        return planned.returned

    @computed_once
    def devices(self) -> Devices | None:
        """What ranks run on where their memory is not the host's."""
        return find(self.platform).rank_devices()

    def _gpu(self, args: Sequence[Any]) -> int | None:
        """Return the device that arguments lie on, the first where there are none; None on the processor."""
        if self.devices is None:
            return None
        held = (arg.data.ctypes.data for arg in args if isinstance(arg, Region) and arg.data.size)
        return next(map(self.devices.holder, held), 0)

    def _made(self, key: tuple[Hashable, ...], name: str, args: Sequence[Any], places: Sequence[int]) -> _Planned:
        """Return a new plan, kept for the next call; those that are over are not."""
        self.plans = {other: planned for other, planned in self.plans.items() if not planned.is_over}
        with _elsewhere(self._group(), _process_runs(self.plans.values())):
            try:
                planned = self._planned(key, name, args, places)
            except BaseException:
                self.plans.clear()
                raise
        if self._can_be_kept and len(self.plans) < KEPT:
            self.plans[key] = planned
        return planned

    def _run_together(self, run: ProcessRun, args: Sequence[Any], starts: Mapping[int, int]) -> None:
        """Run this process's part; what failed leaves nothing that the next run could go on from."""
        try:
            run.run(args, min(self.config.timeout_s, run.group.patience), starts)
        except BaseException:
            run.memory.give_up()
            self.plans.clear()
            raise

    def _planned(self, key: tuple[Hashable, ...], name: str, args: Sequence[Any], places: Sequence[int]) -> _Planned:
        """Return a plan made ready; what goes wrong with it in one process ends it in all."""
        group = self._group()
        if group is None:
            return self._laid_out(None, name, args, places)
        group.is_told, group.limit = False, min(self.config.timeout_s, group.patience)
        try:
            held = [planned.number for planned in self.plans.values()], repr(key[1:])
            function, version = self.program[name], self.chips.version
            if not are_same(function, version, args, group, held):  # each finds its plans for itself: the same ones
                self.plans.clear()
            return self._laid_out(group, name, args, places)
        except BaseException as error:  # an interrupt, too
            group.tell_failure(said(error))
            raise
        finally:
            group.outline = None

    def _laid_out(self, group: Group | None, name: str, args: Sequence[Any], places: Sequence[int]) -> _Planned:
        gpu = self._gpu(args)
        if gpu is not None:
            check_on_devices(self.program[name], group, self._can_be_kept)
        together = group is not None
        directions = self.program[name].param_directions
        written = {k: directions[k] for k in sorted(self.chips.footprints[name].writes)} if together else {}
        given = given_args(args, [*written], gpu) if together else args
        machine = HostMachine(self.program, self.size, self.chips.footprints)
        results = machine.planned(name, given)
        if group is not None:
            group.outline = outline(machine.plan, self.program[name], given, has_places=not self._can_be_kept)
        rows = tuple(place for place in places if is_taken_by_rows(machine.plan, given[place].data))
        rows = rows if rows and group is not None and _are_numbered_alike(group) else ()
        may_repeat = not (self.windows is not None or self.sub_workers) and _are_outs(written, rows)
        written = {k: direction for k, direction in written.items() if k not in rows}
        returned = given_back(self.program[name], given, results)
        if group is not None:
            check_own_tensors(machine.plan, self.chips.footprints, given)
            run = self._over_processes(group, machine.plan, given, written, gpu, may_repeat)
        elif gpu is not None and self.devices is not None:
            place = self.config.device_ids, gpu
            run = gpus().device_run(self.devices, machine.plan, self.program, self.chips, given, *place)
        else:
            plan, chosen = self.chips.shared(machine.plan)
            run = team_run(plan, self.chips.native, self._body, given, chosen)
        run.steps.keeps_windows = self.windows is not None
        looked_at = run.waits if isinstance(run, TeamRun) else run
        is_few = thread_count() < 2 * self.size and gpu is None
        looked_at.may_look = is_few or not _runs_side_by_side(self.program)
        self._count += 1
        return _Planned(run, returned, self._count, rows)

    def _group(self) -> Group | None:
        """Return the processes that it runs on now; None for this one alone."""
        return group_of(self.config.process_group, self.config.timeout_s) if _are_several(self.config) else None

    def _over_processes(
        self, group: Group, plan: Plan, args: Sequence[Any], written: Mapping[int, ParamDirection], gpu: int | None,
        may_repeat: bool,
    ) -> ProcessRun:  # fmt: skip
        """Return a plan made ready for this process of a group; tensors lie on a GPU, or on the processor."""
        threads = max(1, thread_count() // group.beside)
        sizes = {position: args[position].data.nbytes for position in written}
        if self.devices is not None and gpu is not None:
            return gpus().mapped_run(group, self.devices, plan, self.chips, args, sizes, self.config.device_ids, gpu)
        if group.shares_memory:
            plan, chosen = self.chips.shared(plan)
            memory: ProcessMemory = SharedMemory(group, plan, sizes, chosen)
            natives = self.chips.native
        else:
            plan, memory = distant(self.chips, group, plan, args, written, may_repeat)
            natives, threads = partial(self.chips.native, is_distant=True), 1 if _adds(self.program) else threads
        here = [group.rank]
        make = partial(steps_of, plan, natives, self._body, args, memory.parts, here, threads, memory.joins)
        return process_run(group, memory, plan, make)

    @property
    def _takes_rows(self) -> bool:
        """Whether processes may have rows of tensors alone: there are several, and the host looks at no element."""
        is_native = self.platform != INTERPRETER and self.devices is None
        return is_native and self._can_be_kept and _are_several(self.config)

    @computed_once
    def _can_be_kept(self) -> bool:
        """Whether what the ranks do follows from the shapes of arguments and from numbers: no element is looked at."""
        return not _looks_at_elements(self.program)


def _are_several(config: DistributedConfig) -> bool:
    """Return whether ranks are processes."""
    return group_size(config.process_group) > 1


@contextmanager
def _elsewhere(group: Group | None, own: Sequence[ProcessRun]) -> Generator[None]:
    """Let other processes know that this one is in none of its runs; its `own` are over where that fails."""
    others = [] if group is None else [run for run in group.runs if run not in own]
    for run in (*own, *others):
        run.whereabouts.leave(True)
    try:
        yield
        others += own
    except BaseException:
        for run in own:
            run.whereabouts.leave_for_good()
        raise
    finally:
        for run in others:
            run.whereabouts.leave(False)


def _process_runs(plans: Iterable[_Planned]) -> list[ProcessRun]:
    """Return the plans over processes, made ready."""
    return [p.run for p in plans if isinstance(p.run, ProcessRun) and not p.is_over]


def _looks_at_elements(program: Program) -> bool:
    calls = [e for host in program.hosts for s in statements(host.body) for e in expressions(s)]
    return any(getattr(getattr(call, "op", None), "name", "") == "tensor.read" for call in calls)


def _runs_side_by_side(program: Program) -> bool:
    """Return whether a rank may do something on other threads while one of them waits."""
    if any(function.func_type is FunctionType.Inline for function in program.function_list):
        program = inline.run(ssa.run(program))  # a kernel may be launched on one block alone
    found = [s for function in program.function_list for s in statements(function.body)]
    calls = (call for s in found for call in expressions(s))
    loops = any(isinstance(s, SpmdScopeStmt) or (isinstance(s, ForStmt) and _has_turns_beside(s)) for s in found)
    return loops or any(isinstance(call, Submit) and call.core_num is not None for call in calls)


def _has_turns_beside(loop: ForStmt) -> bool:
    """Return whether a loop's turns may run at the same time, as far as is known that there are several."""
    reach = loop_reach(loop.start, loop.stop, loop.step)
    return loop.kind is ForKind.Parallel and (reach is None or reach[0] != reach[1])


def _are_outs(written: Mapping[int, ParamDirection], positions: Sequence[int]) -> bool:
    """Return whether those at some positions that are written are not read before."""
    return all(written.get(position, ParamDirection.Out) is ParamDirection.Out for position in positions)


def _adds(program: Program) -> bool:
    """Return whether ranks add to memory, which threads do one after the other where it is a copy of a peer's."""
    footprints = Footprints(program)
    return any(footprints[function.name].adds for function in program.function_list)


def _packed(arg: Any, *, is_whole: bool) -> Any:
    """Return an argument as code takes it: a copy of a tensor whose neighbours along the last axis lie apart.

    With `is_whole` of one where any do: processes tell each other then where in it plans have ranks look.
    """
    if not isinstance(arg, Region) or not arg.data.ndim:
        return arg
    is_near = arg.data.shape[-1] <= 1 or arg.data.strides[-1] == arg.data.itemsize
    is_taken = arg.data.flags.c_contiguous if is_whole else is_near
    return arg if is_taken else whole(np.ascontiguousarray(arg.data))


def _kind(arg: Any) -> Hashable:
    """Return what a plan depends on of an argument: of a tensor, not where it lies."""
    return (arg.data.shape, arg.data.strides, str(arg.data.dtype)) if isinstance(arg, Region) else repr(arg)


def are_same(function: Function, version: str, args: Sequence[Any], group: Group, held: object) -> bool:
    """Return whether all processes hold the same besides arguments; raise for other shapes of those, or numbers."""
    called = f"`{function.name}`, version {version}"
    shards, names = SHARDS.get()(), [param.name_hint for param in function.params]
    own = {name: shards.get(name) or _told(arg) for name, arg in zip(names, args, strict=True)}
    return agreed(own, held, group, [function.span], called)


def _are_numbered_alike(group: Group) -> bool:
    """Return whether every process has the row that has its number in a group."""
    rows = ROWS.get()
    return all(group.exchanged(rows is not None and rows.rank == group.rank, "rows"))


def _told(arg: Any) -> str:
    return f"{list(arg.data.shape)} {arg.data.dtype}" if isinstance(arg, Region) else repr(arg)
