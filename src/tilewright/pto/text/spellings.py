"""Spellings: how text names ops, and what names mean that are none here.

Where things are in an `Op`: positional operands in `operands`; what stands under a word in the clause of that word
(`ins`, `outs`, `addr`, `shape`, `nburst`, `iter_args`, ...); what stands in brackets after an operand in the clause
`offset` (pointers), `offsets` (tiles) or `indices` (arrays); static tokens in attributes named by the form's slots.
"""

from __future__ import annotations

import re

from tilewright.pto.errors import PtoUnknownOpError, PtoUnsupportedOpError
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.suggestions import nearest

NAMES = {**{name: name for name in OPS}, "return": "func.return", "call": "func.call", "yield": "scf.yield"}
"""The full name of every spelling."""

_DEFERRED = {
    "core-to-core pipes": r"pto\.(ai[cv]_initialize_pipe|initialize_l2\w+|reserve_buffer|import_reserved_buffer"
    r"|t(push|pop|free|alloc)(_\w+)?|declare_tile|bind_tile|tget_scale_addr)",
    "SIMT": r"pto\.(simt_\w+|get_tid_\w+|get_block_dim\w*|ld[gsk]|st[gsk]|atomic_\w+|shfl\w*|shuffle\w*|vote\w*"
    r"|redux_\w+|keep|resume)",
    "communication between devices": r"pto\.(comm\.\w+|async_\w+|\w+_async|build_async_session)",
    "cube micro-ops": r"pto\.(mte_(l0c|l1|gm_l1)\w*|mad(_\w+)?|set_fpc|set_quant\w*)",
    "block-scaled matrices": r"pto\.(tmatmul|tgemv)\.mx[\w.]*",
    "quantized tiles": r"pto\.(tquant|tdequant|tinsert_fp|textract_fp|tstore_fp|tmov\.fp)",
    "target-defined ops": r"pto\.(ttri|thistogram|trandom|tconcatidx)",
    "the `vmi` layer": r"pto\.vmi\.[\w.]+",
    "other dialects": r"(memref|llvm|vector|tensor|affine|cf|math|linalg|emitc|builtin)\.[\w.]+"
    r"|scf\.(execute_region|index_switch|parallel|forall)",
}
_FAMILIES = {family: re.compile(pattern + r"\Z") for family, pattern in _DEFERRED.items()}


def missing(name: str) -> PtoUnknownOpError | PtoUnsupportedOpError:
    """Return the error that says what `name` is, given that no op is declared so."""
    for family, pattern in _FAMILIES.items():
        if pattern.match(name):
            return PtoUnsupportedOpError(f"`{name}` is not supported ({family})")
    return PtoUnknownOpError(f"`{name}` is no op of PTO", help=nearest(name, NAMES))
