"""The PTO reference: every op of the dialect, read off its declaration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby

from tilewright.pto.elements import table as elements
from tilewright.pto.examples.lines import example
from tilewright.pto.laws import PAIRS
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.usage import usage
from tilewright.tools.markdown import code, generated, page, table
from tilewright.tools.naming import check_known


def pto_page() -> str:
    """Return the whole reference."""
    nouns = {noun: list(group) for noun, group in groupby(sorted(OPS, key=_order), _noun)}
    return page(
        generated("PTO's ops", "the declarations in src/tilewright/pto/ops"),
        "How each op of PTO text is written after its name, and what it does. What may be left out stands in brackets; "
        "`tilewright pto explain OP` shows an entry in a terminal, with its rules and a kernel that runs it. "
        f"[PTO text](pto.md) has the rest. {_counted()}",
        *(page(f"## {noun.title()}", _heading(noun), _rows(names)) for noun, names in nouns.items()),
        page("## Elements", _ELEMENTS, table(("Ops", "A2/A3", "A5"), _element_rows())),
        page("## Conversions of lanes", _LANES, table(("From", "To", "Says"), _lane_rows())),
    )


def _counted() -> str:
    """Return how many ops there are, and what keeps the others from running."""
    families = [declared.family for declared in OPS.values() if declared.family]
    others = ", ".join(sorted(set(families)))
    return f"Of {len(OPS)} ops {len(OPS) - len(families)} run; the others are read and verified ({others})."


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


def _element_rows() -> list[tuple[str, str, str]]:
    """Return the table of elements, ops that take the same in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, taken in elements().items():
        rows.setdefault((" ".join(taken.a3) or "-", " ".join(taken.a5)), []).append(f"`{name}`")
    return [(", ".join(names), *key) for key, names in rows.items()]


def _lane_rows() -> list[tuple[str, str, str]]:
    words = {"R": "`rnd`", "S": "`sat`", "P": "`part`"}
    return [(source, to, ", ".join(map(words.__getitem__, needed))) for (source, to), needed in PAIRS.items()]


def _noun(name: str) -> str:
    """Return the file that declares an op."""
    return OPS[name].lowering.__module__.rpartition(".")[2].replace("_", " ")


def _order(name: str) -> tuple[str, str]:
    return _noun(name), name


def _heading(noun: str) -> str:
    return inspect.getdoc(sys.modules[f"tilewright.pto.ops.{noun.replace(' ', '_')}"]) or noun


def _rows(names: list[str]) -> str:
    """Return a table of ops, those that are written alike and mean the like in one row."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in names:
        alike.setdefault((usage("", OPS[name].form).strip().replace("|", "\\|"), meaning(name)), []).append(name)
    shown = [(", ".join(f"`{name}`" for name in group), *key) for key, group in alike.items()]
    return table(("Ops", "Written", "Meaning"), [(ops, f"`{form}`" if form else "", said) for ops, form, said in shown])


def meaning(name: str) -> str:
    """Return what an op does, in a sentence or two."""
    return " ".join((inspect.getdoc(OPS[name].lowering) or "").split())


def explained(name: str) -> str:
    """Return what there is to say about one op; CommandError, with the nearest name, where there is none."""
    full = name if name in OPS else f"pto.{name}"
    check_known(full, OPS, "op of PTO", "docs/pto-reference.md lists them")
    return page(*_entry(full))


def _entry(name: str) -> Iterator[str]:
    declared = OPS[name]
    yield f"#### `{name}`"
    yield code(usage(name, declared.form), "mlir")
    yield meaning(name)
    if declared.rule is not None and (said := inspect.getdoc(declared.rule)):
        yield f"Rule: {said}"
    if declared.law is not None and (said := inspect.getdoc(declared.law)):
        yield f"On a machine: {said}"
    if taken := elements().get(name):
        yield f"Elements: A2/A3 {' '.join(taken.a3) or 'none'}; A5 {' '.join(taken.a5)}."
    if text := example(name):
        yield "A kernel that runs it; its first line says how:"
        yield code(text, "mlir")
