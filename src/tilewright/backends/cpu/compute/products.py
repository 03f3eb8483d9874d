"""Products: matrices multiplied where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from math import prod

from tilewright.backends.cpu.compute.column_products import ColumnProduct
from tilewright.backends.cpu.compute.computed_products import ComputedProduct, ComputedTerm, is_computed
from tilewright.backends.cpu.compute.convert import to_elements
from tilewright.backends.cpu.compute.copies import copy_elements, known_or, packed, rows_of, tile_type
from tilewright.backends.cpu.compute.dot_products import DotProduct
from tilewright.backends.cpu.compute.matrices import Matrix, Panel, fetch_rows, placed, read_in_place
from tilewright.backends.cpu.compute.matrix_products import MatrixProduct
from tilewright.backends.cpu.compute.matrix_tiles import depth_of_tile
from tilewright.backends.cpu.compute.nodes import TurnedNode, mapped
from tilewright.backends.cpu.compute.store_targets import gathered
from tilewright.backends.cpu.compute.tile_products import TileProduct, are_turned_words
from tilewright.backends.cpu.compute.tiles import broadcast_valid
from tilewright.backends.cpu.compute.words import elements_of_word, tile_words
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.memory import FEW_PLACES
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tile, contiguous, static
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import FP32, FP64
from tilewright.native.llvm import FALSE, I64, TRUE, Value, i64
from tilewright.ops.matmul import MISSING_ROWS
from tilewright.ops.product_types import SMALL_FLOATS
from tilewright.passes.computed_operands import FLOATS
from tilewright.passes.few_rows import FEW_ROWS, most_few, rows_there
from tilewright.records import mutable

SHORT = 256
"""Columns up to which whole rows of a tensor are read where they lie; longer ones meet in the same cache lines."""

NEAR = 1 << 19
"""Bytes of a matrix that a cache may still hold."""


@lowers("tile.matmul", "tile.batch_matmul", "tile.gemv")
def _matmul(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return Product(e, call, bound["lhs"], bound["rhs"]).alone()


@lowers("tile.matmul_acc", "tile.batch_matmul_acc", "tile.gemv_acc")
def _matmul_acc(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    first = bound.get("init_cond")
    accumulate = e.b.op("xor", first.value, TRUE) if first is not None else TRUE
    name = arguments(call)["acc"]
    product = Product(e, call, bound["lhs"], bound["rhs"], bound["acc"])
    return product.onto(bound["acc"], name if isinstance(name, Var) else None, accumulate)


@lowers("tile.matmul_bias", "tile.gemv_bias")
def _matmul_bias(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return Product(e, call, bound["lhs"], bound["rhs"]).beside(bound["bias"])


class Product:
    """One product being emitted: its operands brought to where it reads them."""

    def __init__(self, e: FunctionEmitter, call: Call, lhs: Tile, rhs: Tile, acc: Tile | None = None) -> None:
        self.e, self.call, self.type = e, call, tile_type(call)
        lhs, rhs = (narrowed(e, call, tile) for tile in (lhs, rhs))
        self.lhs, self.rhs = lhs, rhs
        self.before: Sequence[Product] = ()
        """The products that were put off until this one."""
        self.k = self._depth()
        self.turned = rhs.node.source if isinstance(rhs.node, TurnedNode) else None
        """The right operand as it lies, where it lies on its side and is met so."""
        self.left = self._near() or placed(e, lhs)
        self.is_computed = is_computed(e, rhs)
        """Whether the right operand is computed as it is read."""
        self._is_column = _is_column(self)
        near = not (_is_turned(rhs) or self._is_column) and (self._is_few or self.words > 1 or _has_whole_rows(rhs))
        right = read_in_place(e, rhs) if near else None
        self._lies_so = right is not None
        """Whether the right operand is read in its tensor."""
        is_read_so = self._lies_so or self.is_computed or self.turned is not None
        self._right = right if is_read_so else self._brought(self._ready is not None)
        batch = broadcast_valid(self.type.shape[:-2], [lhs, rhs, acc], 2)
        self.valid = (*batch, lhs.valid[-2], rhs.valid[-1])
        if acc is not None:
            self.valid = least_part(e, acc.valid, self.valid, self.type.shape)
        self.valid = known_or(self.type, self.valid)

    @property
    def right(self) -> Matrix:
        """Where the right operand lies, of one that is in memory."""
        assert self._right is not None
        return self._right

    def _brought(self, is_ready: bool) -> Matrix:
        """Return where the right operand lies in rows that a product reads, a column as one, brought there if not."""
        depth, step = static(self.k), self.tile_depth or self.words
        are_words = step > 1 and bool(depth) and depth % step == 0 and are_turned_words(self.e, self.rhs)
        lies_so = is_ready or are_words or (_has_rows(self.e, self.rhs) and not self._is_column)
        return placed(self.e, self.rhs if lies_so else packed(self.e, self.rhs))

    def _near(self) -> Matrix | None:
        """Return where the left operand is read in its tensor; rows that follow in a loop are fetched meanwhile."""
        left = read_in_place(self.e, self.lhs)
        if self.turned is not None:
            return _in_rows(self.e, left or placed(self.e, self.lhs), self.lhs)
        if left is not None and self.e.regions and _has_whole_rows(self.lhs):
            fetch_rows(self.e, left, *self.lhs.type.shape[-2:])
        return left

    def _depth(self) -> Value:
        """Return how many products are summed: as many as the left operand has valid columns."""
        have, there = self.lhs.valid[-1], self.rhs.valid[-2]
        if have == there:
            return have
        a, b = static(have), static(there)
        if a is not None and b is not None:
            return i64(min(a, b))
        if not self.e.checked:
            return have
        beyond = self.e.b.compare("icmp sgt", have, there)
        self.e.fail(beyond, f"a matrix product reads data that is not there\n{MISSING_ROWS}", self.call)
        return self.e.b.intrinsic("llvm.smin", have, there)

    def alone(self) -> Tile:
        """Emit the product itself, where it goes if it is only stored."""
        with gathered(self.e, self.type, self.valid) as (result, made):
            self._into(Matrix(made.pointer, made.strides, made.dtype), FALSE)
        return result

    def onto(self, acc: Tile, name: Var | None, accumulate: Value) -> Tile:
        """Emit the product added to a tile, in its own memory if nothing else reads it."""
        e = self.e
        e.look(self.call, "acc", acc, self.valid, _starts_anew(e, accumulate))
        place = e.stored(acc)
        if isinstance(acc, Unfinished):
            self.before = acc.terms
        if id(self.call) in e.summed_later and acc.valid == self.valid and acc.defined is None:
            return self._put_off(acc)
        e.flush()  # what is recorded may read it as it is
        if name is not None and place.strides == contiguous(self.type.shape) and self._ends(acc, name):
            same = acc.valid == self.valid and acc.type == self.type and acc.defined is None and not self.before
            return self._add_up(acc if same else Tile(self.type, self.valid, place, None, acc.owners), accumulate)
        result = e.fresh(self.type, self.valid)
        assert result.place is not None
        copy_elements(e, self.type.dtype, place, result.place, self.valid)
        return self._add_up(result, accumulate)

    def _put_off(self, acc: Tile) -> Tile:
        """Let the next product, which takes over the accumulator, add this one too; what it reads stays until then."""
        for name in self.names:
            self.e.uses[name] += 1
        return Unfinished(self.type, self.valid, acc.place, owners=acc.owners, terms=[*self.before, self])

    def _add_up(self, result: Tile, accumulate: Value) -> Tile:
        """Emit what was put off and this: as one sum where they are alike, else one product after the other."""
        terms = [*self.before, self]
        for name in (name for term in self.before for name in term.names):
            self.e.uses[name] -= 1
        if self.before and all(term.is_computed and term.k == self.k for term in terms):
            self._compute(placed(self.e, result), accumulate, terms)
            return result
        if self.before and _are_alike(terms):
            return _add_terms(terms, result)
        for term in terms:
            term.multiply(result, accumulate)
        return result

    @property
    def names(self) -> list[Var]:
        """The tiles that it reads, beside what it adds to."""
        given = arguments(self.call)
        return [operand for operand in (given["lhs"], given["rhs"]) if isinstance(operand, Var)]

    def _ends(self, acc: Tile, name: Var) -> bool:
        """Return whether this is the last to read an accumulator that the same body made or was handed."""
        return self.e.readers(acc) == 1 and self.e.last_use.ends_at(self.call, (name, *acc.owners))

    def beside(self, bias: Tile) -> Tile:
        """Emit the product with a row added to each of its rows."""
        self.e.look(self.call, "bias", bias, (i64(1), self.valid[-1]))
        place = self.e.stored(bias)
        result = self.e.fresh(self.type, self.valid)
        assert result.place is not None
        every_row = Place(place.pointer, (0, place.strides[-1]))
        copy_elements(self.e, self.type.dtype, every_row, result.place, self.valid)
        return self.multiply(result, TRUE)

    def multiply(self, result: Tile, accumulate: Value, *distances: Value, terms: int = 1) -> Tile:
        """Emit the product into a tile, or the sum of as many terms as lie at some distances from it."""
        self._into(placed(self.e, result), accumulate, *distances, terms=terms)
        return result

    def _into(self, target: Matrix, accumulate: Value, *distances: Value, terms: int = 1) -> None:
        """Emit the same into memory."""
        if self.is_computed:
            self._compute(target, accumulate, [self])
            return
        if self.turned is not None:
            return _meet(self, self.turned, target, accumulate)
        if self._is_column and terms == 1 and (accumulate == FALSE or static(target.strides[-2]) == 1):
            rows = ColumnProduct(self.e, self.left, self.lhs.type, self.lhs.valid, self.right, self.k, accumulate)
            return rows.emit(self.valid[-2], target)
        e, (m, n) = self.e, self.valid[-2:]
        with rows_of(e, self.valid[:-2]) as batch:
            every = ((self.left, self.lhs.type), (self.right, self.rhs.type), (target, self.type))
            a, b, c = (Panel(matrix.at(e, type_.shape, batch), *matrix.strides[-2:]) for matrix, type_ in every)
            rows, depth = rows_there(self.lhs.type), self.lhs.type.shape[-1]
            most, dtypes = (rows, self.type.shape[-1], depth), (self.left.dtype, self.right.dtype)
            sums = MatrixProduct(e, a, b, c, (m, n, self.k), most, dtypes, accumulate)
            if self.tile_depth:
                TileProduct(sums, self.tile_depth).emit(self._ready)
            else:
                in_strips = rows_there(self.lhs.type) <= FEW_ROWS or (self._is_few and self._lies_so)
                sums.emit(self.words, distances, terms, self._ready, in_strips=in_strips)

    def _compute(self, target: Matrix, accumulate: Value, products: Sequence[Product]) -> None:
        """Emit a sum of products into memory that compute their right operands as they read them."""
        rows = self.lhs.type.valid[-2]  # which its type knows, and what a loop carries may not
        terms = [ComputedTerm(Panel(p.left.pointer, *p.left.strides), p.left.dtype, p.rhs) for p in products]
        assert isinstance(rows, int), "products of as many rows as are known are computed so"
        c = Panel(target.pointer, *target.strides)
        ComputedProduct(self.e, terms, c, rows, self.valid[-1], self.k, accumulate).emit()

    @property
    def _ready(self) -> Value | None:
        """Where the words of the right operand lie, if they were made in the layout that this product reads."""
        is_for_tiles = depth_of_tile(self.e.program.target, self.lhs.type.dtype, self.rhs.type.dtype) > 0
        return self.rhs.words if self.words == 2 and is_for_tiles == bool(self.tile_depth) else None

    @property
    def _is_few(self) -> bool:
        """Whether there are so few rows that each row of B had better be read once, one after the other."""
        return rows_there(self.lhs.type) <= most_few([(self.lhs.type.dtype, self.rhs.type.dtype)])

    @property
    def words(self) -> int:
        """How many products are added at a time: making words of B pays for more than a few rows."""
        words = elements_of_word(self.e.program.target, self.lhs.type.dtype, self.rhs.type.dtype)
        if self.tile_depth:
            return tile_words(self.lhs.type.dtype).elements
        if len(self.type.shape) != 2 or rows_there(self.type) < FEW_ROWS or (words == 2 and self._streams):
            return 1
        if static(self.left.strides[-1]) == 1:
            return words
        is_whole = static(self.lhs.valid[-2]) == self.lhs.type.shape[-2]
        return words if words == 2 and is_whole and static(self.left.strides[-2]) == 1 else 1

    @property
    def tile_depth(self) -> int:
        """How many products a step on matrix tiles adds to each element, 0 where this does not run on them."""
        depth = depth_of_tile(self.e.program.target, self.lhs.type.dtype, self.rhs.type.dtype)
        is_enough = rows_there(self.type) > FEW_ROWS and depth <= self.lhs.type.shape[-1]
        return depth if is_enough else 0

    @property
    def _streams(self) -> bool:
        """Whether a few rows, perhaps one, meet a matrix that comes from memory: that takes longer than to multiply."""
        is_near = prod(self.rhs.type.shape) * self.rhs.type.dtype.get_byte() <= NEAR
        return self._is_few and not (is_near and static(self.lhs.valid[-2]) == FEW_ROWS)


def _in_rows(e: FunctionEmitter, matrix: Matrix, tile: Tile) -> Matrix:
    """Return where a tile lies row by row, brought there if it does not."""
    return matrix if static(matrix.strides[-1]) == 1 else placed(e, packed(e, tile))


def _starts_anew(e: FunctionEmitter, accumulate: Value) -> Value | None:
    """Return whether an accumulator is not looked at, None where it surely is."""
    return None if accumulate == TRUE else e.negated(accumulate)


def _is_column(product: Product) -> bool:
    """Return whether more than a few rows of a matrix, as they lie, meet one column that is in memory."""
    p, kinds = product, [tile.type.dtype for tile in (product.lhs, product.rhs)]
    is_one = p.type.shape[1:] == (1,) and static(p.rhs.valid[-1]) == 1
    is_plain = p.turned is None and not (p.is_computed or rows_there(p.lhs.type) <= FEW_ROWS)
    are_alike = all(k in FLOATS for k in kinds) or all(k.is_int() for k in kinds) or kinds == [FP64, FP64]
    return is_one and is_plain and are_alike and static(p.left.strides[-1]) == 1


def _meet(product: Product, right: Tile, target: Matrix, accumulate: Value) -> None:
    """Emit a product of few rows with a matrix that lies on its side."""
    a, c = (Panel(matrix.pointer, *matrix.strides) for matrix in (product.left, target))
    rows, columns = product.valid[-2:]
    extents, most = (rows, columns, product.k), rows_there(product.type)
    DotProduct(product.e, a, c, extents, most, product.left.dtype, right, accumulate).emit()


def _are_alike(terms: Sequence[Product]) -> bool:
    """Return whether one sum can have some products as its terms: only where they lie differs."""
    if any(p.is_computed or p.turned is not None for p in terms):
        return False
    kinds = {(p.k, p.left.dtype, p.left.strides[-2:], p.right.dtype, p.right.strides[-2:]) for p in terms}
    type_ = terms[0].type
    return len(kinds) == 1 and len(type_.shape) == 2 and terms[0].words == 1


def _add_terms(terms: Sequence[Product], result: Tile) -> Tile:
    """Emit the sum of some products: where they lie is told as distances from the first."""
    e, first = terms[0].e, terms[0]
    scratch = e.arena.take(16 * len(terms))
    table = e.address(scratch[0])
    origins = [e.b.value(I64, f"ptrtoint {m.pointer} to i64") for m in (first.left, first.right)]
    for at, matrix in enumerate(matrix for term in terms for matrix in (term.left, term.right)):
        here = e.b.value(I64, f"ptrtoint {matrix.pointer} to i64")
        e.b.store(e.b.op("sub", here, origins[at % 2]), e.b.offset(table, i64(at), I64), 8)
    first.multiply(result, TRUE, table, terms=len(terms))
    e.arena.give_back(scratch)
    return result


@mutable
class Unfinished(Tile):
    """A sum to which some products have not been added yet; only the next product reads it."""

    terms: Sequence[Product] = ()


def least_part(e: FunctionEmitter, a: Sequence[Value], b: Sequence[Value], shape: Sequence[int]) -> tuple[Value, ...]:
    """Return where two tiles of a shape are both valid."""

    def least(x: Value, y: Value, most: int) -> Value:
        if x == y or static(x) == most:
            return y
        return x if static(y) == most else e.b.intrinsic("llvm.smin", x, y)

    return tuple(starmap(least, zip(a, b, shape, strict=True)))


def _has_rows(e: FunctionEmitter, tile: Tile) -> bool:
    """Return whether a tile in memory is one matrix whose rows a product reads as they lie.

    Rows of a window that all begin at the same few places of the cache drive each other out of it.
    """
    strides = e.stored(tile).strides
    return len(strides) == 2 and strides[-1] == 1 and strides[0] * tile.type.dtype.get_byte() % FEW_PLACES != 0


def _has_whole_rows(tile: Tile) -> bool:
    """Return whether the rows of a loaded matrix are all of its tensor's, and short: they follow each other."""
    if not isinstance(tile.node, LoadNode):
        return False
    width = static(tile.valid[-1])
    return width is not None and width <= SHORT and tile.node.tensor.shape[-1] == tile.valid[-1]


def _is_turned(tile: Tile) -> bool:
    """Return whether neighbours along the last axis are not known to be adjacent."""
    return not isinstance(tile.node, LoadNode) or tile.node.tensor.strides[-1] != i64(1)


def narrowed(e: FunctionEmitter, call: Call, tile: Tile) -> Tile:
    """Return an operand with elements that are multiplied as they are; floats of 8 bits are multiplied as fp32."""
    if tile.type.dtype not in SMALL_FLOATS:
        return tile
    type_ = TileType(tile.type.shape, FP32, tile.type.valid)
    result = mapped(e, type_, tile.valid, to_elements(FP32), [tile])
    result.owners = variables(call.args)
    return result
