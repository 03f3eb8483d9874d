"""Rules of the machines: every row of the tables here is taken or refused as it says, on A2/A3 and on A5."""

from __future__ import annotations

import re

import pytest
from unit.pto.rules.audit import MACHINES, TABLES, Row, refusal, rows_of

from tilewright.pto.elements import table
from tilewright.pto.laws import PAIRS

ROWS = {
    rule: [row for row in rows if row.rule == rule]
    for name in sorted(path.name for path in TABLES.glob("*.txt"))
    if name not in ("elements.txt", "conversions.txt")
    for rows in [rows_of(name)]
    for rule in dict.fromkeys(row.rule for row in rows)
}
INTEGERS = [f"{sign}i{bits}" for bits in (8, 16, 32, 64) for sign in ("", "s", "u")]
ELEMENTS = [
    *INTEGERS, "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "!pto.hif8", "!pto.f4E1M2x2",
]  # fmt: skip


@pytest.mark.parametrize("rule", ROWS)
def test_a_rule_takes_and_refuses_what_its_rows_say(rule: str) -> None:
    assert [wrong for row in ROWS[rule] for wrong in _wrong(row)] == []


def test_every_rule_has_something_to_take_and_something_to_refuse() -> None:
    signs = {rule: {sign for row in rows for sign in row.taken} for rule, rows in ROWS.items()}
    assert [rule for rule, both in signs.items() if "-" not in both] == []
    assert [rule for rule, both in signs.items() if "+" not in both] == ["elements that no common check knows"]


def _wrong(row: Row) -> list[str]:
    found: list[str] = []
    for arch, sign in zip(MACHINES, row.taken, strict=True):
        said = refusal(row.lines, arch)
        if (sign == "+") == bool(said) or row.said not in (said or row.said):
            found.append(f"{arch} {sign} {row.lines}: {said or 'taken'}")
    return found


# elements


def _listed() -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Return what A2/A3 and A5 take, by the op and the lines that have an element of it."""
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for line in (TABLES / "elements.txt").read_text(encoding="utf-8").splitlines()[1:]:
        names, lines, older, added = (part.strip() for part in line.split("|"))
        for name in names.split():
            taken = set(older.split()), {*older.split(), *added.split()}
            found[name, lines.replace("{op}", f"pto.{name}")] = taken
    return found


def _with(lines: str, element: str) -> str:
    """Return lines with their element: no shorthand has one whose name begins with a mark."""
    if element.startswith("!"):
        lines = re.sub(r"\bW(\d\w+)", r"!pto.partition_tensor_view<\1>", re.sub(r"\bt(\d\w+xE)", r"T<vec, \1>", lines))
    return re.sub(r"E(?=[,)>; ])", element, lines.replace("W", "w"))


def _plain(element: str) -> str:
    return element.removeprefix("u").removeprefix("s") if element in INTEGERS else element


@pytest.mark.parametrize(("name", "lines"), _listed(), ids=[name for name, _ in _listed()])
def test_an_op_takes_the_elements_of_its_machine_and_no_others(name: str, lines: str) -> None:
    for arch, wanted in zip(MACHINES, _listed()[name, lines], strict=True):
        said = {element: refusal(_with(lines, element), arch) for element in ELEMENTS}
        assert {element for element in said if not said[element]} == {e for e in ELEMENTS if _plain(e) in wanted}, said
        unclear = [
            each
            for each in said.values()
            if each and not re.search(rf"takes|moves no|does not know the bits|no {name} on", each)
        ]
        assert unclear == []


def test_every_op_with_a_list_of_elements_is_looked_at() -> None:
    listed = {re.split(r"[\[@>]", key)[0].removeprefix("pto.") for key in table()}
    shown = {name for name, _ in _listed()} | {
        word for rows in ROWS.values() for row in rows for word in re.findall(r"pto\.([\w.]+)", row.lines)
    }
    assert listed - shown == set()


# conversions of lanes

LANES = {
    "f32": "f32", "f16": "f16", "bf16": "bf16", **{f"u{n}": f"ui{n}" for n in (8, 16, 32, 64)},
    **{f"s{n}": f"i{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip
WORDS = {"R": 'rnd = "R"', "S": 'sat = "SAT"', "P": "part = "}


def _converted(source: str, target: str, said: str, mask: int | None = None) -> str:
    """Return the conversion of lanes with some of its words."""
    come, go = (int(re.sub(r"\D", "", LANES[each])) for each in (source, target))
    part = "EVEN" if max(come, go) == 2 * min(come, go) else "P0"
    words = ", ".join(f'{WORDS[letter]}"{part}"' if letter == "P" else WORDS[letter] for letter in said)
    bits = mask or min(32, come)
    lanes = f"v{2048 // come}x{LANES[source]}", f"v{2048 // go}x{LANES[target]}"
    return f"(%x: {lanes[0]}, %m: m{bits}); %r = pto.vcvt %x, %m{f' {{{words}}}' if words else ''} -> {lanes[1]}"


def _pairs() -> dict[tuple[str, str], str]:
    """Return the words of every conversion that the table has."""
    lines = (TABLES / "conversions.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.partition(": ") for line in lines if not line.startswith("#")]
    pairs = [(source, *each.split(" ")) for source, _, rest in rows for each in rest.split(", ")]
    return {(source, target): needed for source, target, needed in pairs}


@pytest.mark.parametrize("source", LANES)
def test_lanes_are_converted_as_the_table_says_with_its_words_and_no_others(source: str) -> None:
    every = ["", "R", "S", "P", "RS", "RP", "SP", "RSP"]
    for target in LANES:
        needed = _pairs().get((source, target))
        taken = [said for said in every if not refusal(_converted(source, target, said), "a5")]
        assert taken == ([] if needed is None else [needed]), (source, target)
        if needed is not None:
            narrow = [bits for bits in (8, 16, 32) if not refusal(_converted(source, target, needed, bits), "a3")]
            assert narrow == [min(32, int(re.sub(r"\D", "", source)))]


def test_the_table_of_conversions_is_the_one_that_the_verifier_has() -> None:
    assert _pairs() == PAIRS
