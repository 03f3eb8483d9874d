"""NVIDIA GPUs as a back end: kernels as Triton IR, launched by a host function that LLVM emits."""
