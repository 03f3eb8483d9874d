"""A kernel of PTO whose parameter has no type."""

from tilewright import pto

EXPECTED = "PtoDeclarationError"


@pto.jit()
def kernel(n): ...
