"""Strided steps: loops that sum products of windows of memory, taking several of their turns at once.

A turn moves both windows on by as much as they are long, along the axis that is summed over. Then those of several
turns lie one behind the other, and are one longer window. What else the loop computes is where they begin, and checks
of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.expr import Absent, Call, Const, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, Stmt, YieldStmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import variables
from tilewright.passes.linear import is_long
from tilewright.records import record

CHECK = "system.device_assert"


def longer_steps(function: Function, depth: int) -> tuple[Function, list[str]]:
    """Return a function whose sums over windows take steps of about a depth, and a line for each that changed."""
    walk = _Walk(depth)
    made = function.with_body(walk.body(function.body))
    return made, [f"{function.name}: {note}" for note in walk.notes]


class _Walk(Rewriter):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Take several turns of a sum at once, and those that are left over together."""
        found = sum_of(stmt)
        times = 1 if found is None else _times(found, self.depth)
        if found is None or times == 1:
            return super().for_loop(stmt)
        self.notes.append(f"{stmt.loop_var.name_hint} by {found.step * times} instead of {found.step}")
        left = found.turns % times
        if not left:
            return self._stretched(stmt, found, times)
        stop = integer(found.start + (found.turns - left) * found.step)
        most = self._stretched(replace(stmt, stop=stop), found, times, fresh=True)
        (loop,) = most
        assert isinstance(loop, ForStmt)
        carried = replace(stmt.iter_args[0], init=loop.return_vars[0])
        rest = replace(stmt, start=stop, iter_args=(carried,))
        return *most, *self._stretched(rest, found, left)

    def _stretched(self, stmt: ForStmt, found: _Sum, times: int, fresh: bool = False) -> Sequence[Stmt]:
        stretched = _Stretched(found, times, fresh)
        stretched.replaced = dict(self.replaced) if fresh else self.replaced
        return stretched.for_loop(replace(stmt, step=integer(found.step * times)))


def _times(found: _Sum, depth: int) -> int:
    """Return how many turns are one: as many as divide all, unless those are few, or as many as there may be."""
    most = min(found.turns, max(1, depth // found.length))
    divisor = max(n for n in _divisors(found.turns) if n <= most)
    return divisor if 4 * divisor >= 3 * most else most


def _divisors(count: int) -> list[int]:
    return [n for n in range(1, count + 1) if count % n == 0]


@record
class _Sum:
    """A loop that sums products of two windows: how many turns it has, and which axis of each is summed over."""

    start: int
    turns: int
    step: int
    length: int
    axes: Mapping[Var, int]
    """Of the windows and of the tiles that are loaded from them."""


class _Stretched(Rewriter):
    """A loop whose windows are longer."""

    def __init__(self, found: _Sum, times: int, fresh: bool = False) -> None:
        super().__init__(fresh=fresh)
        self.axes, self.length = found.axes, found.length * times

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """See or load a longer window."""
        if stmt.var not in self.axes or not isinstance(stmt.value, Call):
            return super().assign(stmt)
        made = resized(self, stmt.value, {self.axes[stmt.var]: self.length})
        return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)


def resized(rewriter: Rewriter, window: Call, changed: Mapping[int, int]) -> Expr:
    """Return a window, or what is made or loaded, rewritten with other extents along some axes."""
    given = arguments(window)
    name = "shape" if "shape" in given else "shapes"
    shape = given[name]
    assert isinstance(shape, MakeTuple)
    extents = tuple(integer(changed[at]) if at in changed else extent for at, extent in enumerate(shape.elements))
    bound = {each: rewriter.expr(value) if isinstance(value, Expr) else value for each, value in given.items()}
    return call(window.op.spec, {**bound, name: MakeTuple(extents)}, window.span)


def sum_of(loop: ForStmt) -> _Sum | None:
    """Return what a loop sums, None where it does anything else."""
    *stmts, last = loop.body.stmts or (None,)
    turns = whole_turns(loop)
    if not turns or not isinstance(last, YieldStmt) or len(loop.iter_args) != 1:
        return None
    made = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)}
    (total,) = last.values
    product = made.get(total) if isinstance(total, Var) else None
    if product is None or product.op.name != "tile.matmul_acc" or not _begins(product, loop, turns.start, made):
        return None
    given = arguments(product)
    windows = [window_of(made, given[name], axis) for name, axis in (("lhs", 1), ("rhs", 0))]
    if given["acc"] is not loop.iter_args[0].var or None in windows:
        return None
    found = [window for window in windows if window is not None]
    own: set[Expr] = {var for window in found for var in (window.view, window.tile)}
    own.add(total)
    if len({window.length for window in found}) != 1 or not all(is_harmless(stmt, own) for stmt in stmts):
        return None
    moves = Moves(loop.loop_var, made)
    by = [moves.of(window.offset) for window in found]
    if any(each is None or each * turns.step != window.nbytes for each, window in zip(by, found, strict=True)):
        return None
    axes = {var: window.axis for window in found for var in (window.view, window.tile)}
    return _Sum(turns.start, len(turns), turns.step, found[0].length, axes)


def whole_turns(loop: ForStmt) -> range | None:
    """Return the turns of a loop that are all whole."""
    ends = [as_extent(end) for end in (loop.start, loop.stop, loop.step)]
    start, stop, step = (end if isinstance(end, int) else 0 for end in ends)
    is_known = all(isinstance(end, int) for end in ends) and step > 0
    return range(start, stop, step) if is_known and stop > start and (stop - start) % step == 0 else None


def _begins(product: Call, loop: ForStmt, start: int, made: Mapping[Var, Call]) -> bool:
    """Return whether a sum goes on in every turn, but that it may begin in the first."""
    first = arguments(product).get("init_cond")
    if first is None or isinstance(first, Absent):
        return True
    condition = made.get(first) if isinstance(first, Var) else first
    if not isinstance(condition, Call) or condition.op.name != "scalar.eq":
        return False
    return (
        condition.args[0] is loop.loop_var and isinstance(condition.args[1], Const) and condition.args[1].value == start
    )


def is_harmless(stmt: Stmt, own: set[Expr]) -> bool:
    """Return whether a statement only computes a number, checks one, or belongs to the sum."""
    if isinstance(stmt, EvalStmt):
        return isinstance(stmt.expr, Call) and stmt.expr.op.name == CHECK
    if not isinstance(stmt, AssignStmt):
        return False
    return stmt.var in own or isinstance(stmt.value, Const | Var) or _is_number(stmt.value)


def _is_number(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.kind is Kind.SCALAR


@record
class Window:
    """What a product reads: a tile, the view it is loaded from, and where that begins."""

    tile: Var
    view: Var
    offset: Expr
    axis: int
    length: int
    nbytes: int
    """How far its end along the axis lies from its start."""


def window_of(made: Mapping[Var, Call], tile: object, axis: int) -> Window | None:
    """Return the window that an operand was loaded from, all of it."""
    load = made.get(tile) if isinstance(tile, Var) else None
    if load is None or not isinstance(tile, Var) or load.op.name != "tile.load":
        return None
    given = arguments(load)
    view = given["tensor"]
    seen = made.get(view) if isinstance(view, Var) else None
    plain = all(isinstance(given.get(name) or Absent(), Absent) for name in ("valid_shape", "mask", "pad"))
    if seen is None or not isinstance(view, Var) or seen.op.name != "tensor.as_strided" or not plain:
        return None
    shape, strides = (numbers_of(arguments(seen)[name]) for name in ("shape", "strides"))
    at_start = not any(numbers_of(given["offsets"]) or (1,))
    if not at_start or shape is None or strides is None or len(shape) != 2 or numbers_of(given["shapes"]) != shape:
        return None
    assert isinstance(view.type, TensorType)
    offset = arguments(seen)["offset"]
    assert isinstance(offset, Expr)
    return Window(tile, view, offset, axis, shape[axis], shape[axis] * strides[axis] * view.type.dtype.get_byte())


def numbers_of(value: object) -> tuple[int, ...] | None:
    """Return the numbers of a tuple, None where some are not known."""
    if not isinstance(value, MakeTuple) or not all(isinstance(each, ConstInt) for each in value.elements):
        return None
    return tuple(int(each.value) for each in value.elements if isinstance(each, ConstInt))


class Moves:
    """By how much numbers change where a variable grows by a step; one that counts is divided where that is exact.

    Or where it stays `below` the next multiple of what it is divided by: then its remainder grows, not its quotient.
    """

    def __init__(self, var: Var, made: Mapping[Var, Call], step: int = 1, *, below: bool = False) -> None:
        self.var, self.made, self.step, self.below = var, made, step, below

    def of(self, number: Expr) -> int | None:
        """Return by how much a number grows, None where that is not always as much."""
        if isinstance(number, Var):
            return self.step if number is self.var else self.of(self.made[number]) if number in self.made else 0
        if not isinstance(number, Call):
            return 0
        by = [self.of(each) for each in number.args]
        known = [each for each in by if each is not None]
        if len(known) < len(by):
            return None
        return self._moved(number, known)

    def _moved(self, number: Call, by: Sequence[int]) -> int | None:
        match number.op.name:
            case "scalar.cast" if is_long(number) and is_long(number.args[0]):
                return by[0]
            case "scalar.div" | "scalar.floordiv" | "scalar.mod" if by[0] and self._counts(number.args[0]):
                by_whom = number.args[1]
                if not isinstance(by_whom, ConstInt) or by_whom.value <= 0:
                    return None
                if self.below:
                    return by[0] if number.op.name == "scalar.mod" else 0
                if by[0] % by_whom.value:
                    return None
                return 0 if number.op.name == "scalar.mod" else by[0] // int(by_whom.value)
            case "scalar.add":
                return by[0] + by[1]
            case "scalar.sub":
                return by[0] - by[1]
            case "scalar.mul":
                factors = [(each, other) for each, other in zip(by, reversed(number.args), strict=True) if each]
                each, other = factors[0] if factors else (0, integer(0))
                return each * int(other.value) if len(factors) < 2 and isinstance(other, ConstInt) else None
            case _:
                return None if any(by) or self.var in variables([number]) else 0

    def _counts(self, number: Expr) -> bool:
        """Return whether a number is the variable in another type, and never less than zero."""
        while isinstance(number, Var) and number is not self.var and number in self.made:
            number = self.made[number]
            if number.op.name == "scalar.cast" and is_long(number):
                number = number.args[0]
        return number is self.var and self.var.bounds is not None and self.var.bounds[0] >= 0
