"""A text of PTO whose entry takes other types than its declaration."""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoAbiError"


@pto.jit(
    source="""
module {
  func.func @copy(%x: !pto.ptr<f32>, %n: i64) {
    return
  }
}
"""
)
def copy(x: pto.ptr(pto.f32, "gm"), n: pto.index): ...


copy.compile()
