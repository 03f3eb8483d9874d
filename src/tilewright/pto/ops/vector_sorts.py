"""Vector sorts: records of a score and an index, eight bytes each, the highest score first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.core.expr import Expr, Var
from tilewright.core.types import ScalarType
from tilewright.dtypes import INT64
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import capacity
from tilewright.pto.machine.tiles import check_range
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.sorts import RECORD, RUN
from tilewright.pto.ops.vector_gathers import Elements, elements_of
from tilewright.pto.ops.vector_memory import unsigned
from tilewright.pto.text.form import register
from tilewright.pto.types import Scalar


@dataclass(frozen=True)
class Records:
    """Records behind a pointer: as scores `step` elements apart, and as pairs of words."""

    scores: Elements
    words: Elements
    step: int


def _records(m: Machine, pointer: Pointer, score: Scalar) -> Records:
    return Records(elements_of(m, pointer, score), elements_of(m, pointer, unsigned(4)), RECORD // score.nbytes)


def _place(m: Machine, start: Expr) -> Var:
    var = m.b.variable(start.type, "place")
    m.b.assign(var, start)
    return var


@declare("pto.vbitsort", register("llli?", ""))
def _sort(m: Machine, op: Op) -> None:
    """Sort runs of 32 scores: each record goes behind those that are higher, or equal and before it."""
    target, source, given = (m.get(v, Pointer) for v in op.operands[:3])
    times = m.index(op.operands[3]) if len(op.operands) > 3 else m.b.index(1)
    most = capacity(target.space, m.arch) // (RUN * RECORD)
    check_range(m, times, most, f"`{target.space.loc}` has room for 0 to {most} sorted runs")
    made = _records(m, target, source.element)
    values, indices = elements_of(m, source, source.element), elements_of(m, given, unsigned(4))
    with m.b.loop(0, m.b.mul(times, RUN), RUN, hint="run") as start, m.b.loop(0, RUN, hint="one") as one:
        mine = m.b.add(start, one)
        value, place = values.read(m, mine), _place(m, start)
        with m.b.loop(0, RUN, hint="other") as other:
            found = values.read(m, m.b.add(start, other))
            equal = m.b.scalar("and_", m.b.scalar("eq", found, value), m.b.scalar("lt", other, one))
            with m.b.when(m.b.scalar("or_", m.b.scalar("gt", found, value), equal)):
                m.b.assign(place, m.b.add(place, 1))
        word = m.b.mul(place, 2)
        made.words.write(m, word, m.b.cast(m.b.index(0), unsigned(4).dtype))
        made.scores.write(m, m.b.mul(place, made.step), value)
        made.words.write(m, m.b.add(word, 1), indices.read(m, mine))


@declare("pto.vmrgsort4", register("lllllii?i?", ""))
def _merge(m: Machine, op: Op) -> None:
    """Merge up to four sorted lists of records, again and again.

    Sixteen bits of `count` for each list say how many records it has; of `config` the low byte says how often, the next
    four bits which lists there are. Each repetition follows the one before it, on all sides.
    """
    if len(op.operands) < 7:
        raise UnsupportedFeatureError(f"{op.name} needs the lengths of its lists and a configuration")
    target, *sources = (m.get(v, Pointer) for v in op.operands[:5])
    count, config = (m.b.cast(m.expr(v), INT64) for v in op.operands[5:7])
    lengths = [_length(m, count, config, i) for i in range(4)]
    total = m.b.index(0)
    for length in lengths:
        total = m.b.scalar("add", total, length)
    turns = _bits(m, config, 0, 8)
    most = capacity(target.space, m.arch) // RECORD
    check_range(m, m.b.scalar("mul", turns, total), most, f"`{target.space.loc}` has room for 0 to {most} records")
    with m.b.loop(0, turns, hint="turn") as turn:
        first = m.b.scalar("mul", turn, total)
        shift = m.b.mul(first, RECORD)
        moved = [replace(s, offset=m.b.scalar("add", s.offset, shift)) for s in sources]
        for mine in range(4):
            _put_list(m, (target, first), moved, lengths, mine)


def _bits(m: Machine, value: Expr, shift: int, width: int) -> Expr:
    assert isinstance(value.type, ScalarType)
    low = m.b.scalar("shr", value, m.b.cast(m.b.index(shift), INT64)) if shift else value
    return m.b.index(m.b.scalar("bit_and", low, m.b.cast(m.b.index((1 << width) - 1), INT64)))


def _length(m: Machine, count: Expr, config: Expr, which: int) -> Expr:
    """Return how many records a list has, none where it is switched off."""
    return m.b.scalar("mul", _bits(m, count, 16 * which, 16), _bits(m, config, 8 + which, 1))


def _put_list(m: Machine, target: tuple[Pointer, Expr], sources: list[Pointer], lengths: list[Expr], mine: int) -> None:
    """Emit the records of one list, each behind those of all lists that come before it."""
    pointer, first = target
    made, own = _records(m, pointer, pointer.element), _records(m, sources[mine], pointer.element)
    with m.b.loop(0, lengths[mine], hint="one") as one:
        value = own.scores.read(m, m.b.mul(one, own.step))
        place = _place(m, m.b.scalar("add", first, one))
        for theirs, length in enumerate(lengths):
            if theirs == mine:
                continue
            others = elements_of(m, sources[theirs], pointer.element)
            with m.b.loop(0, length, hint="other") as other:
                found = others.read(m, m.b.mul(other, own.step))
                with m.b.when(m.b.scalar("ge" if theirs < mine else "gt", found, value)):
                    m.b.assign(place, m.b.add(place, 1))
        for word in range(2):
            half = own.words.read(m, m.b.add(m.b.mul(one, 2), word))
            made.words.write(m, m.b.add(m.b.mul(place, 2), word), half)
