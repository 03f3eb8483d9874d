"""Tuning: kernels that measure which of several configurations is fastest for their arguments."""
