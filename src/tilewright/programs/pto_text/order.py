"""Order: barriers and flags, which keep what is kept here anyway, and where a program stops."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, TASK_ID
from tilewright.ops.system import INVALID_TASK
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tensor, element
from tilewright.programs.pto_text.views import start_of
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
    w.flag("wait", _event(given))


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


@writes("system.set_ffts")
def _events(w: Writer, call: Call, given: Given) -> None:
    workspace: Tensor = given["workspace"]
    w.line(f"pto.set_ffts {start_of(w, workspace)} : !pto.ptr<{element(workspace.dtype)}, gm>")


@writes("system.syncall")
def _meet(w: Writer, call: Call, given: Given) -> None:
    is_alone = w.turns.known == 1 and w.share is None
    refuse(call, not is_alone, "of several blocks, which PTO runs without waiting for each other", _SPLIT)
    w.line("pto.barrier #pto.pipe<PIPE_ALL>")


_SPLIT = "make a kernel of what comes before, and another of what comes after"


@writes("system.task_invalid", "system.task_dummy")
def _task(w: Writer, call: Call, given: Given) -> Number:
    return w.constant(INVALID_TASK if call.op.spec.name == "task_invalid" else 0, TASK_ID)


@writes("system.device_assert")
def _assert(w: Writer, call: Call, given: Given) -> None:
    with w.block(f"scf.if {computed(w, 'not_', [given['condition']], BOOL).name}"):
        w.line("pto.trap")


@writes("prefetch.make_context", "prefetch.session", "prefetch.async_prefetch")
def _handle(w: Writer, call: Call, given: Given) -> Number:
    """Return a handle of prefetches, which are hints that no value depends on."""
    return w.constant(0, TASK_ID)


@writes("prefetch.wait")
def _fetched(w: Writer, call: Call, given: Given) -> Number:
    return w.constant(True, BOOL)


@writes("system.available_cluster_count", "system.available_aiv_count", "system.available_thread_count")
def _one(w: Writer, call: Call, given: Given) -> Number:
    """Return how many of something a block has for itself."""
    return w.constant(1)
