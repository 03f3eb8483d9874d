"""Indexed: elements of tensors by index, and what is made of numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, INDEX, INT32, INT64
from tilewright.ops.indices import chosen
from tilewright.ops.memory_gather import COALESCE, OUT_OF_BOUNDS
from tilewright.programs.pto_text.accesses import changed_one_by_one, put_where, taken_where
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import set_at
from tilewright.programs.pto_text.meeting import met_at, refuse_meeting, valid_of_all
from tilewright.programs.pto_text.readers import takes
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import LINE, Number, Tensor, Tile, element
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    expanded,
    front,
    in_vec,
    matrix,
    refuse,
    refuse_batches,
    result,
    writes,
)
from tilewright.programs.pto_text.writer import Writer

_WORD = 1 << 32


# elements by index


def _flat(w: Writer, call: Call, tensor: Tensor) -> Tensor:
    """Return a view of a tensor's elements one after the other, which an index counts."""
    refuse(call, not tensor.is_whole, "of a window")
    if len(tensor.shape) == 1:
        return tensor
    return w.view("flat", tensor.dtype, tensor.pointer, (_count(w, tensor.shape),))


def _named(w: Writer, call: Call, given: Given) -> tuple[Tensor, str]:
    """Return a view of what the indices of `pl.take` and its kin name, and the words for that."""
    tensor: Tensor = given["x"]
    by_row = given["axis"] == 0 and len(tensor.shape) > 1
    return (_rows(w, call, tensor), _ROWS) if by_row else (_flat(w, call, tensor), _ELEMENTS)


def _is_at_once(given: Given, op: str) -> bool:
    """Return whether an op of PTO takes all that indices name, which counts whole rows of matrices, or elements."""
    tensor: Tensor = given["x"]
    places: Tile = given["indices"]
    by_row, kind = given["axis"] == 0 and len(tensor.shape) > 1, element(tensor.dtype)
    is_plain = given["mask"] is None and tensor.is_whole and not places.axes and takes(op, kind, kind)
    values = given.get("values")
    if by_row:
        return is_plain and len(tensor.shape) == 2 and not isinstance(values, Number)
    return is_plain and places.dtype == INT32 and not (isinstance(values, Tile) and values.axes)


def _rows(w: Writer, call: Call, tensor: Tensor) -> Tensor:
    """Return a view of a tensor's rows one below the other, which an index counts."""
    refuse(call, not tensor.is_whole, "of a window")
    *outer, width = tensor.shape
    return tensor if len(outer) == 1 else w.view("rows", tensor.dtype, tensor.pointer, (_count(w, outer), width))


def _count(w: Writer, extents: Sequence[Number]) -> Number:
    count = w.constant(1)
    for extent in extents:
        count = computed(w, "mul", [count, extent], INDEX)
    return count


@writes("tile.take")
def _take(w: Writer, call: Call, given: Given) -> Tile:
    if not _is_at_once(given, "mgather"):
        return taken_where(w, call, given)
    (source, words), places = _named(w, call, given), in_vec(w, given["indices"])
    valid = places.valid if words is _ELEMENTS else _row_by_row(w, call, places)
    return _gathered(w, source, places, result(w, call, valid), words)


_ELEMENTS, _ROWS = "coalesce = #pto<coalesce elem>", "coalesce = #pto<coalesce row>"


def _row_by_row(w: Writer, call: Call, places: Tile) -> Pair:
    """Return how much is valid of the rows that indices in a line name."""
    return computed(w, "mul", [*places.valid], INDEX), w.constant(matrix(call)[0][1])


@writes("tile.mgather")
def _gather_memory(w: Writer, call: Call, given: Given) -> Tile:
    refuse(call, given["target_memory"] is not MemorySpace.Vec, "into other memory than the vectors'")
    by_row = chosen(given["coalesce"], COALESCE, "coalesce") == "row"
    mode, places = chosen(given["gather_oob"], OUT_OF_BOUNDS, "gather_oob"), in_vec(w, given["idx"])
    words = "" if mode == "undefined" else f", gatherOob = #pto<gather_oob {mode}>"
    if not by_row:
        source = _flat(w, call, given["mem"])
        return _gathered(w, source, places, result(w, call, places.valid), f"{_ELEMENTS}{words}")
    source, out = _rows(w, call, given["mem"]), result(w, call, _row_by_row(w, call, places))
    return _gathered(w, source, places, out, f"{_ROWS}{words}")


def _gathered(w: Writer, source: Tensor, places: Tile, out: Tile, words: str) -> Tile:
    places = _in_words(w, places)
    types = f"{source.view_type}, {places.type}"
    w.line(f"pto.mgather ins({source.view}, {places.name} : {types}) outs({out.name} : {out.type}) {{{words}}}")
    return out


def _in_words(w: Writer, places: Tile) -> Tile:
    """Return indices in 32 bits, the only ones by which PTO gathers; of those that have no room there none is valid."""
    return in_type(w, places, INT32, stops=True)


@writes("tile.put")
def _put(w: Writer, call: Call, given: Given) -> Tensor:
    if _is_at_once(given, "mscatter"):
        _scattered(w, _named(w, call, given), given["values"], in_vec(w, given["indices"]))
    else:
        put_where(w, call, given)
    return given["x"]


@writes("tile.mscatter")
def _scatter_memory(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["output_tensor"]
    _scattered(w, (_flat(w, call, tensor), _ELEMENTS), given["src"], in_vec(w, given["idx"]))
    return tensor


@writes(*(f"tile.atomic_{word}" for word in ("add", "max", "min", "and", "or", "xor", "xchg", "cas")))
def _combine(w: Writer, call: Call, given: Given) -> Tile | None:
    word = call.op.spec.name.removeprefix("atomic_")
    if w.is_wanted or word not in _COMBINED or not _is_at_once(given, f"mscatter {word}"):
        return changed_one_by_one(w, call, given)
    target, words = _named(w, call, given)
    words = f"{words}, scatterAtomicOp = #pto<scatter_atomic_op {word}>"
    _scattered(w, (target, words), given["values"], in_vec(w, given["indices"]))
    return None


_COMBINED = ("add", "max", "min")
"""What PTO combines by `mscatter`, all elements at once."""


def _scattered(w: Writer, named: tuple[Tensor, str], values: Tile | Number, places: Tile) -> None:
    target, words = named
    if isinstance(values, Number):
        like = w.tile("values", target.dtype, places.shape, places.valid)
        values = expanded(w, converted(w, values, target.dtype), like)
    source, places = in_vec(w, values), _in_words(w, places)
    types = f"{source.type}, {places.type}"
    w.line(
        f"pto.mscatter ins({source.name}, {places.name} : {types}) outs({target.view} : {target.view_type}) {{{words}}}"
    )


# tiles by index


@writes("tile.gatherb")
def _gather_blocks(w: Writer, call: Call, given: Given) -> Tile:
    source, places = in_vec(w, given["src"]), in_vec(w, given["offset"])
    refuse(call, source.room != source.shape, "from rows that fill no whole lines of memory", "pad them to 32 bytes")
    lanes = w.constant(LINE // matrix(call)[1].dtype.get_byte())
    cols = computed(w, "mul", [places.valid[1], lanes], INDEX)
    return w.op("tgatherb", [source, places], result(w, call, (places.valid[0], cols)))


# made of numbers alone


@writes("tile.random")
def _random(w: Writer, call: Call, given: Given) -> Tile:
    refuse_batches(call)
    names = ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
    words = ", ".join(_word(w, given[name]).name for name in names)
    (rows, columns), dtype, valid = matrix(call)[0], matrix(call)[1].dtype, _extents(w, call, given)
    is_column = columns == 1 < rows  # PTO draws along rows that lie one after the other
    out = w.tile("drawn", dtype, (rows, LINE // dtype.get_byte()), valid) if is_column else result(w, call, valid)
    rounds = f"{{rounds = {given['rounds']} : i32}}"
    w.line(f"pto.trandom ins({words} {rounds} : {', '.join(['i32'] * 6)}) outs({out.name} : {out.type})")
    return front(w, out, (rows, columns), valid) if is_column else out


def _word(w: Writer, number: Number) -> Number:
    """Return a number as a word of 32 bits, whose sign nobody reads."""
    if not isinstance(number.known, int):
        return converted(w, number, INT32)
    bits = number.known % _WORD
    return w.constant(bits - _WORD if bits >= _WORD // 2 else bits, INT32)


@writes("tile.tri")
def _triangle(w: Writer, call: Call, given: Given) -> Tile:
    refuse_batches(call)
    diagonal, out = converted(w, given["diagonal"], INT32), result(w, call, _extents(w, call, given))
    side = f"{{upperOrLower = {int(given['upper'])} : i32}}"
    w.line(f"pto.ttri ins({diagonal.name} {side} : i32) outs({out.name} : {out.type})")
    return out


def _extents(w: Writer, call: Call, given: Given) -> tuple[Number, Number]:
    """Return how much of what an op makes is valid."""
    rows, cols = matrix(call)[0]
    valid = given.get("valid_shape")
    return (w.constant(rows), w.constant(cols)) if valid is None else (valid[0], valid[1])


@writes("tile.ravel_index")
def _ravelled(w: Writer, call: Call, given: Given) -> Tile:
    """Write the number of each element, counted along rows of some extent."""
    shape, extent = matrix(call)[0], converted(w, given["extents"][1], INT64)
    outer, inner, mask = (
        in_vec(w, each) if isinstance(each := given[name], Tile) else each for name in ("outer", "inner", "mask")
    )
    tiles = [each for each in (outer, inner, mask) if isinstance(each, Tile)]
    refuse_meeting(call, tiles, shape)
    out = result(w, call, valid_of_all(w, tiles, shape))
    if mask is not None:
        expanded(w, w.constant(0, INT64), out)
    with w.counted(out.valid[0], "row") as row, w.counted(out.valid[1], "column") as column:
        is_so = None if mask is None else converted(w, met_at(w, mask, row, column), BOOL)
        with nullcontext() if is_so is None else w.block(f"scf.if {is_so.name}"):
            above, before = (converted(w, met_at(w, each, row, column), INT64) for each in (outer, inner))
            start = computed(w, "mul", [above, extent], INT64)
            set_at(w, out, row, column, computed(w, "add", [start, before], INT64))
    return out
