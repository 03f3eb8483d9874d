"""`pld.tensor`: window buffers, transfers of tensors, and collectives."""

from tilewright.ops.collectives import all_to_all as all_to_all
from tilewright.ops.collectives import all_to_all_v as all_to_all_v
from tilewright.ops.collectives import allgather as allgather
from tilewright.ops.collectives import allreduce as allreduce
from tilewright.ops.collectives import barrier as barrier
from tilewright.ops.collectives import broadcast as broadcast
from tilewright.ops.collectives import reduce_scatter as reduce_scatter
from tilewright.ops.transfers import get as get
from tilewright.ops.transfers import put as put
from tilewright.ops.transfers import remote_store as remote_store
from tilewright.ops.window_buffers import alloc_window_buffer as alloc_window_buffer
from tilewright.ops.window_buffers import window as window
