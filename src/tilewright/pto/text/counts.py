"""Counts: whether an op has as many operands, words, static tokens and results as its form says."""

from __future__ import annotations

from tilewright.pto.errors import PtoOperandError
from tilewright.pto.module import Op
from tilewright.pto.text.form import Form, Layout, Word
from tilewright.pto.text.kinds import fits, shown


def refuse_counts(op: Op, form: Form) -> None:
    """Raise where `op` has too many or too few of something."""
    if not fits(len(op.operands), form.operands):
        raise _miscounted(op, f"takes {operands_of(shown(form.operands))}, got {len(op.operands)}")
    if not fits(len(op.results), form.results):
        raise _miscounted(op, f"has {_results(shown(form.results))}, got {len(op.results)}")
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
            raise _miscounted(op, f"needs `{name}`, as in `{_example(name, word)}`")
    for name in form.numbers:
        if name not in op.attributes:
            raise _miscounted(op, f"needs `{name}`, as in `{name} [8, 16]`")
    for clause in op.clauses:
        word = form.words.get(clause.name)
        if word is None:
            raise _miscounted(op, f"has no `{clause.name}`")
        if not fits(len(clause.values), word.kinds):
            message = f"`{clause.name}` of `{op.name}` takes {operands_of(shown(word.kinds))}, got {len(clause.values)}"
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


def _example(name: str, word: Word) -> str:
    return _EXAMPLES[word.layout].format(name)


def operands_of(count: str) -> str:
    """Return a count with its noun."""
    return f"{count} operand{'' if count == '1' else 's'}"


def _results(count: str) -> str:
    return f"{count} result{'' if count == '1' else 's'}"


def _miscounted(op: Op, what: str) -> PtoOperandError:
    return PtoOperandError(f"`{op.name}` {what}", spans=(op.span,))
