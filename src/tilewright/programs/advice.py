"""Advice: what is worth trying to make a program faster, the most promising first, from what was measured and done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.interface import CALLED, COLUMN, RANKS, SCALAR, Note, Reach
from tilewright.core.enums import ForKind
from tilewright.core.expr import Invoke, Submit
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt, SeqStmts
from tilewright.core.visitor import bodies, expressions, statements
from tilewright.passes.launches import launches, runs_side_by_side
from tilewright.programs.explanation import Advice, Limit
from tilewright.programs.work import Work

MOST = 3
SHORT = 20e-6
"""Seconds that a call from Python may take before what is around the program matters less than it does."""


def advised(
    program: Program, work: Work, limits: Sequence[Limit], seconds: float, call_seconds: float, notes: Sequence[Note],
    reach: Reach,
) -> tuple[Advice, ...]:  # fmt: skip
    """Return the changes most worth trying."""
    bytes_used = next((limit.share for limit in limits if limit.unit == "B/s" and not limit.is_passed), 0.0)
    found = [
        *_threads(program, seconds, reach),
        *_memory(notes, bytes_used),
        *_elements(bytes_used),
        *_library(notes),
        *_scalars(notes),
        *_calls(seconds, call_seconds),
        *_products(work, limits),
    ]
    return tuple(sorted(found, key=lambda each: -each.gain)[:MOST])


def _threads(program: Program, seconds: float, reach: Reach) -> Iterator[Advice]:
    """Yield which loops could run on more threads than they do."""
    if reach.width < 2 or reach.noun == RANKS or seconds < SHORT:
        return
    for entry in program.entries:
        if any(launch.count for launch in launches(program, entry)):
            yield from _few_turns(entry.name, program, reach)
            continue
        loop = next((stmt for stmt in statements(entry.body) if isinstance(stmt, ForStmt) and _starts(stmt)), None)
        if loop is None:
            text = f"`{entry.name}` runs on one of {reach}: cut its rows into a `for ... in pl.parallel(...)`"
            yield Advice(float(reach.width), text, entry.span.line)
        else:
            yield Advice(float(reach.width), _in_order(loop, reach), loop.span.line)


def _in_order(loop: ForStmt, reach: Reach) -> str:
    where = f"line {loop.span.line}: the turns of `{loop.loop_var.name_hint}` run in order, on one of {reach}"
    if loop.kind is ForKind.Parallel:
        return f"{where}, since they hand values on or leave early: let each turn write what is its own"
    return f"{where}: pl.parallel in place of pl.range runs them side by side, where none needs another's result"


def _starts(loop: ForStmt) -> bool:
    calls = (expr for stmt in statements(loop.body) for expr in expressions(stmt))
    return any(isinstance(expr, (Invoke, Submit)) for expr in calls)


def _few_turns(name: str, program: Program, reach: Reach) -> Iterator[Advice]:
    for loop in _side_by_side(program[name].body):
        turns = _turns(loop, spans_nests=reach.spans_nests)
        if 0 < turns < reach.width:
            text = f"line {loop.span.line}: {turns} turns for {reach}: smaller tiles give each of them one"
            yield Advice(reach.width / turns, text, loop.span.line)


def _side_by_side(body: SeqStmts) -> list[ForStmt]:
    """Return the outermost loops whose turns run side by side."""
    found: list[ForStmt] = []
    for stmt in body:
        if isinstance(stmt, ForStmt) and runs_side_by_side(stmt):
            found.append(stmt)
        else:
            found += [loop for inner in bodies(stmt) for loop in _side_by_side(inner)]
    return found


def _turns(loop: ForStmt, *, spans_nests: bool) -> int:
    """Return how many turns run side by side, 0 where only a call tells."""
    limits = [getattr(each, "value", None) for each in (loop.start, loop.stop, loop.step)]
    if not all(isinstance(each, int) for each in limits):
        return 0
    own = len(range(*(int(each or 0) for each in limits)))
    inner = _side_by_side(loop.body)
    return own * _turns(inner[0], spans_nests=True) if spans_nests and len(inner) == 1 else own


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


def _library(notes: Sequence[Note]) -> Iterator[Advice]:
    """Yield where functions of doubles are computed, which vectors of floats would be."""
    for note in (note for note in notes if note.kind == CALLED):
        text = f"line {note.number}: {note.text}; in pl.FP32, where that is exact enough, they are computed in vectors"
        yield Advice(10.0, text, note.number)
        return


SINGLE = {
    COLUMN: (
        4.0,
        "tiles of several columns, as in [16, 16], are computed in vectors and read whole lines of the cache",
    ),
    SCALAR: (1.2, "fewer, longer rows, or one op for several, do more at once"),
}
"""What lines that compute single elements gain by something else, and what that is."""


def _scalars(notes: Sequence[Note]) -> Iterator[Advice]:
    for kind, (gain, instead) in SINGLE.items():
        if note := next((note for note in notes if note.kind == kind), None):
            yield Advice(gain, f"line {note.number} is computed {note.text}; {instead}", note.number)


def _calls(seconds: float, call_seconds: float) -> Iterator[Advice]:
    around = call_seconds - seconds
    if call_seconds and around / call_seconds > 0.3:
        text = f"a call from Python takes {1e6 * around:.1f} us more than the program: do more in one call"
        yield Advice(call_seconds / max(seconds, 1e-9), text)


def _products(work: Work, limits: Sequence[Limit]) -> Iterator[Advice]:
    unit = next((limit for limit in limits if limit.unit == "FLOP/s"), None)
    if unit is not None and work.product is not None and unit.share < 0.4:
        text = f"products run at less than half of the peak of {unit.name}: rows and columns in multiples of 64 and"
        gain = min(0.8 / max(unit.share, 0.05), 4.0)
        yield Advice(gain, f"{text} inner dimensions of 256 and more keep them in registers")
