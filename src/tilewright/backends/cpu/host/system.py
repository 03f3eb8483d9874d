"""System: which block is running, and what an ordered executor has no need of."""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar
from tilewright.backends.cpu.host.parallel import threads
from tilewright.core.expr import Call
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, INDEX, TASK_ID
from tilewright.native.llvm import TRUE, i64
from tilewright.native.rounds import NEEDED, ROUNDS
from tilewright.ops.system import INVALID_TASK


@lowers("tile.get_block_idx", "tensor.get_block_idx")
def _block_index(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.block_index, INDEX)


@lowers("tile.get_block_num", "tensor.get_block_num")
def _block_count(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.block_count, INDEX)


@lowers("system.task_dummy", "prefetch.make_context", "prefetch.async_prefetch", "prefetch.session")
def _zero(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    assert isinstance(call.type, ScalarType)
    return Scalar(i64(0), call.type.dtype)


@lowers("system.task_invalid")
def _no_task(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(i64(INVALID_TASK), TASK_ID)


@lowers("system.available_cluster_count", "system.available_aiv_count")
def _one(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(i64(1), INDEX)


@lowers("system.available_thread_count")
def _threads(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.b.intrinsic("llvm.umax", threads(e), i64(1)), INDEX)


@lowers("system.device_assert")
def _assert(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Note what does not hold, after which nothing else is done."""
    if e.checked:
        broken = e.negated(bound["condition"].value)
        e.fail(broken, bound["message"], call)
        with e.b.when(broken):
            e.leave(e.exit)
    return ()


@lowers("prefetch.wait")
def _true(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(TRUE, BOOL)


@lowers(
    "system.bar_v", "system.bar_m", "system.bar_all", "system.fence", "system.sync_src", "system.sync_dst",
    "system.sync_set", "system.sync_wait", "system.set_ffts", "system.cacheinvalid",
)  # fmt: skip
def _nothing(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return ()


@lowers("system.syncall")
def _syncall(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Let the other blocks of a launch come as far; a block that is alone waits for nobody."""
    e.flush()
    if e.in_rounds:
        for text in (*NEEDED, ROUNDS):
            e.b.module.declare(text)
        e.b.invoke("pause", e.context)
        e.leave_after_an_error()
    return ()
