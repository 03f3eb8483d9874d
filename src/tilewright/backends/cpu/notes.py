"""Notes: what was done with each line of a program on its way to native code, as the passes and the emitter left it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tilewright.backends.cpu.compute.library import NAMES
from tilewright.backends.interface import CALLED, COLUMN, SCALAR, Line, Note
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.passes.fusion import FusedGroup, Fusion, Step
from tilewright.source import Span

_STEPS: Mapping[str, tuple[str, str]] = {
    "in_place": ("in place", "read where it lies in its tensor, by what needs it"),
    "packed": ("packed", "once for all products of the loop that follows"),
    "floats": ("shared", "one row, read by every loop that needs it"),
    "is_done": ("done", "written by what it stores, in one go"),
}
"""What a step of a plan is called, and what it means."""
_VECTOR = re.compile(r"<(\d+) x (?:float|double|half|bfloat|i(?:8|16|32|64))>")
_CALLED = re.compile(r"= (?:tail )?call (?:[a-z]+ )*double @(\w+)\(")
_LIBRARY = "by the mathematical library, one element at a time"
_SCALAR = re.compile(r"= (?:fadd|fsub|fmul|fdiv|fcmp|fneg) (?:[a-z]+ )*(?:float|double|half)\b")


def notes(plans: Sequence[Fusion], tiles: Sequence[str], llvm: Sequence[Line]) -> list[Note]:
    """Return what fusion, the choice of tiles and LLVM's text say, in the order of the lines they are about."""
    found = [*_of_plans(plans), *(Note("tiles", note) for note in tiles), *_of_text(llvm, _columns(plans))]
    return list(dict.fromkeys(found))


def _of_plans(plans: Sequence[Fusion]) -> Iterator[Note]:
    for plan in plans:
        for group in (group for group in plan.groups if group.stmts):
            yield from _of_group(plan, group)
        for stmt in statements(plan.function.body):
            yield from _of_step(plan.at(stmt), stmt.span)


def _of_group(plan: Fusion, group: FusedGroup) -> Iterator[Note]:
    spans = [stmt.span for stmt in group.stmts if stmt.span.is_known]
    if not spans:
        return
    lines = sorted({span.line for span in spans})
    if len(group.stmts) > 1:
        among = f"lines {lines[0]} to {lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
        yield Note("fused", f"{len(group.stmts)} ops of {among} are one loop over rows", *_at(spans[0]))
    if "memory" in group.ends:
        name = "" if group.about is None else group.about.name_hint
        size = _bytes(group.stmts, name)
        yield Note("memory", f"{f'`{name}` ' * bool(name)}{group.ends}: the loop ends here", *_at(spans[-1]), size)
    for stmt in group.stmts:
        yield from _of_step(plan.at(stmt), stmt.span)


def _bytes(stmts: Sequence[Stmt], name: str) -> int:
    """Return how large the tile is that one of the statements gives under a name."""
    for stmt in stmts:
        if isinstance(stmt, AssignStmt) and stmt.var.name_hint == name and isinstance(stmt.var.type, TileType):
            return stmt.var.type.nbytes
    return 0


def _at(span: Span) -> tuple[str, int]:
    return span.filename, span.line


def _of_step(step: Step, span: Span) -> Iterator[Note]:
    if not span.is_known:
        return
    for name, (kind, text) in _STEPS.items():
        if getattr(step, name):
            yield Note(kind, text, *_at(span))
    if step.target is not None:
        yield Note("straight", "gathered straight into the tensor that it is stored to", *_at(span))


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _columns(plans: Sequence[Fusion]) -> set[tuple[str, int]]:
    """Return the lines all of whose tiles have one element a row."""
    widths: dict[tuple[str, int], set[int]] = {}
    for stmt in (stmt for plan in plans for stmt in statements(plan.function.body)):
        if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TileType):
            widths.setdefault(_at(stmt.span), set()).add(stmt.var.type.shape[-1])
    return {line for line, found in widths.items() if found == {1}}


def _of_text(llvm: Sequence[Line], columns: set[tuple[str, int]]) -> Iterator[Note]:
    """Yield which lines became vectors, and how wide, which did not, and which are written past the caches."""
    by_line: dict[tuple[str, int], list[str]] = {}
    for line in llvm:
        if line.number:
            by_line.setdefault((line.file, line.number), []).append(line.text)
    for (file, number), texts in by_line.items():
        lanes = [int(found) for text in texts for found in _VECTOR.findall(text)]
        if functions := dict.fromkeys(found for text in texts for found in _CALLED.findall(text) if found in NAMES):
            yield Note(CALLED, f"{_listed([*functions])} of fp64, {_LIBRARY}", file, number)
        elif lanes:
            yield Note("vectorized", f"vectors of {max(lanes)} elements", file, number)
        elif scalars := sum(bool(_SCALAR.search(text)) for text in texts):
            kind = COLUMN if (file, number) in columns else SCALAR
            why = "its tiles have one column" if kind == COLUMN else "numbers, no rows of them"
            text = f"one element at a time, {scalars} operation{'s' * (scalars > 1)}: {why}"
            yield Note(kind, text, file, number)
        if any("!nontemporal" in text for text in texts):
            yield Note("streamed", "written past the caches where the output is large and aligned", file, number)
