"""Every op that has a form can be called in a body, with operands of the kinds its form says."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
from unit.pto.traced.tracing import unverified

from tilewright import pto
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form, Layout, Syntax
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.phrase import Choice, Part, Phrase, arguments_of, phrase_of
from tilewright.pto.traced.namespace import operations
from tilewright.pto.traced.ops import HANDLERS

WORDS = {
    **{"t": "tile", "z": "tile", "w": "view", "q": "part", "y": "part", "v": "vector", "u": "vector", "a": "align"},
    **{"s": "1", "e": "1", "i": "2", "b": "flag", "f": "x", "m": "mask", "n": "mask", "p": "u", "l": "u", "g": "p"},
    **{"x": "tile", "o": "array"},
}
"""What a test passes for each kind of operand."""
HEAD = """
def body(p, u, x, flag):
    tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    view = pto.make_tensor_view(p, shape=[8, 64], strides=[64, 1])
    part = pto.partition_view(view, offsets=[0, 0], sizes=[8, 64])
    mask = pto.pset_b32("PAT_ALL")
    vector = pto.vlds(u, 0)
    align = pto.init_align()
    array = pto.alloc_buffer([4], pto.f32)
    """
TOLD = (
    "pto.vcvt", "pto.vbitcast", "pto.pbitcast", "pto.vpack", "pto.vsunpack", "pto.vzunpack", "pto.vbr", "pto.vci",
    "pto.bitcast",
)  # fmt: skip
"""The ops that are told the type of their result."""


def arguments(form: Form) -> list[str]:
    """Return what a call passes for the first row of each signature, optional operands left out."""
    rows = [form.words[word].kinds for word in ("ins", "outs") if word in form.words]
    given = [WORDS[letter] for kinds in rows or [form.operands] for letter in required(kinds)]
    if form.index:
        given.insert(form.indexed + 1, str([1] * signature(form.words[form.index].kinds).count[0]))
    given += [{"int": "1"}.get(slot.family, '"WORD"') for slot in form.slots[: form.needed_slots]]
    words = ((word, each) for word, each in form.words.items() if each.required and each.layout is Layout.PLAIN)
    return given + [f"{word}=({', '.join('1' * signature(each.kinds).count[0])},)" for word, each in words]


def required(kinds: str) -> str:
    """Return the letters of a signature that must be there."""
    return signature(kinds).rows[0][: signature(kinds).count[0]]


def callable_ops() -> list[str]:
    plain = (name for name, each in operations().items() if each.op and OPS[each.op].form.syntax is Syntax.PLAIN)
    made = ("declare_local_array", "declare_eventid_array", "eventid_array_get", "eventid_array_set")
    several = ("alloc_multi_tile", "multi_tile_get")
    return sorted(name for name in plain if name not in (*made, *several, *HANDLERS))  # which text alone makes


@pytest.mark.parametrize("name", callable_ops())
def test_an_op_is_called_with_what_its_form_says(name: str) -> None:
    op = operations()[name].op
    given = arguments(OPS[op].form) + (["dtype=pto.i32"] if op in TOLD else [])
    module = unverified(body_of(f"pto.{name}({', '.join(given)})")).module
    func = next(module.funcs())
    assert func.body is not None
    assert func.body.ops[-2].name == op


SAID = [name for name, each in operations().items() if each.op and OPS[each.op].form.syntax is Syntax.FREE]
FREE = sorted(name for name in SAID if name not in HANDLERS and phrase_of(OPS[operations()[name].op].form) is not None)


ATTRIBUTES = {"peer_func": '"body"', "location": '"vec"', "notifyOp": '"set"', "cmp": '"ge"', "reduceOp": '"sum"'}
ATTRIBUTES["atomicType"] = '"atomic_add"'


def said(op: str, has_all: bool) -> list[str]:
    """Return what a call passes for the phrase of an op: what it needs, or also all that it may go without."""
    form = OPS[op].form
    letters = iter(signature(form.operands).rows[0] + "x" * 20)
    found: dict[str, str] = {}
    for piece, may_go in arguments_of(_first(phrase_of(form) or ())):
        if piece.name in found or (may_go and not has_all):
            continue
        match piece.part:
            case Part.OPERAND:
                found[piece.name] = WORDS[next(letters)]
            case Part.RESULT:
                found[piece.name] = "tile"
            case Part.ATTRIBUTES:
                found[piece.name] = ATTRIBUTES.get(piece.name, "1")
            case _:
                found[piece.name] = repr(
                    next((word for word, text in piece.spelled if text not in ("", piece.default)), "word")
                )
    lists = [
        piece.name for piece, _ in arguments_of(_first(phrase_of(form) or ())) if piece.is_many and piece.name in found
    ]
    left = signature(form.operands).count[0] - sum(given in WORDS.values() for given in found.values())
    if lists and left > 0:
        found[lists[-1]] = f"({', '.join([found[lists[-1]]] * (left + 1))})"
    return [given if name.isdigit() else f"{name}={given}" for name, given in found.items()]


def _first(pieces: Phrase) -> Phrase:
    """Return a phrase of whose choices only the first side is left."""
    return tuple(Choice((_first(each.sides[0]),)) if isinstance(each, Choice) else each for each in pieces)


@pytest.mark.parametrize("name", FREE)
def test_an_op_of_free_text_is_called_as_its_phrase_says(name: str) -> None:
    op = operations()[name].op
    for has_all in (False, True):
        module = unverified(body_of(f"pto.{name}({', '.join(said(op, has_all))})")).module
        func = next(module.funcs())
        assert func.body is not None
        assert func.body.ops[-2].name == op


def body_of(call: str) -> Any:
    """Return a function whose text is known to Python, as that of a notebook's cell is."""
    text, filename = HEAD + call + "\n", f"<every op: {call}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"pto": pto}
    exec(compile(text, filename, "exec"), scope)
    return scope["body"]
