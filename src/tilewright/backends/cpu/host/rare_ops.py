"""Ops that few programs have: the modules that sign code in for them, loaded as far as the first that has an op's."""

from __future__ import annotations

_MODULES = """
    compute.reduce compute.compare compute.products compute.views compute.transposes host.tensor_views compute.assemble
    compute.joins compute.selections compute.positions compute.scans compute.element_gathers compute.row_gathers
    compute.scatters compute.takes compute.ravels compute.order compute.sort compute.merge compute.draws
    compute.generators compute.philox compute.atomic_updates compute.partial compute.scaled compute.lanes
    compute.elements host.tensor_gathers host.tensor_scatters host.reinterpreted host.byte_views host.arrays host.pipes
    host.system host.printing host.ranks host.distant
"""

RARE = tuple(f"tilewright.backends.cpu.{name}" for name in _MODULES.split())
"""Those that more programs have come first."""
