"""Tensor math: computing on whole tensors, whose extents may be known only to the running program.

The result is computed row by row straight into its buffer. Operands are read through views that repeat along axes of
one element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tilewright.backends.cpu.compute.convert import as_element, cast
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.nodes import MapNode, ReduceNode
from tilewright.backends.cpu.compute.reduce import ColumnFold, Columns
from tilewright.backends.cpu.compute.traced import Lanes, combine
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import literal
from tilewright.backends.cpu.emit.values import Scalar, Tensor, Tile, static
from tilewright.backends.cpu.host.tensor_views import turned
from tilewright.backends.cpu.host.tensors import (
    copy_tensor,
    fill,
    loaded,
    moved,
    new_tensor,
    put,
    stand_in,
    with_adjacent_rows,
)
from tilewright.core.expr import Call
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import FP32, DataType, promote
from tilewright.native.llvm import Value, i64
from tilewright.ops.compare import beside_scalar
from tilewright.ops.convert import round_mode
from tilewright.ops.families import MEETING
from tilewright.ops.shape import FILL, pad_number

_TESTS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def result_type(call: Call) -> TensorType:
    """Return the type of a call that gives a tensor."""
    assert isinstance(call.type, TensorType)
    return call.type


@lowers("tensor:elementwise", "tensor:expansion", "tensor:partial")
def _elementwise(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Compute an op by its own NumPy meaning."""
    spec, dtype = call.op.spec, result_type(call).dtype
    names = ("x", "vec") if spec.family == "expansion" else ("x", "lhs", "rhs")
    operands = [bound[name] for name in names if isinstance(bound.get(name), (Tensor, Scalar))]
    reference = spec.reference
    assert reference is not None
    return mapped(e, call, dtype, operands, lambda *lanes: reference(*(as_element(lane, dtype) for lane in lanes)))


@lowers("tensor.cast")
def _cast(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    dtype, mode = result_type(call).dtype, round_mode(bound["mode"])

    def function(lane: Lanes) -> Lanes:
        return cast(lane, dtype, mode)

    return mapped(e, call, dtype, [bound["x"]], function)


@lowers("tensor.cmp")
def _cmp(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    lhs: Tensor = bound["lhs"]
    rhs: Tensor | Scalar = bound["rhs"]
    dtype = result_type(call).dtype
    number: int = bound["cmp_type"]
    test = combine(_TESTS[number])
    met = _met(lhs.dtype, rhs)

    def function(a: Lanes, b: Lanes) -> Lanes:
        return as_element(test(as_element(a, met), as_element(b, met)), dtype)

    return mapped(e, call, dtype, [lhs, rhs], function)


def _met(dtype: DataType, rhs: Tensor | Scalar) -> DataType:
    """Return the type a comparison is made in."""
    return promote(dtype, rhs.dtype) if isinstance(rhs, Tensor) else beside_scalar(dtype)


@lowers("tensor.expands")
def _expands(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    dtype = result_type(call).dtype

    def function(shape: Lanes, number: Lanes) -> Lanes:
        return as_element(number, dtype)

    return mapped(e, call, dtype, [bound["target"], bound["scalar"]], function)


def mapped(
    e: FunctionEmitter, call: Call, dtype: DataType, operands: Sequence[Any], function: Callable[..., Lanes]
) -> Tensor:
    """Emit a function of the same element of each operand into a new tensor."""
    e.flush()
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    shape, valid = broadcast(e, call, tensors)
    result = new_tensor(e, shape, dtype, clear=shape != valid)
    tiles = [repeated(e, o, valid) if isinstance(o, Tensor) else o for o in operands]
    node = MapNode(tuple(tiles), function=function)
    put(e, Tile(stand_in(valid, dtype), valid, node=node), result)
    return Tensor(result.pointer, shape, result.strides, valid, dtype, result.root)


def broadcast(e: FunctionEmitter, call: Call, tensors: Sequence[Tensor]) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Return the common shape of tensors and its valid part; shapes that do not meet are an error and mean nothing."""
    rank = max(len(tensor.shape) for tensor in tensors)
    shape: list[Value] = []
    valid: list[Value] = []
    for axis in range(-rank, 0):
        spanning = [t for t in tensors if -axis <= len(t.shape)]
        extent, live = spanning[0].shape[axis], spanning[0].valid[axis]
        for tensor in spanning[1:]:
            extent, live = _meeting(e, call, (extent, live), (tensor.shape[axis], tensor.valid[axis]))
        shape.append(extent)
        valid.append(live)
    return tuple(shape), tuple(valid)


def _meeting(
    e: FunctionEmitter, call: Call, first: tuple[Value, Value], second: tuple[Value, Value]
) -> tuple[Value, Value]:
    """Return the extent of two that meet and how much of it is valid: the first that spans the axis decides."""
    a, b = first[0], second[0]
    if a == b or static(b) == 1:
        return first
    if static(a) == 1:
        return second
    repeats = e.b.compare("icmp eq", a, i64(1))
    extent, live = (e.b.select(repeats, y, x) for x, y in zip(first, second, strict=True))
    if e.checked:
        meets = e.b.op("or", e.b.op("or", repeats, e.b.compare("icmp eq", b, i64(1))), e.b.compare("icmp eq", a, b))
        e.fail(e.negated(meets), f"operands need shapes that broadcast\n{MEETING}", call)
        extent, live = (e.b.select(meets, value, i64(0)) for value in (extent, live))
    return extent, live


def repeated(e: FunctionEmitter, tensor: Tensor, valid: Sequence[Value]) -> Tile:
    """Return a tensor as a tile of other extents: it repeats along axes of which it has one element."""
    pad = len(valid) - len(tensor.shape)
    strides = [i64(0)] * pad
    seen: list[Value] = [*valid[:pad]]
    for extent, stride, live in zip(tensor.shape, tensor.strides, valid[pad:], strict=True):
        known = static(extent)
        single = known == 1
        seen.append(i64(1) if single else live)
        if known is None:
            stride = e.b.select(e.b.compare("icmp eq", extent, i64(1)), i64(0), stride) if extent != live else stride
        strides.append(i64(0) if single else stride)
    rows = (*valid[:-1], seen[-1])
    return loaded(Tensor(tensor.pointer, rows, tuple(strides), rows, tensor.dtype, tensor.root), rows)


@lowers("tensor:reduction")
def _reduction(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Fold rows, or columns as the rows of a turned view."""
    source, spec, dtype = bound["x"], call.op.spec, result_type(call).dtype
    e.flush()
    by_rows = spec.name.startswith("row")
    axis = -1 if by_rows else -2
    shape, valid = (tuple(_with(values, axis, i64(1))) for values in (source.shape, source.valid))
    result = new_tensor(e, shape, dtype, clear=shape != valid)
    if not by_rows and dtype in spec.stepwise:
        _stepwise_columns(e, call, source, result)
        return Tensor(result.pointer, shape, result.strides, valid, dtype, result.root)
    rows, target = (source, result) if by_rows else (turned(source, -1, -2), turned(result, -1, -2))
    assert spec.start is not None
    operand = loaded(rows, rows.valid)
    if operand.is_column:  # a row of one element is no scalar here: it is folded, and may not be there
        operand.type = TileType((*operand.type.shape[:-1], 2), dtype, (*operand.type.shape[:-1], 2))
    node = ReduceNode((operand,), combine=combine(spec.combine), start=spec.start(dtype))
    extents = (*rows.valid[:-1], i64(1))
    put(e, Tile(stand_in(extents, dtype), extents, node=node), target)
    return Tensor(result.pointer, shape, result.strides, valid, dtype, result.root)


def _stepwise_columns(e: FunctionEmitter, call: Call, source: Tensor, result: Tensor) -> None:
    """Emit the folding of columns from the first row down, rounded after every step."""
    source = with_adjacent_rows(e, source)
    matrix = Columns(source.dtype, source.valid[-2], partial(moved, e, source), partial(moved, e, result))
    with rows_of(e, source.valid[:-2]) as batch:
        ColumnFold(e, call.op.spec, matrix).emit(batch, source.valid[-1])


def _with(values: Sequence[Value], axis: int, value: Value) -> list[Value]:
    changed = list(values)
    changed[axis] = value
    return changed


@lowers("tensor.fillpad")
def _fillpad(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source, dtype = bound["x"], result_type(call).dtype
    e.flush()
    result = new_tensor(e, source.shape, dtype)
    number = pad_number(bound["pad_value"], dtype)
    kind = FP32 if dtype.is_float() else dtype
    fill(e, result, Scalar(literal(kind, number, 1), kind))
    put(e, loaded(source, source.valid), result)
    return result


@lowers("tensor.concat")
def _concat(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    a, b = bound["a"], bound["b"]
    e.flush()
    if a.valid[-1] != a.shape[-1]:
        e.fail(e.b.compare("icmp ne", a.valid[-1], a.shape[-1]), f"concat needs wholly valid rows first\n{FILL}", call)
    width = e.b.op("add", a.shape[-1], b.shape[-1])
    shape = (*a.shape[:-1], width)
    result = new_tensor(e, shape, a.dtype, clear=a.valid != a.shape or b.valid != b.shape)
    copy_tensor(e, call, _cut(a, a.valid[:-1]), result, (i64(0),) * len(shape))
    copy_tensor(e, call, _cut(b, a.valid[:-1]), result, (*(i64(0),) * (len(shape) - 1), a.shape[-1]))
    valid = (*a.valid[:-1], e.b.op("add", a.shape[-1], b.valid[-1]))
    return Tensor(result.pointer, shape, result.strides, valid, a.dtype, result.root)


def _cut(tensor: Tensor, rows: Sequence[Value]) -> Tensor:
    """Return a tensor of which some rows are valid."""
    valid = (*rows, tensor.valid[-1])
    return Tensor(tensor.pointer, tensor.shape, tensor.strides, valid, tensor.dtype, tensor.root)
