"""Traces: the spans of time that one call of a program consists of."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

HOST, DEVICE = "call", "program"
"""The spans that every call has: all of it, and the program by itself."""


@dataclass(frozen=True)
class TraceSpan:
    """Something that began at `ts` and took `dur`, in nanoseconds; `depth` says within how many others it lies."""

    pid: int
    tid: int
    inv: int
    hid: int
    depth: int
    name: str
    ts: int
    dur: int
    attrs: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def is_device(self) -> bool:
        """Whether it is the program itself rather than what is around it."""
        return self.name == DEVICE

    @property
    def dur_us(self) -> float:
        """How long it took, in microseconds."""
        return self.dur / 1000


@dataclass(frozen=True)
class TraceInvocation:
    """One call: its spans, the outermost first."""

    pid: int
    inv: int
    hid: int
    spans: Sequence[TraceSpan]

    def root(self) -> TraceSpan:
        """Return the span that all others lie in."""
        return self.spans[0]

    def by_name(self) -> dict[str, list[TraceSpan]]:
        """Return the spans of each name, in order."""
        return {name: [span for span in self.spans if span.name == name] for name in self._names()}

    @property
    def task(self) -> int:
        """The number of the program that was called."""
        return self.hid

    @property
    def task_name(self) -> str:
        """The name of the program that was called."""
        return str(self.root().attrs.get("task", self.root().name))

    @property
    def host_wall_us(self) -> float:
        """How long the call took."""
        return self.root().dur_us

    @property
    def device_wall_us(self) -> float:
        """How long the program itself took; 0 where that is not known."""
        return sum(span.dur_us for span in self.spans if span.is_device)

    @property
    def effective_us(self) -> float:
        """How long the program took, or the call where only that is known."""
        return self.device_wall_us or self.host_wall_us

    def format_tree(self, *, us: bool = True) -> str:
        """Return the spans as lines, each below the one it lies in, in microseconds or nanoseconds."""
        return "\n".join(f"{'  ' * span.depth}{span.name} {_shown(span, us)}" for span in self.spans)

    def _names(self) -> list[str]:
        return list(dict.fromkeys(span.name for span in self.spans))


def mean_invocation(invocations: Sequence[TraceInvocation]) -> TraceInvocation:
    """Return a call each of whose spans takes as long as those of its place take on average."""
    first = invocations[0]
    columns = zip(*(each.spans for each in invocations), strict=True)
    spans = [replace(column[0], dur=round(statistics.fmean(span.dur for span in column))) for column in columns]
    return replace(first, spans=spans)


def _shown(span: TraceSpan, us: bool) -> str:
    return f"{span.dur_us:.2f} us" if us else f"{span.dur} ns"
