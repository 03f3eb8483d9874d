"""System: which block is running, what must hold, and synchronization that an ordered executor has no need of."""

from typing import Any

from tilewright.core.annotations import Condition, Extents, Scalar
from tilewright.core.expr import Const, Expr
from tilewright.core.foreign_names import called
from tilewright.core.grid import CURRENT
from tilewright.core.op import Effect, Kind
from tilewright.core.pipes import RUNNING
from tilewright.core.types import VOID, ScalarType
from tilewright.dtypes import INDEX, TASK_ID
from tilewright.errors import AttributeValueError, ExecutionError, StaticAssertionError
from tilewright.ops.declare import op

__all__ = ["get_block_idx", "get_block_num", "get_subblock_idx"]

GRID = (Kind.TILE, Kind.TENSOR)
SYSTEM = (Kind.SYSTEM,)
INVALID_TASK = -1


def _index() -> ScalarType:
    return ScalarType(INDEX)


def _nothing(*_: Any) -> Any:
    return VOID


def _block_index(result: ScalarType) -> int:
    return CURRENT.get().index


def _block_count(result: ScalarType) -> int:
    return CURRENT.get().count


def _lane(result: ScalarType) -> int:
    side = RUNNING.get()
    return 0 if side is None else side.lane


def _one(result: ScalarType) -> int:
    return 1


def _no_task(result: ScalarType) -> int:
    return INVALID_TASK


def _done_task(result: ScalarType, deps: Any) -> int:
    return 0


def check_texts(**said: object) -> None:
    """Raise AttributeValueError where what an op is to say is no text."""
    for name, text in said.items():
        if not isinstance(text, str):
            raise AttributeValueError(f"{name} must be a text, got {text!r}", blame=[name], help=f'{name}="..."')


def _asserted(condition: Expr, message: Any) -> Any:
    check_texts(message=message)
    if isinstance(condition, Const) and not condition.value:
        raise StaticAssertionError(message, blame=["condition"])
    return VOID


def _assert(result: Any, condition: bool, message: str) -> Any:
    if not condition:
        raise ExecutionError(message)
    return VOID


def _task(**_: Any) -> ScalarType:
    return ScalarType(TASK_ID)


@called(triton="program_id", numba="cuda.blockIdx.x")
@op(
    kinds=GRID, infer=_index, evaluate=_block_index, effect=Effect.READ, control_plane=True,
    example="block = pl.tile.get_block_idx()\nout = pl.store(pl.add(a, pl.cast(block, pl.FP32)), [0, 0], out)",
)  # fmt: skip
def get_block_idx() -> Scalar:
    """Return the index of the running block, 0 outside `pl.spmd`."""
    ...


@called(triton="num_programs", numba="cuda.gridDim.x")
@op(
    kinds=GRID, infer=_index, evaluate=_block_count, effect=Effect.READ, control_plane=True,
    example="blocks = pl.tile.get_block_num()\nout = pl.store(pl.add(a, pl.cast(blocks, pl.FP32)), [0, 0], out)",
)  # fmt: skip
def get_block_num() -> Scalar:
    """Return the number of blocks that run, 1 outside `pl.spmd`."""
    ...


@op(
    kinds=GRID, infer=_index, evaluate=_lane, effect=Effect.READ, control_plane=True,
    example="lane = pl.tile.get_subblock_idx()\nout = pl.store(pl.add(a, pl.cast(lane, pl.FP32)), [0, 0], out)",
)  # fmt: skip
def get_subblock_idx() -> Scalar:
    """Return the running vector lane of `pl.split_aiv`, 0 outside it."""
    ...


_count = op(
    kinds=SYSTEM, infer=_index, evaluate=_one, effect=Effect.READ, control_plane=True, example="n = pl.system.{name}()",
)  # fmt: skip
"""Declares an op that tells how many of something the target has."""

_barrier = op(
    kinds=SYSTEM, infer=_nothing, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="pl.system.{name}()",
)  # fmt: skip
"""Declares an op that only orders what comes before and after."""


@_count
def available_cluster_count() -> Scalar:
    """Return how many core groups the target has."""
    ...


@_count
def available_aiv_count() -> Scalar:
    """Return how many vector cores the target has."""
    ...


@_count
def available_thread_count() -> Scalar:
    """Return how many threads of the host share what runs side by side, 1 on a GPU."""
    ...


@op(kinds=SYSTEM, infer=_task, evaluate=_no_task, control_plane=True, example="tid = pl.system.task_invalid()")
def task_invalid() -> Scalar:
    """Return the id of no task."""
    ...


@op(
    kinds=SYSTEM, infer=_task, evaluate=_done_task, effect=Effect.WRITE, control_plane=True,
    example="tid = pl.system.task_dummy(deps=[pl.system.task_invalid()])",
)  # fmt: skip
def task_dummy(deps: Extents) -> Scalar:
    """Return the id of a task that does nothing, after the tasks in `deps`."""
    ...


@called("triton")
@op(
    kinds=SYSTEM, infer=_asserted, evaluate=_assert, effect=Effect.WRITE, control_plane=True,
    example='first = pl.read(x, [0, 0])\npl.system.device_assert(first < 1000.0, message="x starts too high")',
)  # fmt: skip
def device_assert(condition: Condition, message: str = "an assertion does not hold") -> None:
    """Stop the program with an error where `condition` does not hold; costs nothing with TILEWRIGHT_CHECKED=0."""
    ...


@_barrier
def bar_v() -> None:
    """Wait for the vector pipe; order is kept anyway."""
    ...


@_barrier
def bar_m() -> None:
    """Wait for the matrix pipe; order is kept anyway."""
    ...


@called(triton="debug_barrier", numba="cuda.syncthreads")
@_barrier
def bar_all() -> None:
    """Wait for every pipe; order is kept anyway."""
    ...


@_barrier
def fence() -> None:
    """Make earlier writes visible; order is kept anyway."""
    ...
