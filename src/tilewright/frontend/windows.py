"""Windows: slices of tiles, remembered so that an op that adds to one in place adds to the tile it was taken from.

A tile is a value, and a slice of it another. But an accumulator is added to where it lies, and a slice of one is part
of it: what is added to the slice is written back into the tile, and slices that overlap it are taken anew. That takes
knowing which slice of what a variable is, whatever path led to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, MakeTuple, Var
from tilewright.core.op import Kind
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.errors import OperandError
from tilewright.records import mutable, record


@record
class Window:
    """A slice of a tile: of which one, how it was taken and in which block."""

    base: Var
    call: Call
    block: int
    is_known: bool = True
    """Whether every path to here has taken this slice, and no other."""

    @property
    def offset(self) -> tuple[Expr, ...]:
        """Where it begins in its tile."""
        return _elements(self.call, "offset")

    @property
    def is_plain(self) -> bool:
        """Whether it has every axis of its tile and lies inside it."""
        return not self.call.kwargs.get("drop_dims") and not self.call.kwargs.get("clamp")

    def is_apart_from(self, other: Window) -> bool:
        """Return whether two slices of a tile surely have no element in common."""
        sizes = _elements(self.call, "shape"), _elements(other.call, "shape")
        axes = zip(self.offset, sizes[0], other.offset, sizes[1], strict=False)
        return any(_end_before(a, m, b) or _end_before(b, n, a) for a, m, b, n in axes)


def _elements(call: Call, name: str) -> tuple[Expr, ...]:
    given = arguments(call)[name]
    return given.elements if isinstance(given, MakeTuple) else ()


def _end_before(start: Expr, size: Expr, other: Expr) -> bool:
    if not (isinstance(start, Const) and isinstance(size, Const) and isinstance(other, Const)):
        return False
    return start.value + size.value <= other.value


@mutable
class Windows:
    """Which variables are slices of tiles."""

    taken: dict[Var, Window] = field(default_factory=dict[Var, Window])
    added_to: set[Var] = field(default_factory=set[Var])
    """The slices that something was added to in place."""
    plain: dict[Var, int] = field(default_factory=dict[Var, int])
    """The block in which a variable got a tile that is no slice: there it is none, whatever it is on other paths."""
    homes: dict[Var, int] = field(default_factory=dict[Var, int])
    """The block in which a tile variable was first assigned: what it is given there, it is on every path from there."""

    def note(self, stmt: Stmt, blocks: Sequence[int]) -> None:
        """Learn from a statement that is written in the innermost of some blocks."""
        if not isinstance(stmt, AssignStmt) or not isinstance(stmt.var.type, TileType):
            return
        var, window = stmt.var, self._window(stmt.value, blocks[-1])
        if window is not None:
            self.plain.pop(var, None)
        elif self.plain.get(var) not in blocks:
            self.plain[var] = blocks[-1]
        before = self.taken.pop(var, None)
        if self.homes.setdefault(var, blocks[-1]) != blocks[-1] and before != window:
            either = window or before
            window = replace(either, is_known=False) if either is not None else None
            if var in self.added_to:
                raise _changed(stmt, "is added to in place, and is another tile on other paths")
        if window is not None:
            self.taken[var] = window
        self._rebased(stmt, blocks)

    def _rebased(self, stmt: AssignStmt, blocks: Sequence[int]) -> None:
        """Forget the slices of a tile whose variable gets another one."""
        for other in [v for v, window in self.taken.items() if window.base is stmt.var]:
            if other in self.added_to and self.taken[other].block in blocks[:-1]:
                raise _changed(stmt, "has a slice that is added to in this block, and gets another tile")
            del self.taken[other]

    def _window(self, value: Expr, block: int) -> Window | None:
        if isinstance(value, Var):
            return self.taken.get(value)
        if isinstance(value, Call) and value.op.kind is Kind.TILE and value.op.spec.name == "slice":
            base = value.args[0]
            return Window(base, value, block) if isinstance(base, Var) else None
        return None

    def is_slice(self, var: Var, blocks: Sequence[int]) -> bool:
        """Return whether a variable may be a slice inside some blocks."""
        return var in self.taken and var not in self.plain_in(blocks)

    def plain_in(self, blocks: Sequence[int]) -> set[Var]:
        """Return the variables that are no slices inside some blocks."""
        return {var for var, block in self.plain.items() if block in blocks}

    def take(self, var: Var, window: Window) -> None:
        """Let a variable be a slice from here on."""
        self.plain.pop(var, None)
        self.taken[var] = window

    def slices(self, base: Var) -> dict[Var, Window]:
        """Take out the slices of a tile, which its variable gets a new version of."""
        return {var: self.taken.pop(var) for var in [v for v, window in self.taken.items() if window.base is base]}

    def carry(self, var: Var, start: Expr) -> None:
        """Let a loop carry what may be a slice when it begins."""
        if isinstance(start, Var) and start in self.taken:
            self.take(var, replace(self.taken[start], is_known=False))


def _changed(stmt: AssignStmt, how: str) -> OperandError:
    name = stmt.var.name_hint
    return OperandError(f"`{name}` {how}", spans=[stmt.span], help="use another name for the other tile")
