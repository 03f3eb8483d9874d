"""Printing and the end of a kernel, natively and on the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import TilewrightError
from tilewright.programs.compiler import compile
from tilewright.pto.lower import lower
from tilewright.pto.verify import verify

TEXT = """module {
  func.func @shown(%x: !pto.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %view = pto.make_tensor_view %x, shape = [%c2, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x?xf32>
    %part = pto.partition_view %view, offsets = [%c0, %c0], sizes = [%c1, %c2] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x2xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32, valid=1x2>
    pto.tload ins(%part : !pto.partition_tensor_view<1x2xf32>) outs(%t : !pto.tile_buf<vec, 1x8xf32, valid=1x2>)
    pto.tprint ins(%t : !pto.tile_buf<vec, 1x8xf32, valid=1x2>)
    pto.tprint ins(%part : !pto.partition_tensor_view<1x2xf32>)
    pto.print ins("n = %+5d, it says\\n", %n : i32)
    pto.print ins("100%% of %d%%\\n", %n : i32)
    pto.print ins("done, 100%%\\n", %n : i32)
    %c7 = arith.constant 7 : i32
    %stop = arith.cmpi eq, %n, %c7 : i32
    scf.if %stop {
      pto.trap
    }
    return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_values_are_shown_and_a_trap_ends_the_kernel(platform: str, capfd: pytest.CaptureFixture[str]) -> None:
    module = pto.parse(TEXT)
    verify(module)
    (func,) = module.funcs()
    program = compile(lower(module, func, target="a5"), platform=platform)
    x = np.arange(16, dtype=np.float32) + 0.5
    program(1, x, 42)
    assert capfd.readouterr().out == "[[0.5, 1.5]]\n[[0.5, 1.5]]\nn =   +42, it says\n100% of 42%\ndone, 100%\n"
    with pytest.raises(TilewrightError, match=r"pto\.trap was reached"):
        program(1, x, 7)


FORMS = [
    ("f32", "%+08.3f", 1.5, "+001.500"), ("f32", "%e", np.nan, "nan"), ("f32", "%010.2f", np.inf, "       inf"),
    ("f16", "%.3g", 0.1, "0.1"), ("f32", "%-9.1Ex", -1234.5, "-1.2E+03 x"), ("f32", "%5d", 2.25, " 2.25"),
    ("i32", "%x", -1, "ffffffff"), ("i32", "%6.2f", 7, "  7.00"), ("i32", "% i", 7, " 7"), ("i8", "%u", -3, "253"),
    ("ui8", "%#o", 8, "010"), ("ui8", "%hhd", 250, "-6"), ("i16", "%#06X", -1, "0XFFFF"), ("i1", "%d", True, "1"),
    ("index", "%u", 7, "7"), ("i64", "%-14lldx", 1 << 40, "1099511627776 x"), ("i32", "%05.3d", -7, " -007"),
    ("ui64", "%llu", 2**64 - 1, f"{2**64 - 1}"), ("f32", "%999.3f", 2.5, f"{2.5:999.3f}"),
]  # fmt: skip


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("type_", "form", "number", "said"), FORMS, ids=[form for _, form, _, _ in FORMS])
def test_a_number_is_shown_as_its_conversion_says(
    type_: str, form: str, number: float, said: str, platform: str, capfd: pytest.CaptureFixture[str]
) -> None:
    body = f"""pto.print ins("[{form}]\\n", %n : {type_})\n    return"""
    text = f"module {{\n  func.func @k(%n: {type_}) {{\n    {body}\n  }}\n}}\n"
    module = pto.parse(text)
    verify(module)
    compile(lower(module, next(module.funcs()), target="a5"), platform=platform)(1, number)
    assert capfd.readouterr().out == f"[{said}]\n"


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("attributes", "message"), [('{message = "n is odd: 100%"}', "n is odd: 100%"), ("", "pto.assert does not hold")]
)
def test_an_assertion_that_does_not_hold_ends_the_kernel(platform: str, attributes: str, message: str) -> None:
    text = f"module {{\n  func.func @k(%is: i1) {{\n    pto.assert %is {attributes} : i1\n    return\n  }}\n}}\n"
    module = pto.parse(text)
    verify(module)
    program = compile(lower(module, next(module.funcs()), target="a5"), platform=platform)
    program(1, True)
    with pytest.raises(TilewrightError, match=re.escape(message)):
        program(1, False)
