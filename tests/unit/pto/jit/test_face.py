"""The face of PTO: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright import pto


def test_listed_names_exist_and_are_sorted() -> None:
    assert pto.__all__ == sorted(pto.__all__)
    assert not [name for name in pto.__all__ if not hasattr(pto, name)]


def test_every_op_is_a_name() -> None:
    assert repr(pto.make_tensor_view) == "pto.make_tensor_view"
    assert repr(pto.tile.add) == "pto.tile.add"


def test_other_names_are_missed() -> None:
    with pytest.raises(AttributeError, match="module 'tilewright.pto' has no attribute 'frobnicate'"):
        _ = pto.frobnicate


def test_importing_it_loads_neither_torch_nor_numpy_nor_a_compiler() -> None:
    code = "import sys, tilewright.pto; print({'torch', 'numpy', 'llvmlite'} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.strip() == "set()"
