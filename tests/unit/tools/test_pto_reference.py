"""The PTO reference: every op has a form and a meaning, and the examples run."""

from __future__ import annotations

import pytest

from tilewright.pto.examples.lines import example
from tilewright.pto.lint import lint
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.layout import formatted
from tilewright.pto.text.parser import parse
from tilewright.pto.text.usage import usage
from tilewright.pto.verify import verify
from tilewright.tools.cli import main
from tilewright.tools.pto_reference import meaning


def test_every_op_says_how_it_is_written_and_what_it_does() -> None:
    for name, declared in OPS.items():
        assert usage(name, declared.form).startswith(name)
        assert meaning(name).endswith("."), name


def test_forms_in_one_line() -> None:
    forms = {name: usage(name, OPS[name].form) for name in ("pto.tadd", "pto.txors", "pto.vlds", "pto.tdivs", "scf.if")}
    assert forms == {
        "pto.tadd": "pto.tadd ins(tile, tile) outs(tile)",
        "pto.txors": "pto.txors ins(tile, number, [tile]) outs(tile)",
        "pto.vlds": "pto.vlds ub pointer[integer] -> vector, [ub pointer]",
        "pto.tdivs": "pto.tdivs ins(tile, number or number, tile) outs(tile)",
        "scf.if": "scf.if i1 [-> (types)] { ... } [else { ... }]",
    }


def test_explain_shows_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "explain", "tmuls"]) == 0
    out = capsys.readouterr().out
    assert "pto.tmuls ins(tile, number) outs(tile)" in out and "func.func @example" in out and "Rule: " in out
    assert main(["pto", "explain", "tmulz"]) == 1
    assert "did you mean pto.tmul" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("tad", "did you mean pto.tadd?"),
        ("taddd", "did you mean pto.tadd?"),
        ("nosuch", "docs/pto-reference.md lists them"),
    ],
)
def test_explain_suggests_what_is_near_and_nothing_else(
    name: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pto", "explain", name]) == 1
    assert capsys.readouterr().err == f"no op of PTO is called pto.{name}\n    help: {help}\n"


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("pto.TADD", "pto.tadd"),
        ("add", "pto.tadd"),
        ("pto.tile.add", "pto.tadd"),
        ("for", "scf.for"),
        ("exp", "pto.exp"),
    ],
)
def test_explain_knows_ops_by_what_people_call_them(name: str, op: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "explain", name]) == 0
    assert f"`{op}`" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("name", sorted(name for name, declared in OPS.items() if not declared.family))
def test_an_example_that_explain_shows_is_laid_out_and_nothing_in_it_is_odd(name: str) -> None:
    text = example(name)
    module = parse(text)
    verify(module)
    assert formatted(text) == text
    assert lint(module) == []
