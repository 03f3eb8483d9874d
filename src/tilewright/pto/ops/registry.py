"""The registry of PTO's ops, with every declaration made: where an op is looked up by name."""

from tilewright.pto.op import OPS as OPS
from tilewright.pto.ops import arithmetic as arithmetic
from tilewright.pto.ops import arrays as arrays
from tilewright.pto.ops import buffers as buffers
from tilewright.pto.ops import carries as carries
from tilewright.pto.ops import control as control
from tilewright.pto.ops import conversions as conversions
from tilewright.pto.ops import copies as copies
from tilewright.pto.ops import counting as counting
from tilewright.pto.ops import elementwise as elementwise
from tilewright.pto.ops import gathers as gathers
from tilewright.pto.ops import masks as masks
from tilewright.pto.ops import moves as moves
from tilewright.pto.ops import order as order
from tilewright.pto.ops import pointers as pointers
from tilewright.pto.ops import products as products
from tilewright.pto.ops import reductions as reductions
from tilewright.pto.ops import selections as selections
from tilewright.pto.ops import shuffles as shuffles
from tilewright.pto.ops import sorts as sorts
from tilewright.pto.ops import transfers as transfers
from tilewright.pto.ops import vector_memory as vector_memory
from tilewright.pto.ops import views as views
