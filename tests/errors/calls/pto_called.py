"""A kernel of PTO that is called, not launched."""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoArgumentError"


@pto.jit()
def kernel(n: pto.i32): ...


kernel(3)
