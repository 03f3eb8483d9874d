"""Sorts: records of a value and an index, eight bytes each, the largest value first; equal ones keep their order.

A record's place is the number of records that come before it, which needs no moving about: it is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.core.expr import Expr, Var
from tilewright.dtypes import INT32
from tilewright.errors import OutOfBoundsError, PtoOperandError
from tilewright.pto.machine.build import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination
from tilewright.pto.machine.tiles import bytes_view, check_covers, check_range, element_strides, window
from tilewright.pto.machine.values import Number, Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.gathers import element, placed, put
from tilewright.pto.text.form import tile
from tilewright.pto.types import SCALARS

RECORD = 8
"""Bytes of a record: the value in the first, its index in the last four."""
RUN = 32
"""Elements that are sorted among themselves."""
BLOCK_LENGTH = 64
"""A merge takes blocks of a whole multiple of these."""


@dataclass(frozen=True)
class Records:
    """The rows of a tile as records: values and indices beside each other."""

    values: Expr
    indices: Expr


def _records(m: Machine, tile: Tile) -> Records:
    size = tile.type.element.nbytes
    pitch = tile.type.cols * size
    shape = m.b.index(tile.type.rows), m.b.index(_records_of(tile))
    word = replace(tile.place, element=SCALARS["ui32"], offset=m.b.add(tile.place.offset, 4))
    return Records(
        bytes_view(m, tile.place, shape, (m.b.index(pitch // size), m.b.index(RECORD // size))),
        bytes_view(m, word, shape, (m.b.index(pitch // 4), m.b.index(RECORD // 4))),
    )


def _count(m: Machine, total: Var, comes_before: Expr) -> None:
    with m.b.when(comes_before):
        m.b.assign(total, m.b.add(total, 1))


def _before(m: Machine, other: Expr, value: Expr, is_earlier: Expr) -> Expr:
    """Return whether another record comes before: it is larger, or equal and earlier."""
    equal = m.b.scalar("and_", m.b.scalar("eq", other, value), is_earlier)
    return m.b.scalar("or_", m.b.scalar("gt", other, value), equal)


@declare("pto.tsort32", tile("zz?z?", "zz?"))
def _sort(m: Machine, op: Op) -> None:
    """Sort each run of 32 elements of a row; without given indices, elements are numbered along it."""
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    given = m.get(op.ins[1], Tile) if len(op.ins) > 1 else None
    if not placed(m, *(t for t in (source, given, target) if t is not None)):
        return
    rows, columns = source.valid
    values, records = window(m, source, source.valid), _records(m, target)
    indices = _indices(m, given, source) if given is not None else None
    with m.b.loop(0, rows, hint="row") as row, m.b.loop(0, columns, RUN, hint="run") as start:
        stop = m.b.least(m.b.add(start, RUN), columns)
        with m.b.loop(start, stop, hint="one") as one:
            value, place = element(m, values, row, one), m.b.variable(start.type, "place")
            m.b.assign(place, start)
            with m.b.loop(start, stop, hint="other") as other:
                is_earlier = m.b.scalar("lt", other, one)
                _count(m, place, _before(m, element(m, values, row, other), value, is_earlier))
            put(m, records.values, value, row, place)
            number = element(m, indices, row, one) if indices is not None else one
            put(m, records.indices, m.b.cast(number, SCALARS["ui32"].dtype), row, place)


def _indices(m: Machine, given: Tile, source: Tile) -> Expr:
    """Return the index of each element of a source: from its own row, or where there is only one row from that."""
    check_covers(m, given, (m.b.index(1), source.valid[1]), (1, source.type.cols))
    down, across = element_strides(given)
    step = m.b.mul(_is_own_row(m, given.valid[0], source.valid[0]), down)
    return bytes_view(m, given.place, source.valid, (step, m.b.index(across)))


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
    m.b.do("system.device_assert", condition=fits, message="rows of indices are as many as those of elements, or one")
    return m.b.index(m.b.cast(many, INT32))


@dataclass(frozen=True)
class Run:
    """A sorted list: records of one row from a start on."""

    records: Records
    start: Expr
    count: Expr


def _whole_blocks(op: Op, constants: Constants) -> None:
    for value in op.ins:
        number = constants.get(value)
        if number is not None and (number <= 0 or number % BLOCK_LENGTH):
            message = f"blocks of {number} elements cannot be merged"
            raise PtoOperandError(message, help=f"a block has a multiple of {BLOCK_LENGTH} elements")


@declare("pto.tmrgsort", tile("zx?x?x?x?", "zx?x?"), constant_rule=_whole_blocks)
def _merge(m: Machine, op: Op) -> None:
    """Merge up to four sorted lists: tiles of one row, or blocks of one tile that follow each other."""
    tiles = [m.values[v] for v in op.ins]
    sources = [t for t in tiles if isinstance(t, Tile)]
    target = destination(m, op)
    if not placed(m, *sources, target):
        return
    made = _records(m, target)
    numbers = [t.expr for t in tiles if isinstance(t, Number)]
    if numbers:
        _merge_blocks(m, sources[0], m.b.index(numbers[0]), made)
        return
    zero = m.b.index(0)
    runs = [Run(_records(m, s), zero, _record_count(m, s, s.valid[1])) for s in sources]
    _merge_runs(m, runs, made, zero)


def _record_count(m: Machine, tile: Tile, columns: Expr) -> Expr:
    per_record = RECORD // tile.type.element.nbytes
    number = known(columns)
    return (
        m.b.index(number // per_record)
        if number is not None
        else m.b.scalar("floordiv", columns, m.b.index(per_record))
    )


def _records_of(tile: Tile) -> int:
    """Return how many records a row of a tile has room for."""
    return tile.type.cols * tile.type.element.nbytes // RECORD


def _merge_blocks(m: Machine, source: Tile, length: Expr, made: Records) -> None:
    records = _records(m, source)
    each, total = _record_count(m, source, length), _record_count(m, source, source.valid[1])
    most = _records_of(source)
    check_range(m, m.b.add(each, -1), most - 1, f"a block has 1 to {most} records")
    with m.b.loop(0, total, m.b.mul(each, 4), hint="group") as group:
        runs: list[Run] = []
        for k in range(4):
            start = m.b.least(m.b.add(group, m.b.mul(each, k)), total)
            stop = m.b.least(m.b.add(group, m.b.mul(each, k + 1)), total)
            runs.append(Run(records, start, m.b.scalar("sub", stop, start)))
        _merge_runs(m, runs, made, group)


def _merge_runs(m: Machine, runs: Sequence[Run], made: Records, first: Expr) -> None:
    row = m.b.index(0)
    for mine, run in enumerate(runs):
        with m.b.loop(0, run.count, hint="one") as one:
            at = m.b.add(run.start, one)
            value, place = element(m, run.records.values, row, at), m.b.variable(first.type, "place")
            m.b.assign(place, m.b.add(first, one))
            for theirs, other in enumerate(runs):
                if theirs != mine:
                    _count_ahead(m, other, value, place, is_earlier=theirs < mine)
            put(m, made.values, value, row, place)
            put(m, made.indices, element(m, run.records.indices, row, at), row, place)


def _count_ahead(m: Machine, run: Run, value: Expr, place: Var, is_earlier: bool) -> None:
    with m.b.loop(0, run.count, hint="other") as other:
        found = element(m, run.records.values, m.b.index(0), m.b.add(run.start, other))
        _count(m, place, m.b.scalar("ge" if is_earlier else "gt", found, value))
