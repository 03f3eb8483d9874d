"""Every op of the language, one noun a file. A declaration is all there is to an op."""

from tilewright.ops import array as array
from tilewright.ops import broadcast as broadcast
from tilewright.ops import bytes as bytes
from tilewright.ops import compare as compare
from tilewright.ops import convert as convert
from tilewright.ops import elementwise as elementwise
from tilewright.ops import load as load
from tilewright.ops import matmul as matmul
from tilewright.ops import memory as memory
from tilewright.ops import partial as partial
from tilewright.ops import reduce as reduce
from tilewright.ops import scalar as scalar
from tilewright.ops import shape as shape
from tilewright.ops import system as system
