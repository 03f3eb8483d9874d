"""Text between passes: buffers of another dialect, and tiles bound to them. It is read, and never run."""

from __future__ import annotations

from tilewright.pto.op import unmeant
from tilewright.pto.text.form import Typing, free

_FAMILY = "text between passes"
_REASON = "it stands for buffers that a compiler has laid out: run the text before its passes, with `pto.alloc_tile`"

unmeant(
    "memref.alloc reinterpret_cast subview cast",
    free("x*", "x", "to offset sizes strides", Typing.RESULT),
    _FAMILY,
    _REASON,
)
unmeant(
    "pto.bind_tile pointer_cast materialize_tile declare_tile_memref simd.tile_to_memref",
    free("x*", "x", "to", Typing.RESULT),
    _FAMILY,
    _REASON,
)
