"""Sorts: runs of pairs in order, and lists of them merged.

A pair of fp32 is one of PTO's records, eight bytes; those of fp16 are shorter than its records, and have no words.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import FP32, INT32
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Given, in_vec, matrix, refuse, result, writes
from tilewright.programs.pto_text.writer import Writer

_LISTS = ("src0", "src1", "src2", "src3")
_WAYS = 4
"""How many runs become one."""


@writes("tile.sort32")
def _sort(w: Writer, call: Call, given: Given) -> Tile:
    values, indices = in_vec(w, given["src"]), in_vec(w, given["idx"])
    _refuse_halves(call)
    help = "make the indices with `pl.tile.ci`, or with `pl.col_expand` of that"
    refuse(call, indices.name not in w.ascending, "by indices that may not ascend, which decide between equals", help)
    cols = values.valid[1]
    return w.op("tsort32", [values, indices], result(w, call, (values.valid[0], w.product(cols, w.constant(2)))))


@writes("tile.mrgsort")
def _merge(w: Writer, call: Call, given: Given) -> Tile:
    _refuse_halves(call)
    lists = [in_vec(w, given[name]) for name in _LISTS if given.get(name) is not None]
    refuse(call, matrix(call)[0][0] != 1, "of several rows", "merge one row at a time")
    return _merge_runs(w, call, lists[0], given["block_len"]) if len(lists) == 1 else _merge_lists(w, call, lists)


def _refuse_halves(call: Call) -> None:
    refuse(call, matrix(call)[1].dtype != FP32, "in fp16, whose pairs PTO keeps in eight bytes", "cast it to fp32")


def _merge_runs(w: Writer, call: Call, pairs: Tile, length: Number) -> Tile:
    """Write every four runs of a list as one; PTO merges what is left over, too."""
    size, count = length.known, pairs.valid[1].known
    is_whole = isinstance(size, int) and isinstance(count, int) and count % (_WAYS * size) == 0
    refuse(call, not is_whole, "of other than whole groups of four runs", "merge the last runs as lists")
    return w.op("tmrgsort", [pairs, converted(w, length, INT32)], result(w, call, pairs.valid))


def _merge_lists(w: Writer, call: Call, lists: list[Tile]) -> Tile:
    """Write several lists as one; how far each got is said, and nobody reads it."""
    columns = [each.valid[1].known for each in lists]
    total = sum(count for count in columns if isinstance(count, int))
    refuse(call, None in columns, "of lists that are valid in part")
    out = result(w, call, (lists[0].valid[0], w.constant(total)))
    scratch = w.tile("scratch", out.dtype, out.shape, out.valid)
    taken = w.name("taken")
    w.line(f"{taken} = arith.constant dense<0> : vector<4xi16>")
    names = ", ".join(each.name for each in (*lists, scratch))
    types = ", ".join(each.type for each in (*lists, scratch))
    w.line(
        f"pto.tmrgsort ins({names} {{exhausted = false}} : {types})"
        f" outs({out.name}, {taken} : {out.type}, vector<4xi16>)"
    )
    return out
