"""Usage: the form of an op in one line, its operands named by their kinds."""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Slot, Syntax, Typing, Word
from tilewright.pto.text.kinds import KINDS

_SHORT = {
    "a partition of a tensor view": "partition", "a tensor view or a partition of one": "view",
    "a vector register": "vector", "an alignment state": "alignment", "a pointer to global memory": "gm pointer",
    "a pointer to ub": "ub pointer", "a tensor view": "view",
}  # fmt: skip
_STRUCTURED = {
    Syntax.CONSTANT: "value : type",
    Syntax.FOR: "%i = index to index step index [iter_args(%a = value, ...) -> (types)] { ... }",
    Syntax.IF: "i1 [-> (types)] { ... } [else { ... }]",
    Syntax.WHILE: "(%a = value, ...) : (types) -> (types) { ... } do { ... }",
    Syntax.CONDITION: "(i1) values : types",
    Syntax.CALL: "@function(values) : (types) -> types",
    Syntax.REGION: "{ ... }",
}
"""The forms that have a rule of their own."""


def usage(name: str, form: Form) -> str:
    """Return how an op is written; what may be left out stands in brackets."""
    if form.syntax in _STRUCTURED:
        return f"{name} {_STRUCTURED[form.syntax]}"
    operands = kinds(form.operands)
    if form.index:
        operands = f"{operands}[{kinds(form.words[form.index].kinds)}]" if form.indexed == 0 else operands
    slots = [_slot(form, slot, place) for place, slot in enumerate(form.slots)]
    words = [_word(word, layout) for word, layout in form.words.items() if layout.layout not in _ELSEWHERE]
    numbers = [f"{word} [numbers]" for word in form.numbers]
    order = [*slots, operands] if form.is_leading else [operands, *slots]
    listed = ", ".join(filter(None, order))
    pieces = [name, f"[{listed}]" if form.is_bracketed else listed, *numbers, *words]
    made = kinds(form.results) or (str(form.implied) if form.implied else "")
    arrow = f"-> {made}" if made and form.typing is not Typing.IMPLIED else ""
    return " ".join(filter(None, [*pieces, arrow]))


_ELSEWHERE = (Layout.INDEX, Layout.SLOT)


def kinds(signature: str) -> str:
    """Return the operands of a signature: rows of kinds, those that may be left out in brackets."""
    return " or ".join(", ".join(_each(row)) for row in signature.split("|")) if signature else ""


def _each(row: str) -> list[str]:
    found: list[str] = []
    for letter in row:
        if letter == "?":
            found[-1] = f"[{found[-1]}]"
        elif letter == "*":
            found[-1] = f"{found[-1]}..."
        else:
            name = KINDS[letter].name
            found.append(_SHORT.get(name, name.removeprefix("an ").removeprefix("a ")))
    return found


def _slot(form: Form, slot: Slot, place: int) -> str:
    shown = f'"{slot.name}"' if slot.family == "string" else f"<{slot.name}>"
    is_needed = form.needed_slots is None or place < form.needed_slots
    return shown if is_needed else f"[{shown}]"


def _word(name: str, word: Word) -> str:
    text = word.layout.text(name, kinds(word.kinds), "types").replace(" : types", "")
    return text if word.required else f"[{text}]"
