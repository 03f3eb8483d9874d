"""Turns: the loop of a chain, one product after the other, or with those of two turns side by side.

Where the first product of a turn needs nothing of the turn before, it begins while the second one of that turn still
goes on: the matrix units have something to do while rows are worked on. What was computed for the second product is
carried to the next turn then, which begins it, and the last one is computed behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttgir.chain import Load, Product
from tilewright.backends.cuda.ttgir.masks import Masks
from tilewright.backends.cuda.ttgir.operations import Operation
from tilewright.backends.cuda.ttgir.products import Multiplier

BEFORE, LAST, FIRST = "before_", "last_", "first_"
"""Turns that are told apart: the one before, the last one, and the first."""


class Turns:
    """The loop of a group of warps being written."""

    def __init__(self, m: Multiplier, body: Sequence[Operation]) -> None:
        self.m, self.g, self.rings, self.body = m, m.g, m.rings, body
        self.loop, self.masks = m.g.chain.loop, Masks(m.g, body)
        self.types = [self.g.layouts.typed(each) for each in self.loop.types]

    def write(self, rotates: bool) -> str:
        """Write the loop; return how many turns have been made when it ends."""
        products = list(self.g.chain.products.values())
        if rotates and len(products) == 2:
            rotation = Rotation(self, *products)
            if rotation.is_possible:
                return rotation.write()
        self._one_by_one()
        return "%turns_made"

    def operations(self, ops: Sequence[Operation]) -> None:
        """Write operations that are no products; choices where something is hidden."""
        for op in ops:
            if op in self.masks.found:
                self.masks.write(op)
            elif op not in self.masks.later:
                self.g.write([op])

    def _one_by_one(self) -> None:
        g, loop, rings = self.g, self.loop, self.rings
        pairs = [*zip(loop.carried, loop.starts, strict=True), ("%turn", "%turns")]
        types = ", ".join((*self.types, "i32"))
        self.head((*loop.results, "%turns_made"), loop.low, pairs, types)
        rings.slot(g, "%turn")
        left = [product.right for product in g.chain.products.values()]
        for op in self.body:
            product = g.chain.products.get(op)
            if product is None:
                self.operations([op])
                continue
            rings.wait_for(g, product.right)
            left.remove(product.right)
            self.m.multiply(product)
            if product.right not in left:
                rings.release(g, product.right)
        g.say("%next_turn = arith.addi %turn, %one : i32")
        g.say(f"scf.yield {', '.join((*loop.given, '%next_turn'))} : {types}")
        g.say("}")

    def head(self, results: Sequence[str], low: str, pairs: Sequence[tuple[str, str]], types: str) -> None:
        """Write the first line of the loop."""
        loop, carried = self.loop, ", ".join(f"{now} = {start}" for now, start in pairs)
        ends = f"{loop.index} = {low} to {loop.high} step {loop.step}"
        self.g.say(f"{', '.join(results)} = scf.for {ends} iter_args({carried}) -> ({types}) : i64 {{")


class Rotation:
    """The loop with the second product of each turn beside the first of the next."""

    def __init__(self, turns: Turns, first: Product, second: Product) -> None:
        self.turns, self.first, self.second = turns, first, second
        self.total = second.op.results[0]
        loop = turns.loop
        self.spot = loop.given.index(self.total) if self.total in loop.given else -1
        self.behind: list[Operation] = []
        """What needs the sum of second products up to the turn before."""
        needing = {loop.carried[self.spot]} if self.spot >= 0 else set[str]()
        for op in turns.body:
            if needing & set(op.operands) and op is not second.op:
                self.behind.append(op)
                needing.update(op.results)
        self.needing = needing
        self.beside = [op for op in turns.body if op not in self.behind and op not in (first.op, second.op)]

    @property
    def is_possible(self) -> bool:
        """Whether only the second product and what is handed on need it, and the first needs nothing of other turns."""
        loop, first, second = self.turns.loop, self.first, self.second
        users = [op for op in self.turns.body if self.total in op.operands]
        plain = self.spot >= 0 and loop.given.count(self.total) == 1 and not users
        lone = isinstance(first.left, Load) and first.start in self.turns.g.chain.constants
        carried = isinstance(second.left, str) and second.left not in self.needing
        given = {name for op in self.turns.body for name in op.results}
        return (
            plain
            and lone
            and carried
            and second.left in given
            and second.start in given
            and first.right != second.right
        )

    def write(self) -> str:
        """Write the first turn, the loop over the others, and the last product, unless there is no turn at all."""
        turns, g, loop = self.turns, self.turns.g, self.turns.loop
        kinds = ", ".join((*turns.types, "i32"))
        g.say(f"%has_turns = arith.cmpi slt, {loop.low}, {loop.high} : i64")
        g.say(f"{', '.join((*loop.results, '%turns_made'))} = scf.if %has_turns -> ({kinds}) {{")
        names = self._first()
        self._others(names)
        total = self._last()
        kept = [total if spot == self.spot else f"%made_{spot}" for spot in range(len(loop.given))]
        g.say(f"scf.yield {', '.join((*kept, '%other_turns'))} : {kinds}")
        g.say("} else {")
        g.say(f"scf.yield {', '.join((*loop.starts, '%turns'))} : {kinds}")
        g.say("}")
        return "%turns_made"

    def _first(self) -> dict[str, str]:
        """Write the first turn up to its second product; return what its values are called."""
        g, loop, start = self.turns.g, self.turns.loop, len(self.turns.g.lines)
        self.turns.rings.slot(g, "%turns")
        self.turns.rings.wait_for(g, self.first.right)
        self.turns.m.multiply(self.first)
        self.turns.rings.release(g, self.first.right)
        self.turns.operations([op for op in self.turns.body if op in self.beside or op in self.behind])
        carried = dict(zip(loop.carried, loop.starts, strict=True))
        return g.rename(start, FIRST, {**carried, loop.index: loop.low})

    def _others(self, names: dict[str, str]) -> None:
        turns, g, loop, rings, m = self.turns, self.turns.g, self.turns.loop, self.turns.rings, self.turns.m
        first, second = self.first, self.second
        assert isinstance(second.left, str)
        kept = [spot for spot in range(len(loop.given)) if spot != self.spot]
        pairs = [(loop.carried[spot], names.get(loop.given[spot], loop.given[spot])) for spot in kept]
        pairs += [("%rows", names[second.left]), ("%sum", names[second.start]), ("%turn", "%second_turn")]
        types = ", ".join((*(turns.types[spot] for spot in kept), m.left_type(second), m.type_of(second), "i32"))
        g.say("%second_turn = arith.addi %turns, %one : i32")
        g.say(f"%second = arith.addi {loop.low}, {loop.step} : i64")
        results = (*(f"%made_{spot}" for spot in kept), "%last_rows", "%last_sum", "%other_turns")
        turns.head(results, "%second", pairs, types)
        g.say("%turn_before = arith.subi %turn, %one : i32")
        rings.slot(g, "%turn")
        rings.slot(g, "%turn_before", BEFORE)
        rings.wait_for(g, first.right)
        scores = m.begin(first)
        rings.wait_for(g, second.right, BEFORE)
        total = m.begin(second, BEFORE, "%rows", "%sum")
        m.wait(scores, first.op.results[0], first, others=1)
        rings.release(g, first.right)
        turns.operations(self.beside)
        m.wait(total, loop.carried[self.spot], second)
        rings.release(g, second.right, BEFORE)
        turns.operations(self.behind)
        g.say("%next_turn = arith.addi %turn, %one : i32")
        given = (*(loop.given[spot] for spot in kept), second.left, second.start, "%next_turn")
        g.say(f"scf.yield {', '.join(given)} : {types}")
        g.say("}")

    def _last(self) -> str:
        """Write the last product; return its name."""
        g, rings, m, name = self.turns.g, self.turns.rings, self.turns.m, f"%{LAST}total"
        g.say("%last_turn = arith.subi %other_turns, %one : i32")
        rings.slot(g, "%last_turn", LAST)
        rings.wait_for(g, self.second.right, LAST)
        m.wait(m.begin(self.second, LAST, "%last_rows", "%last_sum"), name, self.second)
        rings.release(g, self.second.right, LAST)
        return name
