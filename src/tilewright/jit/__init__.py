"""The JIT: kernels specialized, compiled and cached at their first call."""
