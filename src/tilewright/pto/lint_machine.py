"""Checks of what a text says to the machine: which one it is, where products find their operands, and events."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.pto.elements import A5
from tilewright.pto.lint_checks import Subject, check
from tilewright.pto.module import Op, Value, word_of
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.types import Ptr
from tilewright.source import Span

_MACHINES = ("a2", "a3", "a2a3", A5)


@check
def _unknown_machine(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A function for a machine that there is not."""
    if subject.said and subject.said not in _MACHINES:
        message = f"`{subject.said}` is no machine: `@{subject.func.name}` is held to the rules of A2/A3"
        help = nearest(subject.said.lower(), _MACHINES) or f"`pto.target_arch` is {', '.join(_MACHINES)}"
        yield subject.func.span, message, help


@check
def _misfitting_load(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A product that looks for its operands elsewhere than they were loaded to."""
    loaded: dict[Value, int | None] = {}
    for op in subject.ops:
        if op.name in _LOADS:
            extent = subject.constants.get(op.operands[_LOADS[op.name]])
            loaded[op.operands[1]] = _blocks(extent, _lane(op.operands[1]) if op.attributes.get("transpose") else 16)
        if not op.name.startswith("pto.mad") or len(op.operands) < 6:
            continue
        rows, cols, depth = (subject.constants.get(value) for value in op.operands[-3:])
        for value, extent in zip(op.operands[:2], (rows, cols), strict=True):
            found, wanted = loaded.get(value), _blocks(extent, 16)
            is_deep = isinstance(depth, int) and depth > _lane(value)
            if found and wanted and found != wanted and is_deep:
                yield (
                    op.span,
                    f"`%{value.name}` was loaded {found} blocks of 16 wide, and this takes it for {wanted}",
                    f"multiply {16 * found}, and bring out those you need",
                )


_LOADS = {"pto.mte_l1_l0a": 2, "pto.mte_l1_l0b": 3}
"""What loads operands of products, and which operand says how many rows or columns."""


def _lane(pointer: Value) -> int:
    """Return how many elements 32 bytes hold."""
    return 32 // pointer.type.element.nbytes if isinstance(pointer.type, Ptr) else 16


def _blocks(extent: object, lane: int) -> int | None:
    """Return how many blocks of 16 a number of rows or columns takes that comes in whole lanes."""
    whole = max(16, lane)
    return -(-extent // whole) * whole // 16 if isinstance(extent, int) else None


@check
def _early_wait(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An event that is waited for before anything sets it."""
    known: set[tuple[object, ...]] = set()
    later = {_event(op) for op in subject.ops if op.name == "pto.set_flag"}
    for op in subject.ops:
        if op.name == "pto.set_flag":
            known.add(_event(op))
        elif op.name == "pto.wait_flag" and _event(op) in later - known:
            yield op.span, "this event is waited for before anything sets it", "move the `pto.set_flag` up"


@check
def _lone_flag(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An event that is set and never waited for, or waited for and never set."""
    sides = {"pto.set_flag": "pto.wait_flag", "pto.wait_flag": "pto.set_flag"}
    known = {(op.name, _event(op)) for op in subject.ops if op.name in sides}
    for op in subject.ops:
        other = sides.get(op.name)
        if other is not None and (other, _event(op)) not in known:
            has = (
                "is set and nothing waits for it"
                if other.endswith("wait_flag")
                else "is waited for and nothing sets it"
            )
            yield op.span, f"this event {has}", f"add the `{other}` it belongs with"


def _event(op: Op) -> tuple[object, ...]:
    return (*((name, word_of(value)) for name, value in sorted(op.attributes.items())), *op.uses)
