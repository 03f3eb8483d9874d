"""`pld.system`: ranks and signals."""

from tilewright.ops.ranks import get_comm_ctx as get_comm_ctx
from tilewright.ops.ranks import nranks as nranks
from tilewright.ops.ranks import rank as rank
from tilewright.ops.signals import defer_wait as defer_wait
from tilewright.ops.signals import notify as notify
from tilewright.ops.signals import wait as wait
from tilewright.ops.window_buffers import world_size as world_size
