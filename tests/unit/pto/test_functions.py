"""The functions of a module: what is known of them is found once, however many of them are lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tilewright.pto.module import Func, Module
from tilewright.tools.cli import main

COUNT = 40
FUNCTION = """
  func.func @k{}(%x: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %n = pto.load_scalar %x[%c0] : !pto.ptr<f32, gm> -> f32
    pto.store_scalar %n, %x[%c0] : !pto.ptr<f32, gm>, f32
    return
  }}
"""


def test_a_check_walks_over_all_functions_as_often_for_many_as_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[Module] = []
    scopes, funcs = Module.scopes, Module.funcs

    def walked(module: Module, outer: Mapping[str, Func] | None = None) -> Iterator[tuple[Func, dict[str, Func]]]:
        walks.append(module)
        return scopes(module, outer)

    def listed(module: Module) -> Iterator[Func]:
        walks.append(module)
        return funcs(module)

    monkeypatch.setattr(Module, "scopes", walked)
    monkeypatch.setattr(Module, "funcs", listed)
    counts: list[int] = []
    for count in (2, COUNT):
        walks.clear()
        path = tmp_path / f"{count}.pto"
        functions = "".join(FUNCTION.format(number) for number in range(count))
        path.write_text(f'module attributes {{pto.target_arch = "a5"}} {{{functions}}}\n')
        assert main(["pto", "check", str(path)]) == 0
        counts.append(len(walks))
    assert counts[0] == counts[1]
