"""`pl.system`: tasks, cores and synchronization."""

from tilewright.ops.system import available_aiv_count as available_aiv_count
from tilewright.ops.system import available_cluster_count as available_cluster_count
from tilewright.ops.system import bar_all as bar_all
from tilewright.ops.system import bar_m as bar_m
from tilewright.ops.system import bar_v as bar_v
from tilewright.ops.system import device_assert as device_assert
from tilewright.ops.system import fence as fence
from tilewright.ops.system import task_dummy as task_dummy
from tilewright.ops.system import task_invalid as task_invalid
