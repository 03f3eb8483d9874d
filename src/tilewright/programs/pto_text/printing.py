"""Printing: texts and values, as PTO shows them and `pl.print` does."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, INT32
from tilewright.programs.pto_text.values import Number, Tensor, Tile, element
from tilewright.programs.pto_text.words import Given, in_vec, refuse, writes
from tilewright.programs.pto_text.writer import Writer


@writes("system.print_value")
def _print(w: Writer, call: Call, given: Given) -> None:
    text: str = given["text"]
    value: Number | Tile | Tensor | None = given["value"]
    end: str = given["end"]
    if isinstance(value, Number):
        _number(w, _escaped(text), value, _escaped(end))
        return
    if value is None:
        _say(w, _escaped(text + end), w.constant(0, INT32))
        return
    refuse(call, end != "\n", "that ends other than with a line", "print the tile by itself")
    if text:
        _say(w, _escaped(text), w.constant(0, INT32))
    if isinstance(value, Tensor):
        name, kind = w.window(value, value.offsets, value.shape)
    else:
        type_ = call.args[0].type
        refuse(call, isinstance(type_, TileType) and len(type_.shape) != 2, "of a tile that is no matrix")
        tile = in_vec(w, value)
        name, kind = tile.name, tile.type
    w.line(f"pto.tprint ins({name} : {kind})")


def _number(w: Writer, before: str, value: Number, after: str) -> None:
    """Write a number as `pl.print` shows it: six digits of floats, and conditions by name."""
    if value.dtype == BOOL:
        with w.branch(f"scf.if {value.name}") as otherwise:
            _say(w, f"{before}True{after}", w.constant(0, INT32))
            otherwise()
            _say(w, f"{before}False{after}", w.constant(0, INT32))
        return
    letter = "g" if value.dtype.is_float() else "u" if value.dtype.is_unsigned_int() else "d"
    _say(w, f"{before}%{letter}{after}", value)


def _say(w: Writer, words: str, value: Number) -> None:
    w.line(f'pto.print ins("{words}", {value.name} : {element(value.dtype)})')


def _escaped(text: str) -> str:
    """Return a text as it stands in a format, between quotes."""
    plain = text.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    return "".join(each if each.isprintable() else f"\\{ord(each):02X}" for each in plain)
