"""Ops without a meaning here: read, printed and verified, and refused by name where a kernel with one is compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.pto.text.samples import VALID, text_of

from tilewright.pto.errors import PtoUnsupportedOpError
from tilewright.pto.lower import lower
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify
from tilewright.tools.cli import main
from tilewright.tools.pto_reference import pto_page

UNMEANT = sorted(name for name, op in OPS.items() if op.family)
TEXT = """
module {{
  func.func @lanes(%p: !pto.ptr<i32, gm>) attributes {{pto.kernel}} {{
    {op}
    return
  }}
  func.func @plain(%p: !pto.ptr<i32, gm>) attributes {{pto.kernel}} {{
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : i32
    pto.store_scalar %c7, %p[%c0] : !pto.ptr<i32, gm>, i32
    return
  }}
}}
"""


@pytest.mark.parametrize("name", UNMEANT)
def test_a_kernel_with_one_is_refused_by_its_name_and_another_of_the_text_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unmeant.pto"
    path.write_text(TEXT.format(op=name), encoding="utf-8")
    module = parse(TEXT.format(op=name))
    verify(module)
    assert main(["pto", "run", str(path), "--entry", "lanes", "p=zeros:1"]) == 1
    said = capsys.readouterr()
    assert f":4:5: `{name}` cannot be run here ({OPS[name].family})" in said.out + said.err
    assert main(["pto", "run", str(path), "--entry", "plain", "--save", str(tmp_path), "p=zeros:1"]) == 0
    assert np.load(tmp_path / "p.npy").tolist() == [7]


@pytest.mark.parametrize("name", UNMEANT)
def test_the_pages_say_that_nothing_runs_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason = str(OPS[name].lowering.__doc__)
    assert main(["pto", "explain", name.removeprefix("pto.")]) == 0
    assert reason in capsys.readouterr().out
    (row,) = (line for line in pto_page().splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
    assert "refused where it would run" in row and reason in row


def test_a_kernel_with_one_is_refused_with_what_to_write_instead() -> None:
    module = parse(TEXT.format(op="%m = pto.vmulconv -> !pto.vreg<64xf32>"))
    with pytest.raises(PtoUnsupportedOpError, match=r"4:10: .*`pto\.vmulconv` cannot be run here") as caught:
        lower(module, next(module.funcs()), target="a5")
    assert "help: how it rounds, and which lanes" in str(caught.value)


def test_every_one_stands_in_a_text() -> None:
    modules = [parse(text_of(path)) for path in VALID]
    bodies = (func.body.ops for module in modules for func in module.funcs() if func.body is not None)
    seen = {inner.name for ops in bodies for op in ops for inner in op.walk()}
    assert not set(UNMEANT) - seen
