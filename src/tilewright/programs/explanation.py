"""Explanations: why a program takes as long as it does, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tilewright.backends.interface import Note
from tilewright.notebook import Sheet
from tilewright.records import record

PASSED = 1.1
"""Above which part of what was measured something else must have done it."""
QUIET = 0.2
"""How far the middle half of the runs may differ before nobody should trust them."""
BUSY = "more than was measured, while the machine was busy"
"""What is said where nothing can be faster than what was measured."""


@record
class Limit:
    """Something that the machine has only so much of: how much of it a call used a second, and how much there is."""

    name: str
    unit: str
    used: float
    most: float
    faster: str = BUSY
    """What did it where more was used than there is: caches for memory, matrix units for products."""

    @property
    def share(self) -> float:
        """Which part of it was used."""
        return self.used / self.most if self.most else 0.0

    @property
    def is_passed(self) -> bool:
        """Whether something faster than what was measured did it."""
        return self.share > PASSED

    @property
    def said(self) -> str:
        """How much of it was used, and where from if that is more than there is."""
        return self.faster if self.is_passed else f"{100 * self.share:.0f} %"


@record
class Advice:
    """A change worth trying: by how much the program might get faster, at best, and why."""

    gain: float
    text: str
    line: int = 0


@record
class ExplainedLine:
    """A line of the author's, and what became of it."""

    file: str
    number: int
    text: str
    notes: tuple[Note, ...]


@record
class Explanation(Sheet):
    """One call of a program: how long it took, what it had to do, what the machine can do, and what was made of it."""

    name: str
    platform: str
    seconds: float
    """The program by itself."""
    call_seconds: float
    """Called from Python."""
    flops: float
    bytes: float
    moved: float
    """Bytes loaded from tensors and stored to them."""
    limits: tuple[Limit, ...]
    facts: tuple[str, ...]
    lines: tuple[ExplainedLine, ...]
    advice: tuple[Advice, ...]
    spread: float = 0.0
    """How far the middle half of the runs differ, as a part of the median."""

    @property
    def bound_by(self) -> str:
        """What keeps it from being faster: the limit that it is nearest to, or nothing of the kind."""
        if not self.limits:
            return "what limits it was not measured"
        if full := [limit for limit in self.limits if limit.is_passed and limit.faster == BUSY]:
            return f"{full[0].name}: it uses all of it, {BUSY}"
        nearest = max(self.limits, key=lambda limit: 0.0 if limit.is_passed else limit.share)
        if nearest.share >= 0.5 and not nearest.is_passed:
            return f"{nearest.name}: it uses {100 * nearest.share:.0f} % of what there is"
        used = " and ".join(
            f"{each.name} {each.said}" if each.is_passed else f"{each.said} of {each.name}" for each in self.limits
        )
        return f"neither: it uses {used}"

    def plain(self) -> dict[str, Any]:
        """Return all of it as dicts, lists, texts and numbers."""
        found = {
            name: getattr(self, name) for name in ("name", "platform", "seconds", "call_seconds", "flops", "bytes")
        }
        return {
            **found,
            "moved": self.moved,
            "spread": self.spread,
            "bound_by": self.bound_by,
            "limits": [
                {name: getattr(limit, name) for name in ("name", "unit", "used", "most", "share", "is_passed")}
                for limit in self.limits
            ],
            "facts": list(self.facts),
            "lines": [
                {**_fields(line), "notes": [{"kind": note.kind, "text": note.text} for note in line.notes]}
                for line in self.lines
            ],
            "advice": [_fields(each) for each in self.advice],
        }

    def __str__(self) -> str:
        return "\n".join(self._texts()) + "\n"

    def __repr__(self) -> str:
        """Return all of it as text, for whoever asks at a prompt."""
        return str(self).rstrip()

    def _texts(self) -> Iterator[str]:
        yield f"{self.name} on {self.platform}: {_time(self.seconds)}, {_time(self.call_seconds)} called from Python"
        yield f"  does     {_amount(self.flops, 'FLOP')}, {_amount(self.bytes, 'B')} of arguments"
        yield f"           {_amount(self.moved, 'B')} loaded and stored"
        wide = max((8, *(len(limit.name) for limit in self.limits)))
        for limit in self.limits:
            used, most = (_amount(each, limit.unit) for each in (limit.used, limit.most))
            yield f"  {limit.name:<{wide}} {used} of {most} ({limit.said})"
        yield f"  bound by {self.bound_by}"
        if self.spread > QUIET:
            yield f"  but      runs differ by {100 * self.spread:.0f} %: the machine is doing something else, too"
        yield from ("", "what was made of it", *(f"  {fact}" for fact in self.facts))
        yield from ("", "line by line", *self._lines())
        yield from ("", "worth trying", *self._advice())

    def _lines(self) -> Iterator[str]:
        for line in self.lines:
            yield f"  {line.number:>4} | {line.text}"
            yield from (f"       |   {note.kind}: {note.text}" for note in line.notes)

    def _advice(self) -> Sequence[str]:
        found = [f"  {number}. {each.text}" for number, each in enumerate(self.advice, start=1)]
        return found or ["  nothing that this program shows"]


def _fields(value: Any) -> dict[str, Any]:
    return asdict(value) if not hasattr(value, "_asdict") else value._asdict()


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def _amount(number: float, unit: str) -> str:
    """Return a number of something with a prefix that makes it short."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {prefix}{unit}"
    return f"{number:.0f} {unit}"
