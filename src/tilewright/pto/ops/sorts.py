"""Sorts: records of a value and an index, eight bytes each, the largest value first; equal ones keep their order.

NaN counts as the largest value, as it does for `pl.sort32`.

A record's place is the number of records that come before it, which needs no moving about: it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from tilewright.core.expr import Expr, Var, constant
from tilewright.dtypes import FP32, INT32, INT64
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoOperandError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import capacity
from tilewright.pto.machine.registers import Elements, elements_in, elements_of
from tilewright.pto.machine.settings import bits
from tilewright.pto.machine.tiles import (
    bytes_view,
    check_covers,
    check_range,
    element_strides,
    get_cell,
    set_cell,
    window,
)
from tilewright.pto.machine.values import Pointer, Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.operand_laws import merged, sorted_with
from tilewright.pto.text.form import Typing, free, register, tile
from tilewright.pto.types import SCALARS, Opaque, Scalar
from tilewright.records import record

RECORD = 8
"""Bytes of a record: the value in the first, its index in the last four."""
RUN = 32
"""Elements that are sorted among themselves."""
BLOCK_LENGTH = 64
"""A merge takes blocks of a whole multiple of these."""
MOST = 1 << 16
"""No list has as many records."""
_WORD = SCALARS["ui32"]


@record
class Records:
    """Records one behind the other: the value of each, and both its halves."""

    values: Elements
    halves: tuple[Elements, Elements]


@record
class Run:
    """A sorted list: records from a start on."""

    records: Records
    start: Expr
    count: Expr


def _in_tile(m: Machine, tile: Tile, row: Expr) -> Records:
    size = tile.type.element.nbytes
    pitch = tile.type.cols * size
    shape = tile.type.rows, _records_of(tile)
    word = replace(tile.place, element=_WORD, offset=m.b.add(tile.place.offset, 4))
    values = bytes_view(m, tile.place, shape, (pitch // size, RECORD // size))
    indices = bytes_view(m, word, shape, (pitch // 4, RECORD // 4))
    scores = elements_in(m, values, row)
    return Records(scores, (scores, elements_in(m, indices, row)))


def _behind(m: Machine, pointer: Pointer, element: Scalar) -> Records:
    values, words = elements_of(m, pointer, element), elements_of(m, pointer, _WORD)
    return Records(values.every(m, RECORD // element.nbytes), (words.every(m, 2), words.every(m, 2, 1)))


def _count_ahead(m: Machine, place: Var, span: tuple[Expr, Expr], comes_before: Callable[[Expr], Expr]) -> None:
    """Move a place behind those of a span that come before it."""
    with m.b.loop(*span, hint="other") as other, m.b.when(comes_before(other)):
        m.b.assign(place, m.b.add(place, 1))


def _is_first(m: Machine, order: str, score: Expr, other: Expr) -> Expr:
    """Return whether a score is greater than another, or with `ge` as great; none is greater than NaN."""
    unordered = m.b.scalar("ne", score, score)
    if order == "gt":
        unordered = m.b.scalar("and_", unordered, m.b.scalar("eq", other, other))
    return m.b.scalar("or_", m.b.scalar(order, score, other), unordered)


def _sort_run(m: Machine, span: tuple[Expr, Expr], values: Elements, put: Callable[[Expr, Expr, Expr], None]) -> None:
    """Write out the elements of a span in order: `put` takes the place, the value and its position."""
    with m.b.loop(*span, hint="one") as one:
        value, place = values.get(one), m.b.held(span[0], "place")

        def comes_before(other: Expr) -> Expr:
            found = values.get(other)
            earlier = m.b.scalar("and_", _is_first(m, "ge", found, value), m.b.scalar("lt", other, one))
            return m.b.scalar("or_", _is_first(m, "gt", found, value), earlier)

        _count_ahead(m, place, span, comes_before)
        put(place, value, one)


def _count_list(m: Machine, place: Var, run: Run, order: str, value: Expr) -> None:
    """Move a place behind those of a list that stand in an order to its value."""
    values, start = run.records.values, run.start
    span = m.b.index(0), run.count
    _count_ahead(m, place, span, lambda i: _is_first(m, order, values.get(m.b.add(start, i)), value))


def _merge_runs(m: Machine, runs: Sequence[Run], made: Records, first: Expr) -> None:
    """Write out sorted lists as one: always the largest of the first records left, of equal ones that of the first."""
    zero, total = m.b.index(0), reduce(lambda a, b: m.b.scalar("add", a, b), (run.count for run in runs))
    heads = [m.b.held(zero, "head") for _ in runs]
    with m.b.loop(0, total, hint="one") as one:
        best = _best(m, runs, heads)
        for number, (run, head) in enumerate(zip(runs, heads, strict=True)):
            with m.b.when(m.b.scalar("eq", best, m.b.index(number))):
                for half, room in zip(run.records.halves, made.halves, strict=True):
                    room.set(m.b.add(first, one), half.get(m.b.add(run.start, head)))
                m.b.assign(head, m.b.add(head, 1))


def _best(m: Machine, runs: Sequence[Run], heads: Sequence[Var]) -> Var:
    """Return which of some lists, one of which has a record left, has the largest as its next."""
    none = m.b.index(len(runs))
    best, largest = m.b.held(none, "best"), m.b.held(constant(0.0, FP32), "largest")
    for number, (run, head) in enumerate(zip(runs, heads, strict=True)):
        with m.b.when(m.b.scalar("lt", head, run.count)):
            score = m.b.cast(run.records.values.get(m.b.add(run.start, head)), FP32)
            is_larger = m.b.scalar("or_", m.b.scalar("eq", best, none), _is_first(m, "gt", score, largest))
            with m.b.when(is_larger):
                m.b.assign(best, m.b.index(number))
                m.b.assign(largest, score)
    return best


def _place(m: Machine, runs: Sequence[Run], mine: int, one: Expr, first: Expr) -> Var:
    """Return where a record of a list goes: behind all before it in its own, and those of others that come first."""
    run, place = runs[mine], m.b.held(m.b.add(first, one), "place")
    value = run.records.values.get(m.b.add(run.start, one))
    for theirs, other in enumerate(runs):
        if theirs != mine:
            _count_list(m, place, other, "ge" if theirs < mine else "gt", value)
    return place


# tiles


_SORTED = (
    'at = np.argsort(-{0}, 1, kind="stable"); {2} = np.stack([np.take_along_axis({0}, at, 1).view("u4"), '
    'np.take_along_axis({1}, at, 1)], 2).view("f4").ravel()'
)
"""Records of each row in order, a score and an index each."""


@declare(
    "pto.tsort32",
    tile("zz?z?", "zz?"),
    law=sorted_with,
    example="(%x: t1x128xf32, %i: t1x128xui32 = arange, %out: t1x256xf32); {op} ins(%x, %i) outs(%out)",
    means=_SORTED.format("x.reshape(4, 32)", "i.reshape(4, 32)", "out"),
)
def _sort(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Sort each run of 32 elements of a row; without given indices, elements are numbered along it."""
    given = m.get(op.ins[1], Tile) if len(op.ins) > 1 else None
    if not m.placed(*(t for t in (source, given, target) if t is not None)):
        return
    rows, columns = source.valid
    values, indices = window(m, source, source.valid), None if given is None else _indices(m, given, source)
    with m.b.loop(0, rows, hint="row") as row, m.b.loop(0, columns, RUN, hint="run") as start:
        made = _in_tile(m, target, row)

        def put(place: Expr, value: Expr, one: Expr) -> None:
            number = one if indices is None else m.b.get(indices, row, one)
            made.values.set(place, value)
            made.halves[1].set(place, m.b.cast(number, _WORD.dtype))

        _sort_run(m, (start, m.b.least(m.b.add(start, RUN), columns)), elements_in(m, values, row), put)


def _indices(m: Machine, given: Tile, source: Tile) -> Expr:
    """Return the index of each element of a source: from its own row, or where there is only one row from that."""
    check_covers(m, given, (m.b.index(1), source.valid[1]), (1, source.type.cols))
    down, across = element_strides(given)
    step = m.b.mul(_is_own_row(m, given.valid[0], source.valid[0]), down)
    return bytes_view(m, given.place, source.valid, (step, across))


def _is_own_row(m: Machine, have: Expr, rows: Expr) -> Expr:
    """Return one where each row has indices of its own, zero where one row serves all; stop where it is neither."""
    numbers = known(have), known(rows)
    if numbers[0] == 1 or (None not in numbers and numbers[0] == numbers[1]):
        return m.b.index(0 if numbers[0] == 1 else 1)
    if None not in numbers:
        message = f"{numbers[0]} rows of indices do not belong to {numbers[1]} rows of elements"
        raise OutOfBoundsError(message, help="give every row its own indices, or one row for all")
    many = m.b.scalar("ne", have, m.b.index(1))
    fits = m.b.scalar("or_", m.b.scalar("not_", many), m.b.scalar("eq", have, rows))
    m.b.act("system.device_assert", condition=fits, message="rows of indices are as many as those of elements, or one")
    return m.b.index(m.b.cast(many, INT32))


def _whole_blocks(op: Op, constants: Constants) -> None:
    for value in op.ins:
        number = constants.get(value)
        if number is not None and (number <= 0 or number % BLOCK_LENGTH):
            message = f"blocks of {number} elements cannot be merged"
            raise PtoOperandError(message, help=f"a block has a multiple of {BLOCK_LENGTH} elements")


@declare(
    "pto.tmrgsort",
    tile("zx?x?x?x?", "zx?x?"),
    rule=_whole_blocks,
    law=merged,
    example="(%x: t1x128xf32, %i: t1x128xui32 = arange, %out: t1x256xf32)"
    "; %s = pto.alloc_tile : t1x256xf32; pto.tsort32 ins(%x, %i) outs(%s)"
    "; {op} ins(%s, %i64) outs(%out)",
    means=_SORTED.format("x", "i", "out"),
)
def _merge(m: Machine, op: Op, target: Tile, *ins: Tile | Expr) -> None:
    """Merge up to four sorted lists: tiles of one row, or blocks of one tile that follow each other."""
    sources = [t for t in ins if isinstance(t, Tile)]
    if any(isinstance(value.type, Opaque) for value in op.outs):  # how far lists got: then the last tile is scratch
        del sources[-1]
    numbers = [n for n in ins if isinstance(n, Expr)]
    zero = m.b.index(0)
    if not m.placed(*sources, target):
        return
    made = _in_tile(m, target, zero)
    if numbers:
        _merge_blocks(m, sources[0], m.b.index(numbers[0]), made)
        return
    runs = [Run(_in_tile(m, s, zero), zero, _record_count(m, s, s.valid[1])) for s in sources]
    _merge_runs(m, runs, made, zero)


def _record_count(m: Machine, tile: Tile, columns: Expr) -> Expr:
    per_record, number = RECORD // tile.type.element.nbytes, known(columns)
    return m.b.scalar("floordiv", columns, m.b.index(per_record)) if number is None else m.b.index(number // per_record)


def _records_of(tile: Tile) -> int:
    """Return how many records a row of a tile has room for."""
    return tile.type.cols * tile.type.element.nbytes // RECORD


def _merge_blocks(m: Machine, source: Tile, length: Expr, made: Records) -> None:
    records = _in_tile(m, source, m.b.index(0))
    each, total = _record_count(m, source, length), _record_count(m, source, source.valid[1])
    most = _records_of(source)
    check_range(m, m.b.add(each, -1), most - 1, f"a block has 1 to {most} records")
    with m.b.loop(0, total, m.b.mul(each, 4), hint="group") as group:
        ends = [m.b.least(m.b.add(group, m.b.mul(each, k)), total) for k in range(5)]
        runs = [Run(records, a, m.b.scalar("sub", b, a)) for a, b in zip(ends, ends[1:], strict=False)]
        _merge_runs(m, runs, made, group)


# lists behind pointers


@declare(
    "pto.vbitsort",
    register("llli?", ""),
    example="(%y: !pto.ptr<f32, ub>, %x: !pto.ptr<f32, ub>, %i: !pto.ptr<ui32, ub> = arange); {op} %y, %x, %i, %c1",
    means=_SORTED.format("x[None, :32]", "i[None, :32]", "y[:64]"),
)
def _sort_list(m: Machine, op: Op, target: Pointer, source: Pointer, given: Pointer, repeated: Expr | int = 1) -> None:
    """Sort runs of 32 scores; what a record has beside its score and index is zero."""
    times = m.b.index(repeated)
    most = capacity(target.space, m.arch) // (RUN * RECORD)
    check_range(m, times, most, f"`{target.space.loc}` has room for 0 to {most} sorted runs")
    made = _behind(m, target, source.element)
    values, indices = elements_of(m, source, source.element), elements_of(m, given, _WORD)

    def put(place: Expr, value: Expr, one: Expr) -> None:
        made.halves[0].set(place, m.b.cast(m.b.index(0), _WORD.dtype))
        made.values.set(place, value)
        made.halves[1].set(place, indices.get(one))

    with m.b.loop(0, m.b.mul(times, RUN), RUN, hint="run") as start:
        _sort_run(m, (start, m.b.add(start, RUN)), values, put)


@declare(
    "pto.vmrgsort4",
    register("lllllii?i?", ""),
    example="(%y: !pto.ptr<f32, ub>, %x: !pto.ptr<f32, ub> = arange)"
    "; %p = pto.addptr %x, %c64 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>"
    "; {op} %y, %x, %p, %p, %p, %n262148, %n769",
    means="y[:8], y[8:16] = x[64:72], x[:8]",
)
def _merge_lists(m: Machine, op: Op, target: Pointer) -> None:
    """Merge up to four sorted lists of records, again and again.

    Sixteen bits of `count` for each list say how many records it has; of `config` the low byte says how often, the next
    four bits which lists there are. Each repetition follows the one before it, on all sides.
    """
    if len(op.operands) < 7:
        raise UnsupportedFeatureError(f"{op.name} needs the lengths of its lists and a configuration")
    sources = [m.get(v, Pointer) for v in op.operands[1:5]]
    count, config = (m.b.cast(m.expr(v), INT64) for v in op.operands[5:7])
    lengths = [m.b.scalar("mul", bits(m, count, 16 * i, 16), bits(m, config, 8 + i, 1)) for i in range(4)]
    total = m.b.index(0)
    for length in lengths:
        total = m.b.scalar("add", total, length)
    turns = bits(m, config, 0, 8)
    most = capacity(target.space, m.arch) // RECORD
    check_range(m, m.b.scalar("mul", turns, total), most, f"`{target.space.loc}` has room for 0 to {most} records")
    with m.b.loop(0, turns, hint="turn") as turn:
        first, zero = m.b.scalar("mul", turn, total), m.b.index(0)
        shift = m.b.mul(first, RECORD)
        moved = [replace(s, offset=m.b.scalar("add", s.offset, shift)) for s in sources]
        lists = [_behind(m, pointer, target.element) for pointer in moved]
        runs = [Run(one, zero, length) for one, length in zip(lists, lengths, strict=True)]
        _merge_runs(m, runs, _behind(m, target, target.element), first)
        if any(inner.name == _TAKEN for func in m.funcs if func.body for op in func.body.ops for inner in op.walk()):
            _note_taken(m, runs, m.b.scalar("ne", bits(m, config, 12, 1), zero))


_TAKEN = "pto.get_vms4_sr"


def _note_taken(m: Machine, runs: Sequence[Run], stops: Expr) -> None:
    """Note how many records each list gave: all of them, or where that stops, those before one had no more."""
    zero, end = m.b.index(0), m.b.held(m.b.index(MOST), "end")
    for mine, run in enumerate(runs):
        if known(run.count) == 0:
            continue
        with m.b.when(m.b.scalar("and_", stops, m.b.scalar("gt", run.count, zero))):
            last = _place(m, runs, mine, m.b.add(run.count, -1), zero)
            m.b.assign(end, m.b.least(end, m.b.add(last, 1)))
    for mine, run in enumerate(runs):
        taken = m.b.held(zero, "taken")
        with m.b.loop(0, run.count, hint="one") as one:
            place = _place(m, runs, mine, one, zero)
            with m.b.when(m.b.scalar("lt", place, end)):
                m.b.assign(taken, m.b.add(taken, 1))
        set_cell(m, ("taken", mine), taken)


@declare(
    _TAKEN,
    free("", "iiii", typing=Typing.RESULT, phrase=": i16, i16, i16, i16"),
    example="(%y: !pto.ptr<f32, ub>, %x: !pto.ptr<f32, ub> = arange)"
    "; %p = pto.addptr %x, %c64 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>"
    "; pto.vmrgsort4 %y, %x, %p, %p, %p, %n262148, %n769"
    "; %a, %b, %c, %d = pto.get_vms4_sr : i16, i16, i16, i16",
    means="y[:8], y[8:16] = x[64:72], x[:8]; a, b, c, d = 4, 4, 0, 0",
)
def _taken(m: Machine, op: Op) -> tuple[Expr, ...]:
    """How many records the last merge took from each of four lists."""
    return tuple(m.b.cast(get_cell(m, ("taken", i)), value.of(Scalar).dtype) for i, value in enumerate(op.results))
