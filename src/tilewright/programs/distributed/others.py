"""Others: what ranks need that are not on processors of one machine, each loaded when a program first needs it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Plan
from tilewright.passes.aliases import Footprints
from tilewright.programs.distributed.chips import Chips
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.processes import shared_args
from tilewright.programs.distributed.returns import given_back
from tilewright.programs.distributed.shared_memory import ProcessMemory


def interpreted(
    program: Program, size: int, name: str, args: Sequence[Any], told: Callable[[str], Callable[[list[Any]], Any]],
    kept: dict[Hashable, Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """Return what a host function returns on the interpreter, whose windows may be `kept` from one run to the next."""
    from tilewright.interpret.ranks import run_host

    results = run_host(program, size, name, args, told, kept)
    return tuple(args[place] for place in given_back(program[name], args, results))


def gpus() -> ModuleType:
    """Return what runs ranks on GPUs."""
    from tilewright.programs.distributed import device_team

    return device_team


def given_args(args: Sequence[Any], written: Sequence[int], gpu: int | None) -> Sequence[Any]:
    """Return arguments as plans of processes see them, on a GPU perhaps."""
    if gpu is None:
        return shared_args(args, written)
    from tilewright.programs.distributed.device_memory import packed_args

    return packed_args(args, written)


def distant(
    chips: Chips, group: Group, plan: Plan, args: Sequence[Any], written: Mapping[int, ParamDirection], may_repeat: bool
) -> tuple[Plan, ProcessMemory]:
    """Return a plan for processes that share no memory, and what they have instead.

    A run that `may_repeat` leaves nothing behind that a second one in its place would not.
    """
    from tilewright.programs.distributed.added_tensors import order_adds
    from tilewright.programs.distributed.distant_memory import DistantMemory
    from tilewright.programs.distributed.early import are_apart
    from tilewright.programs.distributed.overlapped import PIECES, WHOLE

    pieces = 0 if not group.has_idle_cores else WHOLE if group.beside == group.size else PIECES
    made, chosen = chips.apart(plan, pieces)
    footprints = Footprints(made.program)
    order_adds(made.plan, footprints)
    is_met_first = not (may_repeat and are_apart(made.plan, made.program))
    memory = DistantMemory(group, made, args, written, footprints, chosen.gathered, is_met_first=is_met_first)
    return made.plan, memory


def check_on_devices(host: Function, group: Group | None, can_be_kept: bool) -> None:
    """Raise for what is done on the processor alone."""
    if not can_be_kept:
        message = "this host function looks at elements of its arguments, which are on a GPU"
        raise ExecutionError(message, spans=[host.span], help="pass numbers, or tensors on the CPU")
    if group is not None and not group.shares_memory:
        message = "ranks on GPUs reach into each other's memory, and these processes share none"
        help = "run them on one machine, with TILEWRIGHT_TRANSPORT=memory, or pass tensors on the CPU"
        raise ExecutionError(message, spans=[host.span], help=help)
