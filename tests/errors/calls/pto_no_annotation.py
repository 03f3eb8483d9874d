"""A kernel of PTO whose parameter has no type."""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoDeclarationError"


@pto.jit()
def kernel(n): ...
