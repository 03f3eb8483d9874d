"""Lint: each check finds its own, and finds nothing in text that means what it says."""

from __future__ import annotations

from pathlib import Path

from unit.pto.cube.writing import kernel

from tilewright.pto.lint import CHECKS, lint
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

TILE = "!pto.tile_buf<vec, 8x64xf32>"
WANTING = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func private @left() {{
    return
  }}
  func.func @kernel(%x: !pto.ptr<f32>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %zeros = pto.alloc_tile : {TILE}
    %unread = pto.alloc_tile : {TILE}
    %unused = pto.alloc_tile : {TILE}
    %scratch = pto.alloc_tile : {TILE}
    scf.for %i = %c8 to %c0 step %c8 {{
      pto.txor ins(%zeros, %zeros, %scratch : {TILE}, {TILE}, {TILE}) outs(%unread : {TILE})
    }}
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
    pto.tcvt ins(%zeros : {TILE}) outs(%scratch : {TILE}) {{hint = 1 : i32}}
    %late = pto.alloc_tile : {TILE}
    %no = arith.constant false
    scf.if %no {{
      pto.tneg ins(%late : {TILE}) outs(%late : {TILE})
    }}
    return
  }}
}}
""".replace("f32>", "i32>").replace("xf32", "xi32")


def test_each_check_says_where_and_what() -> None:
    module = parse(WANTING, "wanting.pto")
    verify(module)
    found = [(finding.check, finding.span.line, finding.message) for finding in lint(module)]
    assert found == [
        ("uncalled-function", 2, "nothing calls `@left`, which is private"),
        ("unused-parameter", 5, "`@kernel` never uses `%x`"),
        ("unused-parameter", 5, "`@kernel` never uses `%n`"),
        ("unused-value", 8, "nothing uses `%c9`"),
        ("idle-tile", 9, "nothing writes `%zeros`: it holds zeros"),
        ("idle-tile", 10, "nothing reads `%unread`"),
        ("idle-tile", 11, "nothing uses `%unused`"),
        ("idle-loop", 13, "this loop goes from 8 to 0: it makes no turn"),
        ("early-wait", 16, "this event is waited for before anything sets it"),
        ("lone-flag", 19, "this event is waited for and nothing sets it"),
        ("unread-attribute", 20, "`pto.tcvt` does not read `hint`"),
        ("idle-tile", 21, "nothing reads `%late`"),
        ("settled-branch", 23, "this condition is always false"),
        ("early-read", 24, "nothing writes `%late` before this: it holds zeros"),
    ]
    assert {check for check, _, _ in found} == set(CHECKS) - {"misfitting-load"}


def test_a_product_that_looks_for_its_operand_elsewhere() -> None:
    """A transposed load of bytes fills whole squares of 32, so that 40 columns are 4 blocks of 16, not 3."""
    text = kernel(
        {},
        {"s": ("i8, l1", 0), "a": ("i8, l0a", 0), "b": ("i8, l0b", 0), "c": ("i32, l0c", 0)},
        [
            "mte_l1_l0a %s, %a, %n16, %n50, %n0, %n0",
            "mte_l1_l0b %s, %b, %n50, %n40, %n0, %n0 {transpose = true}",
            "mad %a, %b, %c, %n16, %n40, %n50",
        ],
    )
    found = [finding for finding in lint(parse(text)) if finding.check != "unused-value"]
    assert [(finding.check, finding.message) for finding in found] == [
        ("misfitting-load", "`%b` was loaded 4 blocks of 16 wide, and this takes it for 3")
    ]
    for fits in (text.replace(" 40 ", " 64 "), text.replace(" 50 ", " 32 "), text.replace("i8", "f16")):
        assert not [finding for finding in lint(parse(fits)) if finding.check == "misfitting-load"]


def test_the_example_means_what_it_says() -> None:
    path = Path(__file__).parents[3] / "examples/pto/softmax.pto"
    assert lint(parse(path.read_text(encoding="utf-8"), str(path))) == []


def test_what_an_op_does_beside_what_it_gives_is_wanted() -> None:
    text = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%o: !pto.ptr<i32>, %n: i32) {
    %old = pto.atomic_add %o, %n : !pto.ptr<i32>, i32 -> i32
    return
  }
}
"""
    assert lint(parse(text)) == []


def test_the_scratch_tile_of_a_gather_and_the_result_that_nobody_asked_for_are_wanted() -> None:
    tile = "!pto.tile_buf<vec, 8x64xi32>"
    text = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%o: !pto.ptr<i32>, %n: i32) {{
    %c0 = arith.constant 0 : index
    %x = pto.alloc_tile : {tile}
    %scratch = pto.alloc_tile : {tile}
    %places = pto.alloc_tile : {tile}
    %counts = pto.alloc_tile : {tile}
    pto.texpands ins(%n : i32) outs(%x : {tile})
    pto.tgather ins(%x, %n, %scratch : {tile}, i32, {tile}) outs(%places, %counts : {tile}, {tile})
    %e = pto.tgetval ins(%counts, %c0 : {tile}, index) outs : i32
    pto.store_scalar %e, %o[%c0] : !pto.ptr<i32>, i32
    return
  }}
}}
"""
    assert lint(parse(text)) == []
