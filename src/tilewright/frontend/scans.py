"""Scans by a function of the author's: each element folded with all before it.

Along the last axis elements are folded with those twice as far away with every step, and the function is written out
once per step, for all elements at the same time: so it has to be associative. Along others a loop goes from one to the
next.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.build import locate, scalar
from tilewright.core.enums import PadValue
from tilewright.core.expr import Expr, Var, integer
from tilewright.core.stmt import ForStmt, IterArg, SeqStmts, YieldStmt
from tilewright.core.types import ScalarType, TileType, is_fully_valid
from tilewright.dtypes import INDEX
from tilewright.errors import ArgumentCountError, KernelError, OperandError, ShapeMismatchError
from tilewright.frontend.derived import Writer
from tilewright.frontend.translator import Translator
from tilewright.frontend.unrolled_loops import names_of_its_own
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.axes import one_axis

_USAGE = "pl.scan(lambda a, b: a + b, x, axis=-1): a stands for what comes before b"
_NAMES = ("fn", "x", "axis", "reverse")


def scan(t: Translator, node: ast.Call) -> Value:
    """Return what `pl.scan` gives: a tile, or as many as it was given."""
    given = dict(zip(_NAMES, node.args, strict=False)) | {str(k.arg): k.value for k in node.keywords}
    if len(node.args) > len(_NAMES) or not {"fn", "x"} <= {*given} <= {*_NAMES}:
        raise t.error(ArgumentCountError, node, "pl.scan takes a function, and what it folds", help=_USAGE)
    values = {name: t.operand(given[name]) for name in given if name != "fn"}
    x = values["x"]
    is_one = isinstance(x, Expr)
    tiles: list[Any] = [x] if is_one else list(sequence(x))
    try:
        axis = _checked(tiles, values.get("axis", -1))
    except KernelError as error:
        locate(error, {}, t.span(node), {name: t.span(where) for name, where in given.items()})
        raise
    fold = _Fold(t, node, given["fn"], is_one)
    found = _scanned(Writer(t, node), fold, tiles, axis, bool(values.get("reverse", False)))
    return found[0] if is_one else tuple(found)


def _checked(tiles: Sequence[Any], axis: Any) -> int:
    """Return the axis, counted from the end; raise for what is no tile, or of another shape."""
    for tile in tiles or [None]:
        if not isinstance(tile, Expr) or not isinstance(tile.type, TileType):
            got = tile.type if isinstance(tile, Expr) else repr(tile)
            raise OperandError(f"a scan takes tiles, got {got}", blame=["x"], help="pl.load makes a tile from a tensor")
        if tile.type.shape != tiles[0].type.shape or tile.type.valid != tiles[0].type.valid:
            message = f"tiles that are scanned together have one shape, got {tiles[0].type} and {tile.type}"
            raise ShapeMismatchError(message, blame=["x"])
    return one_axis(tiles[0], axis)


class _Fold:
    """The author's function: a lambda, an op, or a function that is written out where it is called."""

    def __init__(self, t: Translator, node: ast.Call, function: ast.expr, is_one: bool) -> None:
        self.t, self.node, self.function, self.is_one = t, node, function, is_one
        if isinstance(function, ast.Lambda) and len(function.args.args) != 2:
            raise t.error(ArgumentCountError, function, "the function of a scan takes two values", help=_USAGE)

    def __call__(self, first: Sequence[Expr], second: Sequence[Expr]) -> list[Expr]:
        """Return what it makes of the values of two elements."""
        values = [parts[0] if self.is_one else tuple(parts) for parts in (first, second)]
        result = self.t.placed(self._result(values), self.function)
        found: list[Any] = [result] if self.is_one else list(sequence(result)) if isinstance(result, tuple) else []
        types = [tile.type if isinstance(tile, Expr) else tile for tile in found]
        if [*map(_elements, types)] != [_elements(tile.type) for tile in second]:
            wanted, got = (", ".join(map(str, each)) for each in ([tile.type for tile in second], types))
            message = f"the function of a scan gives what it takes, {wanted}, got {got or result}"
            raise self.t.error(ShapeMismatchError, self.function, message, help=_USAGE)
        return found

    def _result(self, values: Sequence[Any]) -> Value:
        if isinstance(self.function, ast.Lambda):
            bound = dict(zip([arg.arg for arg in self.function.args.args], values, strict=True))
            return self._evaluated(self.function.body, bound)
        names = ("scan.first", "scan.second")
        call = ast.Call(self.function, [ast.Name(name, ast.Load()) for name in names], [])
        located = ast.fix_missing_locations(ast.copy_location(call, self.node))
        return self._evaluated(located, dict(zip(names, values, strict=True)))

    def _evaluated(self, body: ast.expr, bound: Mapping[str, Any]) -> Value:
        with names_of_its_own(self.t, bound):
            for name, value in bound.items():
                self.t.scope.bind(name, value, self.t.span(self.function))
            return self.t.operand(body)


def _elements(type_: object) -> object:
    return (type_.shape, type_.dtype) if isinstance(type_, TileType) else None


def _scanned(w: Writer, fold: _Fold, tiles: Sequence[Expr], axis: int, is_reverse: bool) -> list[Expr]:
    type_ = tiles[0].type
    assert isinstance(type_, TileType)
    if is_reverse and type_.valid[axis] != type_.shape[axis]:
        found = _scanned(w, fold, [_flipped(w, tile, axis) for tile in tiles], axis, is_reverse=False)
        return [_flipped(w, tile, axis) for tile in found]
    is_whole = is_fully_valid(type_)
    found = [tile if is_whole else w.named(w.do("tile.fillpad", x=tile, pad_value=PadValue.zero)) for tile in tiles]
    valid = type_.valid[axis]
    most = valid if isinstance(valid, int) else type_.shape[axis]
    found = (_doubling if axis == -1 else _in_order)(w, fold, found, type_.shape, axis, most, is_reverse)
    return found if is_whole else [_as_valid(w, part, tile) for part, tile in zip(found, tiles, strict=True)]


def _flipped(w: Writer, tile: Expr, axis: int) -> Expr:
    return w.named(w.do("tile.flip", x=tile, axis=axis))


def _doubling(
    w: Writer, fold: _Fold, found: list[Expr], shape: Sequence[int], axis: int, most: int, is_reverse: bool
) -> list[Expr]:
    """Return elements folded with those one away, then two, and so on."""
    step = 1
    while step < most:
        part, here = list(shape), [0] * len(shape)
        part[axis], there = shape[axis] - step, [*here]
        there[axis] = step
        first, second = ([_cut(w, tile, part, at) for tile in found] for at in (here, there))
        folded = fold(second, first) if is_reverse else fold(first, second)
        found = _put(w, found, folded, here if is_reverse else there)
        step *= 2
    return found


def _in_order(
    w: Writer, fold: _Fold, found: list[Expr], shape: Sequence[int], axis: int, most: int, is_reverse: bool
) -> list[Expr]:
    """Return elements folded one after the other, in a loop."""
    if most < 2:
        return found
    row, at = list(shape), list[Expr]([integer(0)] * len(shape))
    row[axis], at[axis] = 1, integer(most - 1 if is_reverse else 0)
    first = [*(_cut(w, tile, row, at) for tile in found), *found]
    held, results = ([Var("scan", value.type, w.span) for value in first] for _ in range(2))
    number, count = Var("i", ScalarType(INDEX), w.span, (1, max(1, most - 1))), len(found)
    outer, w.t.stmts = w.t.stmts, []
    at[axis] = scalar("sub", integer(most - 1), number) if is_reverse else number
    folded = fold(held[:count], [_cut(w, tile, row, at) for tile in found])
    w.t.emit(YieldStmt((*folded, *_put(w, held[count:], folded, at)), w.span))
    body, w.t.stmts = SeqStmts(tuple(w.t.stmts)), outer
    carried = tuple(map(IterArg, held, first))
    bounds = integer(1), integer(most), integer(1)
    w.t.emit(ForStmt(number, *bounds, body, iter_args=carried, return_vars=tuple(results), span=w.span))
    return [*results[count:]]


def _put(w: Writer, tiles: Sequence[Expr], parts: Sequence[Expr], at: Sequence[Any]) -> list[Expr]:
    """Return tiles with parts written into them."""
    pairs = zip(tiles, parts, strict=True)
    return [w.named(w.do("tile.assemble", target=tile, source=part, offset=tuple(at))) for tile, part in pairs]


def _cut(w: Writer, tile: Expr, shape: Sequence[int], offset: Sequence[Any]) -> Expr:
    return w.named(w.do("tile.slice", x=tile, shape=tuple(shape), offset=tuple(offset)))


def _as_valid(w: Writer, result: Expr, like: Expr) -> Expr:
    """Return a tile of which as much is valid as of another, whose elements are chosen nowhere."""
    return w.do("tile.where", condition=w.do("tile.lt", lhs=like, rhs=like), x=like, y=result)
