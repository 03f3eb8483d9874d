"""The reference of PTO: every op as its declaration has it, and which elements the machines take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import groupby

from tilewright.pto.elements import table as element_table
from tilewright.pto.laws import PAIRS
from tilewright.pto.op import Declaration
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form, Layout, Syntax
from tilewright.pto.text.kinds import KINDS
from tilewright.tools.markdown import generated, page, table

_ABOUT = """
Each op of the dialect, by what it is about: what it takes, in the order of its text, and what it gives. What stands
under a word is written with it, as in `ins(...)` and `outs(...)`; `?` may be left out, `*` is any number. All of them
are read, printed and verified. Those of the second part are refused by name where a kernel that has one is compiled.
"""
_ELEMENTS = """
What ops on tiles take, by the architecture that `pto.target_arch` names: `"a5"`, or any other for A2/A3, which is meant
where neither the text nor a kernel's `target=` says one. An integer stands for its width, with or without a sign. Ops
that are not listed ask for no more than their form and rules.
"""
_LANES = """
`pto.vcvt` converts these lanes, and has to say how it rounds (`rnd`), whether it saturates (`sat`) and which part of
wider lanes it reads or writes (`part`), each exactly where it is listed. `s` is an integer that has a sign or does not
say, `u` one without.
"""


def pto_page() -> str:
    """Return the reference of PTO's text."""
    run, unrun = ({n: op for n, op in OPS.items() if bool(op.family) is which} for which in (False, True))
    return page(
        generated("PTO reference", "the declarations of `pto/ops`"),
        _ABOUT,
        "## Ops that run",
        *_sections(run, _noun),
        "## Ops that are read",
        *_sections(unrun, lambda op: f"{op.family[0].upper()}{op.family[1:]}"),
        "## Elements",
        _ELEMENTS,
        table(["op", "A2/A3", "A5"], _element_rows()),
        "## Conversions of lanes",
        _LANES,
        table(["from", "to", "says"], [(a, b, ", ".join(_words(needed))) for (a, b), needed in PAIRS.items()]),
    )


def _sections(ops: dict[str, Declaration], title: Callable[[Declaration], str]) -> list[str]:
    """Return a table for each title, with ops that are declared alike in one row."""
    made: list[str] = []
    rows = sorted(((title(op), name, op) for name, op in ops.items()), key=lambda row: row[:2])
    for heading, group in groupby(rows, key=lambda row: row[0]):
        alike: dict[int, tuple[list[str], Declaration]] = {}
        for _, name, op in group:
            alike.setdefault(id(op), ([], op))[0].append(f"`{name.removeprefix('pto.')}`")
        lines = [(" ".join(names), _takes(op.form), _listed(op.form.results)) for names, op in alike.values()]
        made += [f"### {heading}", table(["op", "takes", "gives"], lines)]
    return made


def _noun(op: Declaration) -> str:
    """Return what the file of an op is about: the first words of its docstring."""
    about = sys.modules[op.lowering.__module__].__doc__ or ""
    return about.partition(":")[0].strip().partition(".")[0]


def _takes(form: Form) -> str:
    """Return what an op takes, as its text has it."""
    if form.syntax is Syntax.FREE:
        words = " ".join(f"`{word}`" for word in form.words)
        return ", with ".join(filter(None, [_listed(form.operands), words])) or "nothing"
    clauses = [
        f"`{name}`{'' if word.required else '?'} ({_listed(word.kinds)})"
        for name, word in form.words.items()
        if word.layout is not Layout.INDEX
    ]
    indexed = [f"[{_listed(word.kinds)}]" for word in form.words.values() if word.layout is Layout.INDEX]
    slots = [f"<{slot.name}>" for slot in form.slots]
    return ", ".join(filter(None, [_listed(form.operands), *indexed, *slots, *clauses])) or "nothing"


def _listed(kinds: str) -> str:
    """Return a signature in words."""
    ways: list[str] = []
    for row in kinds.split("|") if kinds else ():
        letters = [letter + mark for letter, mark in zip(row, [*row[1:], ""], strict=True) if letter not in "?*"]
        named = [KINDS[pair[0]].name + (pair[1:] if pair[1:] in ("?", "*") else "") for pair in letters]
        counted = [(name, len(list(same))) for name, same in groupby(named)]
        ways.append(", ".join(name if count == 1 else f"{count} x {name}" for name, count in counted))
    return " or ".join(ways)


def _element_rows() -> list[tuple[str, str, str]]:
    """Return the table of elements, ops that take the same in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, taken in element_table().items():
        rows.setdefault((" ".join(taken.a3) or "-", " ".join(taken.a5)), []).append(f"`{name.removeprefix('pto.')}`")
    return [(" ".join(names), older, newer) for (older, newer), names in rows.items()]


def _words(needed: str) -> list[str]:
    return [{"R": "`rnd`", "S": "`sat`", "P": "`part`"}[letter] for letter in needed]
