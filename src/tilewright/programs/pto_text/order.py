"""Order: barriers and flags, which keep what is kept here anyway, and where a program stops."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BOOL
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.words import Given, refuse, writes
from tilewright.programs.pto_text.writer import Writer

_BARRIERS = {"bar_v": "PIPE_V", "bar_m": "PIPE_M", "bar_all": "PIPE_ALL", "fence": "PIPE_ALL"}


@writes(*(f"system.{name}" for name in _BARRIERS))
def _barrier(w: Writer, call: Call, given: Given) -> None:
    w.line(f"pto.barrier #pto.pipe<{_BARRIERS[call.op.spec.name]}>")


@writes("system.sync_src")
def _set_flag(w: Writer, call: Call, given: Given) -> None:
    w.flag("set", _event(given))


@writes("system.sync_dst")
def _wait_flag(w: Writer, call: Call, given: Given) -> None:
    event = _event(given)
    refuse(call, event not in w.flags, "of a flag that nothing has set before", "set it with `pl.system.sync_src`")
    w.flag("wait", event)


def _event(given: Given) -> str:
    ends = (f"<PIPE_{given[name].name}>" for name in ("set_pipe", "wait_pipe"))
    return f"[{', '.join(ends)}, <EVENT_ID{given['event_id']}>]"


@writes("system.sync_set", "system.sync_wait")
def _event_between_cores(w: Writer, call: Call, given: Given) -> None:
    """Write an event between cores, of which an exported function runs on one."""
    event = given["event_id"]
    shown = str(event.known) if event.known is not None else event.name
    w.line(f"pto.sync.{call.op.spec.name.removeprefix('sync_')} <PIPE_{given['pipe'].name}>, {shown}")


@writes("system.cacheinvalid")
def _nothing(w: Writer, call: Call, given: Given) -> None:
    """Write nothing: memory is what it is."""


@writes("system.device_assert")
def _assert(w: Writer, call: Call, given: Given) -> None:
    with w.block(f"scf.if {computed(w, 'not_', [given['condition']], BOOL).name}"):
        w.line("pto.trap")
