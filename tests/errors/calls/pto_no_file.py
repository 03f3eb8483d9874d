"""A text of PTO in a file that there is not."""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoSourceNotFoundError"


@pto.jit(source="nowhere/kernel.pto")
def kernel(n: pto.i32): ...


kernel.compile()
