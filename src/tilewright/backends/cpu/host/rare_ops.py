"""Ops that few programs have: the modules that sign code in for them, loaded with the first of these ops."""

from tilewright.backends.cpu.compute import atomic_updates as atomic_updates
from tilewright.backends.cpu.compute import draws as draws
from tilewright.backends.cpu.compute import element_gathers as element_gathers
from tilewright.backends.cpu.compute import generators as generators
from tilewright.backends.cpu.compute import lanes as lanes
from tilewright.backends.cpu.compute import merge as merge
from tilewright.backends.cpu.compute import order as order
from tilewright.backends.cpu.compute import partial as partial
from tilewright.backends.cpu.compute import philox as philox
from tilewright.backends.cpu.compute import positions as positions
from tilewright.backends.cpu.compute import products as products
from tilewright.backends.cpu.compute import ravels as ravels
from tilewright.backends.cpu.compute import row_gathers as row_gathers
from tilewright.backends.cpu.compute import scaled as scaled
from tilewright.backends.cpu.compute import scans as scans
from tilewright.backends.cpu.compute import scatters as scatters
from tilewright.backends.cpu.compute import sort as sort
from tilewright.backends.cpu.compute import takes as takes
from tilewright.backends.cpu.host import arrays as arrays
from tilewright.backends.cpu.host import byte_views as byte_views
from tilewright.backends.cpu.host import pipes as pipes
from tilewright.backends.cpu.host import printing as printing
from tilewright.backends.cpu.host import ranks as ranks
from tilewright.backends.cpu.host import reinterpreted as reinterpreted
from tilewright.backends.cpu.host import tensor_gathers as tensor_gathers
from tilewright.backends.cpu.host import tensor_scatters as tensor_scatters
