"""`pl.tile`: the ops on tiles, under their own namespace."""

from tilewright.core.enums import MaskPattern as MaskPattern
from tilewright.frontend.directives import alloc as alloc
from tilewright.ops.atomics import *
from tilewright.ops.axes import *
from tilewright.ops.blends import *
from tilewright.ops.block_gather import *
from tilewright.ops.broadcast import *
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.counting import iota as iota
from tilewright.ops.counting import tile_arange as arange
from tilewright.ops.draw import *
from tilewright.ops.elementwise import *
from tilewright.ops.fills import ones as ones
from tilewright.ops.fills import tile_full as full
from tilewright.ops.fills import zeros as zeros
from tilewright.ops.flips import *
from tilewright.ops.functions import *
from tilewright.ops.generate import tile_ci as ci
from tilewright.ops.generate import tile_random as random
from tilewright.ops.generate import tri as tri
from tilewright.ops.indexed import *
from tilewright.ops.lanes import *
from tilewright.ops.load import load as load
from tilewright.ops.masks import *
from tilewright.ops.matmul import *
from tilewright.ops.memory import create_tile as create
from tilewright.ops.memory import create_tile as create_tile
from tilewright.ops.memory import move as move
from tilewright.ops.memory import read as read
from tilewright.ops.memory import store as store
from tilewright.ops.memory import write as write
from tilewright.ops.memory_gather import *
from tilewright.ops.memory_scatter import *
from tilewright.ops.mx import *
from tilewright.ops.normalize import *
from tilewright.ops.order import *
from tilewright.ops.padding import *
from tilewright.ops.partial import *
from tilewright.ops.pipes import tpop_from_aic as tpop_from_aic
from tilewright.ops.pipes import tpop_from_aiv as tpop_from_aiv
from tilewright.ops.pipes import tpush_to_aic as tpush_to_aic
from tilewright.ops.pipes import tpush_to_aiv as tpush_to_aiv
from tilewright.ops.position import *
from tilewright.ops.ravel import *
from tilewright.ops.reduce import *
from tilewright.ops.reinterpret import *
from tilewright.ops.reshape import *
from tilewright.ops.row_gather import gather_row as gather_row
from tilewright.ops.scan import *
from tilewright.ops.scatter_update import *
from tilewright.ops.shape import *
from tilewright.ops.sort import *
from tilewright.ops.strided import *
from tilewright.ops.system import *
from tilewright.ops.tile_gather import *
from tilewright.ops.tile_scatter import *

__all__ = [
    "MaskPattern", "arange", "ci", "create", "create_tile", "full", "gather_row", "iota", "load", "move",
    "random", "read", "store", "tri", "write",
]  # fmt: skip
