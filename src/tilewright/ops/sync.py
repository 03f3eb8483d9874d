"""Synchronization: ops that order what comes before and after them. An executor that keeps order has nothing to do."""

from collections.abc import Sequence
from typing import Any

from tilewright.core.annotations import Extents, Index, Tensor
from tilewright.core.enums import PipeType
from tilewright.core.expr import Const, Expr
from tilewright.core.grid import BARRIER
from tilewright.core.op import Effect, Kind
from tilewright.core.types import VOID, ScalarType, TensorType
from tilewright.dtypes import INDEX, INT32, INT64
from tilewright.errors import AttributeValueError, DTypeMismatchError, OperandError, ShapeMismatchError
from tilewright.ops.declare import op
from tilewright.ops.families import shaped
from tilewright.ops.windows import check_rank

SYSTEM = (Kind.SYSTEM,)
EVENTS = 14
CORES = ("aic", "aiv")
GRIDS = ("aiv_only", "aic_only", "mix")
MODES = ("hard", "soft")


def _check_one_of(value: object, known: Sequence[object], name: str) -> None:
    if value not in known:
        shown = ", ".join(map(repr, known))
        raise AttributeValueError(f"{name} cannot be {value!r}", blame=[name], help=f"one of {shown}")


def _flag(set_pipe: PipeType, wait_pipe: PipeType, event_id: int) -> Any:
    return VOID


def _event(event_id: Expr, pipe: PipeType, ffts_mode: int | None = None, core_type: str | None = None) -> Any:
    _check_one_of(ffts_mode, (None, 0, 1, 2), "ffts_mode")
    _check_one_of(core_type, (None, *CORES), "core_type")
    if isinstance(event_id, Const):
        _check_one_of(event_id.value, range(EVENTS), "event_id")
    elif event_id.type != ScalarType(INDEX):
        raise OperandError(f"event_id must be an index, got {event_id.type}", blame=["event_id"])
    return VOID


def _ffts(workspace: Expr) -> Any:
    type_ = shaped(workspace)
    if type_.dtype != INT64:
        raise DTypeMismatchError(f"a workspace of events holds int64, got {type_}", blame=["workspace"])
    if len(type_.shape) != 1 or not isinstance(type_.shape[0], int) or type_.shape[0] < 256:
        message = f"a workspace of events has one axis of 256 elements or more, got {type_}"
        raise ShapeMismatchError(message, blame=["workspace"])
    return VOID


def _syncall(core_type: str, mode: str, gm_workspace: Expr | None, used_cores: Expr | None) -> Any:
    _check_one_of(core_type, GRIDS, "core_type")
    _check_one_of(mode, MODES, "mode")
    given = {"gm_workspace": gm_workspace, "used_cores": used_cores}
    wrong = [name for name, value in given.items() if (value is None) is (mode == "soft")]
    if wrong:
        verb = "needs" if mode == "soft" else "takes no"
        help = 'pl.system.syncall(mode="soft", gm_workspace=w, used_cores=n)'
        raise AttributeValueError(f"syncall(mode={mode!r}) {verb} {wrong[0]}", blame=wrong, help=help)
    if gm_workspace is not None and shaped(gm_workspace).dtype != INT32:
        raise DTypeMismatchError(f"gm_workspace holds int32, got {shaped(gm_workspace)}", blame=["gm_workspace"])
    if isinstance(used_cores, Const) and not 0 <= used_cores.value < 1 << 31:
        raise AttributeValueError(f"used_cores cannot be {used_cores.value}", blame=["used_cores"])
    if used_cores is not None and not isinstance(used_cores, Const) and used_cores.type != ScalarType(INT32):
        raise OperandError(f"used_cores must be an int32, got {used_cores.type}", blame=["used_cores"])
    return VOID


def _cacheinvalid(tensor: Expr | None, shapes: tuple[Expr, ...] | None, offsets: tuple[Expr, ...] | None) -> Any:
    given = [value is not None for value in (tensor, shapes, offsets)]
    if any(given) and not all(given):
        raise OperandError("cacheinvalid takes a tensor with shapes and offsets, or nothing", blame=["tensor"])
    if tensor is not None and shapes is not None and offsets is not None:
        assert isinstance(tensor.type, TensorType)
        check_rank(shapes, len(tensor.type.shape), "shapes", "tensor")
        check_rank(offsets, len(tensor.type.shape), "offsets", "tensor")
    return VOID


def _arrive(result: Any, **_: Any) -> Any:
    """Let the other blocks of the launch come as far."""
    BARRIER.get()()
    return VOID


def _nothing(result: Any, **_: Any) -> Any:
    return VOID


@op(
    kinds=SYSTEM, infer=_flag, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="pl.system.sync_src(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=0)",
)  # fmt: skip
def sync_src(set_pipe: PipeType, wait_pipe: PipeType, event_id: int) -> None:
    """Set a flag between two pipes; order is kept anyway."""
    ...


@op(
    kinds=SYSTEM, infer=_flag, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="pl.system.sync_dst(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=0)",
)  # fmt: skip
def sync_dst(set_pipe: PipeType, wait_pipe: PipeType, event_id: int) -> None:
    """Wait for a flag between two pipes; order is kept anyway."""
    ...


@op(
    kinds=SYSTEM, infer=_event, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="pl.system.sync_set(3, pipe=pl.PipeType.MTE3, ffts_mode=2)",
)  # fmt: skip
def sync_set(event_id: Index, pipe: PipeType, ffts_mode: int | None = None, core_type: str | None = None) -> None:
    """Set an event that other cores wait for; order is kept anyway."""
    ...


@op(
    kinds=SYSTEM, infer=_event, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example='pl.system.sync_wait(3, pipe=pl.PipeType.MTE2, core_type="aic")',
)  # fmt: skip
def sync_wait(event_id: Index, pipe: PipeType, core_type: str | None = None) -> None:
    """Wait for an event that other cores set; order is kept anyway."""
    ...


@op(
    kinds=SYSTEM, infer=_ffts, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="events = pl.create_tensor([256], dtype=pl.INT64)\npl.system.set_ffts(events)",
)  # fmt: skip
def set_ffts(workspace: Tensor) -> None:
    """Name the memory of events between cores; nothing is written there."""
    ...


@op(
    kinds=SYSTEM, infer=_syncall, evaluate=_arrive, effect=Effect.WRITE, control_plane=True, is_barrier=True,
    example="pl.system.syncall()",
)  # fmt: skip
def syncall(
    core_type: str = "mix", mode: str = "hard", gm_workspace: Tensor | None = None, used_cores: Index | None = None
) -> None:
    """Wait until every block of the launch has come here: what they wrote before is there for all of them after."""
    ...


@op(
    kinds=SYSTEM, infer=_cacheinvalid, evaluate=_nothing, effect=Effect.WRITE, control_plane=True,
    example="pl.system.cacheinvalid(x, [8, 8], [0, 0])",
)  # fmt: skip
def cacheinvalid(tensor: Tensor | None = None, shapes: Extents | None = None, offsets: Extents | None = None) -> None:
    """Drop what a cache holds of a tensor, or all of it; memory is what it is anyway."""
    ...
