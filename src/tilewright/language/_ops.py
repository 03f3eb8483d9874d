"""The names of `pl` that are ops: loaded with the first of them that anybody asks for."""

from tilewright.ops.atomics import *
from tilewright.ops.axes import *
from tilewright.ops.blends import *
from tilewright.ops.block_gather import *
from tilewright.ops.broadcast import *
from tilewright.ops.bytes import *
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.counting import arange as arange
from tilewright.ops.counting import iota as iota
from tilewright.ops.draw import *
from tilewright.ops.elementwise import *
from tilewright.ops.fills import *
from tilewright.ops.flips import *
from tilewright.ops.functions import *
from tilewright.ops.gather import *
from tilewright.ops.generate import random as random
from tilewright.ops.generate import tri as tri
from tilewright.ops.indexed import *
from tilewright.ops.lanes import *
from tilewright.ops.load import *
from tilewright.ops.masks import *
from tilewright.ops.matmul import *
from tilewright.ops.memory import *
from tilewright.ops.memory_gather import *
from tilewright.ops.memory_scatter import *
from tilewright.ops.mx import *
from tilewright.ops.normalize import *
from tilewright.ops.order import *
from tilewright.ops.padding import *
from tilewright.ops.partial import *
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
from tilewright.ops.position import *
from tilewright.ops.ravel import *
from tilewright.ops.reduce import *
from tilewright.ops.reinterpret import *
from tilewright.ops.reshape import *
from tilewright.ops.row_gather import *
from tilewright.ops.scan import *
from tilewright.ops.scatter import *
from tilewright.ops.scatter_update import *
from tilewright.ops.shape import *
from tilewright.ops.sort import *
from tilewright.ops.strided import *
from tilewright.ops.system import *
from tilewright.ops.system import device_assert as device_assert
from tilewright.ops.tile_gather import pick as pick

from tilewright.language.extremes import max as max, min as min  # isort: skip
