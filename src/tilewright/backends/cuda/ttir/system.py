"""System: which block is running, what is to hold, and orders that a block keeps anyway.

What a block does to memory is ordered as it is written; an order between its units is a barrier of its threads.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.values import Binding, Scalar
from tilewright.core.expr import Call
from tilewright.core.types import ScalarType
from tilewright.ops.system import INVALID_TASK


@recipe("tile.get_block_idx", "tensor.get_block_idx")
def _block_index(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return k.counted(k.block_index)


@recipe("tile.get_block_num", "tensor.get_block_num")
def _block_count(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return k.counted(k.block_count)


def _number(k: Kernel, call: Call, value: int) -> Scalar:
    assert isinstance(call.type, ScalarType)
    return k.number(value, call.type.dtype)


@recipe(
    "tile.get_subblock_idx", "tensor.get_subblock_idx", "system.task_dummy", "prefetch.make_context",
    "prefetch.async_prefetch", "prefetch.session",
)  # fmt: skip
def _zero(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _number(k, call, 0)


@recipe(
    "system.available_cluster_count", "system.available_aiv_count", "system.available_thread_count", "prefetch.wait"
)
def _one(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _number(k, call, 1)


@recipe("system.task_invalid")
def _no_task(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _number(k, call, INVALID_TASK)


@recipe("system.device_assert")
def _assert(k: Kernel, call: Call, bound: Bound) -> Binding:
    condition: Scalar = bound["condition"]
    broken = k.t.simple("arith.xori", condition.value, k.t.constant("true", "i1"))
    k.fail(broken, str(bound["message"]), call.span)
    return ()


@recipe(
    "system.sync_src", "system.sync_dst", "system.sync_set", "system.sync_wait", "system.set_ffts",
    "system.cacheinvalid",
)  # fmt: skip
def _nothing(k: Kernel, call: Call, bound: Bound) -> Binding:
    return ()


@recipe("system.bar_v", "system.bar_m", "system.bar_all", "system.fence")
def _barrier(k: Kernel, call: Call, bound: Bound) -> Binding:
    k.barrier()
    return ()


@recipe("system.syncall")
def _syncall(k: Kernel, call: Call, bound: Bound) -> Binding:
    """Write nothing where a block is alone; blocks of a grid need not run at the same time, and cannot wait."""
    if k.block_count != 1:
        help = "end the kernel here, and launch another one for what follows: it waits for the first"
        raise refused("a barrier between blocks, which a GPU runs one after the other,", call.span, help)
    k.barrier()
    return ()
