"""Inner steps: loops that only sum products over an inner dimension, and the steps that they could take instead.

Such a loop carries sums. Each turn adds a product to them, of operands that the loop cuts along the axis that is summed
over, and does nothing else with either. The first product may stand before the loop: what the sum starts with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Var, integer
from tilewright.core.stmt import AssignStmt, ForStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import used, variables
from tilewright.passes.products import PRODUCTS, SUMS
from tilewright.passes.spans import Span, span_of
from tilewright.passes.tile_axes import Axis, Class, TileAxes

GRAIN = 16
"""What steps are multiples of that leave a rest."""
WORD = 4
"""How many bytes of neighbours some machines multiply at once: steps are whole words."""


class Steps:
    """The other steps that inner loops of a kernel take, and what changes then."""

    def __init__(self, axes: TileAxes) -> None:
        self.axes = axes
        self.sizes: dict[Axis, int] = {}
        """The axes of tiles that become longer."""
        self.rewritten: dict[Var, ForStmt] = {}
        """The loops with other steps, by their old variables."""
        self.notes: list[str] = []
        self.is_all = True
        """Whether no loop carries anything else."""

    def take(self, loop: ForStmt, classes: Sequence[Class], by: tuple[int, int]) -> None:
        """Let a loop that cut some axes in steps of a size take others instead."""
        before, size = by
        self.rewritten[loop.loop_var] = replace(loop, step=integer(size))
        self.sizes |= {axis: size for found in classes for axis in found.axes}
        if size != before:
            self.notes.append(f"{loop.loop_var.name_hint} by {size} instead of {before}")


class InnerSteps(Steps):
    """The inner loops of a kernel that sum products, in other steps of about a wanted size.

    `reads` says how often the kernel reads each variable.
    """

    def __init__(self, axes: TileAxes, reads: Mapping[Var, int], wanted: int, may_shrink: bool = False) -> None:
        super().__init__(axes)
        self.reads, self.may_shrink = reads, may_shrink
        carrying = [loop for loop in axes.loops.values() if loop.iter_args]
        self.is_all = all(only_sums(loop, axes) for loop in carrying)
        for loop in carrying if self.is_all else ():
            self._widen(loop, wanted)

    def _widen(self, loop: ForStmt, wanted: int) -> None:
        cut = self.axes.cut_by(loop.loop_var)
        if not all(any(each is found for found in cut) for each in self._added(loop)):
            return  # a turn adds something else as well, as often as there are turns
        before = self._before(loop)
        classes = [*cut, *before]
        span = self._span(loop, classes, bool(before))
        if span is None:
            return
        least = span.in_shorter(wanted) if self.may_shrink else span
        size = least.wider(wanted, max(1, WORD // min(_bytes(axis) for found in classes for axis in found.axes)), GRAIN)
        if size == span.step:
            return
        start = integer(span.start + size if before else span.start)
        self.take(replace(loop, start=start, stop=span.stop), classes, (span.step, size))

    def _span(self, loop: ForStmt, classes: Sequence[Class], begins_before: bool) -> Span | None:
        """Return what a loop sums over, None where it cuts something else as well."""
        sound = all(c.is_summed and not (c.roles or c.is_fixed or c.is_folded or c.counted) for c in classes)
        cuts = [cut for found in classes for cut in found.cuts]
        own = [cut for cut in cuts if cut.offset is loop.loop_var or (begins_before and isinstance(cut.offset, Const))]
        alike = len({cut.is_padded for cut in cuts}) == 1
        if not (sound and alike and len(own) == len(cuts)) or loop.loop_var in self.axes.fixed:
            return None
        span = span_of(loop, cuts, [cut.extent for cut in cuts], 0 if begins_before else None)
        if span is None or not all(c.sizes == {span.step} for c in classes):
            return None
        return span.as_whole if any(c.is_whole for c in classes) else span

    def _before(self, loop: ForStmt) -> list[Class]:
        """Return the axes over which the first products are summed, where they stand before the loop.

        Each stands for the only term that a turn adds to a sum, and nothing else is made of what it multiplies.
        """
        if not isinstance(loop.start, Const) or loop.start != loop.step:
            return []
        inits = [arg.init for arg in loop.iter_args if isinstance(arg.init, Var) and self.reads[arg.init] == 1]
        first = [self.axes.made.get(init) for init in inits]
        found: list[Class] = []
        for product in first:
            if product is None or product.op.spec.name not in PRODUCTS:
                return []
            lhs = arguments(product)["lhs"]
            assert isinstance(lhs, Var)
            found.append(self.axes.of(lhs, -1))
        starts = all(isinstance(cut.offset, Const) and cut.offset.value == 0 for each in found for cut in each.cuts)
        terms = [self._terms(classes) for classes in (found, self.axes.cut_by(loop.loop_var))]
        is_alone = terms == [len(loop.iter_args)] * 2 == [len(inits)] * 2
        return list({id(each): each for each in found}.values()) if starts and is_alone else []

    def _added(self, loop: ForStmt) -> list[Class]:
        """Return over what the products are summed that a turn adds."""
        calls = [stmt.value for stmt in loop.body if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)]
        sums = [call for call in calls if call.op.spec.name in SUMS]
        operands = [x for call in calls if call.op.spec.name == "add" for x in call.args if isinstance(x, Var)]
        made = [self.axes.made[x] for x in operands if x in self.axes.made]
        products = [*sums, *(call for call in made if call.op.spec.name in PRODUCTS)]
        return [self.axes.of(lhs, -1) for call in products if isinstance(lhs := arguments(call)["lhs"], Var)]

    def _terms(self, classes: Sequence[Class]) -> int:
        """Return how many products sum over some axes."""
        made = [arguments(call)["lhs"] for call in self.axes.made.values() if call.op.spec.name in (*PRODUCTS, *SUMS)]
        summed = [self.axes.of(lhs, -1) for lhs in made if isinstance(lhs, Var)]
        return sum(any(each is found for found in classes) for each in summed)


def _bytes(axis: Axis) -> int:
    """Return the size of an element of the tile that an axis belongs to."""
    type_ = axis[0].type
    assert isinstance(type_, TileType)
    return type_.dtype.get_byte()


def only_sums(loop: ForStmt, axes: TileAxes) -> bool:
    """Return whether a loop adds products to what it carries, and does nothing else with that."""
    *stmts, last = loop.body.stmts or (None,)
    if not isinstance(last, YieldStmt) or not all(isinstance(stmt, AssignStmt) for stmt in stmts):
        return False
    body = [stmt for stmt in stmts if isinstance(stmt, AssignStmt)]
    reads = variables(expr for stmt in loop.body for expr in used(stmt))
    return all(
        _is_summed(arg.var, value, body, axes, reads) for arg, value in zip(loop.iter_args, last.values, strict=True)
    )


def _is_summed(held: Var, end: Expr, body: Sequence[AssignStmt], axes: TileAxes, reads: Sequence[Var]) -> bool:
    """Return whether products are added to a value, one after the other, up to what is handed on."""
    carried = held
    while held is not end:
        adding = [stmt for stmt in body if held in variables([stmt.value])]
        if len(adding) != 1 or reads.count(held) != 1 or not _adds(axes, adding[0].var, held, held is carried):
            return False
        held = adding[0].var
    return reads.count(held) == 1


def _adds(axes: TileAxes, made: Var, held: Var, may_begin: bool) -> bool:
    """Return whether a tile is a sum of another and a product, or in some turns that alone where it may begin a sum."""
    call = axes.made.get(made)
    if call is None:
        return False
    given = arguments(call)
    if call.op.spec.name in SUMS:
        return given["acc"] is held and (may_begin or isinstance(given.get("init_cond"), (Absent, type(None))))
    others = [x for x in call.args if x is not held]
    product = axes.made.get(others[0]) if len(others) == 1 and isinstance(others[0], Var) else None
    return call.op.spec.name == "add" and product is not None and product.op.spec.name in PRODUCTS
