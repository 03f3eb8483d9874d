"""Asked words: the attributes that ops read, held to the names and the words that they know.

Text from elsewhere has attributes that change nothing here, so only names are refused that nearly are known ones, or
whose value is a word of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Enumerated, Op, word_of

CLOSE = 0.75
"""How much of a name must agree with another for it to be a misspelling."""

Words = Mapping[str, str]
"""The words that each attribute may be, however they are spelled; nothing where it may be anything."""

ROUNDING = "NONE RINT CAST_RINT ROUND FLOOR CEIL TRUNC ODD"
SATURATION = "ON OFF SAT NOSAT TRUE FALSE"
CONVERSION: Words = {
    **dict.fromkeys(("rmode", "round_mode"), ROUNDING),
    **dict.fromkeys(("sat_mode", "satmode", "saturation_mode"), SATURATION),
}
COMPARISON: Words = dict.fromkeys(("cmpMode", "cmp_mode", "cmp"), "eq ne lt le gt ge")
RECTIFYING: Words = {"reluPreMode": "no_relu norelu normal_relu normalrelu"}
STORING: Words = {**RECTIFYING, "atomicType": "atomic_none atomic_add"}
GATHERING: Words = {"gatherOob": "undefined clamp wrap zero", "coalesce": "row elem"}
SCATTERING: Words = {
    "scatterAtomicOp": "none add max min", "scatterOob": "undefined skip clamp wrap", "coalesce": "row elem",
    "atomicType": "atomic_none atomic_add atomic_max atomic_min", "scatterConflict": "default last",
}  # fmt: skip
MOVING: Words = {**RECTIFYING, "accToVecMode": "single_mode_vec0 single_mode_vec1 dual_mode_split_m dual_mode_split_n"}


def refuse_words(op: Op, words: Words) -> None:
    """Refuse an attribute that is nearly one which an op reads, and a word that one cannot be."""
    for name, value in op.attributes.items():
        if name not in words:
            _refuse_misspelling(op, name, words)
        elif words[name] and _word(value) not in words[name].lower().split():
            shown = f"be {word_of(value)}" if _word(value) else "stand without a word"
            help = f"one of {', '.join(words[name].split())}"
            raise PtoAttributeError(f"`{name}` of `{op.name}` cannot {shown}", help=help)


def _word(value: object) -> str:
    return "" if value is None else word_of(value).lower()


def _refuse_misspelling(op: Op, name: str, words: Words) -> None:
    close = get_close_matches(name.lower(), [word.lower() for word in words], n=1, cutoff=CLOSE)
    meant = next((word for word in words if close and word.lower() == close[0]), None)
    value = op.attributes[name]
    if meant is None and isinstance(value, Enumerated):  # whose word says what it is, whatever it is called
        meant = next((word for word, allowed in words.items() if _word(value) in allowed.lower().split()), None)
    if meant is not None:
        raise PtoAttributeError(f"`{op.name}` has no attribute `{name}`", help=f"did you mean `{meant}`?")
