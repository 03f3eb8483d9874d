"""Ops without a meaning here: read, printed and verified, and refused by name where a kernel with one is compiled."""

from __future__ import annotations

import pytest
from unit.pto.text.samples import VALID, text_of

from tilewright.pto.errors import PtoUnsupportedOpError
from tilewright.pto.lower import lower
from tilewright.pto.module import Module
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

TEXT = """
module {
  func.func @lanes(%p: !pto.ptr<i32, gm>) {
    %m = pto.vmulconv -> !pto.vreg<64xf32>
    return
  }
  func.func @plain(%p: !pto.ptr<i32, gm>) {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : i32
    pto.store_scalar %c7, %p[%c0] : !pto.ptr<i32, gm>, i32
    return
  }
}
"""


def read() -> Module:
    module = parse(TEXT)
    verify(module)
    return module


def test_a_kernel_with_one_is_refused_by_its_name_and_line() -> None:
    module = read()
    with pytest.raises(
        PtoUnsupportedOpError, match=r"4:10: .*`pto\.vmulconv` cannot be run here \(machine ops"
    ) as caught:
        lower(module, next(module.funcs()), target="a5")
    assert "help: how it rounds, and which lanes" in str(caught.value)


def test_another_kernel_of_the_text_is_compiled() -> None:
    module = read()
    _, plain = module.funcs()
    assert lower(module, plain, target="a5").name == "plain"


def test_every_one_stands_in_a_text() -> None:
    modules = [parse(text_of(path)) for path in VALID]
    bodies = (func.body.ops for module in modules for func in module.funcs() if func.body is not None)
    seen = {inner.name for ops in bodies for op in ops for inner in op.walk()}
    assert not {name for name, op in OPS.items() if op.family} - seen
