"""Lowering: a PTO function as a program of the tile IR, which passes, interpreter and back ends already know."""

from tilewright.pto.lower import arithmetic as arithmetic
from tilewright.pto.lower import arrays as arrays
from tilewright.pto.lower import control as control
from tilewright.pto.lower import conversions as conversions
from tilewright.pto.lower import counting as counting
from tilewright.pto.lower import dma as dma
from tilewright.pto.lower import elementwise as elementwise
from tilewright.pto.lower import gathers as gathers
from tilewright.pto.lower import moves as moves
from tilewright.pto.lower import predicates as predicates
from tilewright.pto.lower import products as products
from tilewright.pto.lower import reductions as reductions
from tilewright.pto.lower import selections as selections
from tilewright.pto.lower import shuffles as shuffles
from tilewright.pto.lower import sorts as sorts
from tilewright.pto.lower import streams as streams
from tilewright.pto.lower import vector_conversions as vector_conversions
from tilewright.pto.lower import vector_memory as vector_memory
from tilewright.pto.lower import vector_reductions as vector_reductions
from tilewright.pto.lower import vector_sorts as vector_sorts
from tilewright.pto.lower import vectors as vectors
from tilewright.pto.lower import views as views
from tilewright.pto.lower.program import lower as lower
