"""A launch of no block."""
# pyright: basic, reportInvalidTypeForm=false

import numpy as np

from tilewright import pto

EXPECTED = "PtoValueError"


@pto.jit(
    source="""
module {
  func.func @copy(%x: !pto.ptr<f32>, %n: index) {
    return
  }
}
"""
)
def copy(x: pto.ptr(pto.f32, "gm"), n: pto.index): ...


copy[0, None](np.zeros(8, np.float32), 8)
