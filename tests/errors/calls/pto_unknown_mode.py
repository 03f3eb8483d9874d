"""A kernel of PTO in a mode that there is not.

Fix: mode="auto", or "explicit" for a text that waits by itself.
"""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoOptionError"


@pto.jit(mode="fast")
def kernel(n: pto.i32): ...
