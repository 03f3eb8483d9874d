"""`pl.system`: tasks, cores and synchronization."""

from tilewright.ops.pipes import AUTO as AUTO
from tilewright.ops.pipes import aic_initialize_pipe as aic_initialize_pipe
from tilewright.ops.pipes import aiv_initialize_pipe as aiv_initialize_pipe
from tilewright.ops.pipes import import_peer_buffer as import_peer_buffer
from tilewright.ops.pipes import reserve_buffer as reserve_buffer
from tilewright.ops.pipes import tfree_to_aic as tfree_to_aic
from tilewright.ops.pipes import tfree_to_aiv as tfree_to_aiv
from tilewright.ops.pipes import tpop_from_aic as tpop_from_aic
from tilewright.ops.pipes import tpop_from_aiv as tpop_from_aiv
from tilewright.ops.pipes import tpush_to_aic as tpush_to_aic
from tilewright.ops.pipes import tpush_to_aiv as tpush_to_aiv
from tilewright.ops.system import available_aiv_count as available_aiv_count
from tilewright.ops.system import available_cluster_count as available_cluster_count
from tilewright.ops.system import bar_all as bar_all
from tilewright.ops.system import bar_m as bar_m
from tilewright.ops.system import bar_v as bar_v
from tilewright.ops.system import device_assert as device_assert
from tilewright.ops.system import fence as fence
from tilewright.ops.system import task_dummy as task_dummy
from tilewright.ops.system import task_invalid as task_invalid
