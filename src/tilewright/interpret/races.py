"""Races: elements that two turns touch which may run at the same time, one of them writing.

The turns of a parallel loop and the blocks of a grid run one after the other here; elsewhere they run in any order or
at the same time. Every byte of a tensor knows who wrote it, who read it and who added to it, and each access is held
against that. Of several turns that have read a byte or added to it, the first is enough: whatever may run at the same
time as a later one may run at the same time as that one (Feng and Leiserson, "Efficient detection of determinacy races
in Cilk programs", 1997).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access
from tilewright.core.expr import Call, Var
from tilewright.core.region import Array, Region
from tilewright.errors import RaceError
from tilewright.interpret.shadow import Shadows
from tilewright.named_tuples import NamedTuple
from tilewright.source import Span

ROWS = {access: row for row, access in enumerate(Access)}
CONFLICTS: Mapping[Access, tuple[Access, ...]] = {
    Access.READ: (Access.WRITE, Access.ADD),
    Access.WRITE: (Access.WRITE, Access.READ, Access.ADD),
    Access.ADD: (Access.WRITE, Access.READ),
}
"""What another turn must not have done where this one does something."""

HELP = (
    "let each turn write elements of its own; add with atomic=pl.AtomicType.Add; "
    "or let turns follow each other, with pl.range"
)


class Turn(NamedTuple):
    """One turn of a loop or block of a grid, of the `run`th time that any of them was run."""

    run: int
    number: int
    name: str


Path = tuple[Turn, ...]
"""The turns around a statement, from the outside in."""


class Witness(NamedTuple):
    """An access, as it is remembered."""

    access: Access
    path: Path
    span: Span


def meeting(earlier: Path, later: Path) -> tuple[Turn, Turn] | None:
    """Return the turns of one loop or grid that two paths go through, None where one path follows the other."""
    for one, other in zip(earlier, later, strict=False):
        if one.run != other.run:
            return None
        if one.number != other.number:
            return one, other
    return None


class Races:
    """Holds every access of a turn against those of others; RaceError for two that must not meet."""

    def __init__(self) -> None:
        self.path: Path = ()
        self.runs = 0
        self.shadows = Shadows(len(Access))
        self.witnesses: list[Witness | None] = [None]
        self.numbers: dict[Witness, int] = {}
        self.call: Call | None = None
        self.bound: Mapping[str, Any] = {}
        self.racing: Any = np.zeros((), bool)
        """Which of the elements that an access touched it raced for, the last one that did."""

    @property
    def listens(self) -> bool:
        """Whether accesses matter here: outside of turns everything is in order."""
        return bool(self.path)

    def turns(self, indices: range, name: str) -> Iterator[int]:
        """Yield indices, each of them a turn that may run at the same time as the others."""
        self.runs += 1
        around, run = self.path, self.runs
        try:
            for index in indices:
                self.path = (*around, Turn(run, index, name.format(index)))
                yield index
        finally:
            self.path = around
            if not around:
                self._forget()

    def _forget(self) -> None:
        """Forget every access: what comes follows all that was."""
        self.shadows.clear()
        self.witnesses[1:] = []
        self.numbers.clear()

    def touched(self, access: Access, elements: Array) -> None:
        """Hold an access of the current turn against what others did to the same elements, and remember it."""
        if not self.path or not elements.size:
            return
        shadow = self.shadows.beside(elements)
        for other in CONFLICTS[access]:
            self._check(access, elements, shadow.beside(ROWS[other], elements))
        self._remember(access, shadow.beside(ROWS[access], elements))

    def _check(self, access: Access, elements: Array, numbers: Array) -> None:
        found = self._met(numbers)
        if found:
            self.racing = np.isin(numbers, found).any(axis=-1)
            place = [int(i) for i in np.argwhere(self.racing)[0]]
            at = elements.ctypes.data + sum(i * stride for i, stride in zip(place, elements.strides, strict=True))
            witness = self.witnesses[int(numbers[(*place, 0)])]
            assert witness is not None
            raise self._race(witness, access, at)

    def _met(self, numbers: Array) -> list[int]:
        """Return the numbers of those accesses that may happen at the same time as what the current turn does."""
        low, high = int(numbers.min()), int(numbers.max())
        distinct: list[int] = [low] if low == high else np.unique(numbers).tolist()
        return [number for number in distinct if self._meets(self.witnesses[number])]

    def _meets(self, witness: Witness | None) -> bool:
        return witness is not None and meeting(witness.path, self.path) is not None

    def _remember(self, access: Access, numbers: Array) -> None:
        kept = [] if access is Access.WRITE else self._met(numbers)
        numbers[~np.isin(numbers, kept) if kept else ...] = self._number(access)

    def _number(self, access: Access) -> int:
        assert self.call is not None
        witness = Witness(access, self.path, self.call.span)
        if witness not in self.numbers:
            self.numbers[witness] = len(self.witnesses)
            self.witnesses.append(witness)
        return self.numbers[witness]

    def _race(self, witness: Witness, access: Access, at: int) -> RaceError:
        assert self.call is not None
        turns = meeting(witness.path, self.path)
        assert turns is not None
        earlier, later = turns
        element = self._named(self.call, at)
        return RaceError(
            f"{later.name} {access.value} {element}, which {earlier.name} {witness.access.value}: nothing orders them",
            spans=[self.call.span],
            notes=[f"{earlier.name} {witness.access.value} it at {witness.span}{_quoted(witness.span)}"],
            help=HELP,
        )

    def _named(self, call: Call, at: int) -> str:
        """Return how the current call would name the element at an address."""
        for parameter, operand in zip(call.op.spec.operands, call.args, strict=False):
            region = self.bound.get(parameter.name)
            if isinstance(operand, Var) and isinstance(region, Region):
                index = _index(region.data, at)
                if index is not None:
                    return f"{operand.name_hint}[{', '.join(map(str, index))}]"
        return "an element"


def _quoted(span: Span) -> str:
    line = span.source.line(span.line) if span.source is not None else None
    return f": {line.strip()}" if line else ""


def _index(array: Array, at: int) -> tuple[int, ...] | None:
    """Return the index of the element at an address, None where there is none in the array."""
    left = at - array.ctypes.data
    index = [0] * array.ndim
    for axis in sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])):
        stride, extent = array.strides[axis], array.shape[axis]
        if stride:
            index[axis] = max(0, min(left // stride, extent - 1))
            left -= index[axis] * stride
    return tuple(index) if array.size and 0 <= left < array.itemsize else None
