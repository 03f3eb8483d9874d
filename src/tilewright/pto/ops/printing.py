"""Printing: tiles and numbers shown while a kernel runs, and its end. Nothing here runs them yet."""

from __future__ import annotations

from tilewright.pto.op import unmeant
from tilewright.pto.text.form import free

_FAMILY = "printing"

unmeant("pto.tprint", free("x", words="ins"), _FAMILY)
unmeant("pto.print", free("s", words="ins"), _FAMILY)
unmeant("pto.trap", free(""), _FAMILY)
unmeant("pto.bitcast", free("z", "z"), "tiles at other addresses")
unmeant("pto.tassign", free("zi", "z"), "tiles at other addresses")
