"""What lint is made of: checks, the functions that they look at, and their remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from tilewright.pto.module import Func, Op, Value
from tilewright.records import record
from tilewright.source import Span

SEEN = ("pto.subview", "pto.subset", "pto.treshape", "pto.bitcast")
"""The ops that give the bytes of a tile another shape or type."""


@record
class Finding:
    """One remark: which check made it, where, and what to do."""

    check: str
    span: Span
    message: str
    help: str


class Subject:
    """One function as checks look at it: its ops in order, and who uses what."""

    def __init__(self, func: Func, called: Collection[str], said: str) -> None:
        self.func = func
        self.said = said
        """The machine that the text says it is for; empty where it says none."""
        self.called = called
        """The names of the functions that some function of the module calls."""
        self.ops = list(_ops(func))
        """Every op, those inside others too, in the order of the text."""
        self.uses = Counter(value for op in self.ops for value in op.uses)
        """How often each value is an operand."""
        self.constants = {op.results[0]: op.attributes["value"] for op in self.ops if op.name == "arith.constant"}
        """What constants define values to be."""
        self.seen_as = {op.results[0]: op.operands[0] for op in self.ops if op.name in SEEN}
        """What windows and other views of tiles are views of."""

    def tile(self, value: Value) -> Value:
        """Return the tile whose bytes a value is, or the value."""
        while value in self.seen_as:
            value = self.seen_as[value]
        return value


Check = Callable[[Subject], Iterator[Finding]]
CHECKS: dict[str, Check] = {}
"""Every check by its name."""


def check(function: Callable[[Subject], Iterator[tuple[Span, str, str]]]) -> Check:
    """Sign a check in under the name of its function; it yields places, messages and helps."""
    name = function.__name__.strip("_").replace("_", "-")

    def findings(subject: Subject) -> Iterator[Finding]:
        return (Finding(name, *found) for found in function(subject))

    findings.__doc__ = function.__doc__
    CHECKS[name] = findings
    return findings


def _ops(func: Func) -> Iterator[Op]:
    for op in func.body.ops if func.body else ():
        yield from op.walk()
