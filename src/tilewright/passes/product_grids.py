"""Product grids: loops over the tiles of a product, what they cut, and the steps that they could take instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from tilewright.core.build import arguments, scalar
from tilewright.core.expr import Expr, Invoke, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt, SeqStmts
from tilewright.core.types import TensorType
from tilewright.core.visitor import evaluated
from tilewright.passes.computed_operands import FEW_TURNED, is_computed_turned
from tilewright.passes.few_rows import FEW_ROWS, factors_of, most_few
from tilewright.passes.fold_steps import FoldSteps, online_folds
from tilewright.passes.inner_steps import InnerSteps, Steps
from tilewright.passes.last_use import reads
from tilewright.passes.launches import runs_side_by_side
from tilewright.passes.products import PRODUCTS, SUMS
from tilewright.passes.spans import Span
from tilewright.passes.split_folds import split_folds
from tilewright.passes.tile_axes import Axis, Class, TileAxes
from tilewright.passes.tile_grids import TileGrid, nest
from tilewright.records import record

GRAINS = ((1, 6), *[(16, 64)] * 4)
"""What rows and columns of a tile are multiples of: those of tiles that leave no rest, and those of others."""
VECTORS = (16, 16)
"""The same for rows that are folded: a vector of them at a time."""
FOLDED = 512
"""How many columns are folded together, which are read where they lie: rows of a few are found one by one."""
AGAIN = 128
"""The same of columns that are read again, and stored: what the caches then hold of them. Batch norm of 4096 x 4096
floats takes 8.6 ms on one core of a Zen 5, and 10.3 in 512 at a time."""
SIDE = 64
"""How long the sides of matrices are that are turned: lines that are read and written, both fit the first cache."""
MAY_SHRINK = (1, 3, 4)
"""The axes of which machines take less at a time than some people do: columns of products, sides of what is turned."""
MANY = 1 << 16
"""How many turns a loop is taken to have of which nobody knows."""
SMALL = 64
TURNED = 8192
"""How many elements of few rows meet those of a right matrix that lies on its side: all that they have of some."""


@record
class Wanted:
    """The tile that a machine multiplies best: rows and columns of the product, and steps of the inner dimension."""

    rows: int = 512
    columns: int = 128
    depth: int = 512
    queries: int = 64
    keys: int = 64
    """Rows of products that are folded and multiplied again, and how many columns are folded at a time."""
    many_queries: int = 64
    """The same rows where what they are multiplied by is not near."""
    near: int = 1 << 20
    """Bytes that stay near while all rows are multiplied by them."""
    turns: int = 8
    """How many turns there are at least for threads to share, two for each core too, as long as tiles are not small."""
    cores: int = 1
    """How many cores the turns are for."""
    few: Wanted | None = None
    """What few rows want, where they are multiplied in another way."""
    short: Wanted | None = None
    """What some hundred rows want, for which columns are brought that often."""

    def for_rows(self, rows: int) -> Wanted:
        """Return the tile for so many rows that are not few."""
        return replace(self.short, cores=self.cores) if self.short and rows <= self.short.rows else self

    def for_few(self, in_place: bool, turned_rows: int = 0) -> Wanted:
        """Return the tile for few rows: long rows of the right matrix, as many at a time as fit where they are made.

        Rows of one that lies on its side are as long as the few that they meet, so many, stay in the nearest cache.
        The sums of 8 rows do in rows of 1024 floats: by 4096 x 4096 they take a Zen 5 1.76 ms, and 1.96 in rows of
        2048, an Emerald Rapids 3.7 and 4.2.
        """
        base = replace(self.few or self, cores=self.cores)
        if turned_rows:
            return replace(base, columns=4 * base.columns, depth=TURNED // turned_rows)
        if in_place:
            return replace(base, columns=8 * base.columns, depth=2 * base.depth)
        return replace(base, columns=8 * base.columns, depth=max(2, base.depth // 32))

    def shared(self, is_few: bool) -> tuple[int, int]:
        """Return how many turns there are at least for threads to share, and how small tiles may become for that."""
        if is_few:
            turns = max(2, self.cores)
            return turns, max(SMALL, self.columns // turns)
        return max(self.turns, 2 * self.cores), SMALL


class ProductGrid(TileGrid):
    """Loops over tiles of a product, and the kernels that compute one tile of it."""

    def __init__(
        self,
        program: Program,
        loops: Sequence[ForStmt],
        calls: Sequence[Invoke],
        wanted: Wanted,
        may_be_many: bool = True,
    ) -> None:
        super().__init__(loops, calls, [split_folds(program[each.op.name], min(SMALL, wanted.keys)) for each in calls])
        self.folds = [online_folds(axes) for axes in self.axes]
        """The loops of each kernel, where all that carry something are online folds."""
        roles = {loop.loop_var: self._role_of(loop) for loop in loops}
        self._widen(roles, 0, self._wanted_rows(wanted))
        self._open = [self.spans[var] for var, role in roles.items() if role == 0 and self.spans[var].length is None]
        """What loops over rows cover whose number only calls know."""
        in_place, self._is_turned = all(axes.reads_in_place for axes in self.axes), all(map(_reads_turned, self.axes))
        if not may_be_many:
            self.steps |= {var: self._most_few for var, span in self.spans.items() if span in self._open}
        rows = self._rows(roles)
        self.is_few = rows <= self._most_few
        few = wanted.for_few(in_place, rows if self._is_turned else 0) if self.is_few else None
        wanted = few or (wanted if self._is_folded else wanted.for_rows(rows))
        self._widen(roles, 1, wanted.columns)
        self._widen(roles, 2, AGAIN if any(map(_stores_folded, self.axes)) else FOLDED)
        for side in (3, 4):
            self._widen(roles, side, SIDE)
        self._leave_enough(*wanted.shared(self.is_few))
        depth, may_shrink = wanted.depth, self.is_few and not (in_place or self._is_turned)
        self.inner: list[Steps] = [
            FoldSteps(axes, folds, wanted.keys) if folds else InnerSteps(axes, reads(kernel.body), depth, may_shrink)
            for axes, folds, kernel in zip(self.axes, self.folds, self.functions, strict=True)
        ]

    @property
    def _most_few(self) -> int:
        """How many rows a product has at most for which the right matrix is read as it comes."""
        if self._is_turned:
            return FEW_TURNED
        return FEW_ROWS if self._is_folded else most_few(factors_of(self.functions))

    @property
    def _is_folded(self) -> bool:
        """Whether products are folded and multiplied again."""
        return any(self.folds)

    @property
    def _folded_bytes(self) -> int:
        """How much the tensors hold at least that each tile of rows is multiplied by."""
        cuts = [cut for folds in self.folds for fold in folds for found in fold.keys for cut in found.cuts]
        return sum(bytes_of(tensor) for tensor in {cut.tensor for cut in cuts})

    def _wanted_rows(self, wanted: Wanted) -> int:
        if self._is_folded:
            return wanted.queries if self._folded_bytes <= wanted.near else max(wanted.queries, wanted.many_queries)
        return max(min(SMALL, wanted.rows), wanted.rows // max(1, *(axes.sums for axes in self.axes)))

    def _role_of(self, loop: ForStmt) -> int | None:
        """Return the role of what a loop cuts, where it may take other steps."""
        cut = self.cut_by(loop)
        classes = [each for found in cut for each in found]
        span = self._with_rests(self.span_of(loop, cut), classes) if cut else None
        if span is not None:
            self.spans[loop.loop_var] = span
        return _role(classes) if span is not None else None

    def _with_rests(self, span: Span | None, classes: Sequence[Class]) -> Span | None:
        """Return a span whose steps leave only such rests as its axes may have."""
        if span is not None and self._is_folded:
            return span.as_even  # rows that are carried begin whole
        return span.as_whole if span is not None and any(each.is_whole for each in classes) else span

    def _widen(self, roles: Mapping[Var, int | None], role: int, wanted: int) -> None:
        """Choose the steps of loops over the rows or the columns of products."""
        for var in (var for var, found in roles.items() if found == role):
            span = self.spans[var].in_shorter(wanted) if role in MAY_SHRINK and not self._is_folded else self.spans[var]
            step = span.wider(wanted, *(GRAINS[role] if not self._is_folded else VECTORS))
            self.steps[var] = span.fuller(step, VECTORS[0]) if self._is_folded else step

    def _rows(self, roles: Mapping[Var, int | None]) -> int:
        """Return how many rows tiles of products have at most."""
        stepped = {param for number in range(len(self.calls)) for param in self.params(number)}
        every = [found for axes in self.axes for found in axes.classes() if 0 in found.roles]
        written = [size for found in every if not stepped & {cut.offset for cut in found.cuts} for size in found.sizes]
        return max([*written, *(self.steps[var] for var, role in roles.items() if role == 0)], default=0)

    @property
    def is_changed(self) -> bool:
        """Whether there is a product, and a better step for one of its loops."""
        if not all(axes.is_plain and inner.is_all for axes, inner in zip(self.axes, self.inner, strict=True)):
            return False
        if not all(runs_side_by_side(loop) or loop.loop_var in self.spans for loop in self.loops):
            return False
        wider = any(step != self.spans[var].step for var, step in self.steps.items())
        return wider or any(each.rewritten for each in self.inner)

    @property
    def few_if(self) -> Expr | None:
        """The condition under which its rows are few, where only calls know how many there are."""
        if self._is_folded or self.is_few or len(self._open) != 1:
            return None
        (span,) = self._open
        return scalar("le", span.stop, integer(span.start + self._most_few))

    @property
    def in_order(self) -> bool:
        """Whether some of its turns were to run one after the other."""
        return not all(map(runs_side_by_side, self.loops))

    def _leave_enough(self, turns: int, small: int) -> None:
        """Make steps smaller again, but not too small, where fewer turns would be left for threads to share."""
        known = {var: span for var, span in self.spans.items() if span.length is not None and var in self.steps}
        while known:
            found = prod(span.steps(self.steps[var]) for var, span in known.items())
            var = max(known, key=lambda var: self.steps[var])
            half = known[var].wider(self.steps[var] // 2, *GRAINS[1])
            if found >= turns or len(known) < len(self.loops) or self.steps[var] <= small or half >= self.steps[var]:
                return
            self.steps[var] = half

    def sizes(self, number: int) -> dict[Axis, int]:
        """Return the axes of the tiles of one of the kernels that become longer."""
        return dict(self.inner[number].sizes) | super().sizes(number)

    def loops_of(self, number: int) -> Mapping[Var, ForStmt]:
        """Return the loops inside one of the kernels that take other steps, by their variables."""
        return self.inner[number].rewritten

    @property
    def inside_out(self) -> list[ForStmt]:
        """The loops as they are best nested, the one with most turns, which threads share, last.

        Those of folds stay as they are: rows that fold the same elements follow each other.
        """
        if self._is_folded:
            return [*reversed(self.loops)]

        def turns(loop: ForStmt) -> int:
            var, limits = loop.loop_var, [as_extent(x) for x in (loop.start, loop.stop, loop.step)]
            if var in self.steps:
                return self.spans[var].steps(self.steps[var])
            known = [limit for limit in limits if isinstance(limit, int)]
            return len(range(*known)) if len(known) == 3 and known[2] else MANY

        return sorted(reversed(self.loops), key=turns)

    def __str__(self) -> str:
        inner = [line for each in self.inner for line in each.notes]
        few = " of few rows" * (self.is_few and any(0 in found.roles for axes in self.axes for found in axes.classes()))
        return f"{self.names}{few}: {', '.join(dict.fromkeys([*self.changes, *inner]))}"


def bytes_of(tensor: Var) -> int:
    """Return how many bytes a tensor holds, 0 where nobody knows."""
    type_ = tensor.type
    assert isinstance(type_, TensorType)
    known = [extent for extent in type_.shape if isinstance(extent, int)]
    return prod(known) * type_.dtype.get_byte() if len(known) == len(type_.shape) else 0


def grid_of(program: Program, stmt: ForStmt, wanted: Wanted) -> tuple[ProductGrid, SeqStmts] | None:
    """Return the grid that begins with a loop, and what its innermost loop does; None where there is none to change."""
    loops, body = nest(stmt)
    calls = [made for each in body if isinstance(made := evaluated(each), Invoke)]
    if not loops or not calls or len(calls) != len(body):
        return None
    grid = ProductGrid(program, loops, calls, wanted)
    return (grid, body) if grid.is_changed else None


def _role(classes: Sequence[Class]) -> int | None:
    """Return the role of axes in products, folds and copies; None for none and more."""
    roles = {role for found in classes for role in found.roles}
    summed = any(found.is_summed for found in classes)
    return roles.pop() if len(roles) == 1 and not summed else None


def _stores_folded(axes: TileAxes) -> bool:
    """Return whether what is folded is stored as well."""
    folded = [cut for found in axes.classes() if found.is_folded for cut in found.cuts]
    return any(cut in folded for cuts in axes.stores for cut in cuts)


def _reads_turned(axes: TileAxes) -> bool:
    """Return whether few rows of products meet the right operands as they lie, which is on their side."""
    products = [arguments(call) for call in axes.made.values() if call.op.spec.name in (*PRODUCTS, *SUMS)]
    pairs = [(given["lhs"], given["rhs"]) for given in products]
    return all(
        isinstance(lhs, Var) and isinstance(rhs, Var) and is_computed_turned(axes.made, lhs, rhs) for lhs, rhs in pairs
    )
