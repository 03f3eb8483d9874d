"""Usage: the form of an op in one line, its operands named by their kinds."""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Slot, Syntax, Typing, Word
from tilewright.pto.text.kinds import KINDS
from tilewright.pto.text.phrase import Choice, Part, Phrase, Piece, phrase

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
    Syntax.SWITCH: "index [-> (types)] case number { ... } ... default { ... }",
    Syntax.EXECUTE: "[-> (types)] { ... }",
    Syntax.REGION: "{ ... }",
}
"""The forms that have a rule of their own."""


def usage(name: str, form: Form) -> str:
    """Return how an op is written; what may be left out stands in brackets."""
    if form.syntax in _STRUCTURED:
        return f"{name} {_STRUCTURED[form.syntax]}"
    if form.phrase is not None:
        return f"{name} {_phrase(phrase(form.phrase))}".strip()
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


def _phrase(pieces: Phrase) -> str:
    """Return a phrase as people read it: its arguments by name."""
    text = ""
    for each in pieces:
        shown = _choice(each) if isinstance(each, Choice) else _piece(each)
        clings = not isinstance(each, Choice) and (shown[0] in ",)]" or (shown == "(" and text[-1:].isalnum()))
        clings = clings or (isinstance(each, Piece) and each.part is Part.MARK)
        text += shown if not text or clings or text[-1] in "([" else f" {shown}"
    return text


def _choice(choice: Choice) -> str:
    return f"[{' | '.join(map(_phrase, choice.sides))}]"


def _piece(piece: Piece) -> str:
    match piece.part:
        case Part.OPERAND:
            return f"%{piece.name}{'...' if piece.is_many else ''}"
        case Part.WORD:
            return " or ".join(dict.fromkeys(text for _, text in piece.spelled if text)) or f"<{piece.name}>"
        case Part.QUOTED:
            return f'"{piece.name}"'
        case Part.ATTRIBUTES:
            return f"{{{', '.join(name for name, _ in piece.attributes)}}}"
        case Part.TYPES:
            return "types"
        case Part.RESULT:
            return "type"
        case Part.TEXT | Part.MARK:
            return piece.name


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
