"""Differences: what two modules say differently, whatever their values are called.

Lines of canonical text are matched with the names of values left out. Lines that match make their values partners, and
a line whose operands are no partners differs after all: a renamed value, or one more op, changes nothing below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright.pto.matching import matched
from tilewright.pto.module import Func, Module, Value
from tilewright.pto.text.printer import print_module
from tilewright.records import record

_VALUE = re.compile(r"%[\w$.]+")


@record
class _Line:
    """A line of canonical text, and the same without the names of its values."""

    text: str
    shape: str
    values: list[tuple[str, str]]
    """Each value by its number, which no other has, and its name."""
    defines: list[str]
    """The numbers of those that are new."""


def difference(before: Module, after: Module, context: int = 2) -> list[str]:
    """Return the lines that differ with some around them, marked `-` and `+`; nothing where both say the same."""
    marked = list(_marked(_lines(before), _lines(after)))
    changed = [i for i, line in enumerate(marked) if not line.startswith(" ")]
    near = sorted({i for at in changed for i in range(at - context, at + context + 1) if 0 <= i < len(marked)})
    shown: list[str] = []
    for i, at in enumerate(near):
        shown += ["  ..."] if i and at > near[i - 1] + 1 else []
        shown.append(marked[at])
    return shown


def _marked(a: list[_Line], b: list[_Line]) -> Iterator[str]:
    """Yield the lines of both modules: shared ones once, others behind the mark of their side."""
    partners: dict[str, str] = {}

    def are_partners(ours: tuple[str, str], theirs: tuple[str, str]) -> bool:
        """Tell whether values stand for each other; those that differing lines define do where their names agree."""
        known = partners.get(ours[0])
        return ours[1] == theirs[1] if known is None else known == theirs[0]

    at = there = 0
    for first, start in [*matched([line.shape for line in a], [line.shape for line in b]), (len(a), len(b))]:
        yield from (f"- {line.text}" for line in a[at:first])
        yield from (f"+ {line.text}" for line in b[there:start])
        at, there = first + 1, start + 1
        for ours, theirs in zip(a[first:at], b[start:there], strict=True):
            partners |= zip(ours.defines, theirs.defines, strict=True)
            is_same = all(map(are_partners, ours.values, theirs.values))
            yield from (f"  {theirs.text}",) if is_same else (f"- {ours.text}", f"+ {theirs.text}")


def _lines(module: Module) -> list[_Line]:
    lines: list[_Line] = []
    seen: set[str] = set()
    both = print_module(module).splitlines(), _numbered(module).splitlines()
    for text, numbered in zip(*both, strict=True):
        numbers = _VALUE.findall(numbered)
        values = list(zip(numbers, _VALUE.findall(text), strict=True))
        lines.append(_Line(text, _VALUE.sub("%", numbered), values, [n for n in numbers if n not in seen]))
        seen.update(numbers)
    return lines


def _numbered(module: Module) -> str:
    """Return the text of a module in which no two values have one name."""
    names = [(value, value.name) for func in module.funcs() for value in _values(func)]
    try:
        for number, (value, _) in enumerate(names):
            value.name = str(number)
        return print_module(module)
    finally:
        for value, name in names:
            value.name = name


def _values(func: Func) -> Iterator[Value]:
    yield from func.arguments
    for outer in func.body.ops if func.body else ():
        for op in outer.walk():
            yield from (value for region in op.regions for value in region.arguments)
            yield from op.results
