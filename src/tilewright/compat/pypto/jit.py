"""`pypto.jit`: the decorator of kernels, and what it returns."""

from tilewright.jit.decorators import jit
from tilewright.jit.function import JITFunction

__all__ = ["JITFunction", "jit"]
