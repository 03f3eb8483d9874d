"""Tilewright: a tile-kernel JIT for Python."""

from tilewright.version import __version__ as __version__
