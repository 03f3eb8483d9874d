"""The registry of ops, with every declaration made: where an op is looked up by name."""

from tilewright.core.op import OPS as OPS
from tilewright.core.op import get_op as get_op
from tilewright.core.op import specs as specs
from tilewright.ops import array as array
from tilewright.ops import broadcast as broadcast
from tilewright.ops import bytes as bytes
from tilewright.ops import compare as compare
from tilewright.ops import convert as convert
from tilewright.ops import elementwise as elementwise
from tilewright.ops import generate as generate
from tilewright.ops import load as load
from tilewright.ops import matmul as matmul
from tilewright.ops import memory as memory
from tilewright.ops import partial as partial
from tilewright.ops import position as position
from tilewright.ops import reduce as reduce
from tilewright.ops import scalar as scalar
from tilewright.ops import shape as shape
from tilewright.ops import sort as sort
from tilewright.ops import system as system
