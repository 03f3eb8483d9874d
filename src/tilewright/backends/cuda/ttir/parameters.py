"""Parameters: what a kernel is given, as its text names it and as the host has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace

from tilewright.backends.cuda.ttir.text import I64, Value, descriptor_of, located, pointer_to
from tilewright.backends.cuda.ttir.values import ANY, Extent
from tilewright.native import llvm
from tilewright.records import mutable, record
from tilewright.source import UNKNOWN

ALIGNED = 16
"""Bytes that are loaded and stored at once, where addresses and the distances between rows are multiples of them."""


@record
class Parameter:
    """One parameter: its name in the kernel, and the word of the host's that it is given, None for the error word.

    Where it is a multiple of `divisor`, more than one element of some tensors is moved at a time: those of `roots`.
    """

    value: Value
    word: llvm.Value | None
    divisor: int = 1
    roots: tuple[object, ...] = ()


@record
class Axis:
    """An axis of a tensor along which there are planes: their number, and the strides of the axis and of their rows."""

    count: llvm.Value
    stride: llvm.Value
    row_stride: llvm.Value

    @property
    def apart(self) -> llvm.Value:
        """Stands for how many rows a plane is from the next while the kernel is written."""
        return llvm.Value(llvm.I64, f"rows of {self}")


@record
class Plane:
    """The last two axes of a tensor as the host has it, rows of neighbours: words, and what an element is in memory.

    Along other axes there are more such planes, which descriptors have below each other.
    """

    pointer: llvm.Value
    rows: llvm.Value
    columns: llvm.Value
    stride: llvm.Value
    element: str
    size: int
    axes: tuple[Axis, ...] = ()


@record
class Map:
    """A descriptor that the host makes for a kernel: of which tensor, for blocks of which shape."""

    value: Value
    plane: Plane
    block: tuple[int, int]


@mutable
class Parameters:
    """The parameters of a kernel being written; one for each word."""

    found: list[Parameter] = field(default_factory=list[Parameter])
    maps: list[Map] = field(default_factory=list[Map])
    axes: set[Axis] = field(default_factory=set[Axis])
    """Those of which the kernel is told how far planes are apart."""

    def add(self, element: str, word: llvm.Value | None, divisor: int = 1, roots: tuple[object, ...] = ()) -> Value:
        """Return the parameter that a word is given as."""
        for number, known in enumerate(self.found):
            if known.word == word and known.value.element == element:
                self.found[number] = replace(known, roots=(*known.roots, *roots))
                return known.value
        value = Value(f"%arg{len(self.found)}", element)
        self.found.append(Parameter(value, word, divisor, roots))
        return value

    def align(self, in_rows: Collection[object]) -> None:
        """Ask alignment of the tensors alone that are moved in rows: others are not to keep these from it."""
        self.found = [
            each
            if ANY in in_rows or not each.roots or any(root in in_rows for root in each.roots)
            else replace(each, divisor=1)
            for each in self.found
        ]

    def is_given(self, extent: Extent) -> bool:
        """Return whether an extent is known, or a parameter."""
        return isinstance(extent, int) or any(known.value == extent for known in self.found)

    def word_of(self, value: Value) -> llvm.Value:
        """Return the word that a parameter is given."""
        return next(known.word for known in self.found if known.value == value and known.word is not None)

    def settle(self, word: llvm.Value, given: llvm.Value) -> None:
        """Let a parameter be given another word than the one that it was added with."""
        self.found = [replace(each, word=given) if each.word == word else each for each in self.found]

    def errors(self) -> Value:
        """Return the address of the word that errors are noted in."""
        return self.add(pointer_to(I64), None)

    def errors_of(self) -> Value | None:
        """Return the address of that word where it is a parameter."""
        return next((each.value for each in self.found if each.word is None), None)

    def described(self, plane: Plane, block: tuple[int, int], element: str) -> Value:
        """Return the descriptor by which blocks of a tensor are loaded, of elements that may have another name."""
        plane = replace(plane, element=element or plane.element)
        for known in self.maps:
            if (known.plane, known.block) == (plane, block):
                return known.value
        value = Value(f"%map{len(self.maps)}", descriptor_of(plane.element, block))
        self.maps.append(Map(value, plane, block))
        return value

    def apart(self, axis: Axis) -> Value:
        """Return how many rows a plane is from the next along an axis."""
        self.axes.add(axis)
        return self.add(I64, axis.apart)

    def texts(self, *, is_aligned: bool, is_described: bool = False) -> Sequence[str]:
        """Return the parameters as a kernel declares them, with what is known where all of them are aligned."""
        return [f"{said} {located(UNKNOWN)}" for said in self._said(is_aligned, is_described)]

    def listed(self) -> list[tuple[str, str, str]]:
        """Return the parameters where all are aligned, with descriptors: names, types, and what is known of them."""
        found = [(each.value.ref, each.value.element, _said(each, True)) for each in self.found]
        return [*found, *((each.value.ref, each.value.element, "") for each in self.maps)]

    def copied(self) -> Parameters:
        """Return the same parameters, to which others can be added."""
        return Parameters(list(self.found), list(self.maps), set(self.axes))

    def _said(self, is_aligned: bool, is_described: bool) -> Iterator[str]:
        yield from (f"{p.value}: {p.value.element}{_said(p, is_aligned)}" for p in self.found)
        if is_described:
            yield from (f"{each.value}: {each.value.element}" for each in self.maps)


def _said(parameter: Parameter, is_aligned: bool) -> str:
    known = is_aligned and parameter.divisor > 1
    return f" {{tt.divisibility = {parameter.divisor} : i32}}" if known else ""
