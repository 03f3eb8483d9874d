"""Streamed: outputs of any size taken for large ones, which are written past the caches."""

import pytest

from tilewright.backends.cpu.compute import streaming
from tilewright.native.target import Target


def take_for_large(patch: pytest.MonkeyPatch, least: int = 0) -> None:
    """Have outputs of so many bytes written past the caches, however much these hold."""
    patch.setattr(streaming, "STREAMED", least)
    patch.setattr(Target, "kept_bytes", 0)
