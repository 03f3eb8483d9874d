"""`pld`: programs of many ranks, as `import tilewright.language.distributed as pld`."""

import typing as _typing

from tilewright.core.annotations import DistributedTensor as DistributedTensor
from tilewright.core.enums import AtomicType as AtomicType
from tilewright.core.enums import NotifyOp as NotifyOp
from tilewright.core.enums import ReduceOp as ReduceOp
from tilewright.core.enums import WaitCmp as WaitCmp
from tilewright.language.distributed import system as system
from tilewright.language.distributed import tensor as tensor
from tilewright.language.distributed import tile as tile
from tilewright.ops.cells import holds as holds
from tilewright.ops.cells import post as post
from tilewright.ops.cells import until as until
from tilewright.ops.collectives import all_to_all as all_to_all
from tilewright.ops.collectives import all_to_all_v as all_to_all_v
from tilewright.ops.collectives import allgather as allgather
from tilewright.ops.collectives import allreduce as allreduce
from tilewright.ops.collectives import barrier as barrier
from tilewright.ops.collectives import broadcast as broadcast
from tilewright.ops.collectives import reduce_scatter as reduce_scatter
from tilewright.ops.distant import fetch as fetch
from tilewright.ops.distant import send as send
from tilewright.ops.ranks import copies as copies
from tilewright.ops.ranks import get_comm_ctx as get_comm_ctx
from tilewright.ops.ranks import nranks as nranks
from tilewright.ops.ranks import part as part
from tilewright.ops.ranks import rank as rank
from tilewright.ops.signals import defer_wait as defer_wait
from tilewright.ops.signals import notify as notify
from tilewright.ops.signals import wait as wait
from tilewright.ops.transfers import get as get
from tilewright.ops.transfers import put as put
from tilewright.ops.transfers import remote_load as remote_load
from tilewright.ops.transfers import remote_store as remote_store
from tilewright.ops.window_buffers import alloc_window_buffer as alloc_window_buffer
from tilewright.ops.window_buffers import window as window
from tilewright.ops.window_buffers import world_size as world_size

CommCtx: _typing.TypeAlias = DistributedTensor
CommCtxType = CommCtx
