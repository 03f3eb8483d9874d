"""Gathers: what is taken where indices say, as it comes into groups, goes to stores, or stays where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tilewright.core.expr import Call, Var
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TensorType, TileType
from tilewright.passes.folded_operands import folds_columns
from tilewright.passes.fusion import Extent, Waiting, spans
from tilewright.passes.fusion_walk import Given, Rule, Walk, is_there, known
from tilewright.passes.left_tiles import is_elementwise
from tilewright.passes.picks import pick_of

FEWEST = 8
"""How many elements a row has at least for which indices are looked at together."""
FEW_OF = 4
"""How many elements a tile has at least for each that is gathered of it where it lies.

Eight of each of 4096 rows of 4096 floats take 0.07 ms on a Zen 5, and 2.2 by way of tiles of all.
"""
FEWEST_COLUMNS = 16
"""How many columns rows have at least that are read where they lie."""


def ravel(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let the numbers of elements wait, where all of them count and are looked at several at a time."""
    assert isinstance(call.type, TileType)
    shape, tiles = call.type.shape, w.tiles(given, "outer", "inner")
    if is_there(given["mask"]) or shape[-1] < FEWEST:
        return w.needing(call, given)
    raveled = _joined(w, call, spans(tiles, len(shape)), tiles)
    raveled.is_raveled = True
    return raveled


def take(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let single elements wait to be fetched, some of them at a time: of a vector, or by an index for each axis."""
    x, (index, *_) = given["x"], w.tiles(given, "indices")
    assert isinstance(x, Var) and isinstance(x.type, TensorType)
    is_vector = len(x.type.shape) == 1 and x not in w.turned
    is_named = len(x.type.shape) > 1 and index.is_raveled and w.recorder.waits(index)
    if not (is_vector or is_named) or is_there(given["mask"]) or index.shape[-1] < FEWEST:
        return gather(w, call, given)
    w.recorder.after_stores(x)
    tile = _joined(w, call, index.valid, [index])
    tile.tensor = x
    w.recorder.loads.append(tile)
    return tile


def _joined(w: Walk, call: Call, valid: Sequence[Extent], tiles: Sequence[Waiting]) -> Waiting:
    """Let what looks at indices wait with those that are computed, along rows."""
    stmt = w.recorder.stmt
    assert stmt is not None and isinstance(call.type, TileType)
    w.recorder.plan.note(stmt, joins=True)
    along = Waiting(call.type.shape, tuple(valid), turned=False)
    return w.map(call.type.shape, known(call.type, valid), [*tiles, along], alone=False)


def gather(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let what is gathered for a store alone be written where that goes; rows that are added up stay where they lie.

    Indices are read where they lie: 4096 bags of 10 rows of 64 floats are added up in 0.075 ms on a Zen 5, in 0.096 by
    way of a tile of them.
    """
    for index in w.tiles(given, "indices") if call.op.spec.name == "take" else ():
        if index.tensor not in w.turned:
            w.withdraw(index)
    gathered, stmt = w.needing(call, given), w.recorder.stmt
    assert gathered is not None
    w.straighten(gathered.rows)
    if not isinstance(stmt, AssignStmt) or not _takes_rows(w, call, given):
        return gathered
    if _is_folded(w, stmt):
        w.recorder.plan.note(stmt, in_place=True)
    elif _is_met(w, stmt, gathered):
        w.recorder.plan.note(stmt, in_place=True, joins=True)
        x = given["x"]
        assert isinstance(x, Var)
        gathered.tensor, gathered.turned = x, False
        w.recorder.loads.append(gathered)
        return w.recorder.record(gathered, (), may_float=False)
    return gathered


def elements(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let a tile of which few elements are gathered stay where it was loaded from."""
    source, index = w.tiles(given, "src", "indices")
    tensor = source.tensor if source.loaded is not None else None
    if tensor is not None and tensor not in w.turned and FEW_OF * prod(index.shape) <= prod(source.shape):
        w.withdraw(source)
    return w.needing(call, given)


def pick(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let columns of a tile that are picked for a store alone be written where that goes."""
    picked, axis = w.needing(call, given), given["axis"]
    assert picked is not None and isinstance(axis, int)
    if axis % len(picked.shape):
        w.recorder.end("`pick` works on what is in memory")
        w.straighten(picked.rows)
    return picked


def note_pick(w: Walk, call: Call, x: Waiting) -> None:
    """Let a fold of rows that are computed as they are folded take the one element of each that counts."""
    pick = pick_of(call, w.made) if w.recorder.waits(x) and x.turned is False else None
    if pick is not None and w.recorder.stmt is not None:
        w.recorder.plan.note(w.recorder.stmt, picks=pick)


def _takes_rows(w: Walk, call: Call, given: Given) -> bool:
    """Return whether an op takes whole rows of a matrix whose neighbours along a row are adjacent."""
    x = given["x"] if call.op.spec.name == "take" else None
    is_matrix = isinstance(x, Var) and isinstance(x.type, TensorType) and len(x.type.shape) == 2
    return is_matrix and x not in w.turned and given["axis"] == 0 and not is_there(given["mask"])


def _is_folded(w: Walk, stmt: AssignStmt) -> bool:
    """Return whether folds of columns compute with a tile alone, or the next statement folds it and nobody reads it."""
    if stmt.var in w.recorder.computed:
        return True
    after = w.here.stmts[w.place + 1 : w.place + 2]
    if w.is_copied(stmt) or w.uses.get(stmt.var) != 1 or w.readers[stmt.var] != [*after]:
        return False
    return not w.is_copied(after[0]) and folds_columns(after[0]) is not None


def _is_met(w: Walk, stmt: AssignStmt, gathered: Waiting) -> bool:
    """Return whether the next statement alone reads rows: element by element, in rows of a vector at least.

    4096 bags of 16 rows of 128 floats, 64 bags at a time, are added up in 0.58 ms on a Zen 5, in 0.90 by way of a tile.
    """
    after = w.here.stmts[w.place + 1 : w.place + 2]
    if w.is_copied(stmt) or w.uses.get(stmt.var) != 1 or w.readers[stmt.var] != [*after]:
        return False
    call = after[0].value if isinstance(after[0], AssignStmt) else None
    is_whole = gathered.valid == gathered.shape and gathered.shape[-1] >= FEWEST_COLUMNS
    return is_whole and isinstance(call, Call) and is_elementwise(call) and not w.is_copied(after[0])


RULES: Mapping[str, Rule] = {"ravel_index": ravel, "take": take, "mgather": gather, "gather": elements, "pick": pick}
"""What waits and what is needed, by the name of an op."""
