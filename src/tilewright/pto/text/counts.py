"""Counts: whether an op has as many operands, words, static tokens and results as its form says."""

from __future__ import annotations

from tilewright.pto.errors import PtoOperandError
from tilewright.pto.module import Op
from tilewright.pto.text.form import Form, Layout
from tilewright.pto.text.kinds import counted, fits, shown


def refuse_counts(op: Op, form: Form) -> None:
    """Raise where `op` has too many or too few of something."""
    if not fits(len(op.operands), form.operands):
        raise _miscounted(op, f"takes {counted(shown(form.operands), 'operand')}, got {len(op.operands)}")
    if not fits(len(op.results), form.results):
        raise _miscounted(op, f"has {counted(shown(form.results), 'result')}, got {len(op.results)}")
    if form.slots:
        _refuse_slots(op, form)
    if form.words or op.clauses:
        _refuse_words(op, form)


def _refuse_slots(op: Op, form: Form) -> None:
    needed = form.slots if form.needed_slots is None else form.slots[: form.needed_slots]
    for slot in needed:
        if slot.name not in op.attributes:
            raise _miscounted(op, f"needs its {slot.name}")


def _refuse_words(op: Op, form: Form) -> None:
    present = {clause.name for clause in op.clauses}
    for name, word in form.words.items():
        if word.required and name not in present:
            raise _miscounted(op, f"needs `{name}`, as in `{_EXAMPLES[word.layout].format(name)}`")
    for name in form.numbers:
        if name not in op.attributes:
            raise _miscounted(op, f"needs `{name}`, as in `{name} [8, 16]`")
    for clause in op.clauses:
        word = form.words.get(clause.name)
        if word is None:
            raise _miscounted(op, f"has no `{clause.name}`")
        if not fits(len(clause.values), word.kinds):
            takes = counted(shown(word.kinds), "operand")
            message = f"`{clause.name}` of `{op.name}` takes {takes}, got {len(clause.values)}"
            raise PtoOperandError(message, spans=(clause.span,))


_EXAMPLES = {
    Layout.TYPED: "{}(%a : T)",
    Layout.PLAIN: "{}(%a, %b, %c)",
    Layout.LIST: "{} = [%a, %b]",
    Layout.SINGLE: "{} = %a",
    Layout.BRACKET: "{} [%a, %b]",
    Layout.INDEX: "%a[%i]",
    Layout.SLOT: "%a",
}


def _miscounted(op: Op, what: str) -> PtoOperandError:
    return PtoOperandError(f"`{op.name}` {what}", spans=(op.span,))
