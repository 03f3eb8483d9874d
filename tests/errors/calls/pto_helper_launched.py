"""A helper of kernels, launched itself."""
# pyright: basic, reportInvalidTypeForm=false

from tilewright import pto

EXPECTED = "PtoNotLaunchableError"


@pto.jit(entry=False)
def helper(n: pto.i32): ...


helper[1, None](3)
