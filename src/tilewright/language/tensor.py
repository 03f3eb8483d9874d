"""`pl.tensor`: the ops on tensors, under their own namespace."""

from tilewright.frontend.directives import alloc as alloc
from tilewright.frontend.directives import dump_tag as dump_tag
from tilewright.frontend.directives import no_dep as no_dep
from tilewright.ops.axes import *
from tilewright.ops.blends import *
from tilewright.ops.broadcast import *
from tilewright.ops.bytes import as_strided as as_strided
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.elementwise import *
from tilewright.ops.fills import full as full
from tilewright.ops.functions import *
from tilewright.ops.gather import *
from tilewright.ops.generate import ci as arange
from tilewright.ops.generate import ci as ci
from tilewright.ops.generate import random as random
from tilewright.ops.lanes import *
from tilewright.ops.masks import *
from tilewright.ops.matmul import *
from tilewright.ops.memory import create_tensor as create
from tilewright.ops.memory import create_tensor as create_tensor
from tilewright.ops.memory import dim as dim
from tilewright.ops.memory import read as read
from tilewright.ops.memory import write as write
from tilewright.ops.normalize import *
from tilewright.ops.order import argsort as argsort
from tilewright.ops.order import sort as sort
from tilewright.ops.order import topk as topk
from tilewright.ops.padding import *
from tilewright.ops.partial import *
from tilewright.ops.position import *
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
from tilewright.ops.view import *

__all__ = [
    "arange", "argsort", "ci", "create", "create_tensor", "dim", "dump_tag", "full", "no_dep", "random", "read", "sort",
    "topk", "write",
]  # fmt: skip
