"""Groups: what a group of warps does, written operation by operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from tilewright.backends.cuda.ttgir.chain import BY_ROW, PART, Chain, Unfit
from tilewright.backends.cuda.ttgir.layouts import ACROSS, DOWN, Layouts
from tilewright.backends.cuda.ttgir.operations import NAME, Operation


def derived(name: str, what: str) -> str:
    """Return the name of something that belongs to a value."""
    return f"%{what}_{name[1:].replace('#', '_')}"


_ROUNDS = """
    %program = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    %all = arith.trunci {count} : i64 to i32
    %shares = arith.constant {shares} : i32
    %count = arith.divui %all, %shares : i32
    %last = arith.subi %count, %one : i32
    %whole = arith.divui %count, %programs : i32
    %rest = arith.remui %count, %programs : i32
    %behind = arith.subi %programs, %program : i32
    %turned = arith.subi %behind, %one : i32
    %is_whole_odd = arith.trunci %whole : i32 to i1
    %place = arith.select %is_whole_odd, %turned, %program : i32
    %has_more = arith.cmpi ult, %place, %rest : i32
    %more = arith.extui %has_more : i1 to i32
    %rounds_made = arith.addi %whole, %more : i32
    %all_turns = scf.for %round = %zero to %rounds_made step %one iter_args(%turns = %zero) -> (i32) : i32 {{
    %is_odd = arith.trunci %round : i32 to i1
    %spot = arith.select %is_odd, %turned, %program : i32
    %earlier = arith.muli %round, %programs : i32
    %number = arith.addi %earlier, %spot : i32
    %left = arith.subi %last, %number : i32
"""
"""Which blocks of the grid a program computes, or which pairs of them."""
_SINGLE = """
    %block = arith.addi %left, %zero : i32
"""
_PAIR = """
    %half = arith.constant {half} : i32
    %even = arith.muli %left, %two : i32
    %block = arith.addi %even, %half : i32
"""


_RESULTS = re.compile(r"\s*(%\w+(?:, %\w+)*) = ")


class Group:
    """The text of a group of warps that has one half of the rows."""

    def __init__(self, chain: Chain, layouts: Layouts, half: int) -> None:
        self.chain, self.layouts, self.half = chain, layouts, half
        self.first_row = 0 if chain.is_paired else PART * half
        self.lines: list[str] = []
        self._renamed: dict[str, str] = {}

    def name(self, name: str) -> str:
        """Return what a value is called here."""
        return self._renamed.get(name, name)

    def say(self, line: str) -> None:
        """Write a line."""
        self.lines.append(f"      {line}")

    def constants(self, ops: Sequence[Operation], more: Iterable[str]) -> None:
        """Write the constants that operations take; those of vectors as they lie."""
        for name, number in (("zero", 0), ("one", 1), ("two", 2)):
            self.say(f"%{name} = arith.constant {number} : i32")
        self.say("%true = arith.constant true")
        self.say("%false = arith.constant false")
        used = dict.fromkeys((*(name for op in ops for name in op.operands), *more))
        for name in used:
            op = self.chain.constants.get(name)
            if op is None:
                continue
            if op.types and len(op.types[0][0]) == 1:
                ways = {self.layouts.way(each) for each in ops if name in each.operands}
                for way in sorted(ways):
                    self.say(f"{derived(name, way)} = {self.layouts.typed(op.text, way)}")
            else:
                self.say(f"{name} = {self.layouts.typed(op.text)}")

    @contextmanager
    def blocks(self, count: str) -> Generator[Callable[[str], None], None, None]:
        """Write the loop over what were blocks of the grid; the function that is given ends it, with turns made.

        Programs take them round by round, every other round in turned order, and the last blocks first: where later
        ones have more to do, all programs come to about the same, and what is left for the end is short.
        """
        last = _PAIR.format(half=self.half) if self.chain.is_paired else _SINGLE
        shares = 2 if self.chain.is_paired else 1
        for line in f"{_ROUNDS.format(count=count, shares=shares)}{last}".strip().splitlines():
            self.say(line.strip())
        yield lambda turns: self.say(f"scf.yield {turns} : i32")
        self.say("}")

    def rename(self, start: int, kind: str, names: Mapping[str, str]) -> dict[str, str]:
        """Give other names to what lines from one on define, and to some values; return all of these names."""
        lines = self.lines[start:]
        made = (name for line in lines if (found := _RESULTS.match(line)) for name in found[1].split(", "))
        given = {**{name: f"%{kind}{name[1:].replace('#', '_')}" for name in made}, **names}
        self.lines[start:] = [NAME.sub(lambda found: given.get(found[0], found[0]), line) for line in lines]
        return given

    def write(self, ops: Sequence[Operation]) -> None:
        """Write operations, their tensors with the rows that this group has."""
        for op in ops:
            if op.name == "arith.constant":
                continue
            if op.name == "tt.get_program_id":
                self._renamed[op.results[0]] = "%block"
            elif op.name in ("tt.store", "scf.if"):
                self._effect(op)
            elif not BY_ROW.fullmatch(op.name):
                raise Unfit(op.name)
            else:
                self._plain(op)

    def _effect(self, op: Operation) -> None:
        if op.name == "scf.if" and (op.results or op.types):
            raise Unfit("a branch with tensors")
        self.say(self._named(op, self.layouts.typed(op.text)) + op.place)

    def _plain(self, op: Operation) -> None:
        way, text = self.layouts.way(op), op.text
        if op.name == "tt.reduce":
            self._reduce(op)
            return
        if op.name == "tt.make_range" and way == DOWN:
            whole, first = f"end = {self.chain.rows} : i32, start = 0 ", self.first_row
            if whole not in text:
                raise Unfit("numbers of other rows")
            text = text.replace(whole, f"end = {first + PART} : i32, start = {first} ")
        if op.name == "tt.broadcast":
            text = self._alike(op)
        self.say(f"{', '.join(op.results)} = {self._named(op, self.layouts.typed(text, way))}{op.place}")

    def _alike(self, op: Operation) -> str:
        """Return a broadcast of what lies as its result does, which may take another name for it."""
        (few, element), (many, _) = op.types
        here, there = (self.layouts.of(extents[1]) for extents in (few, many))
        if len(few) != 2 or here == there:
            return op.text
        name, own = op.operands[0], derived(op.results[0], "few")
        source, target = (self.layouts.tensor(few, element, main=n) for n in (few[1], many[1]))
        self.say(f"{own} = ttg.convert_layout {self._renamed.get(name, name)} : {source} -> {target}")
        return f"tt.broadcast {own} : {target} -> {self.layouts.tensor(many, element)}"

    def _reduce(self, op: Operation) -> None:
        (source, element), *_ = op.types
        if len(op.results) != 1 or source[0] != self.chain.rows or "axis = 1 :" not in op.text:
            raise Unfit("rows that are folded into one another")
        columns, name = source[1], op.results[0]
        text = self._named(op, self.layouts.typed(op.text, DOWN, columns))
        if self.layouts.of(columns) == self.layouts.of(1):
            self.say(f"{name} = {text}{op.place}")
            return
        own = derived(name, "own")
        self.say(f"{own} = {text}{op.place}")
        types = [self.layouts.tensor((self.chain.rows,), element, DOWN, main) for main in (columns, 1)]
        self.say(f"{name} = ttg.convert_layout {own} : {types[0]} -> {types[1]}")

    def _named(self, op: Operation, text: str) -> str:
        way = self.layouts.way(op)

        def name(found: re.Match[str]) -> str:
            constant = self.chain.constants.get(found[0])
            if constant is not None and constant.types and len(constant.types[0][0]) == 1:
                return derived(found[0], way or ACROSS)
            return self._renamed.get(found[0], found[0])

        return NAME.sub(name, text)
