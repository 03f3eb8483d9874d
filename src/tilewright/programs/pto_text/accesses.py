"""Accesses: elements of tensors by index, one after the other, where a mask or what was there before matters."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, INDEX
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Number, Tensor, Tile, element
from tilewright.programs.pto_text.words import Given, expanded, in_vec, least, refuse, result
from tilewright.programs.pto_text.writer import Writer


def taken_where(w: Writer, call: Call, given: Given, tensor: Tensor) -> Tile:
    """Write the elements that indices name where a mask holds, and a number elsewhere."""
    places = in_vec(w, given["indices"])
    out = result(w, call, places.valid)
    expanded(w, converted(w, given["pad"], out.dtype), out)
    with _places(w, call, given) as (row, column, number):
        read = Number(w.name("read"), tensor.dtype)
        kind = element(tensor.dtype)
        w.line(f"{read.name} = pto.load_scalar {tensor.pointer}[{number.name}] : !pto.ptr<{kind}, gm> -> {kind}")
        set_at(w, out, row, column, read)
    return out


def put_where(w: Writer, call: Call, given: Given, tensor: Tensor) -> None:
    """Write elements to where indices say and a mask holds."""
    with _places(w, call, given) as (row, column, number):
        value, kind = _operand(w, given["values"], tensor, row, column), element(tensor.dtype)
        w.line(f"pto.store_scalar {value.name}, {tensor.pointer}[{number.name}] : !pto.ptr<{kind}, gm>, {kind}")


def changed_one_by_one(w: Writer, call: Call, given: Given, tensor: Tensor) -> Tile:
    """Write an atomic op for each element that indices name where a mask holds; return what was there before."""
    word, kind = _WORDS.get(call.op.spec.name, call.op.spec.name), element(tensor.dtype)
    signed = "" if tensor.dtype.is_float() or word not in _ORDERED else _SIGNS[tensor.dtype.is_unsigned_int()]
    out = result(w, call, in_vec(w, given["indices"]).valid)
    expanded(w, w.constant(0, out.dtype), out)
    names = ("compare", "values") if "compare" in given else ("values",)
    with _places(w, call, given) as (row, column, number):
        values = [_operand(w, given[name], tensor, row, column) for name in names]
        there, old = w.name("there"), Number(w.name("old"), tensor.dtype)
        pointer = f"!pto.ptr<{kind}, gm>"
        w.line(f"{there} = pto.addptr {tensor.pointer}, {number.name} : {pointer} -> {pointer}")
        operands, types = ", ".join([there, *(value.name for value in values)]), ", ".join([kind] * len(values))
        w.line(f"{old.name} = pto.{word} {operands}{signed} : {pointer}, {types} -> {kind}")
        set_at(w, out, row, column, old)
    return out


_WORDS = {"atomic_xchg": "atomic_exch"}
_ORDERED = ("atomic_max", "atomic_min")
_SIGNS = (" signed", " unsigned")


@contextmanager
def _places(w: Writer, call: Call, given: Given) -> Generator[tuple[Number, Number, Number]]:
    """Let lines stand in loops over indices, where a mask holds; give the place of each and what it names."""
    places, mask = in_vec(w, given["indices"]), given["mask"]
    tiles = [tile for name in ("mask", "values", "compare") if isinstance(tile := given.get(name), Tile)]
    refuse(call, any(tile.shape != places.shape for tile in tiles), "of tiles whose axes meet otherwise")
    held = None if mask is None else in_vec(w, mask)
    rows, columns = places.valid
    for tile in tiles:
        rows, columns = least(w, rows, tile.valid[0]), least(w, columns, tile.valid[1])
    with w.counted(rows, "row") as row, w.counted(columns, "column") as column:
        if held is None:
            yield row, column, converted(w, element_at(w, places, row, column), INDEX)
            return
        is_so = converted(w, element_at(w, held, row, column), BOOL)
        with w.block(f"scf.if {is_so.name}"):
            yield row, column, converted(w, element_at(w, places, row, column), INDEX)


def _operand(w: Writer, given: Number | Tile, tensor: Tensor, row: Number, column: Number) -> Number:
    """Return what is given for a place."""
    if isinstance(given, Number):
        return converted(w, given, tensor.dtype)
    return element_at(w, in_vec(w, given), row, column)
