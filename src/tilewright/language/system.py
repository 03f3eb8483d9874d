"""`pl.system`: tasks, cores and synchronization."""

from tilewright.ops.sync import cacheinvalid as cacheinvalid
from tilewright.ops.sync import set_ffts as set_ffts
from tilewright.ops.sync import sync_dst as sync_dst
from tilewright.ops.sync import sync_set as sync_set
from tilewright.ops.sync import sync_src as sync_src
from tilewright.ops.sync import sync_wait as sync_wait
from tilewright.ops.sync import syncall as syncall
from tilewright.ops.system import available_aiv_count as available_aiv_count
from tilewright.ops.system import available_cluster_count as available_cluster_count
from tilewright.ops.system import bar_all as bar_all
from tilewright.ops.system import bar_m as bar_m
from tilewright.ops.system import bar_v as bar_v
from tilewright.ops.system import device_assert as device_assert
from tilewright.ops.system import fence as fence
from tilewright.ops.system import task_dummy as task_dummy
from tilewright.ops.system import task_invalid as task_invalid
