"""`pl.tile`: the ops on tiles, under their own namespace."""

from tilewright.core.enums import MaskPattern as MaskPattern
from tilewright.ops.broadcast import *
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.elementwise import *
from tilewright.ops.functions import *
from tilewright.ops.load import load as load
from tilewright.ops.matmul import *
from tilewright.ops.memory import create_tile as create
from tilewright.ops.memory import move as move
from tilewright.ops.memory import read as read
from tilewright.ops.memory import store as store
from tilewright.ops.memory import tile_full as full
from tilewright.ops.memory import write as write
from tilewright.ops.partial import *
from tilewright.ops.reduce import *
from tilewright.ops.shape import *
from tilewright.ops.system import *

__all__ = ["MaskPattern", "create", "full", "load", "move", "read", "store", "write"]
