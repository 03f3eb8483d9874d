"""Quantizations: the ways in which what an accumulator holds is converted as it leaves, by name and by number.

A way is for accumulators of one type and makes elements of another. Those that scale have a form with one factor
(`_scalar`) and one with a factor for each column (`_vec`). The reference page prints this table.
"""

from __future__ import annotations

from tilewright.errors import KernelError
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.module import Op
from tilewright.pto.tile_laws import plain
from tilewright.pto.types import Scalar
from tilewright.records import record

_TABLE = """
1 f32_f16 | f32 | f16
2 qf322hif8_pre | f32 | hif8
4 qf322hif8_pre_hybrid | f32 | hif8
6 deqs32_int | i32 | i32
8 req8 | i32 | i8
10 deqf16 | i32 | f16
12 qf322fp8_pre | f32 | f8E4M3FN f8E5M2
14 qf322f32_pre | f32 | f32
16 f32_bf16 | f32 | bf16
17 qf162b8_pre | f32 | i8
19 qf162s4_pre | f32 |
21 req4 | |
23 qf322b8_pre | f32 | i8
25 qf322s4_pre | f32 |
27 deqs16 | i32 | i16
29 qf162s16_pre | i32 | i16
31 qf322f16_pre | f32 | f16
33 qf322bf16_pre | f32 | bf16
35 qs322bf16_pre | i32 | bf16
"""
"""The first number of a way, that of its `_vec` form; what it takes; what it makes, integers of any sign."""


@record
class Quantization:
    """A way out of an accumulator."""

    name: str
    number: int
    source: str
    made: tuple[str, ...]
    """The elements it makes; none where no type here has them."""

    @property
    def is_plain(self) -> bool:
        """Whether it converts and does not scale."""
        return not self.is_by_column and not self.name.endswith("_scalar")

    @property
    def is_by_column(self) -> bool:
        """Whether it has a factor for each column."""
        return self.name.endswith("_vec")


def _forms() -> list[Quantization]:
    found: list[Quantization] = []
    for line in _TABLE.strip().splitlines():
        (number, name), source, made = (part.split() for part in line.split("|"))
        words = ("",) if name in ("f32_f16", "f32_bf16") else ("_vec", "_scalar")
        for further, word in enumerate(words):
            found.append(Quantization(name + word, int(number) + further, "".join(source), tuple(made)))
    return found


QUANTIZATIONS = {way.name: way for way in _forms()}
BY_NUMBER = {way.number: way for way in QUANTIZATIONS.values()}


def ways_from(accumulated: Scalar) -> list[str]:
    """Return the names of every way out of an accumulator of a type."""
    return [way.name for way in QUANTIZATIONS.values() if way.source == plain(accumulated)]


def quantization(mode: str, come: Scalar) -> Quantization:
    """Return the way of a name; PtoAttributeError where accumulators of a type have no such way."""
    if mode not in ways_from(come):
        ways = ", ".join(ways_from(come))
        raise PtoAttributeError(f"`pre_quant` of {come} has no mode {mode!r}", help=f"one of {ways}")
    return QUANTIZATIONS[mode]


def misfit(way: Quantization, op: Op, come: Scalar, go: Scalar) -> KernelError | None:
    """Return what is wrong where a way does not make the elements that an op writes, None where it does."""
    if plain(go) in way.made:
        return None
    kind = way.name.rpartition("_")[2]
    others = [
        name for name in ways_from(come)
        if plain(go) in QUANTIZATIONS[name].made and (way.is_plain or name.endswith(kind))
    ]  # fmt: skip
    makes = f"makes {' or '.join(way.made)}" if way.made else "makes elements of four bits"
    message = f"mode {way.name} {makes}, and `%{op.operands[1].name}` of `{op.name}` holds {go}"
    instead = f"use mode {' or '.join(others)}" if others else f"no mode makes {go} of {come}"
    change = f"let the destination hold {way.made[0]}, or {instead}" if way.made else instead
    return PtoTypeMismatchError(message, help=change)
