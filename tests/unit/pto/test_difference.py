"""Differences of modules: names do not count, and one change shows as one."""

from __future__ import annotations

from tilewright.pto.difference import difference
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module

BEFORE = """module {
  func.func @f(%x: !pto.ptr<f32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %a = arith.addi %i, %c1 : index
    }
    scf.for %i = %c0 to %n step %c1 {
      %a = arith.muli %i, %c1 : index
    }
    return
  }
}
"""


def _lines(after: str, context: int = 0) -> list[str]:
    return [line.replace("    ", "") for line in difference(parse(BEFORE, "a"), parse(after, "b"), context)]


def test_names_do_not_count() -> None:
    renamed = BEFORE.replace("%c1", "%one").replace("%x", "%y")
    first, second = renamed.split("}\n    scf.for")
    assert _lines(f"{first}}}\n    scf.for{second.replace('%i', '%turn').replace('%a', '%b')}") == []


def test_one_op_more_is_one_line() -> None:
    after = BEFORE.replace("    scf.for", "    %c2 = arith.constant 2 : index\n    scf.for", 1)
    assert _lines(after) == ["+ %c2 = arith.constant 2 : index"]


def test_another_operand_differs_though_the_text_is_alike() -> None:
    after = BEFORE.replace("arith.muli %i, %c1", "arith.muli %c1, %i")
    assert _lines(after) == ["-   %a = arith.muli %i, %c1 : index", "+   %a = arith.muli %c1, %i : index"]


def test_lines_around_a_difference_are_shown() -> None:
    after = BEFORE.replace("constant 0", "constant 3")
    assert _lines(after, 1) == [
        "func.func @f(%x: !pto.ptr<f32, gm>, %n: index) {",
        "- %c0 = arith.constant 0 : index",
        "+ %c0 = arith.constant 3 : index",
        "  %c1 = arith.constant 1 : index",
    ]


def test_values_keep_their_names() -> None:
    before, after = parse(BEFORE, "a"), parse(BEFORE, "b")
    wanted = print_module(before)
    assert difference(before, after) == [] and print_module(before) == wanted == print_module(after)


def test_regions_lie_as_deep_as_texts_may_have_them() -> None:
    deep = "scf.if %c {\n" * 60 + "}\n" * 60
    texts = [f"module {{\nfunc.func @f(%c: i1) {{\n{body}return\n}}\n}}\n" for body in (deep, "")]
    assert len(difference(*map(parse, texts), context=0)) == 120


def test_a_long_text_of_equal_lines_is_compared_as_fast_as_any() -> None:
    """Half a minute for 4,000 lines, eight times that for twice as many, is what trying equal lines in turn takes."""
    lines = ["%v = arith.constant 0 : i32", *(f"%v{i} = arith.addi %v, %v : i32" for i in range(4000))]
    more = [*lines, *(f"%w{i} = arith.addi %v, %v : i32" for i in range(20))]
    more[100:100] = ["%x = arith.muli %v, %v : i32"]
    texts = ["\n".join(["module {", "func.func @f() {", *body, "return", "}", "}"]) for body in (lines, more)]
    found = difference(*map(parse, texts), context=0)
    assert [line[0] for line in found if "..." not in line] == ["+"] * 21
