"""Texts that are right, and modules made of one op each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilewright.pto.module import Attribute, Clause, Enumerated, Func, Module, Op, Region, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form, Slot, Syntax, Typing
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.typetext import read_type
from tilewright.pto.types import Type

VALID = sorted((Path(__file__).parent / "valid").glob("*.pto"))
PLAIN = sorted(name for name, op in OPS.items() if op.form.syntax is Syntax.PLAIN)
SAMPLES = {
    **dict.fromkeys("tz", "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"),
    **dict.fromkeys("vu", "!pto.vreg<64xf32>"),
    **dict.fromkeys("mn", "!pto.mask<b32>"),
    **dict.fromkeys("se", "f32"),
    **dict.fromkeys("pl", "!pto.ptr<f32, ub>"),
    "q": "!pto.partition_tensor_view<16x64xf32>",
    "w": "!pto.tensor_view<16x64xf32>",
    "y": "!pto.partition_tensor_view<16x64xf32>",
    "i": "i64",
    "b": "i1",
    "f": "f32",
    "g": "!pto.ptr<f32, gm>",
    "a": "!pto.align",
    "o": "!pto.local_array<4xf32>",
    "x": "i32",
}
"""A type of each kind."""
STATICS: dict[str, Attribute] = {"string": "WORD", "word": "slt", "int": 3}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def types_of(kinds: str) -> Iterator[tuple[Type, ...]]:
    """Yield types that follow a signature: as few as it takes, then as many."""
    row, (fewest, most) = signature(kinds).rows[0], signature(kinds).count
    for count in sorted({fewest, min(most, max(len(row), 3) if row else 0)}):
        yield tuple(read_type(SAMPLES[letter]) for letter in (row + row[-1:] * count)[:count])


def modules_of(name: str) -> Iterator[Module]:
    """Yield modules with one op of this name, with few and with many operands."""
    form = OPS[name].form
    for fill in (0, -1):
        yield _module(name, form, fill)


def _module(name: str, form: Form, fill: int) -> Module:
    arguments: list[Value] = []

    def values(kinds: str) -> tuple[Value, ...]:
        made = tuple(Value(f"a{len(arguments) + i}", type) for i, type in enumerate(list(types_of(kinds))[fill]))
        arguments.extend(made)
        return made

    operands = values(form.operands)
    if form.typing in (Typing.SELECT,):
        operands = (operands[0], operands[1], operands[1])
    clauses = tuple(Clause(word, values(item.kinds)) for word, item in form.words.items() if item.required or fill)
    clauses = tuple(clause for clause in clauses if clause.name not in {slot.name for slot in form.slots})
    attributes = {slot.name: _static(slot) for slot in form.slots} | {word: (8, 16) for word in form.numbers}
    results = tuple(Value(f"r{i}", type) for i, type in enumerate(list(types_of(form.results))[fill]))
    if form.implied is not None:
        results = (Value("r0", form.implied),)
    if form.slots and form.operands == "i?" and operands:
        del attributes["event"]
    op = Op(name, operands, clauses, attributes, results)
    body = Region(tuple(arguments), [op, Op("func.return")])
    return Module([Func("f", tuple(arguments), body=body)])


def _static(slot: Slot) -> Attribute:
    return STATICS.get(slot.family) or Enumerated(slot.family, "WORD")
