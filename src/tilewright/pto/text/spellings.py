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
    "the `vmi` layer": r"pto\.vmi\.[\w.]+",
    "other dialects": r"(memref|llvm|vector|tensor|affine|cf|math|linalg|emitc|builtin)\.[\w.]+"
    r"|scf\.(parallel|forall)",
}
_FAMILIES = {family: re.compile(pattern + r"\Z") for family, pattern in _DEFERRED.items()}


def missing(name: str) -> PtoUnknownOpError | PtoUnsupportedOpError:
    """Return the error that says what `name` is, given that no op is declared so."""
    for family, pattern in _FAMILIES.items():
        if pattern.match(name):
            word = name.rpartition(".")[2]
            known = [f"`{each}`" for each in (f"pto.{word}", f"pto.t{word}", f"pto.v{word}") if each in NAMES]
            help = f"PTO has {', '.join(known)}" if known else ""
            return PtoUnsupportedOpError(f"`{name}` is not supported ({family})", help=help)
    word = name.removeprefix("pto.")
    meant = next((known for known in (f"pto.{word}", f"pto.t{word}") if known in NAMES), "")
    help = f"did you mean `{meant}`?" if meant else nearest(name, NAMES)
    return PtoUnknownOpError(f"`{name}` is no op of PTO", help=help)
