"""Tilewright: a tile-kernel JIT for Python."""

__version__ = "0.1.0"
