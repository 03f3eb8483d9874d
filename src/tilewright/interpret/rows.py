"""Rows: tensors of the host's of which every rank is given its own, `x[r]`, and who is given none."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from tilewright.core.region import Array, Region
from tilewright.errors import ExecutionError
from tilewright.interpret.shadow import reach
from tilewright.records import record
from tilewright.source import Span, shown

Given = tuple[int, Sequence[object], Span, bool]
"""A dispatch: its rank, its arguments, where it stands, and whether its rank was counted."""


class IdleRankWarning(UserWarning):
    """A rank that a host function dispatches nothing to."""


@record
class _Row:
    """A row that a rank is given, where, and whether its rank was counted; -1 for what is no row."""

    number: int
    rank: int
    span: Span
    is_counted: bool


def check_rows(tensors: Mapping[str, Array], dispatches: Sequence[Given], size: int) -> None:
    """Raise where nobody is given some rows of a tensor that has another number of them than there are ranks.

    Warn where it has as many, and ranks do nothing.
    """
    idle = sorted({*range(size)} - {rank for rank, *_ in dispatches})
    for name, whole in tensors.items():
        rows = list(_rows(whole, dispatches))
        if not any(row.is_counted for row in rows) or any(row.number != row.rank for row in rows):
            continue
        count, first = whole.shape[0], next(row for row in rows if row.is_counted)
        if len({row.number for row in rows}) == count:
            continue
        if count != size:
            raise _miscounted(name, count, size, first.span)
        if idle:
            ranks = f"rank {idle[0]} is" if len(idle) == 1 else f"ranks {', '.join(map(str, idle))} are"
            message = f"{ranks} dispatched nothing, and nobody is given the same rows of `{name}`"
            help = "for r in pl.range(pld.world_size()): dispatches to all"
            said = shown(message, [first.span], [], help)
            warnings.warn_explicit(said, IdleRankWarning, first.span.filename, first.span.line)
            return


def check_row(name: str, whole: Array, number: int, dispatches: Sequence[Given], size: int, span: Span) -> None:
    """Raise where a tensor has fewer rows than there are ranks, each of which is given its own so far."""
    count = whole.shape[0]
    if not count <= number < size:
        return
    rows = list(_rows(whole, dispatches))
    if {row.number for row in rows if row.is_counted and row.number == row.rank} == {*range(count)}:
        raise _miscounted(name, count, size, span)


def _miscounted(name: str, count: int, size: int, span: Span) -> ExecutionError:
    message = f"each rank is given its row of `{name}`, which has {count}, and there are {size} rank(s)"
    said = f"config=RunConfig(device_ids=range({count})), on a command line --ranks {count}, runs on {count}"
    return ExecutionError(message, spans=[span], help=f"{said}; or pass a tensor with {size}")


def _rows(whole: Array, dispatches: Iterable[Given]) -> Iterable[_Row]:
    """Yield what ranks are given of a tensor."""
    if not whole.size or whole.strides[0] <= 0:
        return
    low, high = reach(whole)
    for rank, args, span, is_counted in dispatches:
        for arg in args:
            if not isinstance(arg, Region) or not arg.data.size or not low <= arg.data.ctypes.data < high:
                continue
            number, rest = divmod(arg.data.ctypes.data - low, whole.strides[0])
            is_row = not rest and arg.data.shape == whole.shape[1:]
            yield _Row(number if is_row else -1, rank, span, is_counted)
