"""Explained programs: one call measured and held against the machine, with what was made of each line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.core.program import Program
from tilewright.programs.explored import Explored
from tilewright.programs.platforms import DEFAULT

if TYPE_CHECKING:
    from tilewright.backends.interface import Anatomy, Backend, Memory, Note, Reach
    from tilewright.call.binding import Bound
    from tilewright.core.enums import ParamDirection
    from tilewright.core.stmt import SeqStmts
    from tilewright.explore.page import Speed
    from tilewright.programs.explanation import ExplainedLine, Explanation, Limit
    from tilewright.programs.work import Work

LARGE = 1024
"""Bytes of tiles in memory that are worth a line."""
ROUNDS, LONGEST = 20, 0.5
"""How often a call is measured, and for how many seconds at most."""


class Explained(Explored):
    """What a compiled program says about its speed."""

    @property
    def backend(self) -> Backend:
        """What computes for it."""
        return self.loaded.code.backend

    @property
    def reach(self) -> Reach:
        """What its turns run side by side on."""
        from tilewright.call.thread_limit import thread_count

        return self.backend.reach(thread_count())

    def explain(self, *args: Any, **named: Any) -> Explanation:
        """Return why a call takes as long as it does: what it did, what the machine can do, and what to try.

        The call is made some times over, so what it changes in place goes on changing.
        """
        from tilewright.passes.stages import walked
        from tilewright.programs.advice import advised
        from tilewright.programs.explanation import Explanation

        bound = self.entry.bound(args, named)
        lowered = walked(self.source).stages[-1].after
        work = _counted(lowered, self.entry.name, bound, self.ranks)
        seconds, call_seconds, spread = self._measured(bound, args, named)
        anatomy, reach = self.anatomy(lowered), self.reach
        notes = [*anatomy.notes, *(() if reach.spans_nests else _loops(lowered, reach))]
        needed = min(_argument_bytes(bound, self.entry.directions), work.loaded + work.stored or float("inf"))
        limits = self._limits(work, needed, seconds)
        return Explanation(
            self.declared.name,
            self.platform,
            seconds,
            call_seconds,
            work.flops,
            needed,
            work.loaded + work.stored,
            limits,
            tuple(_done(lowered, anatomy, reach)),
            tuple(_lines(notes, lowered)),
            advised(lowered, work, limits, seconds, call_seconds, notes, reach),
            spread,
        )

    def speed(self, *args: Any, **named: Any) -> Speed:
        """Return how long a call takes, held against what the machine can do, as a page shows it.

        On the processor it is made on copies of its arguments.
        """
        from tilewright.explore.page import Roofline, Speed

        if self.backend.name == DEFAULT:
            args, named = tuple(map(_copied, args)), {name: _copied(value) for name, value in named.items()}
        found = self.explain(*args, **named)
        most = {limit.unit: limit.most for limit in found.limits}
        roof = Roofline(most["FLOP/s"], most["B/s"], found.flops, found.bytes, found.seconds) if most else None
        lines = [(line.file, line.number, f"{note.kind}: {note.text}") for line in found.lines for note in line.notes]
        return Speed(
            found.seconds,
            found.call_seconds,
            found.bound_by,
            found.facts,
            lines,
            [(each.text, each.line) for each in found.advice],
            roof,
        )

    def _measured(self, bound: Bound, args: Sequence[Any], named: Any) -> tuple[float, float, float]:
        """Return how long the program takes by itself, and called from Python, and how far runs differ."""
        from tilewright.call.backoff import hurry
        from tilewright.call.launch import prepared
        from tilewright.programs.timings import Timings, timed, wall

        hurry()
        program: Any = self
        named = {sys.intern(name): value for name, value in named.items()}  # as names in source text are
        called = timed(lambda: program(*args, **named), ROUNDS, wall, longest=LONGEST)
        native: Any = getattr(self, "native", None)
        if native is None:
            return min(called), min(called), Timings(called).spread
        elapsed = native.code.backend.elapsed
        alone = timed(prepared(native, bound), ROUNDS, elapsed, longest=LONGEST)
        return min(*alone, *called), min(called), Timings(alone).spread  # a call contains the program

    def _limits(self, work: Work, needed: float, seconds: float) -> tuple[Limit, ...]:
        """Return what of the machine's a call used, where that is known."""
        from tilewright.call.thread_limit import thread_count
        from tilewright.native.target import largest_cache
        from tilewright.programs.explanation import BUSY, Limit

        used = {"B/s": needed / seconds, "FLOP/s": work.flops / seconds}
        peaks = self.backend.peaks(thread_count(), work.product)
        has_units = len([peak for peak in peaks if peak.unit == "FLOP/s"]) > 1
        is_cached = self.backend.name != DEFAULT or needed <= largest_cache()
        faster = {"B/s": "out of caches" if is_cached else BUSY, "FLOP/s": "by matrix units" if has_units else BUSY}
        return tuple(Limit(peak.name, peak.unit, used[peak.unit], peak.most, faster[peak.unit]) for peak in peaks)


def _done(lowered: Program, anatomy: Anatomy, reach: Reach) -> Iterator[str]:
    """Yield what was made of the whole program."""
    from tilewright.passes.launches import launches

    for entry in lowered.entries:
        for launch in launches(lowered, entry):
            yield f"starts {launch.what}, {reach.side(bool(launch.count))}: {launch.does}"
    yield from (f"tiles of {note.text}" for note in anatomy.notes if note.kind == "tiles")
    yield from (note.text for note in anatomy.notes if note.kind == "kernel")
    for memory in (memory for memory in anatomy.memory if memory.size >= LARGE):
        yield f"`{memory.function}` keeps {_kept(memory)}"


def _kept(memory: Memory) -> str:
    """Return how much of its tiles a function keeps in memory; with what ops work in that may be more than all."""
    if not memory.named:
        return f"{memory.size} bytes in memory on each thread"
    if memory.size < memory.named:
        share = f"{memory.size} bytes of the {memory.named} that it names"
        return f"{share} in memory on each thread, the rest in registers"
    return f"{memory.size} bytes in memory on each thread: tiles, of {memory.named} in all, and what ops work in"


def _loops(lowered: Program, reach: Reach) -> Iterator[Note]:
    """Yield which loops of entries run on several threads, and why others do not."""
    for entry in lowered.entries:
        yield from _turns(entry.body, reach, is_inside=False)


def _turns(body: SeqStmts, reach: Reach, *, is_inside: bool) -> Iterator[Note]:
    from tilewright.backends.interface import Note
    from tilewright.core.enums import ForKind
    from tilewright.core.stmt import ForStmt
    from tilewright.core.visitor import bodies
    from tilewright.passes.launches import runs_side_by_side

    for stmt in body:
        starts = isinstance(stmt, ForStmt) and runs_side_by_side(stmt)
        if isinstance(stmt, ForStmt) and stmt.span.is_known:
            why = "they hand values on or leave early" if stmt.kind is ForKind.Parallel else "no pl.parallel"
            why = "inside a turn of another loop" if is_inside else why
            side = f"turns run side by side, on up to {reach.width}" if starts and not is_inside else f"in order: {why}"
            yield Note(reach.noun, side, stmt.span.filename, stmt.span.line)
        for inner in bodies(stmt):
            yield from _turns(inner, reach, is_inside=is_inside or starts)


def _copied(value: Any) -> Any:
    from tilewright.arrays import np
    from tilewright.call.frameworks import array_of, is_tensor

    return np.array(array_of(value)) if is_tensor(value) else value


def _counted(lowered: Program, name: str, bound: Bound, ranks: int) -> Work:
    from tilewright.programs.work import Counter

    return Counter(lowered, ranks).call(lowered[name], bound.values)


def _argument_bytes(bound: Bound, directions: Sequence[ParamDirection]) -> float:
    """Return how many bytes a call has to read and write at least: each argument once each way."""
    total = 0
    for value, direction in zip(bound.values, directions, strict=True):
        if hasattr(value, "shape"):
            count = 1
            for extent in value.shape:
                count *= extent
            total += count * value.dtype.get_byte() * (2 if direction.name == "InOut" else 1)
    return float(total)


def _lines(notes: Sequence[Note], lowered: Program) -> Iterator[ExplainedLine]:
    from tilewright.programs.explanation import ExplainedLine

    known = [f.span for f in lowered.function_list if f.span.source is not None]
    whole = {os.path.abspath(span.filename): span.source for span in known}  # as PTX has it
    sources = whole | {span.filename: span.source for span in known}
    by_line: dict[tuple[str, int], list[Note]] = {}
    for note in notes:
        if note.number:
            by_line.setdefault((note.file, note.number), []).append(note)
    for (file, number), found in sorted(by_line.items()):
        source = sources.get(file)
        text = (source.line(number) or "" if source is not None else "").strip()
        yield ExplainedLine(file, number, text, tuple(found))
