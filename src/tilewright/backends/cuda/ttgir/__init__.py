"""Kernels as Triton's IR with layouts: which warps do what, written out."""
