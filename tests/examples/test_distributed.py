"""The examples of many ranks: in one process by the interpreter and on threads, and over three and four processes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from processes import launched

FOLDER = Path(__file__).parents[2] / "examples" / "distributed"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"distributed_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = {name: loaded(name) for name in sorted(path.stem for path in FOLDER.glob("*.py"))}
CASES = [(name, way) for name, module in EXAMPLES.items() for way in getattr(module, "WAYS", [""])]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_an_example_gives_what_torch_does_on_every_platform(name: str, way: str) -> None:
    options = {"way": way} if way else {}
    for platform, ranks in (("interpret", 3), ("cpu", 2), ("cpu", 4)):
        got, wanted = EXAMPLES[name].run(ranks, platform, **options)
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-3)


def test_ranks_end_with_the_same_bits() -> None:
    for way in EXAMPLES["all_reduce"].WAYS:
        got, _ = EXAMPLES["all_reduce"].run(4, "cpu", way=way)
        assert all(torch.equal(got[0], each) for each in got)


@pytest.mark.parametrize("transport", ["memory", "messages"])
@pytest.mark.parametrize("ranks", [3, 4])
def test_processes_give_what_torch_does(ranks: int, transport: str, tmp_path: Path) -> None:
    for said in launched(ranks, tmp_path, Path(__file__).with_name("examples_worker.py"), transport):
        assert said.splitlines() == [f"{name} {way}: right" for name, way in CASES], said
