"""Lint: each check finds its own, and finds nothing in text that means what it says."""

from __future__ import annotations

from pathlib import Path

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
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
    pto.tcvt ins(%zeros : {TILE}) outs(%scratch : {TILE}) {{hint = 1 : i32}}
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
        ("lone-flag", 18, "this event is waited for and nothing sets it"),
        ("unread-attribute", 19, "`pto.tcvt` does not read `hint`"),
    ]
    assert {check for check, _, _ in found} == set(CHECKS)


def test_the_example_means_what_it_says() -> None:
    path = Path(__file__).parents[3] / "examples/pto/softmax.pto"
    assert lint(parse(path.read_text(encoding="utf-8"), str(path))) == []
