"""Pipe ops: tiles handed from one function of a group to another, in the order in which they were pushed.

A group has a cube side (AIC) and a vector side (AIV) of one or two lanes. A push never waits; taking what nobody has
pushed yet lets the other side run. Buffers and slots are for chips: here a queue is as long as it has to be. PTO text
waits for slots by taking what is pushed as they become free.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tilewright.core.annotations import Extents, Index, Scalar, Tile
from tilewright.core.expr import Expr
from tilewright.core.extents import as_shape
from tilewright.core.op import Effect, Kind
from tilewright.core.pipes import STUCK, running
from tilewright.core.region import Region
from tilewright.core.types import VOID, ScalarType, TileType, is_static, show_shape, static_shape
from tilewright.dtypes import INT32, DataType
from tilewright.errors import ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.declare import op
from tilewright.ops.families import shaped

SYSTEM = (Kind.SYSTEM,)
AUTO = -1
"""Where a buffer lies when the compiler decides."""

PIPES = frozenset(("tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv"))
"""The ops that hand tiles over."""

MOST_PIPES = 16
"""How many queues each direction has."""


def axis_of(split: int | None) -> int | None:
    """Return the axis that a split code cuts, None for the whole tile."""
    return None if not split else (split - 1) % 2


def number_of(id: int | None) -> int:
    """Return the number of a queue."""
    return id or 0


def _check(split: int | None, id: int | None, lane: int | None = None) -> None:
    if split is not None and split not in range(5):
        raise OperandError(
            f"split is 0 for the whole, 1 or 3 for rows, 2 or 4 for columns, got {split}", blame=["split"]
        )
    if lane not in (None, 0, 1):
        raise OperandError(f"a lane of the vector side is 0 or 1, got {lane}", blame=["lane"])
    if number_of(id) not in range(MOST_PIPES):
        raise OperandError(f"a pipe's id is 0 to {MOST_PIPES - 1}, got {id}", blame=["id"])


def _pushed(tile: Expr, split: int, id: int | None, lane: int | None = None, **_: Any) -> Any:
    _check(split, id, lane)
    if len(shaped(tile).shape) != 2:
        raise ShapeMismatchError(f"a pipe takes tiles of two axes, got {tile.type}", blame=["tile"])
    return VOID


def _freed(tile: Expr, split: int | None, id: int | None) -> Any:
    _check(split, id)
    return VOID


def _popped(
    shape: Sequence[Expr] | None, dtype: DataType | None, split: int, id: int | None, lane: int | None = None, **_: Any
) -> TileType:
    _check(split, id, lane)
    if shape is None or dtype is None:
        raise OperandError(
            "what is taken needs a shape and an element type",
            help="annotate it, x: pl.Tile[[16, 16], pl.FP32] = ..., or pass shape= and dtype=",
        )
    extents = as_shape(shape)
    if len(extents) != 2 or not is_static(extents):
        raise ShapeMismatchError(f"a pipe takes tiles of two known extents, got {show_shape(extents)}", blame=["shape"])
    return TileType(static_shape(extents), dtype, (None, None))


def _push(towards: str) -> Any:
    def evaluate(result: Any, tile: Region, split: int, id: int | None, lane: int | None = None, **_: Any) -> Any:
        running().push(towards, number_of(id), tile, axis_of(split), lane)
        return VOID

    return evaluate


def _pop(towards: str) -> Any:
    def evaluate(
        result: TileType, split: int, id: int | None, lane: int | None = None, stuck: str | None = None, **_: Any
    ) -> Region:
        taken = running().pop(towards, number_of(id), axis_of(split), lane, stuck or STUCK)
        if taken.data.shape != result.shape or taken.dtype != result.dtype:
            shape = " x ".join(map(str, taken.data.shape))
            raise ExecutionError(f"a tile of {shape} {taken.dtype} was pushed, and {result} is taken")
        return taken.forgotten()  # a pipe carries valid elements

    return evaluate


def _nothing(result: Any, **_: Any) -> Any:
    return VOID


def _word(**_: Any) -> ScalarType:
    return ScalarType(INT32)


def _base(result: ScalarType, base: int = 0, **_: Any) -> int:
    return max(base, 0)


def _declared(dir_mask: int, slot_size: int, id: int | None, **_: Any) -> Any:
    _check(None, id)
    if dir_mask not in (1, 2, 3):
        raise OperandError(f"dir_mask is 1, 2 or 3 for both directions, got {dir_mask}", blame=["dir_mask"])
    return VOID


@op(kinds=SYSTEM, infer=_pushed, evaluate=_push("aiv"), effect=Effect.WRITE, family="pipe")
def tpush_to_aiv(
    tile: Tile, *, split: int, lane_stride: int | None = None, id: int | None = None, lane: int | None = None
) -> None:
    """Hand a tile to the vector side; where that has two lanes, `split` says which part each gets.

    With `lane`, that one gets all of it.
    """
    ...


@op(kinds=SYSTEM, infer=_pushed, evaluate=_push("aic"), effect=Effect.WRITE, family="pipe")
def tpush_to_aic(tile: Tile, *, split: int, id: int | None = None) -> None:
    """Hand a tile to the cube side; two lanes hand over a part each, as `split` says."""
    ...


@op(kinds=SYSTEM, infer=_popped, evaluate=_pop("aiv"), effect=Effect.WRITE, family="pipe", annotated=True)
def tpop_from_aic(
    *,
    shape: Extents | None = None,
    dtype: DataType | None = None,
    split: int = 0,
    lane_stride: int | None = None,
    id: int | None = None,
    stuck: str | None = None,
) -> Tile:
    """Return the oldest tile that the cube side has pushed; its annotation may say what it is.

    `stuck` is what an error says where nobody ever pushes it.
    """
    ...


@op(kinds=SYSTEM, infer=_popped, evaluate=_pop("aic"), effect=Effect.WRITE, family="pipe", annotated=True)
def tpop_from_aiv(
    *,
    shape: Extents | None = None,
    dtype: DataType | None = None,
    split: int = 0,
    id: int | None = None,
    lane: int | None = None,
    stuck: str | None = None,
) -> Tile:
    """Return the oldest tile that the vector side has pushed; its annotation may say what it is.

    With `lane`, what that one has pushed. `stuck` is what an error says where nobody ever pushes it.
    """
    ...


@op(kinds=SYSTEM, infer=_freed, evaluate=_nothing, effect=Effect.WRITE, example="pl.system.{name}(a, split=0)")
def tfree_to_aic(tile: Tile, *, split: int | None = None, id: int | None = None) -> None:
    """Say that a tile taken from the cube side is not needed any more."""
    ...


@op(kinds=SYSTEM, infer=_freed, evaluate=_nothing, effect=Effect.WRITE, example="pl.system.{name}(a, split=0)")
def tfree_to_aiv(tile: Tile, *, split: int | None = None, id: int | None = None) -> None:
    """Say that a tile taken from the vector side is not needed any more."""
    ...


_declares_a_pipe = partial(
    op, kinds=SYSTEM, infer=_declared, evaluate=_nothing, effect=Effect.WRITE,
    example="pl.system.{name}(dir_mask=3, slot_size=512)",
)  # fmt: skip


@_declares_a_pipe()
def aic_initialize_pipe(
    c2v_consumer_buf: Index = 0,
    v2c_consumer_buf: Index = 0,
    *,
    dir_mask: int,
    slot_size: int,
    slot_num: int | None = None,
    local_slot_num: int | None = None,
    id: int | None = None,
) -> None:
    """Declare a pipe on the cube side: 1 leads to the vector side, 2 back, 3 both ways."""
    ...


@_declares_a_pipe()
def aiv_initialize_pipe(
    c2v_consumer_buf: Index = 0,
    v2c_consumer_buf: Index = 0,
    *,
    dir_mask: int,
    slot_size: int,
    slot_num: int | None = None,
    local_slot_num: int | None = None,
    id: int | None = None,
) -> None:
    """Declare a pipe on the vector side: 1 leads there from the cube side, 2 back, 3 both ways."""
    ...


@op(
    kinds=SYSTEM, infer=_word, evaluate=_base, effect=Effect.WRITE,
    example='base = pl.system.reserve_buffer(name="ring", size=4096)',
)  # fmt: skip
def reserve_buffer(*, name: str, size: int, base: int = AUTO) -> Scalar:
    """Return where a buffer of the consumer lies; queues need none here."""
    ...


@op(
    kinds=SYSTEM, infer=_word, evaluate=_base, effect=Effect.WRITE,
    example='here = pl.system.reserve_buffer(name="ring", size=4096)\n'
    'base = pl.system.import_peer_buffer(name="ring", peer_func="kernel")',
)  # fmt: skip
def import_peer_buffer(*, name: str, peer_func: str) -> Scalar:
    """Return where the other side has reserved a buffer."""
    ...
