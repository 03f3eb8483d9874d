"""Accesses: elements or rows of tensors by index, one element after the other, where no op of PTO does all at once.

That is where a mask or what was there before matters, where indices or elements are of other types than PTO's op takes,
and where tensors or tiles have more axes than that knows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.types import TensorType, TileType, is_static, static_shape
from tilewright.dtypes import BF16, BOOL, FP16, FP32, FP64, INDEX, INT32, INT64, UINT32, UINT64
from tilewright.programs.pto_text.cells import cell_of, place_of, set_cell
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, Tile, element
from tilewright.programs.pto_text.views import start_of
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    as_far_as,
    expanded,
    in_vec,
    matrix_of,
    refuse,
    result,
    row_of,
)
from tilewright.programs.pto_text.writer import Writer
from tilewright.records import record


@record
class Access:
    """Where an element goes, or comes from."""

    at: Pair
    """Its row and column among what is given or made."""
    own: Pair
    """Those of the index that names it."""
    cell: tuple[Number, ...]
    """Its place in the tensor."""


def taken_where(w: Writer, call: Call, given: Given) -> Tile:
    """Write what indices name where a mask holds, and a number elsewhere."""
    type_, sizes = call.type, _sizes(w, call, given)
    assert isinstance(type_, TileType)
    out = result(w, call, matrix_of(w, type_.shape, sizes))
    expanded(w, converted(w, given["pad"], out.dtype), out)
    with _each(w, call, given, sizes) as access:
        set_at(w, out, *access.at, cell_of(w, given["x"], access.cell))
    return as_far_as(out, type_, sizes)


def put_where(w: Writer, call: Call, given: Given) -> None:
    """Write elements to where indices say and a mask holds."""
    with _each(w, call, given, _sizes(w, call, given)) as access:
        set_cell(w, given["x"], access.cell, _operand(w, given, "values", access))


def changed_one_by_one(w: Writer, call: Call, given: Given) -> Tile:
    """Write an atomic op for each element that indices name where a mask holds; return what was there before."""
    type_, sizes = call.type, _sizes(w, call, given)
    assert isinstance(type_, TileType)
    out = result(w, call, matrix_of(w, type_.shape, sizes))
    expanded(w, w.constant(0, out.dtype), out)
    with _each(w, call, given, sizes) as access:
        values = [_operand(w, given, name, access) for name in ("compare", "values") if name in given]
        changed = _changed if given["x"].dtype in _ATOMIC else _changed_alone
        set_at(w, out, *access.at, changed(w, call, given["x"], access, values))
    return as_far_as(out, type_, sizes)


_ATOMIC = (INT32, UINT32, INT64, UINT64, FP16, BF16, FP32)
"""What PTO changes in one step."""
_WORDS = {"atomic_xchg": "atomic_exch"}
_ORDERED = ("atomic_max", "atomic_min")
_SIGNS = (" signed", " unsigned")


def _changed(w: Writer, call: Call, tensor: Tensor, access: Access, values: Sequence[Number]) -> Number:
    """Write an atomic op of PTO's on an element; return what was there before."""
    word, kind = _WORDS.get(call.op.spec.name, call.op.spec.name), element(tensor.dtype)
    signed = "" if tensor.dtype.is_float() or word not in _ORDERED else _SIGNS[tensor.dtype.is_unsigned_int()]
    there, old = start_of(w, replace(tensor, offsets=place_of(w, tensor, access.cell))), w.name("old")
    operands, types = ", ".join([there, *(value.name for value in values)]), ", ".join([kind] * len(values))
    w.line(f"{old} = pto.{word} {operands}{signed} : !pto.ptr<{kind}, gm>, {types} -> {kind}")
    return Number(old, tensor.dtype)


_FORMULAS = {"add": "add", "max": "max", "min": "min", "and": "bit_and", "or": "bit_or", "xor": "bit_xor"}
_BESIDE = "use elements of 32 or 64 bits, no doubles, or let one block do it: pl.range instead of pl.parallel"


def _changed_alone(w: Writer, call: Call, tensor: Tensor, access: Access, values: Sequence[Number]) -> Number:
    """Write an element read, changed and written, which nobody comes between where one block does everything."""
    refuse(
        call, w.share is not None, f"of elements of {tensor.dtype}, which other blocks may change beside it", _BESIDE
    )
    word, value = call.op.spec.name.removeprefix("atomic_"), values[-1]
    old = cell_of(w, tensor, access.cell)
    made = computed(w, _FORMULAS[word], [old, value], tensor.dtype) if word in _FORMULAS else value
    if word == "cas":
        made = chosen(w, _is_same(w, tensor, access, values[0], old), value, old)
    set_cell(w, tensor, access.cell, made)
    return old


def _is_same(w: Writer, tensor: Tensor, access: Access, expected: Number, old: Number) -> Number:
    """Write whether two doubles, all that is compared alone, have the same bits."""
    assert tensor.dtype == FP64
    bits = [w.number("arith.bitcast", [each], INT64, "f64 to i64") for each in (old, expected)]
    return computed(w, "eq", bits, BOOL)


# which elements


def _is_by_row(call: Call, given: Given) -> bool:
    tensor: Tensor = given["x"]
    return given["axis"] == 0 and len(tensor.shape) > 1


def _type(call: Call, name: str) -> TileType | None:
    """Return the type of an operand that is a tile."""
    operand = arguments(call)[name]
    type_ = operand.type if isinstance(operand, Expr) else None
    return type_ if isinstance(type_, TileType) else None


def _sizes(w: Writer, call: Call, given: Given) -> list[Number]:
    """Return how much counts along each axis: as much as is given or, of a number, all that is named."""
    values, index = _type(call, "values") if "values" in given else None, _type(call, "indices")
    if values is not None:
        return extents_along(w, in_vec(w, given["values"]), values)
    assert index is not None
    named = extents_along(w, in_vec(w, given["indices"]), index)
    if not _is_by_row(call, given):
        return named
    return [reduce(lambda a, b: computed(w, "mul", [a, b], INDEX), named), *given["x"].shape[1:]]


def _shape(call: Call, given: Given) -> tuple[int, ...]:
    """Return the shape of what is given or made."""
    for type_ in (_type(call, "values") if "values" in given else None, call.type):
        if isinstance(type_, TileType):
            return type_.shape
    index, tensor = _type(call, "indices"), arguments(call)["x"]
    assert index is not None and isinstance(tensor, Expr) and isinstance(tensor.type, TensorType)
    if not _is_by_row(call, given):
        return index.shape
    rest = tensor.type.shape[1:]
    refuse(
        call, not is_static(rest), "of a number in rows that only the run knows", "fill a tile with it: `pl.tile.full`"
    )
    return (max(index.shape), *static_shape(rest))


@contextmanager
def _each(w: Writer, call: Call, given: Given, sizes: Sequence[Number]) -> Generator[Access]:
    """Let lines stand in loops over what is named, where a mask holds."""
    index, shape = _type(call, "indices"), _shape(call, given)
    assert index is not None
    places, mask = in_vec(w, given["indices"]), None if given["mask"] is None else in_vec(w, given["mask"])
    with ExitStack() as loops:
        go = [loops.enter_context(w.counted(size, "at")) for size in sizes]
        by_row = _is_by_row(call, given)
        at = [go[0] if extent > 1 else w.constant(0) for extent in index.shape] if by_row else go
        own = row_of(w, at, index.shape), at[-1]
        if mask is not None:
            loops.enter_context(w.block(f"scf.if {converted(w, element_at(w, mask, *own), BOOL).name}"))
        number = converted(w, element_at(w, places, *own), INDEX)
        cell = (number, *go[1:]) if by_row else _unravelled(w, given["x"], number, given["axis"])
        yield Access((row_of(w, go, shape), go[-1]), own, cell)


def _unravelled(w: Writer, tensor: Tensor, number: Number, axis: int | None) -> tuple[Number, ...]:
    """Write the place of an element that is counted along rows."""
    places, left = list[Number](), number
    for extent in tensor.shape[:0:-1] if axis is None else ():
        places.insert(0, computed(w, "mod", [left, extent], INDEX))
        left = computed(w, "floordiv", [left, extent], INDEX)
    return (left, *places)


def _operand(w: Writer, given: Given, name: str, access: Access) -> Number:
    """Return what is given for a place."""
    tensor: Tensor = given["x"]
    if isinstance(given[name], Number):
        return converted(w, given[name], tensor.dtype)
    return element_at(w, in_vec(w, given[name]), *access.at)
