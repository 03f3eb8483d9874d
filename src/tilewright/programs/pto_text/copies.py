"""Copies: elements of tensors put elsewhere, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Call
from tilewright.core.types import TensorType, TupleType
from tilewright.dtypes import BOOL, INDEX
from tilewright.ops.indices import chosen
from tilewright.ops.selection import COMPARISONS
from tilewright.programs.pto_text.cells import cell_of, set_cell
from tilewright.programs.pto_text.memory import created
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, kept
from tilewright.programs.pto_text.views import pointer_as, start_of
from tilewright.programs.pto_text.words import Given, least, refuse, writes
from tilewright.programs.pto_text.writer import Writer


@contextmanager
def _each(w: Writer, shape: Sequence[Number]) -> Generator[list[Number]]:
    """Let lines stand in loops over the elements of a tensor; give the place of each."""
    with w.all_counted(shape, "at") as places:
        yield places


def _copied(w: Writer, source: Tensor) -> Tensor:
    """Write a new tensor with the elements of another."""
    made = created(w, source.dtype, source.shape, None)
    with _each(w, source.shape) as places:
        set_cell(w, made, places, cell_of(w, source, places))
    return made


@writes("tensor.expand_clone")
def _filled(w: Writer, call: Call, given: Given) -> Tensor:
    source: Tensor = given["src"]
    target: Tensor = given["target"]
    with _each(w, target.shape) as places:
        come = [_repeated(w, at, extent) for at, extent in zip(places, source.shape, strict=True)]
        set_cell(w, target, places, cell_of(w, source, come))
    return target


def _repeated(w: Writer, at: Number, extent: Number) -> Number:
    """Return the place that something repeated along an axis has for one, where it may have a single element."""
    if extent.known is not None:
        return w.constant(0) if extent.known == 1 else at
    return least(w, at, computed(w, "sub", [extent, w.constant(1)], INDEX))


@writes("tensor.gather")
def _gathered(w: Writer, call: Call, given: Given) -> Tensor | tuple[Tensor, Tensor]:
    source: Tensor = given["input"]
    if given["kvalue"] is not None:
        return _places(w, call, given)
    assert isinstance(call.type, TensorType)
    if given["mask_pattern"] is not None:
        return _taken_columns(w, call, source, MaskPattern(given["mask_pattern"]))
    index: Tensor = given["index"]
    axis, made = given["dim"] % len(source.shape), created(w, source.dtype, index.shape, None)
    with _each(w, index.shape) as places:
        come = [*places]
        come[axis] = converted(w, cell_of(w, index, places), INDEX)
        set_cell(w, made, places, cell_of(w, source, come))
    return made


def _places(w: Writer, call: Call, given: Given) -> tuple[Tensor, Tensor]:
    """Write where the elements of each row compare so, as many as there is room for, and how many do."""
    assert isinstance(call.type, TupleType)
    source: Tensor = given["input"]
    kinds = [each.dtype for each in call.type.elements if isinstance(each, TensorType)]
    word, most, zero = chosen(given["cmp_mode"], COMPARISONS, "cmp_mode"), w.constant(given["out_cols"]), w.constant(0)
    found, total = (
        created(w, dtype, shape, 0)
        for dtype, shape in zip(kinds, ([source.shape[0], most], [w.constant(1), source.shape[0]]), strict=True)
    )
    number = converted(w, given["kvalue"], source.dtype)
    with _each(w, source.shape) as (row, column):
        is_so = computed(w, word, [cell_of(w, source, [row, column]), number], BOOL)
        with w.block(f"scf.if {is_so.name}"):
            count = converted(w, cell_of(w, total, [zero, row]), INDEX)
            with w.block(f"scf.if {computed(w, 'lt', [count, most], BOOL).name}"):
                place = computed(w, "add", [column, w.constant(given["offset"])], INDEX)
                set_cell(w, found, [row, count], place)
            set_cell(w, total, [zero, row], computed(w, "add", [count, w.constant(1)], INDEX))
    return found, total


def _taken_columns(w: Writer, call: Call, source: Tensor, pattern: MaskPattern) -> Tensor:
    """Write the columns that a pattern takes, their bits seen as the type that is asked for."""
    assert isinstance(call.type, TensorType)
    cols = computed(w, "floordiv", [source.shape[1], w.constant(pattern.step)], INDEX)
    made = created(w, source.dtype, [source.shape[0], cols], None)
    with _each(w, made.shape) as (row, column):
        come = _stepped(w, pattern, column)
        set_cell(w, made, [row, column], cell_of(w, source, [row, come]))
    dtype = kept(call.type.dtype)
    return w.view("seen", dtype, pointer_as(w, start_of(w, made), made.dtype, dtype), made.shape)


def _stepped(w: Writer, pattern: MaskPattern, column: Number) -> Number:
    start = computed(w, "mul", [column, w.constant(pattern.step)], INDEX)
    return computed(w, "add", [start, w.constant(pattern.first)], INDEX)


@writes("tensor.scatter")
def _scattered(w: Writer, call: Call, given: Given) -> Tensor:
    source: Tensor = given["input"]
    if given["dst"] is not None:
        made, pattern = _copied(w, given["dst"]), MaskPattern(given["mask_pattern"])
        with _each(w, source.shape) as (row, column):
            set_cell(w, made, [row, _stepped(w, pattern, column)], cell_of(w, source, [row, column]))
        return made
    made = _copied(w, source)
    index: Tensor = given["index"]
    with _each(w, index.shape) as (row, column):
        place = converted(w, cell_of(w, index, [row, column]), INDEX)
        set_cell(w, made, [row, place], cell_of(w, given["src"], [row, column]))
    return made


@writes("tensor.scatter_update")
def _updated(w: Writer, call: Call, given: Given) -> Tensor:
    """Write rows over those that indices name, one after the other: of several for one the last stays."""
    target: Tensor = given["input"]
    index: Tensor = given["index"]
    source: Tensor = given["src"]
    with _each(w, index.shape) as (block, at):
        place = converted(w, cell_of(w, index, [block, at]), INDEX)
        number = computed(w, "add", [computed(w, "mul", [block, index.shape[1]], INDEX), at], INDEX)
        come, go = [number], [place]
        if len(target.shape) > 2:
            come, go = [block, at], [computed(w, word, [place, target.shape[1]], INDEX) for word in ("floordiv", "mod")]
        with _each(w, target.shape[len(go) :]) as inner:
            set_cell(w, target, [*go, *inner], cell_of(w, source, [*come, *inner]))
    return target


@writes("tensor.paged_gather")
def _paged(w: Writer, call: Call, given: Given) -> Tensor:
    source: Tensor = given["src"]
    indices: Tensor = given["indices"]
    table: Tensor = given["block_table"]
    refuse(call, max(len(indices.shape), len(table.shape)) != 1, "by indices of more than one axis")
    block, zero = w.constant(given["block_size"]), w.constant(0)
    shape = [w.constant(given["max_indices"]), w.constant(given["size"])]
    made = created(w, source.dtype, shape[::-1] if given["is_trans"] else shape, 0)
    with w.counted(indices.shape[0], "line") as line, w.counted(shape[1], "column") as column:
        number = converted(w, cell_of(w, indices, [line]), INDEX)
        which = converted(w, cell_of(w, table, [computed(w, "floordiv", [number, block], INDEX)]), INDEX)
        first = computed(w, "mul", [which, block], INDEX)
        row = computed(w, "add", [first, computed(w, "mod", [number, block], INDEX)], INDEX)
        come = computed(w, "add", [column, given["col_off"] or zero], INDEX)
        at = [column, line] if given["is_trans"] else [line, column]
        set_cell(w, made, at, cell_of(w, source, [row, come]))
    return made


@writes("tensor.gather_row")
def _put_window(w: Writer, call: Call, given: Given) -> Tensor:
    source: Tensor = given["src"]
    target: Tensor = given["dst"]
    with _each(w, given["valid_shape"] or given["shapes"]) as places:
        put = places[::-1] if given["transpose"] else places
        come, go = (
            [computed(w, "add", [a, b], INDEX) for a, b in zip(offset, at, strict=True)]
            for offset, at in ((given["src_offset"], places), (given["dst_offset"], put))
        )
        set_cell(w, target, go, cell_of(w, source, come))
    return target
