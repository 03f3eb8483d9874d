"""Ops that few programs have: the modules that sign code in for them, loaded with the first of these ops."""

from tilewright.backends.cpu.compute import (
    atomic_updates,
    draws,
    element_gathers,
    generators,
    lanes,
    merge,
    order,
    partial,
    philox,
    positions,
    products,
    ravels,
    row_gathers,
    scaled,
    scans,
    scatters,
    sort,
    takes,
)
from tilewright.backends.cpu.host import (
    arrays,
    byte_views,
    pipes,
    printing,
    reinterpreted,
    tensor_gathers,
    tensor_scatters,
)

RARE = (
    arrays, atomic_updates, byte_views, draws, element_gathers, generators, lanes, merge, order, partial, philox,
    pipes, positions, printing, products, ravels, reinterpreted, row_gathers, scaled, scans, scatters, sort, takes,
    tensor_gathers, tensor_scatters,
)  # fmt: skip
"""The modules that sign code in."""
