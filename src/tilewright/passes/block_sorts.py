"""Blocking of sorts: runs of 32 are sorted some at a time, and lists merged row by row."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Expr, Var, integer
from tilewright.core.operands import Argument
from tilewright.core.types import TensorType, static_shape, tile
from tilewright.passes.blocks import ZERO, Blocks, Offsets, sizes_of, tensor_type

TOGETHER = 2048
"""How many elements are sorted at a time: whole runs."""


def sort32(b: Blocks, value: Call, given: Mapping[str, Argument]) -> Var:
    """Write the sorting of runs, block by block."""
    src, idx = given["src"], given["idx"]
    assert isinstance(src, Var) and isinstance(idx, Var)
    shape, valid = b.extents(src), b.extents(src, valid=True)
    sizes, made = sizes_of(valid, 1, TOGETHER), b.create(_paired(shape), tensor_type(value).dtype)

    def block(inner: Blocks, at: Offsets) -> None:
        values, indices = (inner.load(each, at, sizes) for each in (src, idx))
        inner.store(inner.do("tile.sort32", src=values, idx=indices), _paired(at), made)

    b.each(valid, sizes, block)
    return b.part(made, _paired(shape), _paired(valid))


def _paired(extents: Offsets) -> list[Expr]:
    """Return extents or offsets of pairs: two elements for each."""
    return [*extents[:-1], scalar("mul", extents[-1], integer(2))]


def order(b: Blocks, value: Call, given: Mapping[str, Argument]) -> Var:
    """Write the sorting along an axis of static extent: all of that at a time, and some of the others."""
    x, axis = given["x"], given["axis"]
    assert isinstance(x, Var) and isinstance(axis, int)
    shape, valid = b.extents(x), b.extents(x, valid=True)
    whole = static_shape((tensor_type(x).shape[axis],))[0]
    sizes, made = sizes_of(valid, 1, 16), b.create(shape, tensor_type(value).dtype)
    sizes[axis] = max(1, whole)

    def block(inner: Blocks, at: Offsets) -> None:
        tile = inner.load(x, at, sizes)
        inner.store(inner.do(f"tile.{value.op.spec.name}", **{**given, "x": tile}), at, made)

    b.each(valid, sizes, block)
    return b.part(made, shape, valid)


def mrgsort(b: Blocks, value: Call, given: Mapping[str, Argument]) -> Var:
    """Write the merging of lists of static length, row by row."""
    lists = {name: v for name, v in given.items() if isinstance(v, Var) and isinstance(v.type, TensorType)}
    first = next(iter(lists.values()))
    widths = [static_shape(tensor_type(each).shape[-1:])[0] for each in lists.values()]
    rows, ones = b.extents(first)[:-1], [1] * (len(tensor_type(first).shape) - 1)
    live = [b.extent(each, -1, valid=True) for each in lists.values()]
    width = live[0]
    for more in live[1:]:
        width = scalar("add", width, more)
    dtype = tensor_type(value).dtype
    made = b.create([*rows, integer(sum(widths))], dtype)
    options = {name: given[name] for name in ("exhausted", "block_len")}

    def block(inner: Blocks, at: Offsets) -> None:
        tiles = {
            name: inner.load(each, [*at, ZERO], [*ones, size])
            for (name, each), size in zip(lists.items(), widths, strict=True)
        }
        room = {"tmp": inner.scratch(tile((*ones, sum(widths)), dtype))} if len(lists) > 1 else {}
        inner.store(inner.do("tile.mrgsort", **tiles, **room, **options), [*at, ZERO], made)

    b.each(b.extents(first, valid=True)[:-1], ones, block)
    valid = [*b.extents(first, valid=True)[:-1], width]
    return b.part(made, [*rows, integer(sum(widths))], valid)
