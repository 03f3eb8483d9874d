"""Ranks: who is running, among how many, and the parts of a window that the others hold."""

from tilewright.arrays import np
from tilewright.core.annotations import Index, Scalar, Tensor
from tilewright.core.expr import Const, Expr
from tilewright.core.op import Effect, Kind
from tilewright.core.region import Region
from tilewright.core.types import ScalarType, TensorType
from tilewright.core.world import Membership, elements_of, world
from tilewright.dtypes import INT32
from tilewright.errors import ExecutionError, OperandError, OutOfBoundsError
from tilewright.ops.declare import ANY, op
from tilewright.ops.derived import Writing, written
from tilewright.ops.families import shaped

DISTRIBUTED = (Kind.DISTRIBUTED,)
FAMILY = "distributed"


def window_type(value: Expr, blame: str) -> TensorType:
    """Return the type of a window; OperandError for any other tensor."""
    type_ = shaped(value)
    if not isinstance(type_, TensorType) or not type_.is_window:
        message = f"`{blame}` must be a DistributedTensor (window-bound), got {type_}"
        help = "annotate the parameter pld.DistributedTensor[[...], dtype], and pass it a window from the host function"
        raise OperandError(message, blame=[blame], help=help)
    return type_


def check_peer(peer: Expr) -> None:
    """Raise for a peer that is no rank of any domain."""
    if not isinstance(peer.type, ScalarType) or not peer.type.dtype.is_int():
        raise OperandError(f"`peer` is the rank of a domain, an integer, got {peer.type}", blame=["peer"])
    if isinstance(peer, Const) and peer.value < 0:
        raise OutOfBoundsError(f"`peer` is {peer.value}, and ranks count from 0", blame=["peer"])


def part_at(window: Region, peer: int) -> Region:
    """Return the part of a window that a rank of its domain holds."""
    elements = elements_of(_member(window, peer).parts[peer], window.data.shape, window.data.dtype)
    return Region(elements, window.valid)


def _member(window: Region, peer: int) -> Membership:
    found = world().membership(window.data)
    if not 0 <= peer < len(found.parts):
        raise ExecutionError(f"peer {peer} is no rank of the domain, which has {len(found.parts)}")
    return found


def _rank_type(ctx: Expr) -> ScalarType:
    window_type(ctx, "ctx")
    return ScalarType(INT32)


def _rank(result: ScalarType, ctx: Region) -> int:
    return world().membership(ctx.data).rank


def _nranks(result: ScalarType, ctx: Region) -> int:
    return len(world().membership(ctx.data).parts)


def _copies(result: ScalarType, ctx: Region) -> int:
    """Return how many ranks there are: for the meaning, each has memory of its own."""
    return _nranks(result, ctx)


def _part_type(target: Expr, peer: Expr) -> TensorType:
    type_ = window_type(target, "target")
    check_peer(peer)
    return TensorType(type_.shape, type_.dtype, type_.valid, type_.layout)


def _part(result: TensorType, target: Region, peer: int) -> Region:
    return part_at(target, int(np.int64(peer)))


def _context(w: Writing, dt: Expr) -> Expr:
    window_type(dt, "dt")
    return dt


@op(kinds=DISTRIBUTED, infer=written, evaluate=written, family="distributed", expand=_context, accepts=ANY)
def get_comm_ctx(dt: Tensor) -> Tensor:
    """Return what tells the domain of a window: the ranks that it was dispatched to."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_rank_type, evaluate=_rank, family=FAMILY, accepts=ANY, unread=("ctx",),
    effect=Effect.READ, control_plane=True,
)  # fmt: skip
def rank(ctx: Tensor) -> Scalar:
    """Return which rank of a window's domain is running, counted from 0 in the order of devices."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_rank_type, evaluate=_nranks, family=FAMILY, accepts=ANY, unread=("ctx",),
    effect=Effect.READ, control_plane=True,
)  # fmt: skip
def nranks(ctx: Tensor) -> Scalar:
    """Return how many ranks a window's domain has."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_rank_type, evaluate=_copies, family=FAMILY, accepts=ANY, unread=("ctx",),
    effect=Effect.READ, control_plane=True,
)  # fmt: skip
def copies(ctx: Tensor) -> Scalar:
    """Return how many memories the parts of a window lie in: one for each rank, or 1 where all ranks share it."""
    ...


@op(kinds=DISTRIBUTED, infer=_part_type, evaluate=_part, family=FAMILY, accepts=ANY, alias="target", control_plane=True)
def part(target: Tensor, peer: Index) -> Tensor:
    """Return the part of a window that a peer holds, where it lies."""
    ...
