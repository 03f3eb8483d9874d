"""Advice: what is worth trying to make a program faster, the most promising first, from what was measured and done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.interface import Note
from tilewright.core.enums import ForKind
from tilewright.core.expr import Invoke, Submit
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import expressions, statements
from tilewright.passes.launches import launches, runs_side_by_side
from tilewright.programs.explanation import Advice, Limit
from tilewright.programs.work import Work

MOST = 3
SHORT = 20e-6
"""Seconds that a call from Python may take before what is around the program matters less than it does."""


def advised(
    program: Program, work: Work, limits: Sequence[Limit], seconds: float, call_seconds: float, notes: Sequence[Note],
    threads: int,
) -> tuple[Advice, ...]:  # fmt: skip
    """Return the changes most worth trying."""
    bytes_used = next((limit.share for limit in limits if limit.unit == "B/s" and not limit.is_passed), 0.0)
    found = [
        *_threads(program, seconds, threads),
        *_memory(notes, bytes_used),
        *_elements(bytes_used),
        *_scalars(notes),
        *_calls(seconds, call_seconds),
        *_products(work, limits),
    ]
    return tuple(sorted(found, key=lambda each: -each.gain)[:MOST])


def _threads(program: Program, seconds: float, threads: int) -> Iterator[Advice]:
    """Yield which loops could run on more threads than they do."""
    if threads < 2 or seconds < SHORT:
        return
    for entry in program.entries:
        if any(launch.count for launch in launches(program, entry)):
            yield from _few_turns(entry.name, program, threads)
            continue
        loop = next((stmt for stmt in statements(entry.body) if isinstance(stmt, ForStmt) and _starts(stmt)), None)
        if loop is None:
            text = f"`{entry.name}` runs on one of {threads} threads: cut its rows into a `for ... in pl.parallel(...)`"
            yield Advice(float(threads), text, entry.span.line)
        else:
            yield Advice(float(threads), _in_order(loop, threads), loop.span.line)


def _in_order(loop: ForStmt, threads: int) -> str:
    where = f"line {loop.span.line}: the turns of `{loop.loop_var.name_hint}` run in order, on one of {threads} threads"
    if loop.kind is ForKind.Parallel:
        return f"{where}, since they hand values on or leave early: let each turn write what is its own"
    return f"{where}: pl.parallel in place of pl.range runs them side by side, where none needs another's result"


def _starts(loop: ForStmt) -> bool:
    calls = (expr for stmt in statements(loop.body) for expr in expressions(stmt))
    return any(isinstance(expr, (Invoke, Submit)) for expr in calls)


def _few_turns(name: str, program: Program, threads: int) -> Iterator[Advice]:
    for loop in (stmt for stmt in statements(program[name].body) if isinstance(stmt, ForStmt)):
        limits = [getattr(each, "value", None) for each in (loop.start, loop.stop, loop.step)]
        if runs_side_by_side(loop) and all(isinstance(each, int) for each in limits):
            turns = len(range(*(int(each or 0) for each in limits)))
            if 0 < turns < threads:
                text = (
                    f"line {loop.span.line}: {turns} turns for {threads} threads: smaller tiles give each of them one"
                )
                yield Advice(threads / turns, text, loop.span.line)


def _memory(notes: Sequence[Note], bytes_used: float) -> Iterator[Advice]:
    """Yield where a result goes to memory between two loops."""
    ended = [note for note in notes if note.kind == "memory"]
    for note in sorted(ended, key=lambda note: -note.size)[:1]:
        text = f"line {note.number}: {note.text}; what follows reads it again ({note.size} bytes a tile)"
        yield Advice(1.1 + 0.2 * bytes_used, text, note.number)


def _elements(bytes_used: float) -> Iterator[Advice]:
    if bytes_used >= 0.5:
        text = "it waits for memory: elements of half the size (pl.FP16 or pl.BF16) halve that, and so does doing more"
        yield Advice(2.0, f"{text} with what is loaded, in one kernel with the one before or after it")


def _scalars(notes: Sequence[Note]) -> Iterator[Advice]:
    for note in (note for note in notes if note.kind == "scalar"):
        text = f"line {note.number} is computed {note.text}; fewer, longer rows, or one op for several, do more at once"
        yield Advice(1.2, text, note.number)
        return


def _calls(seconds: float, call_seconds: float) -> Iterator[Advice]:
    around = call_seconds - seconds
    if call_seconds and around / call_seconds > 0.3:
        text = f"a call from Python takes {1e6 * around:.1f} us more than the program: do more in one call"
        yield Advice(call_seconds / max(seconds, 1e-9), text)


def _products(work: Work, limits: Sequence[Limit]) -> Iterator[Advice]:
    used = next((limit.share for limit in limits if limit.unit == "FLOP/s"), 1.0)
    if work.products > 0.5 * work.flops and work.flops and used < 0.4:
        text = "products run at less than half of what multiply-adds give: rows and columns in multiples of 64 and"
        yield Advice(min(0.8 / max(used, 0.05), 4.0), f"{text} inner dimensions of 256 and more keep them in registers")
