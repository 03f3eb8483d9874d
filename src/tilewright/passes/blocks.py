"""Blocks: statements that go over tensors of any extents a tile at a time.

The last block along an axis is cut to what the tensor holds, as any load is, so every tile of a block is equally valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.build import scalar
from tilewright.core.enums import ForKind
from tilewright.core.expr import ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.extents import as_scalar
from tilewright.core.rewrite import loop_reach
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, IterArg, SeqStmts, YieldStmt
from tilewright.core.types import ScalarType, TensorType, TileType, join
from tilewright.dtypes import INDEX, DataType
from tilewright.ops.builder import Statements
from tilewright.ops.families import MEETING

Offsets = Sequence[Expr]
Make = Callable[["Blocks", Offsets], None]

ROWS, COLUMNS = 16, 1024
"""The block of what is computed element by element."""
FOLDED = 8, 2048
"""The block of which rows are folded or scanned: as many elements, which the threads of a GPU's block can hold."""

ZERO, ONE = integer(0), integer(1)

COMBINED = {"add": "tile.add", "multiply": "tile.mul", "maximum": "tile.maximum", "minimum": "tile.minimum"}
"""What puts together what two blocks fold to."""


def tensor_type(var: Expr) -> TensorType:
    """Return the type of an operand that is known to be a tensor."""
    assert isinstance(var.type, TensorType)
    return var.type


class Blocks(Statements):
    """Statements being written in place of one, whose values go by its name."""

    def bind(self, value: Expr) -> Var:
        """Give a value a name."""
        if isinstance(value, Var):
            return value
        var = Var(self.hint, value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def do(self, name: str, /, **given: Any) -> Var:
        """Write an op and give its result a name."""
        return self.bind(self.op(name, **given))

    def extent(self, x: Expr, axis: int, *, valid: bool = False) -> Expr:
        """Return how large a tensor is along an axis, or how much of that is valid."""
        known = (tensor_type(x).valid if valid else tensor_type(x).shape)[axis]
        return as_scalar(known) if known is not None else self.do("tensor.dim", tensor=x, axis=axis, valid=valid)

    def extents(self, x: Expr, *, valid: bool = False) -> list[Expr]:
        """Return the extents of a tensor, or of its valid part."""
        return [self.extent(x, axis, valid=valid) for axis in range(len(tensor_type(x).shape))]

    def create(self, shape: Offsets, dtype: DataType) -> Var:
        """Write the making of a buffer."""
        return self.do("tensor.create", shape=MakeTuple(tuple(shape)), dtype=dtype)

    def part(self, x: Var, shape: Offsets, valid: Offsets) -> Var:
        """Return a tensor of which only some is valid."""
        if all(map(_same, shape, valid)):
            return x
        zeros = MakeTuple((ZERO,) * len(shape))
        asked = {"shape": MakeTuple(tuple(shape)), "offset": zeros, "valid_shape": MakeTuple(tuple(valid))}
        return self.do("tensor.slice", x=x, **asked)

    def load(self, x: Expr, offsets: Offsets, sizes: Sequence[int]) -> Var:
        """Load the block of a tensor that meets one of a larger tensor: axes of one element are read there."""
        shape, valid = tensor_type(x).shape, tensor_type(x).valid
        own = list(zip(offsets, sizes, strict=True))[len(offsets) - len(shape) :]
        at = [(ZERO, 1) if extent == 1 else place for extent, place in zip(shape, own, strict=True)]
        cut = any(o is not ZERO or v == 0 for (o, _), v in zip(at, valid, strict=True))
        place = {"offsets": MakeTuple(tuple(o for o, _ in at)), "shapes": MakeTuple(tuple(integer(n) for _, n in at))}
        return self.do("tile.load", tensor=x, clamp=cut, **place)

    def store(self, tile: Expr, offsets: Offsets, into: Var) -> None:
        """Store a tile into a tensor."""
        self.act("tile.store", tile=tile, offsets=MakeTuple(tuple(offsets)), output_tensor=into)

    def cast(self, tile: Var, dtype: DataType) -> Var:
        """Return a tile with elements of another type."""
        assert isinstance(tile.type, TileType)
        return tile if tile.type.dtype == dtype else self.do("tile.cast", x=tile, target_type=dtype, mode="trunc")

    def each(self, extents: Offsets, sizes: Sequence[int], make: Make, offsets: tuple[Expr, ...] = ()) -> None:
        """Write loops over all axes, around what `make` writes for the block at some offsets."""
        if not extents:
            make(self, offsets)
            return
        if extents[0] == ZERO:
            return
        if _fits(extents[0], sizes[0]):
            self.each(extents[1:], sizes[1:], make, (*offsets, ZERO))
            return
        var, inner = self._counter(ZERO, extents[0], sizes[0]), Blocks(self.span, self.hint)
        inner.each(extents[1:], sizes[1:], make, (*offsets, var))
        body = SeqStmts(tuple(inner.stmts))
        loop = ForStmt(var, ZERO, extents[0], integer(sizes[0]), body, ForKind.Parallel, span=self.span)
        self.stmts.append(loop)

    def folded(self, first: Var, extent: Expr, size: int, step: Callable[[Blocks, Var, Expr], Var]) -> Var:
        """Write the loop over the blocks of an axis after the first one, which go into what it gave."""
        (result,) = self.carried([first], extent, size, lambda inner, held, at: [step(inner, held[0], at)])
        return result

    def carried(
        self,
        first: Sequence[Var],
        extent: Expr,
        size: int,
        step: Callable[[Blocks, Sequence[Var], Expr], Sequence[Var]],
    ) -> Sequence[Var]:
        """Write the loop over the blocks of an axis after the first one, which carries several values."""
        if _fits(extent, size):
            return first
        var, inner = self._counter(integer(size), extent, size), Blocks(self.span, self.hint)
        held, results = ([Var(self.hint, value.type, self.span) for value in first] for _ in range(2))
        inner.stmts.append(YieldStmt(tuple(step(inner, held, var)), self.span))
        body, carried = SeqStmts(tuple(inner.stmts)), tuple(map(IterArg, held, first))
        start, step_ = integer(size), integer(size)
        loop = ForStmt(var, start, extent, step_, body, iter_args=carried, return_vars=tuple(results), span=self.span)
        self.stmts.append(loop)
        return results

    def _counter(self, start: Expr, stop: Expr, size: int) -> Var:
        return Var("i", ScalarType(INDEX), self.span, loop_reach(start, stop, integer(size)))

    def either(self, condition: Expr, then: Callable[[Blocks], Expr], other: Callable[[Blocks], Expr]) -> Var:
        """Write a branch that gives one of two values."""
        sides = [Blocks(self.span, self.hint), Blocks(self.span, self.hint)]
        values = [make(side) for make, side in zip((then, other), sides, strict=True)]
        type_ = join(values[0].type, values[1].type)
        assert type_ is not None
        result = Var(self.hint, type_, self.span)
        for side, value in zip(sides, values, strict=True):
            side.stmts.append(YieldStmt((value,), self.span))
        first, second = (SeqStmts(tuple(side.stmts)) for side in sides)
        self.stmts.append(IfStmt(condition, first, second, (result,), self.span))
        return result

    def scratch(self, type_: TileType) -> Var:
        """Write the making of a scratch tile."""
        return self.do("tile.create", shape=MakeTuple(tuple(map(integer, type_.shape))), dtype=type_.dtype)

    def check(self, condition: Expr, message: str) -> None:
        """Write the end of the program where a condition does not hold."""
        self.act("system.device_assert", condition=condition, message=message)

    def met(self, tensors: Sequence[Var], skipped: int = 0) -> tuple[list[Expr], list[Expr], list[Var]]:
        """Return the shape that tensors broadcast to, its valid part, and the tensors as they meet there.

        Which of two unknown extents is the one that repeats shows when the program runs: that tensor is spread first.
        The last `skipped` axes take no part.
        """
        rank = max(len(tensor_type(t).shape) for t in tensors)
        met, shape, valid = list(tensors), list[Expr](), list[Expr]()
        for axis in range(-rank, -skipped):
            spanning = [t for t in met if -axis <= len(tensor_type(t).shape)]
            wide = [t for t in spanning if tensor_type(t).shape[axis] != 1] or spanning[:1]
            extent, live = self._extent(wide, axis)
            for position, t in enumerate(met):
                if t in wide:
                    met[position] = self._spread(t if t is wide[0] else self._whole(t, axis), axis, extent)
            shape.append(extent)
            valid.append(live)
        return shape, valid, met

    def _whole(self, x: Var, axis: int) -> Var:
        """Return a tensor that is valid as a whole along an axis: another decides how much is read of it."""
        type_ = tensor_type(x)
        if type_.valid[axis] == type_.shape[axis] or axis < -2 or len(type_.shape) < 2:
            return x
        rows, columns = (self.extent(x, each, valid=each != axis) for each in (-2, -1))
        return self.do("tensor.set_validshape", x=x, valid_rows=rows, valid_cols=columns)

    def _extent(self, tensors: Sequence[Var], axis: int) -> tuple[Expr, Expr]:
        """Return the extent of tensors that meet along an axis and its valid part: the first that spans it decides."""
        known = [t for t in tensors if isinstance(tensor_type(t).shape[axis], int)]
        first, *others = known or tensors
        extent, live = self.extent(first, axis), self.extent(tensors[0], axis, valid=True)
        for other in others:
            size = self.extent(other, axis)
            if not _same(size, extent):
                repeats = scalar("eq", extent, ONE)
                live = self.either(repeats, lambda b, o=other: b.extent(o, axis, valid=True), lambda b, v=live: v)
                extent = self.either(repeats, lambda b, s=size: s, lambda b, e=extent: e)
        is_whole = all(tensor_type(t).valid[axis] == tensor_type(t).shape[axis] for t in tensors)
        return extent, extent if is_whole else live

    def _spread(self, x: Var, axis: int, extent: Expr) -> Var:
        """Return a tensor with its one element along an axis repeated, where that is all it may have."""
        have = self.extent(x, axis)
        if _same(have, extent):
            return x
        same, single = scalar("eq", have, extent), scalar("eq", have, ONE)
        self.check(scalar("or_", same, single), f"operands need shapes that broadcast\n{MEETING}")

        def repeated(b: Blocks) -> Expr:
            shape = b.extents(x)
            sizes = sizes_of(shape, 1)
            shape[axis], sizes[axis] = extent, 1
            made = b.create(shape, tensor_type(x).dtype)

            def copy(inner: Blocks, at: Offsets) -> None:
                source = list(at)
                source[axis] = ZERO
                inner.store(inner.load(x, source, sizes), at, made)

            b.each(shape, sizes, copy)
            return made

        return self.either(same, lambda b: x, repeated)


def sizes_of(shape: Offsets, rows: int = ROWS, columns: int = COLUMNS) -> list[int]:
    """Return the block of a shape: some rows and columns of one matrix."""
    most = [*[1] * (len(shape) - 2), rows, columns][-len(shape) :]
    known = [int(e.value) if isinstance(e, ConstInt) else size for e, size in zip(shape, most, strict=True)]
    return [max(1, min(pair)) for pair in zip(known, most, strict=True)]


def _fits(extent: Expr, size: int) -> bool:
    return isinstance(extent, ConstInt) and extent.value <= size


def _same(a: Expr, b: Expr) -> bool:
    return a is b or a == b
