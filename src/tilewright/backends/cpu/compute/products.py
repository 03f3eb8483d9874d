"""Products: matrices multiplied where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from typing import NamedTuple

from tilewright.backends.cpu.compute.convert import to_elements
from tilewright.backends.cpu.compute.copies import copy_elements, known_or, packed, rows_of, tile_type
from tilewright.backends.cpu.compute.double_products import DoubleProduct, Panel
from tilewright.backends.cpu.compute.gemm import GemmSpec, emit_gemm
from tilewright.backends.cpu.compute.nodes import mapped
from tilewright.backends.cpu.compute.pairs import can_pair, emit_pairs
from tilewright.backends.cpu.compute.tiles import broadcast_valid
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tile, contiguous, static
from tilewright.backends.cpu.emit.work import ELEMENTS, LONG
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import BF16, FP64, INT32, DataType
from tilewright.native.llvm import FALSE, TRUE, Value, i64
from tilewright.ops.matmul import MISSING_ROWS

FEW_ROWS = 8
"""Rows of A for which a matrix B is better read as it is."""


class Matrix(NamedTuple):
    """Matrices of one element type in memory: an address and the distance between neighbours along each axis."""

    pointer: Value
    strides: tuple[Value, ...]
    dtype: DataType

    def at(self, e: FunctionEmitter, shape: Sequence[int], batch: Sequence[Value]) -> Value:
        """Return where the matrix of a batch index lies; there is one for all along axes of one element."""
        offset: Value = i64(0)
        own = batch[len(batch) - len(shape) + 2 :]
        for index, extent, stride in zip(own, shape, self.strides, strict=False):
            if extent != 1:
                offset = e.b.op("add", offset, e.b.op("mul", index, stride))
        return e.b.offset(self.pointer, offset, memory_type(self.dtype))


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
        self.k = self._depth()
        left = read_in_place(e, lhs)
        right = read_in_place(e, rhs) if not _is_turned(rhs) else None
        self.left = left or placed(e, lhs)
        self.right = right or placed(e, rhs if self._is_paired() else packed(e, rhs))
        batch = broadcast_valid(self.type.shape[:-2], [lhs, rhs, acc], 2)
        self.valid = (*batch, lhs.valid[-2], rhs.valid[-1])
        if acc is not None:
            self.valid = least_part(e, acc.valid, self.valid, self.type.shape)
        self.valid = known_or(self.type, self.valid)

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
        """Emit the product itself."""
        result = self.e.fresh(self.type, self.valid)
        return self._multiply(result, FALSE)

    def onto(self, acc: Tile, name: Var | None, accumulate: Value) -> Tile:
        """Emit the product added to a tile, in its own memory if nothing else reads it."""
        e = self.e
        e.look(self.call, "acc", acc, self.valid, self._starts_anew(accumulate))
        place = e.stored(acc)
        e.flush()  # what is recorded may read it as it is
        if name is not None and place.strides == contiguous(self.type.shape) and self._ends(acc, name):
            same = (
                acc.valid == self.valid and acc.type == self.type and acc.defined is None
            )  # all of the sum holds data
            return self._multiply(acc if same else Tile(self.type, self.valid, place, None, acc.owners), accumulate)
        result = e.fresh(self.type, self.valid)
        assert result.place is not None
        copy_elements(e, self.type.dtype, place, result.place, self.valid)
        return self._multiply(result, accumulate)

    def _ends(self, acc: Tile, name: Var) -> bool:
        """Return whether this is the last to read an accumulator that the same body made or was handed."""
        return self.e.readers(acc) == 1 and self.e.last_use.ends_at(self.call, (name, *acc.owners))

    def _starts_anew(self, accumulate: Value) -> Value | None:
        """Return whether the accumulator is not looked at, None where it surely is."""
        return None if accumulate == TRUE else self.e.negated(accumulate)

    def beside(self, bias: Tile) -> Tile:
        """Emit the product with a row added to each of its rows."""
        self.e.look(self.call, "bias", bias, (i64(1), self.valid[-1]))
        place = self.e.stored(bias)
        result = self.e.fresh(self.type, self.valid)
        assert result.place is not None
        every_row = Place(place.pointer, (0, place.strides[-1]))
        copy_elements(self.e, self.type.dtype, every_row, result.place, self.valid)
        return self._multiply(result, TRUE)

    def _multiply(self, result: Tile, accumulate: Value) -> Tile:
        e, (m, n) = self.e, self.valid[-2:]
        assert result.place is not None
        target = placed(e, result)
        if self._pairs():
            return self._multiply_pairs(result, target, accumulate)
        if self.type.dtype == FP64:
            with rows_of(e, self.valid[:-2]) as batch:
                a, b, c = (
                    Panel(matrix.at(e, tile.type.shape, batch), *matrix.strides[-2:])
                    for matrix, tile in ((self.left, self.lhs), (self.right, self.rhs), (target, result))
                )
                DoubleProduct(e, a, b, c, self.k, accumulate).emit(m, n)
            return result
        spec = GemmSpec(e.program.target, self.left.dtype, self.right.dtype, static(m), static(n), self.type.shape[-1])
        with rows_of(e, self.valid[:-2]) as batch:
            run_gemm(
                e, spec, self._work(),
                self.left.at(e, self.lhs.type.shape, batch), *self.left.strides[-2:],
                self.right.at(e, self.rhs.type.shape, batch), self.right.strides[-2],
                target.at(e, self.type.shape, batch), target.strides[-2],
                m, n, self.k, accumulate,
            )  # fmt: skip
        return result

    def _work(self) -> int:
        """Return how much one product of matrices is at most."""
        rows, columns = self.type.shape[-2:]
        return rows * columns * (static(self.k) or max(self.lhs.type.shape[-2:])) // ELEMENTS

    def _pairs(self) -> bool:
        """Return whether two products at a time can be added: packing B for that pays for more than a few rows."""
        depth, rows = static(self.k), self.type.shape[-2]
        return (
            can_pair(self.e.program.target)
            and self.left.dtype == self.rhs.type.dtype == BF16
            and depth is not None
            and depth % 2 == 0
            and rows >= FEW_ROWS
            and len(self.type.shape) == 2
            and 1 in [static(stride) for stride in self.left.strides]
        )

    def _is_paired(self) -> bool:
        """Return whether the right operand lies in pairs already, and is read so."""
        return self.rhs.pairs is not None and self._pairs()

    def _multiply_pairs(self, result: Tile, target: Matrix, accumulate: Value) -> Tile:
        e, (m, n), depth = self.e, self.valid[-2:], static(self.k) or 0
        parts: list[Part] = []
        pairs, apart = self.rhs.pairs, i64(self.rhs.type.shape[-1])
        if pairs is None:
            pairs, apart = self._paired(self.right.pointer, self.right.strides[-2], n, parts), n
        left, across, along = self.left.pointer, self.left.strides[-2], i64(2)
        if static(self.left.strides[-1]) != 1:  # a tile that lies on its side: its columns are paired as rows are
            rows = i64(self.lhs.type.shape[-2])
            left, across, along = self._paired(left, self.left.strides[-1], rows, parts), i64(2), e.b.op("shl", rows, i64(1))
        spec = GemmSpec(e.program.target, BF16, BF16, static(m), static(n), self.type.shape[-1], paired=True)
        run_gemm(
            e, spec, self._work(), left, across, along, pairs, apart,
            target.pointer, target.strides[-2], m, n, i64(depth // 2), accumulate,
        )  # fmt: skip
        for part in parts:
            e.arena.give_back(part)
        return result

    def _paired(self, rows: Value, apart: Value, columns: Value, parts: list[Part]) -> Value:
        """Emit the pairs of neighbouring rows along the inner dimension; return where they lie, in a part of its own."""
        e, depth = self.e, static(self.k) or 0
        parts.append(e.arena.take(depth // 2 * max(self.type.shape) * 4))
        pairs = e.address(parts[-1][0])
        e.b.invoke(emit_pairs(e.b.module), rows, apart, pairs, self.k, columns)
        return pairs


def least_part(e: FunctionEmitter, a: Sequence[Value], b: Sequence[Value], shape: Sequence[int]) -> tuple[Value, ...]:
    """Return where two tiles of a shape are both valid."""

    def least(x: Value, y: Value, most: int) -> Value:
        if x == y or static(x) == most:
            return y
        return x if static(y) == most else e.b.intrinsic("llvm.smin", x, y)

    return tuple(starmap(least, zip(a, b, shape, strict=True)))


def run_gemm(e: FunctionEmitter, spec: GemmSpec, work: int, *args: Value) -> None:
    """Emit a product of matrices; one that is much work ends with its program."""
    polled = e.program.polled and work >= LONG
    name = emit_gemm(e.b.module, replace(spec, polled=polled))
    e.b.invoke(name, *args, *[e.context] * polled)
    if polled:
        e.leave_after_an_error()


def placed(e: FunctionEmitter, tile: Tile) -> Matrix:
    """Return the matrices of a tile in the arena."""
    place = e.stored(tile)
    return Matrix(place.pointer, tuple(i64(stride) for stride in place.strides), tile.type.dtype)


def _is_turned(tile: Tile) -> bool:
    """Return whether neighbours along the last axis are not known to be adjacent."""
    return not isinstance(tile.node, LoadNode) or tile.node.tensor.strides[-1] != i64(1)


def read_in_place(e: FunctionEmitter, tile: Tile) -> Matrix | None:
    """Return where a loaded tile's elements lie in their tensor, if the plan says that they are read there."""
    node = tile.node
    if tile.place is not None or not isinstance(node, LoadNode) or e.waits(tile):
        return None
    offset: Value = i64(0)
    for start, stride in zip(node.offsets, node.tensor.strides, strict=True):
        offset = e.b.op("add", offset, e.b.op("mul", start, stride))
    pointer = e.b.offset(node.tensor.pointer, offset, memory_type(tile.type.dtype))
    return Matrix(pointer, node.tensor.strides, tile.type.dtype)


def narrowed(e: FunctionEmitter, call: Call, tile: Tile) -> Tile:
    """Return an operand with elements of 32 bits or fewer: more do not change the last 32 of a product."""
    if tile.type.dtype.bits <= 32 or tile.type.dtype == FP64:
        return tile
    type_ = TileType(tile.type.shape, INT32, tile.type.valid)
    result = mapped(e, type_, tile.valid, to_elements(INT32), [tile])
    result.owners = variables(call.args)
    return result
