"""Rules of a form: whether operands, words, static tokens and results are as many as it says, and of its kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.module import Enumerated, Op, Value, word_of
from tilewright.pto.text.form import Form
from tilewright.pto.text.kinds import counted, fits, misfit, row_of, shown
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import PACKED, Mask, Scalar, TileBuf, VReg

PIPES = frozenset(
    f"PIPE_{word}" for word in (*"SVM", "MTE1", "MTE2", "MTE3", "MTE4", "MTE5", "ALL", "V2", "FIX", "UNASSIGNED")
) | {"VIRTUAL_PIPE_MTE2_L1A", "VIRTUAL_PIPE_MTE2_L1B"}
_WORDS = {"pipe": PIPES, "event": frozenset(f"EVENT_ID{i}" for i in range(8))}


def refuse_slots(op: Op, form: Form) -> None:
    """Raise where a static token is no word of its enumeration."""
    for slot in form.slots:
        value = op.attributes.get(slot.name)
        known = _WORDS.get(slot.family)
        if known is None or value is None:
            continue
        if not isinstance(value, Enumerated) or value.word not in known:
            raise PtoAttributeError(f"`{word_of(value)}` is no {slot.family}", help=nearest(word_of(value), known))


def any_packed(values: Iterable[Value]) -> bool:
    """Return whether some value is of a packed type, or holds elements of one."""
    for value in values:
        if _packed(value) is not None:
            return True
    return False


def _packed(value: Value) -> Scalar | None:
    """Return the packed type that a value is or holds, if it does."""
    element: object = getattr(value.type, "element", value.type)
    return element if isinstance(element, Scalar) and element.name in PACKED else None


def refuse_packed(op: Op, is_by_bytes: bool) -> None:
    """Raise where an op would have to know what the bits of a packed type mean."""
    for value in (*op.uses, *op.results):
        element = _packed(value)
        if element is not None:
            _refuse_bits(op, value, element, is_by_bytes)


def _refuse_bits(op: Op, value: Value, element: Scalar, is_by_bytes: bool) -> None:
    """Raise unless an op only hands a value on, or copies elements where it lies."""
    is_scalar = value.type is element
    if op.name.startswith(("scf.", "func.")):
        return
    if not is_scalar and is_by_bytes and op.clause("pad") is None:
        return
    message = f"`{op.name}` does not know the bits of {element}, which `%{value.name}` {'is' if is_scalar else 'holds'}"
    help = f"such elements are only copied; see their bytes as ui{element.bits} with `pto.castptr`"
    raise PtoTypeMismatchError(message, help=help)


def refuse_kinds(op: Op, form: Form) -> None:
    """Raise where an operand or result is not of the kind its place takes, or does not go with the others."""
    letters = ""
    values: list[Value] = []
    groups = [(form.operands, op.operands), (form.results, op.results)]
    groups += [(form.words[clause.name].kinds, clause.values) for clause in op.clauses]
    for kinds, group in groups:
        if not group:
            continue
        types = [value.type for value in group]
        row = row_of(kinds, types)
        if not row:
            position, expected = misfit(kinds, types)
            raise _wrong_kind(op, group, position, expected)
        letters += row
        values += group
    if "v" in letters or "u" in letters:
        _refuse_doubles(op, values)
    if "t" in letters or "v" in letters:
        _refuse_elements(op, letters, values)


def _wrong_kind(op: Op, group: Sequence[Value], position: int, expected: str) -> PtoOperandError:
    value = group[position]
    role = "result" if value in op.results else "operand"
    what = f"{role} {position + 1} of {len(group)}" if len(group) > 1 else f"its {role}"
    message = f"`{op.name}` takes {expected} as {what}, `%{value.name}` is {brief_text(value.type)}"
    if role == "result":
        message = f"`{op.name}` gives {expected} as {what}, not {brief_text(value.type)}"
    return PtoOperandError(message, help=_explained(op))


def _refuse_doubles(op: Op, values: Iterable[Value]) -> None:
    """Raise where an op is on registers of doubles, which no machine has."""
    for value in values:
        if isinstance(value.type, VReg) and value.type.element.name == "f64":
            message = f"`{op.name}` on registers takes no f64, which `%{value.name}` holds"
            raise PtoTypeMismatchError(message, help="compute with f32, or one number after the other with `arith`")


def _refuse_elements(op: Op, letters: str, values: list[Value]) -> None:
    """Raise where what shares an element type does not, or a scalar or mask does not go with it."""
    first: Value | None = None
    element: Scalar | None = None
    for letter, value in zip(letters, values, strict=True):
        type = value.type
        if letter not in "tv" or not isinstance(type, TileBuf | VReg):
            continue
        if first is None:
            first, element = value, type.element
        elif type.element is not element and type.element != element:
            message = (
                f"`{op.name}` needs one element type, `%{first.name}` has {element}, `%{value.name}` {type.element}"
            )
            raise PtoTypeMismatchError(message, help="convert one of them, with `pto.tcvt` or `pto.vcvt`")
    if element is not None and ("e" in letters or "m" in letters):
        _refuse_companions(op, letters, values, element)


def _refuse_companions(op: Op, letters: str, values: list[Value], element: Scalar) -> None:
    for letter, value in zip(letters, values, strict=True):
        type = value.type
        if letter == "e" and isinstance(type, Scalar) and type.is_float != element.is_float:
            raise PtoTypeMismatchError(f"`{op.name}` on {element} takes no {type}, which `%{value.name}` is")
        if letter == "m" and isinstance(type, Mask) and type.bits != min(32, element.bits):
            message = f"lanes of {element} take !pto.mask<b{min(32, element.bits)}>, `%{value.name}` is {type}"
            raise PtoTypeMismatchError(message, help="make the mask with the width of the lanes")


# counts


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
            raise _miscounted(op, f"needs `{name}`, as in `{word.layout.example(name)}`")
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
            raise PtoOperandError(message, spans=(clause.span,), help=_explained(op))


def _miscounted(op: Op, what: str) -> PtoOperandError:
    return PtoOperandError(f"`{op.name}` {what}", spans=(op.span,), help=_explained(op))


def _explained(op: Op) -> str:
    return f"`tilewright pto explain {op.name.removeprefix('pto.')}` says how it is written"
