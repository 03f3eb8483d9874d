"""Collectives: what all ranks of a domain do together, as one statement of a host function.

Their meaning is over the parts of all ranks, in rank order, so that every rank ends with the same bits. In a kernel
they are written in puts and signals (`frontend/collectives.py`). Signals are zero before and after.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import Tensor
from tilewright.core.enums import ReduceOp
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.region import Array
from tilewright.core.types import VOID, TensorType, is_fully_valid
from tilewright.core.world import world
from tilewright.dtypes import BF16, FP16, FP32, INT32
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS, op
from tilewright.ops.families import shaped
from tilewright.ops.ranks import DISTRIBUTED, window_type

F = TypeVar("F", bound=Callable[..., Any])
Parts = Sequence[Mapping[str, Array]]
"""The windows of each rank, by the names of parameters."""

MODES = ("mesh", "ring")


def _whole_window(value: Expr, blame: str) -> TensorType:
    """Return the type of a window that is valid as a whole."""
    type_ = window_type(value, blame)
    if not is_fully_valid(type_):
        message = f"`{blame}` is to be valid as a whole, got {type_}"
        raise ShapeMismatchError(message, blame=[blame], help="allreduce and broadcast take windows valid in part")
    return type_


def check_signal(signal: Expr) -> None:
    """Raise unless a window of signals has a cell for each rank."""
    type_ = _whole_window(signal, "signal")
    if type_.dtype != INT32:
        raise DTypeMismatchError(f"signals are cells of an int32 window, got {type_}", blame=["signal"])
    if not 1 <= len(type_.shape) <= 2:
        raise ShapeMismatchError(f"`signal` is [world] or [world, 1], got {type_}", blame=["signal"])


def _check_reduce(op: Any, allowed: Sequence[ReduceOp]) -> None:
    if op not in allowed:
        shown = ", ".join(f"pld.ReduceOp.{each.name}" for each in allowed)
        raise AttributeValueError(f"op cannot be {op!r}", blame=["op"], help=f"one of {shown}")


def _allreduce_type(target: Expr, signal: Expr | None, op: Any, mode: str, core_num: int) -> TensorType:
    type_ = window_type(target, "target")
    if type_.dtype not in (BF16, FP16, FP32):
        raise DTypeMismatchError(f"allreduce takes bf16, fp16 and fp32, got {type_}", blame=["target"])
    if signal is not None:
        check_signal(signal)
    _check_reduce(op, list(ReduceOp))
    if mode not in MODES:
        raise AttributeValueError(f"mode cannot be {mode!r}", blame=["mode"], help="'mesh' or 'ring'")
    if type(core_num) is not int or core_num < 1 or (mode == "ring" and core_num != 1):
        message = f"core_num is a positive int, 1 in mode 'ring', got {core_num!r}"
        raise AttributeValueError(message, blame=["core_num"])
    if mode == "ring":
        _check_ring(signal)
    return type_


def _check_ring(signal: Expr | None) -> None:
    if signal is None:
        raise OperandError("allreduce in mode 'ring' needs its signal", blame=["mode"], help="allreduce(data, sig)")
    if len(window_type(signal, "signal").shape) != 2:  # noqa: PLR2004
        message = f"allreduce in mode 'ring' takes a signal of [2 * (nranks - 1), nranks], got {shaped(signal)}"
        raise ShapeMismatchError(message, blame=["signal"], help="a row for each step; one more in a host function")


def _barrier_type(signal: Expr) -> Any:
    check_signal(signal)
    return VOID


def _broadcast_type(target: Expr, signal: Expr, root: int) -> TensorType:
    check_signal(signal)
    if type(root) is not int or root < 0:
        raise AttributeValueError(f"root is a rank, an int of 0 or more, got {root!r}", blame=["root"])
    return window_type(target, "target")


def _check_rows(source: Expr, target: Expr, name: str, rows: int | None) -> None:
    """Raise unless two different buffers hold rows of one length."""
    have, into = shaped(source), _whole_window(target, "target")
    if not is_fully_valid(have):
        raise ShapeMismatchError(f"`{name}` is to be valid as a whole, got {have}", blame=[name])
    if source is target:
        message = f"`{name}` and `target` are two buffers, got one"
        raise OperandError(message, blame=["target"], help="lay out another window buffer")
    if have.dtype != into.dtype:
        raise DTypeMismatchError(f"{have} cannot go into {into}", blame=[name, "target"])
    if len(have.shape) != 2 or len(into.shape) != 2 or (rows is not None and have.shape[0] != rows):
        message = f"`{name}` and `target` hold rows, got {have} and {into}"
        raise ShapeMismatchError(message, blame=[name, "target"])
    if isinstance(have.shape[1], int) and isinstance(into.shape[1], int) and have.shape[1] != into.shape[1]:
        raise ShapeMismatchError(f"rows of {have} do not fit {into}", blame=[name, "target"])


def _allgather_type(local_data: Expr, target: Expr, signal: Expr) -> TensorType:
    check_signal(signal)
    _check_rows(local_data, target, "local_data", 1)
    return window_type(target, "target")


def _reduce_scatter_type(target: Expr, signal: Expr, op: Any) -> TensorType:
    check_signal(signal)
    _check_reduce(op, [ReduceOp.Sum])
    type_ = _whole_window(target, "target")
    if len(type_.shape) != 2:
        raise ShapeMismatchError(f"`target` has a row for each rank, got {type_}", blame=["target"])
    return type_


def _all_to_all_type(input: Expr, target: Expr, signal: Expr) -> TensorType:
    check_signal(signal)
    _check_rows(input, target, "input", None)
    return window_type(target, "target")


def _all_to_all_v_type(
    input: Expr, target: Expr, signal: Expr, send_counts: Expr, recv_counts: Expr
) -> TensorType:  # fmt: skip
    window_type(recv_counts, "recv_counts")
    for name, counts in (("send_counts", send_counts), ("recv_counts", recv_counts)):
        if shaped(counts).dtype != INT32:
            raise DTypeMismatchError(f"`{name}` holds int32, got {shaped(counts)}", blame=[name])
    return _all_to_all_type(input, target, signal)


def check_domain(windows: Mapping[str, Any], options: Mapping[str, Any], count: int) -> None:
    """Raise ExecutionError where windows have no room for so many ranks, or the root is none of them."""
    root, names = options.get("root", 0), ["signal", "recv_counts"]
    if root >= count:
        raise ExecutionError(f"root is rank {root}, and the domain has {count}")
    if "local_data" in windows or "input" in windows or set(options) == {"op"}:  # all but those that keep the shape
        names.append("target")
    for name in (name for name in names if name in windows):
        rows = windows[name].shape[0]
        if rows < count:
            message = f"`{name}` is a window of {list(windows[name].shape)}, and the domain has {count} ranks"
            raise ExecutionError(message, help=f"{_ROOM.get(name, 'a row')} for each rank: [pld.world_size(), ...]")
    if "mode" in options:
        _check_cells(windows, options, count)


def _check_cells(windows: Mapping[str, Any], options: Mapping[str, Any], count: int) -> None:
    """Raise where an all-reduce around a ring, or on several cores, has not the signals or elements for it."""
    is_ring, cores = options["mode"] == "ring", options["core_num"]
    if is_ring and (options["op"] != ReduceOp.Sum or windows["target"].dtype != FP32):
        raise ExecutionError("allreduce in mode 'ring' sums fp32", help="mode='mesh' takes every op, bf16 and fp16")
    needed = [2 * (count - 1) + 1, count] if is_ring else [count, cores]
    have = [*windows["signal"].shape, 1][:2] if "signal" in windows else needed
    if (is_ring or cores > 1) and any(held < wanted for held, wanted in zip(have, needed, strict=True)):
        why = "mode 'ring'" if is_ring else f"core_num={cores}"
        message = f"allreduce with {why} takes a signal of {needed} on {count} ranks, got {have}"
        raise ExecutionError(message, help="make the window of signals as large")


_ROOM = {"signal": "a cell", "recv_counts": "a cell"}


# what they mean, over the parts of all ranks


def reduced(elements: Sequence[Array], op: int) -> Array:
    """Return what elements of all ranks make, rounded after each of them.

    To the bit: of two zeros the largest and the smallest is the later rank's, and every NaN is the same, since which of
    several a sum keeps is the processor's choice.
    """
    combine, result = COMBINED[ReduceOp(op)], np.array(elements[0])
    with np.errstate(all="ignore"):
        for each in elements[1:]:
            result[...] = combine(np, result, each)
        if result.dtype.kind not in "iu":
            result[result != result] = np.nan  # noqa: PLR0124
    return result


def _chosen(arrays: Any, lhs: Any, rhs: Any, is_first: Any) -> Any:
    return arrays.where(is_first | (lhs != lhs), lhs, rhs)  # noqa: PLR0124


COMBINED: dict[ReduceOp, Callable[[Any, Any, Any], Any]] = {
    ReduceOp.Sum: lambda arrays, lhs, rhs: arrays.add(lhs, rhs),
    ReduceOp.Max: lambda arrays, lhs, rhs: _chosen(arrays, lhs, rhs, lhs > rhs),
    ReduceOp.Min: lambda arrays, lhs, rhs: _chosen(arrays, lhs, rhs, lhs < rhs),
    ReduceOp.Prod: lambda arrays, lhs, rhs: arrays.multiply(lhs, rhs),
}
"""What two elements make, as NumPy, or torch in its place, computes it."""


def _all_reduced(parts: Parts, op: int, **_: Any) -> None:
    result = reduced([part["target"] for part in parts], op)
    for part in parts:
        part["target"][...] = result


def _met(parts: Parts) -> None:
    """Do nothing: that all ranks have come is all there is to it."""


def _from_root(parts: Parts, root: int) -> None:
    for part in parts:
        part["target"][...] = parts[root]["target"]


def _gathered(parts: Parts) -> None:
    for part in parts:
        for rank, other in enumerate(parts):
            part["target"][rank] = other["local_data"][0]


def _scattered(parts: Parts, op: int) -> None:
    for rank, part in enumerate(parts):
        part["target"][rank] = reduced([other["target"][rank] for other in parts], op)


def _exchanged(parts: Parts) -> None:
    for rank, part in enumerate(parts):
        rows = part["target"].shape[0] // len(parts)
        for peer, other in enumerate(parts):
            part["target"][peer * rows : (peer + 1) * rows] = other["input"][rank * rows : (rank + 1) * rows]


def _counted(parts: Parts) -> None:
    _exchanged(parts)
    for rank, part in enumerate(parts):
        rows = part["target"].shape[0] // len(parts)
        for peer, other in enumerate(parts):
            np.ravel(part["recv_counts"])[peer] = min(int(np.ravel(other["send_counts"])[rank]), rows)


MEANINGS: dict[str, Callable[..., None]] = {}
"""What each does to the parts of all ranks."""


def _collective(infer: Callable[..., Any], meaning: Callable[..., None], result: str | None) -> Callable[[F], F]:
    """Declare a collective by its type rule and what it does to the parts of all ranks; it gives one of its windows."""

    def declare(function: F) -> F:
        name = function.__name__
        MEANINGS[name] = meaning

        def evaluate(type_: Any, **given: Any) -> Any:
            windows = {key: value for key, value in given.items() if hasattr(value, "buffer")}
            options = {key: value for key, value in given.items() if key not in windows and value is not None}
            world().collective(name, windows, options)
            return VOID if result is None else given[result]

        return op(
            kinds=DISTRIBUTED, infer=infer, evaluate=evaluate, family="collective", effect=Effect.WRITE, alias=result,
            writes=result, is_fence=True, control_plane=True, accepts=NUMBERS,
        )(function)  # fmt: skip

    return declare


@_collective(_allreduce_type, _all_reduced, "target")
def allreduce(
    target: Tensor, signal: Tensor | None = None, *, op: ReduceOp = ReduceOp.Sum, mode: str = "mesh", core_num: int = 1
) -> Tensor:
    """Let the window of every rank be the sum, or another reduction, of those of all of them; return it."""
    ...


@_collective(_barrier_type, _met, None)
def barrier(signal: Tensor) -> None:
    """Wait until all ranks have come here: what they wrote before is there for all of them after."""
    ...


@_collective(_broadcast_type, _from_root, "target")
def broadcast(target: Tensor, signal: Tensor, *, root: int) -> Tensor:
    """Let the window of every rank be that of one of them; return it."""
    ...


@_collective(_allgather_type, _gathered, "target")
def allgather(local_data: Tensor, target: Tensor, signal: Tensor) -> Tensor:
    """Let the window of every rank hold a row from each of them; return it."""
    ...


@_collective(_reduce_scatter_type, _scattered, "target")
def reduce_scatter(target: Tensor, signal: Tensor, *, op: ReduceOp = ReduceOp.Sum) -> Tensor:
    """Let the row of each rank that has its number be the sum of those of all ranks; return the window.

    `op` is `pld.ReduceOp.Sum`: others are for `allreduce`.
    """
    ...


@_collective(_all_to_all_type, _exchanged, "target")
def all_to_all(input: Tensor, target: Tensor, signal: Tensor) -> Tensor:
    """Let the window of every rank hold the rows that the others have for it; return it."""
    ...


@_collective(_all_to_all_v_type, _counted, "target")
def all_to_all_v(input: Tensor, target: Tensor, signal: Tensor, send_counts: Tensor, recv_counts: Tensor) -> Tensor:
    """Do what `all_to_all` does with blocks of rows, and tell how many rows of each are meant; return the window."""
    ...
