"""Triton IR: what runs on the GPU, as text."""
