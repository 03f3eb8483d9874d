"""Equal modules: names and places do not count, everything else does."""

from __future__ import annotations

import pytest
from unit.pto.equality import same

from tilewright.pto.text.parser import parse

TEXT = """module {
  func.func @k(%a: i32, %b: i32, %c: i1) {
    %x = arith.addi %a, %b : i32
    scf.if %c {
      %y = arith.muli %x, %a {note = 1} : i32
    }
    return
  }
}
"""


def test_names_and_places_do_not_count() -> None:
    assert same(parse(TEXT), parse(TEXT.replace("%x", "%sum").replace("\n", "\n\n")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%a, %b : i32", "%b, %a : i32"),
        ("addi", "subi"),
        ("note = 1", "note = true"),
        ("note = 1", "note = 1.0"),
        ("note", "other"),
        ("@k", "@other"),
        ("func.func @k", "func.func private @k"),
        ("%b: i32, %c: i1", "%b: i32, %c: i1, %d: i1"),
        ("    }\n    return", "    } else {\n    }\n    return"),
        ("module {", "module @m {"),
        ("module {", "module attributes {x} {"),
        ("%x = arith.addi %a, %b : i32", "%x = arith.addi %a, %b : i32\n    %z = arith.addi %x, %x : i32"),
    ],
)
def test_everything_else_counts(old: str, new: str) -> None:
    changed = TEXT.replace(old, new)
    assert changed != TEXT
    assert not same(parse(TEXT), parse(changed))
    assert same(parse(changed), parse(changed))
