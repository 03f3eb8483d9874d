"""Ready calls: calls that can be made again, each written out as a function of Python.

What is known of a call, which tensors it has where and which may not meet, stands in the text of that function: going
through lists of it would take half as long again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

from tilewright.backends.abi import word_count
from tilewright.call.launch import error_numbers, room
from tilewright.call.tables import Target
from tilewright.call.targets import Callee
from tilewright.call.torch_state import storage_address
from tilewright.forks import computed_once
from tilewright.native.context import NUMBERS, Context
from tilewright.records import entity, mutable

MISSED = object()
"""What a call gives that is none of those."""
ERROR, BUFFERS = Context.ERROR.value, Context.BUFFERS.value


@entity
class ReadyTensor:
    """One tensor of a call: its parameter, where its address goes, and where its bytes lie from there."""

    parameter: int
    place: int
    size: int
    low: int
    high: int
    is_written: bool
    is_array: bool

    def read(self, number: int) -> list[str]:
        """Return the lines that find its address, and leave where its memory is gone."""
        name = f"value{self.parameter}"
        if self.is_array:
            return [f'at{number} = {name}.__array_interface__["data"][0]']
        gone = f"if offset + {self.high} > {name}.untyped_storage().nbytes(): return MISSED"
        is_asked = self.is_written or storage_address() is None
        found = f"{name}.data_ptr()" if is_asked else f"begins({name}) + offset"
        return [f"offset = {name}.storage_offset() * {self.size}", gone, f"at{number} = {found}"]


@mutable
class Ready:
    """A call that can be made again: where its arguments come from, its words, and what must hold."""

    target: Target
    callee: Callee
    sources: Sequence[int]
    """By parameter: the number of an argument; -1 for a default, or an output to be made."""
    defaults: tuple[Any, ...] | None
    """Those of the last parameters, as the function had them."""
    tensors: Sequence[ReadyTensor]
    words: Sequence[int]
    context: Sequence[int]

    def __post_init__(self) -> None:
        self.is_plain = [*self.sources] == [*range(len(self.sources))] and not self.target.makers
        self.padded = [*[None] * (len(self.sources) - len(self.defaults or ())), *(self.defaults or ())]
        self.holds = self.target.guards.hold
        self.results = word_count(*self.callee.entry.return_types)

    def values(self, given: Sequence[Any]) -> Sequence[Any]:
        """Return the arguments by parameter, with new outputs where they are left out."""
        if self.is_plain:
            return given
        values = [given[k] if k >= 0 else default for k, default in zip(self.sources, self.padded, strict=True)]
        for make, place, number in self.target.makers:
            values[place] = make() if number < 0 else make().zero_()
        return values

    @computed_once
    def launched(self) -> Callable[[Sequence[Any]], Any]:
        """What gives the results of a call for its arguments by parameter, or that memory is not what it must be."""
        rooms: list[Any] = []  # what calls that are over have left: words and a context, to be used again
        has_torch = any(not tensor.is_array for tensor in self.tensors)
        scope: dict[str, Any] = {"MISSED": MISSED, "rooms": rooms, "room": self._room, "finish": self._finish}
        scope |= {"run": self.callee.native.calls[self.callee.entry.name]}
        scope |= {"begins": storage_address() if has_torch else None}
        exec("def launched(values):\n " + "\n ".join(self._lines()), scope)
        return scope["launched"]

    def _lines(self) -> Iterator[str]:
        """Yield what a call does: addresses found, checked and passed, the program run, its outputs given back."""
        yield "held = rooms.pop() if rooms else room()"
        yield "words, context, start, around = held"
        yield "".join(f"value{k}, " for k in range(len(self.sources))) + "= values"
        for number, tensor in enumerate(self.tensors):
            yield from tensor.read(number)
        odd = [f"at{number} % {tensor.size}" for number, tensor in enumerate(self.tensors) if tensor.size > 1]
        meeting = [f"{low} < at{b} - at{a} < {high}" for a, b, low, high in _meetings(self.tensors)]
        if odd or meeting:
            yield f"if {' or '.join(odd + meeting)}: return MISSED"
        for number, tensor in enumerate(self.tensors):
            yield f"words[{tensor.place}] = at{number}"
        yield "run(start, around)"
        yield f"if context[{ERROR}] or context[{BUFFERS}]: finish(context)"
        yield "else: rooms.append(held)"
        back = [f"value{place}" for place in self.target.returns]
        yield f"return {back[0] if len(back) == 1 else ', '.join(back) or None}"

    def _finish(self, context: Any) -> None:
        self.callee.finish(context[ERROR], context[BUFFERS], error_numbers(context))

    def _room(self) -> tuple[Any, Any, int, int]:
        words, context = room(self.words, self.results), room(self.context, len(NUMBERS))
        return words, context, ctypes.addressof(words), ctypes.addressof(context)


def _meetings(tensors: Sequence[ReadyTensor]) -> Iterator[tuple[int, int, int, int]]:
    """Yield two tensors that may not meet, by number, and between which distances of their addresses they would."""
    for (one, first), (other, second) in permutations(enumerate(tensors), 2):
        if first.is_written and not (second.is_written and other < one):
            yield one, other, first.low - second.high, first.high - second.low
