"""Printing: tiles, windows and numbers shown while a kernel runs, and its end.

Tiles are shown as `pl.print` shows them, and a number as its format says.
"""

from __future__ import annotations

import re

from tilewright.core.expr import Expr
from tilewright.dtypes import BOOL, FP64
from tilewright.ops.builder import element_of
from tilewright.ops.number_forms import FLOAT, SIGNED, UNSIGNED, number_form
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, read_all
from tilewright.pto.machine.values import Tile, View
from tilewright.pto.memrefs import is_region
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.operand_laws import printed
from tilewright.pto.text.attributes import unquoted
from tilewright.pto.text.form import Form, free
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import SCALARS

_CONVERSION = re.compile(r"((?:[^%]|%%)*)%([-+ #0]*\d*(?:\.\d*)?)(?:hh|h|ll|l|z)?([a-zA-Z])(.*)", re.DOTALL)
"""What a number stands for in a format, with the words around it; `%%` is a percent sign."""


def _format_of(op: Op) -> str:
    """Return the format of a print."""
    written = op.attributes.get("written")
    words = written if isinstance(written, tuple) else ()
    return unquoted(next((word for word in words if isinstance(word, str) and word.startswith('"')), '""'))


def _convertible(op: Op, _: Constants) -> None:
    """Refuse a format that has no conversion of numbers, or more than one of them."""
    found = _CONVERSION.fullmatch(_format_of(op))
    if found is None:
        return
    letters = SIGNED + UNSIGNED + FLOAT
    if found[3] not in letters or number_form(f"%{found[2]}g", FP64) is None:
        message = f"`{op.name}` shows no number as %{found[2]}{found[3]}"
        raise PtoAttributeError(message, help=f"a conversion ends with one of {' '.join(letters)}")
    if _CONVERSION.fullmatch(found[4]) is not None:
        raise PtoAttributeError(f"`{op.name}` shows one number", help="print the others by themselves")


def _taken(m: Machine, letter: str, number: Expr) -> tuple[str, Expr]:
    """Return a conversion and a number that it is of: an integer with its sign or without, a float as it is."""
    dtype = element_of(number)
    if dtype.is_float():
        return letter if letter in FLOAT else "g", number
    if letter in FLOAT:
        return letter, m.b.cast(number, FP64)
    if dtype == BOOL:
        return "d", number
    signed, unsigned = (SCALARS[f"{sign}i{dtype.bits}"].dtype for sign in ("", "u"))
    return letter, m.b.cast(number, unsigned if letter in UNSIGNED else signed)


def _is_whole(op: Op, _: Constants) -> None:
    """Refuse what is neither a tile nor a window of memory."""
    type_ = op.operands[0].type
    if not is_region(type_):
        message = f"`{op.name}` shows a tile or a window of memory, got {brief_text(type_)}"
        raise PtoTypeMismatchError(message, help="show numbers with `pto.print`")


@declare(
    "pto.tprint",
    free("x", words="ins", phrase="ins(%src : #)"),
    rule=_is_whole,
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
    rule=_convertible,
    example='(%n: f32); {op} ins("n is %+.3f", %n : f32)',
    means="pass",
)
def _print_number(m: Machine, op: Op, number: Expr) -> None:
    """A number between the words of a format, as C's `printf` shows it, or the words alone, where it has no place."""
    found = _CONVERSION.fullmatch(_format_of(op))
    if found is None:
        m.b.act("system.print_value", text=_format_of(op).replace("%%", "%"), end="")
        return
    before, flags, letter, after = found.groups()
    letter, number = _taken(m, letter, number)
    before, after = (words.replace("%%", "%") for words in (before, after))
    m.b.act("system.print_value", text=before, value=number, end=after, form=f"%{flags}{letter}")


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
    nobody = m.b.scalar("lt", m.b.do("tile.get_block_num"), m.b.index(0))  # which no pass knows, wherever it stands
    m.b.act("system.device_assert", condition=nobody, message="pto.trap was reached")
