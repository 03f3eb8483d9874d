"""Core-to-core pipes: queues between the cube function and the vector functions of a kernel.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, number_of, unmeant
from tilewright.pto.text.form import free

_FAMILY = "core-to-core pipes"
_RANGES = {
    "id": (0, 1 << 31),
    "split": (0, 2),
    "dir_mask": (1, 3),
    "slot_size": (1, 1 << 31),
    "slot_num": (4, 8),
    "local_slot_num": (1, 8),
    "size": (1, 1 << 31),
}
"""The least and the most that each attribute may be."""


def _in_range(op: Op, _: Constants) -> None:
    """Refuse a number that no pipe has."""
    both = number_of(op, "dir_mask") == 3
    for name, (least, most) in _RANGES.items():
        value, limit = number_of(op, name), most // 2 if both and name == "local_slot_num" else most
        if value is not None and not least <= value <= limit:
            message = f"`{name}` of `{op.name}` is {value}"
            allowed = f"it is {least} to {limit}" if limit < 1 << 31 else f"it is {least} or more"
            raise PtoAttributeError(message, help=allowed)


unmeant("pto.reserve_buffer import_reserved_buffer", free("", "i"), _FAMILY, _in_range)
unmeant("pto.aic_initialize_pipe aiv_initialize_pipe", free("x*"), _FAMILY, _in_range)
unmeant("pto.talloc_to_aiv talloc_to_aic", free("", "y"), _FAMILY, _in_range)
unmeant("pto.tpush_to_aiv tpush_to_aic", free("x"), _FAMILY, _in_range)
unmeant("pto.tpop_from_aic tpop_from_aiv", free("i*", "x"), _FAMILY, _in_range)
unmeant("pto.tfree_from_aic tfree_from_aiv", free("x?"), _FAMILY, _in_range)
unmeant("pto.initialize_l2g2l_pipe initialize_l2l_pipe", free("xx*", "o"), _FAMILY, _in_range)
unmeant("pto.declare_tile", free("", "z"), _FAMILY)
unmeant("pto.declare_global", free("", "y"), _FAMILY)
unmeant("pto.talloc tpush tpop tfree", free("xx?"), _FAMILY, _in_range)
