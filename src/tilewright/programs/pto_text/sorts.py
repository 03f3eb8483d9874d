"""Sorts: runs of pairs in order, and lists of them merged.

A pair of fp32 is one of PTO's records, eight bytes: a value and an index. A pair of fp16 is four bytes, and what PTO's
record has more than that stands behind each half: numbers of 16 bits become such of 32, and back again every other
one is taken.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import FP16, FP32, INDEX, INT32, UINT16, UINT32
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Given, in_vec, matrix, part_of, refuse, result, seen_as, writes
from tilewright.programs.pto_text.writer import Writer

_LISTS = ("src0", "src1", "src2", "src3")
_WAYS = 4
"""How many runs become one."""


@writes("tile.sort32")
def _sort(w: Writer, call: Call, given: Given) -> Tile:
    values, indices = in_vec(w, given["src"]), in_vec(w, given["idx"])
    help = "make the indices with `pl.tile.ci`, or with `pl.col_expand` of that"
    refuse(call, indices.name not in w.ascending, "by indices that may not ascend, which decide between equals", help)
    shape, halves = matrix(call)[0], _halves(values)
    valid = values.valid[0], w.product(values.valid[1], w.constant(2 * halves))
    made = w.tile("sorted", values.dtype, (shape[0], shape[1] * halves), valid)
    return _pairs(w, call, w.op("tsort32", [values, indices], made))


def _halves(tile: Tile) -> int:
    """Return how many elements of a record stand for one of a pair."""
    return FP32.get_byte() // tile.dtype.get_byte()


def _records(w: Writer, pairs: Tile) -> Tile:
    """Write pairs as PTO's records."""
    if _halves(pairs) == 1:
        return pairs
    rows, cols = pairs.shape
    bits = seen_as(w, pairs, UINT16, pairs.shape, pairs.room, pairs.valid)
    wide = w.op("tcvt", [bits], w.tile("wide", UINT32, pairs.shape, pairs.valid, room=pairs.room), _AS_THEY_ARE)
    valid = pairs.valid[0], w.product(pairs.valid[1], w.constant(2))
    return seen_as(w, wide, FP16, (rows, 2 * cols), (pairs.room[0], 2 * pairs.room[1]), valid)


_AS_THEY_ARE = "{rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode OFF>}"


def _pairs(w: Writer, call: Call, records: Tile) -> Tile:
    """Write PTO's records as pairs."""
    if _halves(records) == 1:
        return records
    rows, cols = records.valid[0], computed(w, "floordiv", [records.valid[1], w.constant(2)], INDEX)
    return w.op("tgather", [records], result(w, call, (rows, cols)), "{maskPattern = #pto.mask_pattern<P0101>}")


@writes("tile.mrgsort")
def _merge(w: Writer, call: Call, given: Given) -> Tile:
    lists = [_records(w, in_vec(w, given[name])) for name in _LISTS if given.get(name) is not None]
    shape, halves = matrix(call)[0], _halves(lists[0])
    whole = w.tile("merged", lists[0].dtype, (shape[0], shape[1] * halves), (lists[0].valid[0], _length(w, lists)))
    if shape[0] == 1:
        _merge_row(w, call, lists, whole, given)
    else:
        with w.counted(whole.valid[0], "row") as row:
            _merge_row(w, call, [_row(w, one, row) for one in lists], _row(w, whole, row), given)
    return _pairs(w, call, whole)


def _row(w: Writer, tile: Tile, row: Number) -> Tile:
    return part_of(w, tile, (row, w.constant(0)), (1, tile.shape[1]), (w.constant(1), tile.valid[1]))


def _merge_row(w: Writer, call: Call, lists: list[Tile], out: Tile, given: Given) -> None:
    if len(lists) == 1:
        _merge_runs(w, call, lists[0], w.product(given["block_len"], w.constant(_halves(out))), out)
    else:
        _merge_lists(w, lists, out)


def _length(w: Writer, lists: list[Tile]) -> Number:
    total = w.constant(0)
    for one in lists:
        total = computed(w, "add", [total, one.valid[1]], INDEX)
    return total


def _merge_runs(w: Writer, call: Call, records: Tile, length: Number, out: Tile) -> None:
    """Write every four runs of a list as one, and what is left over as it is: PTO would merge that, too."""
    size, count, zero = length.known, records.valid[1], w.constant(0)
    refuse(call, not isinstance(size, int), "of runs whose length only the run knows", "make `block_len` a constant")
    four = w.constant(_WAYS * int(size or 1))
    groups = computed(w, "mul", [computed(w, "floordiv", [count, four], INDEX), four], INDEX)
    if groups.known is None or groups.known != count.known:
        w.op("tmov", [records], out)
    if groups.known != 0:
        width = int(groups.known or records.shape[1])
        come, go = (part_of(w, side, (zero, zero), (1, width), (w.constant(1), groups)) for side in (records, out))
        w.op("tmrgsort", [come, converted(w, length, INT32)], go)


def _merge_lists(w: Writer, lists: list[Tile], out: Tile) -> None:
    """Write several lists as one; how far each got is said, and nobody reads it."""
    scratch = w.tile("scratch", out.dtype, out.shape, out.valid)
    taken = w.name("taken")
    w.line(f"{taken} = arith.constant dense<0> : vector<4xi16>")
    names = ", ".join(one.name for one in (*lists, scratch))
    types = ", ".join(one.type for one in (*lists, scratch))
    w.line(
        f"pto.tmrgsort ins({names} {{exhausted = false}} : {types})"
        f" outs({out.name}, {taken} : {out.type}, vector<4xi16>)"
    )
