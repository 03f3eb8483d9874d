"""`pld.tile`: transfers of tiles."""

from tilewright.ops.transfers import remote_load as remote_load
from tilewright.ops.transfers import remote_store as remote_store
