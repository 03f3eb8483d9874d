"""Aliases and locations: text as MLIR's tools print it reads as what it stands for."""

from __future__ import annotations

import pytest
from unit.pto.equality import same

from tilewright.errors import KernelError
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.verify import verify

PRINTED = """#kind = #pto.kernel_kind<vector>
#loc = loc("kernel.py":1:1)
#loc1 = loc(unknown)
#pipe = #pto.pipe<PIPE_V>
!P = !pto.ptr<f32, gm>
!T = !pto.tile_buf<vec, 8x64xf32>
module attributes {pto.kernel_kind = #kind, pto.target_arch = "a5"} {
  func.func @k(%f: f32 loc("f"("kernel.py":2:8)), %p: !P loc(#loc1)) {
  ^bb0:
    %c0 = arith.constant 0 : index loc(#loc2)
    %t = pto.alloc_tile : !T loc(callsite("f" at "kernel.py":3:4))
    pto.texpands ins(%f : f32) outs(%t : !T) loc(fused<"pass">["kernel.py":3:4, #loc2])
    pto.barrier #pipe loc(#loc2)
    pto.vecscope {
      pto.barrier #pipe loc(#loc2)
    } loc(#loc2)
    pto.store_scalar %f, %p[%c0] : !P, f32 loc(#loc2)
    return loc(#loc2)
  } loc(#loc2)
} loc(#loc)
#loc2 = loc("kernel.py":3:4)
"""
PLAIN = """module attributes {pto.kernel_kind = #pto.kernel_kind<vector>, pto.target_arch = "a5"} {
  func.func @k(%f: f32, %p: !pto.ptr<f32, gm>) {
    %c0 = arith.constant 0 : index
    %t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
    pto.texpands ins(%f : f32) outs(%t : !pto.tile_buf<vec, 8x64xf32>)
    pto.barrier #pto.pipe<PIPE_V>
    pto.vecscope {
      pto.barrier #pto.pipe<PIPE_V>
    }
    pto.store_scalar %f, %p[%c0] : !pto.ptr<f32, gm>, f32
    return
  }
}
"""


def test_aliases_stand_for_what_they_say_and_locations_are_dropped() -> None:
    read = parse(PRINTED)
    verify(read)
    assert same(read, parse(PLAIN))
    assert print_module(read) == print_module(parse(PLAIN))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("!T = f32\n!T = f16\nmodule {\n}\n", "`!T` is already defined"),
        ("module {\n  func.func @k(%x: !T) {\n    return\n  }\n}\n", "`!T` is no type of PTO"),
        ("module {\n  func.func @k() {\n    return loc(\n  }\n}\n", "3:12"),
        ("#a = 1\n", "expected `module`, found the end of the text"),
        ("#a = 1\nmodule {\n  func.func @k() {\n    pto.barrier #a\n    return\n  }\n}\n", "an attribute such as"),
    ],
)
def test_what_is_no_alias_is_named_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(KernelError) as caught:
        parse(text)
    assert said in str(caught.value)
