"""Lint: what a legal text says that its author can hardly have meant.

Each check is a function over one function of a module; its docstring is what `tilewright pto lint --list` prints.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.pto import lint_machine as lint_machine
from tilewright.pto.architectures import architectures
from tilewright.pto.entries import callees
from tilewright.pto.lint_checks import CHECKS, SEEN, Finding, Subject, check
from tilewright.pto.module import Module, Op, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.types import TileBuf
from tilewright.source import Span


def lint(module: Module) -> list[Finding]:
    """Return what all checks find in a verified module, in the order of the text."""
    called = {name for func in module.funcs() for name in callees(func)}
    subjects = [Subject(func, called, said) for func, (_, said) in architectures(module, "")]
    found = [finding for subject in subjects for each in CHECKS.values() for finding in each(subject)]
    return sorted(found, key=lambda finding: (finding.span.line, finding.span.column))


_DOING = ("func.call", "pto.atomic_", "pto.tpop", "pto.talloc", "pto.comm.")
"""What the names of ops begin with that do something beside what they give."""


@check
def _unused_value(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A value that nothing uses."""
    for op in subject.ops:
        if op.regions or op.name == "pto.alloc_tile" or op.name.startswith(_DOING):
            continue  # tiles have a check of their own
        if op.results and not any(subject.uses[value] for value in op.results):
            yield op.span, f"nothing uses `%{op.results[0].name}`", "delete it"


@check
def _unused_parameter(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A parameter that nothing uses; a name that begins with `_` says that this is meant."""
    for value in subject.func.arguments if subject.func.body else ():
        if not subject.uses[value] and not value.name.startswith("_"):
            yield (
                value.span,
                f"`@{subject.func.name}` never uses `%{value.name}`",
                f"delete it here and where it is passed, or call it `%_{value.name}`",
            )


@check
def _unread_attribute(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An attribute that its op does not read."""
    for op in subject.ops:
        words = OPS[op.name].words
        for name in op.attributes if words else ():
            if name not in words:
                yield op.span, f"`{op.name}` does not read `{name}`", f"delete it; it reads {', '.join(words)}"


@check
def _uncalled_function(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A private function that nothing calls."""
    func = subject.func
    if func.private and func.body is not None and func.name not in subject.called:
        yield func.span, f"nothing calls `@{func.name}`, which is private", "delete it, or let a kernel call it"


def _reads(op: Op, value: Value) -> bool:
    return value not in op.outs and op.name not in (*SEEN, "pto.set_validshape")


@check
def _idle_tile(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A tile that is never written, or never read."""
    read = {subject.tile(value) for op in subject.ops for value in op.uses if _reads(op, value)}
    written = {subject.tile(value) for op in subject.ops for value in (*op.outs, *_scratch(op))}
    for op in subject.ops:
        tile = op.results[0] if op.name == "pto.alloc_tile" else None
        if tile is None or op.clause("addr") is not None or not isinstance(tile.type, TileBuf):
            continue  # a tile at an address may share its bytes with another
        if tile in read and tile in written:
            continue
        if tile in read:
            yield (
                op.span,
                f"nothing writes `%{tile.name}`: it holds zeros",
                "load it, or say the zeros with `pto.texpands`",
            )
        else:
            state = "reads" if tile in written else "uses"
            yield op.span, f"nothing {state} `%{tile.name}`", "delete it and what writes it"


def _scratch(op: Op) -> tuple[Value, ...]:
    """Return the tile that an op takes to work in: the last of its inputs, which may be left out."""
    ins = OPS[op.name].form.words.get("ins")
    has_all = ins is not None and ins.kinds.endswith("z?") and len(op.ins) == len(ins.kinds) - 1
    return op.ins[-1:] if has_all else ()


@check
def _early_read(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A tile that is read before anything writes it."""
    fresh = {
        op.results[0]: op for op in subject.ops if op.name == "pto.alloc_tile" and op.clause("addr") is None
    }  # a tile at an address may share its bytes with another
    written = {subject.tile(value) for op in subject.ops for value in op.outs}
    for op in subject.ops:
        scratch = _scratch(op)
        for value in op.uses if op.name not in (*SEEN, "pto.set_validshape") else ():
            tile = subject.tile(value)
            if fresh.pop(tile, None) and value in op.ins and value not in scratch and tile in written:
                yield op.span, f"nothing writes `%{tile.name}` before this: it holds zeros", "load or fill it first"


@check
def _idle_loop(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A loop of constant bounds that makes no turn."""
    for op in subject.ops:
        if op.name != "scf.for":
            continue
        lower, upper = (subject.constants.get(value) for value in op.operands[:2])
        if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
            yield op.span, f"this loop goes from {lower} to {upper}: it makes no turn", "mend its bounds, or delete it"


@check
def _settled_branch(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A branch whose condition is a constant."""
    for op in subject.ops:
        if op.name == "scf.if" and (value := subject.constants.get(op.operands[0])) is not None:
            yield op.span, f"this condition is always {str(bool(value)).lower()}", "compute it, or delete the branch"
