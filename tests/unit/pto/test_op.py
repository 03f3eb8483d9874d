"""Declarations: one record per op, which everything asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright.pto.machine.machine import Machine
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form


def _nothing(m: Machine, op: Op) -> None:
    """Do nothing."""


def test_names_follow_the_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pto.one", "pto.two.three"):
        monkeypatch.setitem(OPS, name, OPS["pto.tadd"])
        monkeypatch.delitem(OPS, name)
    declare("pto.one two.three", Form("ii", "i"))(_nothing)
    assert OPS["pto.one"] is OPS["pto.two.three"]
    assert OPS["pto.one"].lowering is _nothing


def test_an_op_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"op pto\.tadd is declared twice"):
        declare("pto.tadd", Form("ii", "i"))(_nothing)


def test_tiles_and_registers_share_their_elementwise_ops() -> None:
    assert OPS["pto.tadd"].lowering is OPS["pto.vadd"].lowering is OPS["pto.vmuls"].lowering


def test_importing_pto_loads_no_declarations() -> None:
    code = "import sys; from tilewright import pto; print('tilewright.pto.ops.registry' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.strip() == "False"
