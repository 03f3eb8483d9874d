"""Printing: tiles, windows and numbers shown while a kernel runs, and its end.

Values are shown as `pl.print` shows them, whatever the format says beside its words.
"""

from __future__ import annotations

import re

from tilewright.core.expr import Expr
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, read_all
from tilewright.pto.machine.values import Tile, View
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.operand_laws import printed
from tilewright.pto.text.attributes import unquoted
from tilewright.pto.text.form import Form, free

_CONVERSION = re.compile(r"((?:[^%]|%%)*)%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[a-zA-Z](.*)", re.DOTALL)
"""What a number stands for in a format, with the words around it; `%%` is a percent sign."""


@declare(
    "pto.tprint",
    free("x", words="ins", phrase="ins(%src : #)"),
    law=printed,
    example="(%x: t8x64xf32); {op} ins(%x)",
    means="pass",
)
def _print_tile(m: Machine, op: Op, source: Tile | View) -> None:
    """The valid part of a tile, or a window of memory."""
    shown = (
        read_all(m, source) if isinstance(source, Tile) else bytes_view(m, source.pointer, source.shape, source.strides)
    )
    m.b.act("system.print_value", text="", value=shown)


@declare(
    "pto.print",
    free("s", words="ins", phrase='ins("$format", %value : #)'),
    example='(%n: f32); {op} ins("n is %+.3f", %n : f32)',
    means="pass",
)
def _print_number(m: Machine, op: Op, number: Expr) -> None:
    """A number between the words of a format, or the words alone, where they have no place for it."""
    written = op.attributes.get("written")
    words = written if isinstance(written, tuple) else ()
    quoted = next((word for word in words if isinstance(word, str) and word.startswith('"')), '""')
    found = _CONVERSION.fullmatch(unquoted(quoted))
    if found is None:
        m.b.act("system.print_value", text=unquoted(quoted).replace("%%", "%"), end="")
        return
    before, after = (words.replace("%%", "%") for words in found.groups())
    m.b.act("system.print_value", text=before, value=number, end=after)


@declare(
    "pto.assert",
    Form("b"),
    example='(%n: i32); %is = arith.cmpi slt, %n, %i100 : i32; {op} %is {message = "n is too large"} : i1',
    means="pass",
)
def _assert(m: Machine, op: Op, holds: Expr) -> None:
    """The end of the program where a condition does not hold, with a message."""
    message = op.attributes.get("message")
    said = unquoted(message) if isinstance(message, str) else "pto.assert does not hold"
    m.b.act("system.device_assert", condition=holds, message=said)


@declare(
    "pto.trap",
    free(""),
    example="(%n: i32); %is = arith.cmpi sgt, %n, %i100 : i32; scf.if %is {; {op}; }",
    means="pass",
)
def _trap(m: Machine, op: Op) -> None:
    """The end of the program, where it is reached: that a launch has no blocks, which is known only then."""
    nobody = m.b.scalar("lt", m.blocks.count, m.b.index(0))
    m.b.act("system.device_assert", condition=nobody, message="pto.trap was reached")
