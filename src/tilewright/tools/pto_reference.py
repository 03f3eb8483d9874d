"""The PTO reference: every op of the dialect, read off its declaration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby

from tilewright.named_tuples import NamedTuple
from tilewright.programs.pto_text.unsaid import OF_RANKS, UNSAID, Unsaid
from tilewright.pto.elements import LEAVING
from tilewright.pto.elements import table as elements
from tilewright.pto.examples.lines import example
from tilewright.pto.laws import PAIRS
from tilewright.pto.ops.examples import shown_for
from tilewright.pto.ops.quantizations import QUANTIZATIONS
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
        "`tilewright pto explain OP` shows an entry in a terminal, with its rules and a kernel that runs it. In NumPy, "
        "`x`, `y` and `z` are tiles, registers or memory, `n` and `k` numbers, `m` and `o` masks; lanes that are not "
        "set are zero where a sentence names no mask. Ops without a sentence have a whole kernel with one. "
        f"[PTO text](pto.md) has the rest. {_counted()}",
        *(page(f"## {noun.title()}", _heading(noun), _rows(names)) for noun, names in nouns.items()),
        page("## Elements", _ELEMENTS, table(("Ops", "A2/A3", "A5"), _element_rows())),
        page("## What leaves an accumulator", _LEAVING, table(("Ops", "From", "A2/A3", "A5"), _leaving_rows())),
        page("## Modes of `pre_quant`", _MODES, table(("Mode", "Number", "From", "Makes"), _mode_rows())),
        page("## Conversions of lanes", _LANES, table(("From", "To", "Says"), _lane_rows())),
        page("## What `as_pto` cannot say", _UNSAID, table(("Op of `pl`", "Why", "Nearly the same"), _unsaid_rows())),
    )


def _counted() -> str:
    """Return how many ops there are, and what keeps the others from running."""
    families = [declared.family for declared in OPS.values() if declared.family]
    others = ", ".join(sorted(set(families)))
    return f"Of {len(OPS)} ops {len(OPS) - len(families)} run; the others are read and verified ({others})."


_ELEMENTS = """
What ops on tiles take, by the architecture that `pto.target_arch` names: `"a5"`, or any other for A2/A3. Where
the text names none, a kernel's `target=` or the command's `--target` does, which is A5 unless you say `a3`.
An integer stands for its width, with or without a sign.
`tstore[vec]` is a form of an op: the memory that it reads, or how it gathers; `mgather@1` is its operand with that
number, from 0 on, and `tci>0` what it writes. An op alone stands for the first tile that it reads, or for the one it
writes where it reads none. Ops that are not listed ask for no more than their form and rules.
"""
_LEAVING = """
What the elements of an accumulator become as tile ops bring them out. A `tstore` with a scale is as `tstore_fp`.
"""
_MODES = """
How `pto.mte_l0c_gm`, `_l1` and `_ub` convert what an accumulator holds, and the numbers of these modes in the words of
`pto.copy_matrix_cc_to_gm` and its like. The destination holds what the mode makes. `_scalar` modes take one factor,
`_vec` modes a pointer to one for each column, the other two none.
"""
_LANES = """
`pto.vcvt` converts these lanes, and has to say how it rounds (`rnd`), whether it saturates (`sat`) and which part of
wider lanes it reads or writes (`part`), each exactly where it is listed. `s` is an integer that has a sign or does not
say, `u` one without.
"""
_UNSAID = """
The ops that no PTO text says with the same bits, so that `program.as_pto()` refuses them by name; every other op of the
language is exported. What stands beside them is in ops that are, and as near as its formula is.
"""


def _unsaid_rows() -> list[tuple[str, str, str]]:
    said = {f"`{name}`": unsaid for name, unsaid in UNSAID.items()} | {"those of `pl.distributed`": OF_RANKS}
    return [(name, each.why, "; ".join(f"`{line}`" for line in _lines(each))) for name, each in said.items()]


def _lines(unsaid: Unsaid) -> tuple[str, ...]:
    return (*unsaid.after, unsaid.instead) if unsaid.instead else ()


def _element_rows() -> list[tuple[str, str, str]]:
    """Return the table of elements, ops that take the same in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, taken in elements().items():
        rows.setdefault((" ".join(taken.a3) or "-", " ".join(taken.a5)), []).append(f"`{name}`")
    return [(", ".join(names), *key) for key, names in rows.items()]


def _leaving_rows() -> list[tuple[str, str, str, str]]:
    """Return what an accumulator's elements may become, ops that make the same in one row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, ways in LEAVING.items():
        for source in sorted({*ways.a3, *ways.a5}):
            made = (" ".join(each.get(source, ())) or "-" for each in (ways.a3, ways.a5))
            rows.setdefault((source, *made), []).append(f"`pto.{name}`")  # pyright: ignore[reportArgumentType]
    return [(", ".join(names), *key) for key, names in rows.items()]


def _mode_rows() -> list[tuple[str, str, str, str]]:
    ways = QUANTIZATIONS.values()
    return [(f"`{way.name}`", str(way.number), way.source or "-", " ".join(way.made) or "-") for way in ways]


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
        alike.setdefault((usage("", OPS[name].form).strip(), meaning(name)), []).append(name)
    rows = [
        (", ".join(f"`{name}`" for name in group), f"`{form}`" if form else "", said, _sentences(group))
        for (form, said), group in alike.items()
    ]
    return table(("Ops", "Written", "Meaning", "In NumPy"), rows)


def _sentences(names: list[str]) -> str:
    """Return what ops mean in NumPy, each once; of ops that mean several things, with their names."""
    said = {name: OPS[name].meaning(name) for name in names}
    if len(set(said.values())) == 1:
        return f"`{said[names[0]]}`" if said[names[0]] else ""
    return ", ".join(f"{name.rpartition('.')[2]} `{sentence}`" for name, sentence in said.items())


def meaning(name: str) -> str:
    """Return what an op does, in a sentence or two."""
    return " ".join((inspect.getdoc(OPS[name].lowering) or "").split())


class Entry(NamedTuple):
    """What there is to say about one op."""

    name: str
    form: str
    meaning: str
    rule: str
    law: str
    """What the machines ask."""
    elements: dict[str, tuple[str, ...]]
    """The element types that it takes, by architecture; none where its form and rule decide."""
    numpy: str
    """What its example leaves, as a sentence or a function."""
    example: str


def entry(name: str) -> Entry:
    """Return what there is to say about one op; CommandError, with the nearest name, where there is none."""
    full = _full(name)
    check_known(full, OPS, "op of PTO", "docs/pto-reference.md lists them", prefix="pto.")
    declared, taken = OPS[full], elements().get(full)
    rule, law = (inspect.getdoc(each) or "" if each else "" for each in (declared.rule, declared.law))
    by_arch = {"A2/A3": taken.a3, "A5": taken.a5} if taken else {}
    return Entry(full, usage(full, declared.form), meaning(full), rule, law, by_arch, _numpy(full), example(full))


def _full(name: str) -> str:
    """Return the op that a name stands for: as text has it, without its dialect, or as traced bodies call it."""
    word = name.lower().removeprefix("pto.")
    tile = f"pto.t{word.removeprefix('tile.')}"
    every = (name, word, f"pto.{word}", tile, *(f"{dialect}.{word}" for dialect in ("scf", "func", "arith")))
    return next((each for each in every if each in OPS), f"pto.{word}")


def _numpy(name: str) -> str:
    """Return what an op means in NumPy: its sentence, or the function that says what its kernel leaves."""
    sentence, shown = OPS[name].meaning(name), shown_for(name)
    return sentence or (inspect.getsource(shown.example.gives).strip() if shown is not None else "")


def explained(name: str) -> str:
    """Return an entry as a page."""
    return page(*_paragraphs(entry(name)))


def _paragraphs(said: Entry) -> Iterator[str]:
    yield f"#### `{said.name}`"
    yield code(said.form, "mlir")
    yield said.meaning
    if said.rule:
        yield f"Rule: {said.rule}"
    if said.law:
        yield f"On a machine: {said.law}"
    if said.elements:
        taken = [f"{arch} {' '.join(names) or 'none'}" for arch, names in said.elements.items()]
        yield f"Elements: {'; '.join(taken)}."
    if said.numpy.startswith("def "):
        yield "What its kernel leaves, in NumPy:"
        yield code(said.numpy)
    elif said.numpy:
        yield f"In NumPy: `{said.numpy}`"
    if said.example:
        yield "A kernel that runs it; its first line says how:"
        yield code(said.example, "mlir")
