"""The layout: text put in order keeps every token, and comes back as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.pto.text.layout import formatted
from tilewright.pto.text.lexer import Tokens

ROOT = Path(__file__).parents[4]
FILES = sorted([*(ROOT / "tests/unit/pto").rglob("*.pto"), *(ROOT / "examples").rglob("*.pto")])

UNTIDY = """// a kernel

module{
// the only function
func.func @f(%x:!pto.ptr<f32>,
 %y : f32)->() {



%a=arith.constant 0:index // zero
   %p = pto.partition_view %v,offsets=[%a , %a],
   sizes = [ %a,%a ] : T -> T
 %pair:2 = scf.for %i = %a to %b step %c  iter_args(%z = %q)->(f32){
        ^bb0(%j:index) :
  pto.tadd ins(%a,%b:T,T)
  outs(%c : T) {x=1:i32}
 }
  return
}
}"""

TIDY = """// a kernel

module {
  // the only function
  func.func @f(%x: !pto.ptr<f32>,
    %y: f32) -> () {

    %a = arith.constant 0 : index  // zero
    %p = pto.partition_view %v, offsets = [%a, %a],
      sizes = [%a, %a] : T -> T
    %pair:2 = scf.for %i = %a to %b step %c iter_args(%z = %q) -> (f32) {
    ^bb0(%j: index):
      pto.tadd ins(%a, %b : T, T)
        outs(%c : T) {x = 1 : i32}
    }
    return
  }
}
"""


def test_aliases_and_locations_are_laid_out_as_mlir_prints_them() -> None:
    printed = """#loc = loc("k.py":1:1)
!T = !pto.tile_buf<vec, 8x64xf32>
module {
  func.func @k(%f: f32 loc("f"("k.py":2:8))) {
    %t = pto.alloc_tile : !T loc(#loc)
    return loc(callsite("f" at "k.py":3:4))
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
"""
    assert formatted(printed) == printed


def test_blanks_are_put_in_order_and_comments_stay() -> None:
    assert formatted(UNTIDY) == TIDY
    assert formatted(TIDY) == TIDY


def test_every_text_keeps_its_tokens_and_settles_at_once() -> None:
    assert FILES
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        laid_out = formatted(text)
        assert Tokens(laid_out, "").texts == Tokens(text, "").texts, path
        assert formatted(laid_out) == laid_out, path


@pytest.mark.parametrize("text", ["", "\n\n", "// only a comment", "%", "}}}", ")(", '"open', "a\r\nb\r\n"])
def test_text_that_means_nothing_keeps_its_tokens_too(text: str) -> None:
    assert Tokens(formatted(text), "").texts == Tokens(text, "").texts
    assert formatted(formatted(text)) == formatted(text)
