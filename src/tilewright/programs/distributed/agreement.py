"""Agreement: processes that call a host function pass the same, and know of each other where that goes wrong.

What goes wrong in one of them before it has come to the others, as with an argument that does not fit, is told those
that wait for it: they fail as well, and the next calls of all belong together.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tilewright.errors import ExecutionError
from tilewright.programs.distributed.group import Group, group_of, group_size
from tilewright.programs.distributed.launched import are_joined, tell_joining
from tilewright.programs.distributed.team import said
from tilewright.programs.distributed.turns import turn
from tilewright.records import mutable
from tilewright.source import Span


@mutable
class _Call:
    """A call of a host function, on some process group."""

    handle: Any
    is_known: bool = False
    """Whether the other processes know what goes wrong now."""


_CALL: ContextVar[_Call | None] = ContextVar("call", default=None)


@contextmanager
def told_to_others(config: Any) -> Generator[None]:
    """Tell the other processes what goes wrong in a call before they know, given what says which they are.

    Calls that they make together take turns.
    """
    call = _call(config)
    if call is None:
        yield
        return
    with turn(), _told(call):
        yield


@contextmanager
def _told(call: _Call) -> Generator[None]:
    outer = _CALL.get()
    if outer is not None:
        outer.handle = call.handle
        yield
        return
    token = _CALL.set(call)
    try:
        yield
    except BaseException as error:
        if not call.is_known:
            _tell(call.handle, said(error))
        raise
    finally:
        _CALL.reset(token)


def _call(config: Any) -> _Call | None:
    """Return a call on the processes that a configuration names; None for a call of this one alone."""
    try:
        handle = getattr(getattr(config, "distributed_config", config), "process_group", None)
        return _Call(handle) if group_size(handle) > 1 else None
    except (RuntimeError, TypeError, ValueError):  # no group, or not of this process: the call says so
        return None


def _tell(handle: Any, text: str) -> None:
    import torch.distributed

    if not torch.distributed.is_initialized() and not are_joined():
        tell_joining(text)
        return
    group_of(handle).give_up(text)


def known_to_all(is_known: bool = True) -> None:
    """Take note that the other processes know what goes wrong from here on, or do not."""
    call = _CALL.get()
    if call is not None:
        call.is_known = is_known


def agreed(own: Mapping[str, str], held: object, group: Group, spans: Sequence[Span], called: str = "") -> bool:
    """Return whether all processes hold the same besides arguments.

    ExecutionError where those are not the same, or what was `called`.
    """
    brought: list[tuple[str, dict[str, str], object]] = group.exchanged((called, dict(own), held), "arguments")
    told = [each for _, each, _ in brought]
    if len({function for function, _, _ in brought if function}) > 1:  # who has shards to agree on names none yet
        notes = [f"rank {rank} called {function}" for rank, (function, _, _) in enumerate(brought)]
        help = "every process makes the same calls, in the same order"
        group.is_told = True
        raise ExecutionError("processes called different host functions", spans=spans, notes=notes, help=help)
    for name in dict.fromkeys(name for each in told for name in each):
        passed = [each.get(name, "nothing") for each in told]
        if len(set(passed)) > 1:
            notes = [f"rank {rank} passed {each}" for rank, each in enumerate(passed)]
            help = "every process passes the same tensors and numbers, those of all ranks"
            group.is_told = True
            raise ExecutionError(f"processes were called with different `{name}`", spans=spans, notes=notes, help=help)
    return all(each == brought[0][2] for _, _, each in brought)
