"""Generators: triangles, histograms, random numbers, and rows joined by index.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, unmeant
from tilewright.pto.ops.pipes import number_of
from tilewright.pto.text.form import free

_FAMILY = "generators"
_WORDS = "ins outs"


def _rounds(op: Op, _: Constants) -> None:
    rounds = number_of(op, "rounds")
    if rounds not in (None, 7, 10):
        raise PtoAttributeError(f"`{op.name}` of {rounds} rounds", help="rounds is 7 or 10")


unmeant("pto.ttri", free("iz", words=_WORDS), _FAMILY)
unmeant("pto.thistogram", free("zzz", words=_WORDS), _FAMILY)
unmeant("pto.trandom", free("iiiiiiz", words=_WORDS), _FAMILY, _rounds)
unmeant("pto.tconcatidx", free("zzzzz", words=_WORDS), _FAMILY)
