"""Tensor products: matrices of any extents multiplied where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.gemm import GemmSpec
from tilewright.backends.cpu.compute.products import run_gemm
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.backends.cpu.emit.work import LONG
from tilewright.backends.cpu.host.tensor_math import broadcast, mapped, result_type
from tilewright.backends.cpu.host.tensor_views import turned
from tilewright.backends.cpu.host.tensors import converting, loaded, moved, new_tensor, put, with_adjacent_rows
from tilewright.core.expr import Call
from tilewright.dtypes import FP32, INT32, DataType
from tilewright.native.llvm import I1, Value, i64
from tilewright.ops.matmul import MISSING_ROWS, accumulator


@lowers("tensor.matmul")
def _matmul(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    product = Product(e, call, bound)
    summed = product.onto(new_tensor(e, product.shape, product.dtype), Value(I1, "false"))
    dtype = result_type(call).dtype
    return summed if summed.dtype == dtype else mapped(e, call, dtype, [summed], converting(dtype))


@lowers("tensor.matmul_acc")
def _matmul_acc(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    product, acc = Product(e, call, bound), bound["acc"]
    result = new_tensor(e, product.shape, product.dtype)
    first = bound.get("init_cond")
    accumulate = Value(I1, "true") if first is None else e.negated(first.value)
    held = product.valid
    for have, want in zip(acc.shape, product.shape, strict=True):
        if have != want:
            same = e.b.compare("icmp eq", have, want)
            e.fail(e.negated(same), "acc must be shaped like the product", call)
            held = tuple(e.b.select(same, extent, i64(0)) for extent in held)
    put(e, loaded(acc, held), result)
    return product.onto(result, accumulate)


class Product:
    """One product being emitted: its operands as matrices of one category, rows of the right one adjacent."""

    def __init__(self, e: FunctionEmitter, call: Call, bound: Bound) -> None:
        e.flush()
        self.e, self.call = e, call
        lhs: Tensor = turned(bound["lhs"], -1, -2) if bound["a_trans"] else bound["lhs"]
        rhs: Tensor = turned(bound["rhs"], -1, -2) if bound["b_trans"] else bound["rhs"]
        is_float = lhs.dtype.is_float() or rhs.dtype.is_float()
        self.dtype: DataType = FP32 if is_float else accumulator(lhs.dtype)
        self.lhs, self.rhs = self._multiplied(lhs, is_float), with_adjacent_rows(e, self._multiplied(rhs, is_float))
        batch = broadcast(e, call, [_batch(lhs), _batch(rhs)]) if len(lhs.shape) + len(rhs.shape) > 4 else ((), ())
        self.shape = (*batch[0], lhs.shape[-2], rhs.shape[-1])
        self.valid = (*batch[1], lhs.valid[-2], rhs.valid[-1])

    def _multiplied(self, tensor: Tensor, is_float: bool) -> Tensor:
        """Return an operand in a type that products take: integers of 32 bits or fewer, or floats."""
        if tensor.dtype.is_float() == is_float and tensor.dtype.bits <= 32:
            return tensor
        dtype = FP32 if is_float else INT32
        return mapped(self.e, self.call, dtype, [tensor], converting(dtype))

    def onto(self, result: Tensor, accumulate: Value) -> Tensor:
        """Emit the product into a tensor, or added to it."""
        e, (m, n) = self.e, self.valid[-2:]
        depth = self._depth()
        spec = GemmSpec(e.program.target, self.lhs.dtype, self.rhs.dtype)
        with rows_of(e, self.valid[:-2]) as batch:
            a, b, c = (_matrix(e, tensor, batch) for tensor in (self.lhs, self.rhs, result))
            run_gemm(
                e, spec, LONG,
                a, *self.lhs.strides[-2:], b, self.rhs.strides[-2], c, result.strides[-2], m, n, depth, accumulate,
            )  # fmt: skip
        return Tensor(result.pointer, self.shape, result.strides, self.valid, self.dtype, result.root)

    def _depth(self) -> Value:
        """Return how many products are summed: as many as the left operand has valid columns."""
        have, there = self.lhs.valid[-1], self.rhs.valid[-2]
        if have == there:
            return have
        if not self.e.checked:
            return have
        beyond = self.e.b.compare("icmp sgt", have, there)
        self.e.fail(beyond, f"a matrix product reads data that is not there\n{MISSING_ROWS}", self.call)
        return self.e.b.intrinsic("llvm.smin", have, there)


def _batch(tensor: Tensor) -> Tensor:
    """Return the axes of a tensor that count its matrices."""
    shape, strides, valid = (values[:-2] for values in (tensor.shape, tensor.strides, tensor.valid))
    return Tensor(tensor.pointer, shape, strides, valid, tensor.dtype, tensor.root)


def _matrix(e: FunctionEmitter, tensor: Tensor, batch: Sequence[Value]) -> Value:
    """Return where the matrix of a batch index lies; there is one for all along axes of one element."""
    own = batch[len(batch) - len(tensor.shape) + 2 :]
    indices = [
        i64(0) if static(extent) == 1 else e.b.select(e.b.compare("icmp eq", extent, i64(1)), i64(0), index)
        for index, extent in zip(own, tensor.shape, strict=False)
    ]
    return moved(e, tensor, [*indices, i64(0), i64(0)])
