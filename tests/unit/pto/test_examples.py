"""Every op that runs has an example, which does it, and which gives the same natively as in the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.pto.sentences import words_of

from tilewright.arrays import np
from tilewright.pto.examples.lines import example
from tilewright.pto.lint import lint
from tilewright.pto.ops.examples import own
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.layout import formatted
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify
from tilewright.tools.cli import main
from tilewright.tools.pto import entry_of, given_values, launch, lowered

SILENT = frozenset(["pto.assert", "pto.tprint", "pto.print", "pto.trap"])
"""What an example of leaves no trace in memory."""


def noun(name: str) -> str:
    return OPS[name].lowering.__module__.rpartition(".")[2]


def nouns() -> list[str]:
    return sorted({noun(name) for name, declared in OPS.items() if not declared.family})


def examples_of(file: str) -> dict[str, str]:
    """Return the examples of the ops that one file declares."""
    return {name: example(name) for name, declared in OPS.items() if noun(name) == file and not declared.family}


@pytest.mark.parametrize("file", nouns())
def test_every_op_that_runs_has_an_example_that_does_it(file: str) -> None:
    for name, text in examples_of(file).items():
        assert text, f"{name} has no example"
        module = parse(text, name)
        verify(module)
        done = {op.name for func in module.funcs() if func.body for top in func.body.ops for op in top.walk()}
        assert name in done


@pytest.mark.parametrize("file", nouns())
def test_examples_compute_the_same_natively(file: str) -> None:
    ran: set[Any] = set()
    each = {text: name for name, text in examples_of(file).items()}
    for text, name in each.items():
        module = parse(text, name)
        program = lowered(module, func := entry_of(module, None), "a5")
        before, values = (given_values(func, words_of(text), 0) for _ in range(2))
        launch(program, "interpret", 1, values)
        assert name in SILENT or raw(before) != raw(values), f"the example of {name} leaves nothing"
        lowering = OPS[name].lowering if own(name) is None else file  # kernels are held to NumPy too
        if lowering not in ran:  # others of the same are written with the same code
            ran.add(lowering)
            launch(program, "cpu", 1, before)
            assert same(before, values), name


def raw(values: list[Any]) -> list[bytes]:
    return [value.tobytes() for value in values if hasattr(value, "tobytes")]


def same(these: list[Any], those: list[Any]) -> bool:
    pairs = [
        (a.astype(np.float64), b.astype(np.float64)) for a, b in zip(these, those, strict=True) if hasattr(a, "astype")
    ]
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True) for a, b in pairs)


def test_an_example_runs_as_its_first_line_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = example("pto.tmov.fp")
    (tmp_path / "example.pto").write_text(text, encoding="utf-8")
    assert main(["pto", "run", str(tmp_path / "example.pto"), *words_of(text), "--compare"]) == 0
    assert "written" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["pto.mad", "pto.mte_l0c_gm", "pto.vote_all", "pto.get_tid_x", "pto.tpush_to_aiv"])
def test_what_explain_shows_has_no_remarks_and_is_laid_out(name: str) -> None:
    text = example(name)
    assert lint(parse(text)) == []
    assert formatted(text) == text
