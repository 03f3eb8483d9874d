"""The PTO reference: every op of the dialect, read off its declaration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby

from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.usage import usage
from tilewright.tools.markdown import code, generated, page, table
from tilewright.tools.naming import check_known
from tilewright.tools.pto_example import example


def pto_page() -> str:
    """Return the whole reference."""
    nouns = {noun: list(group) for noun, group in groupby(sorted(OPS, key=_order), _noun)}
    return page(
        generated("PTO's ops", "the declarations in src/tilewright/pto/ops"),
        "How each op of PTO text is written after its name, and what it does. What may be left out stands in brackets; "
        "`tilewright pto explain OP` shows an entry in a terminal, with its rules and a kernel that runs it. "
        "[PTO text](pto.md) has the rest.",
        *(page(f"## {noun.title()}", _heading(noun), _rows(names)) for noun, names in nouns.items()),
    )


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
    if text := example(name, declared):
        yield "A kernel that runs it, as in `tilewright pto run example.pto x0=random:8x64 ... out=zeros:8x64`:"
        yield code(text, "mlir")
