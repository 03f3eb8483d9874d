"""A test file as PyPTO's users write them: what ops refuse, matched by their words and their causes."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import InvalidOperationError

REFUSED = {
    "pl.tile.add(a, b)": (r"pl\.tile operation 'add': ", ValueError),
    "pl.tensor.add(x, y)": (r"pl\.tensor operation 'add': ", ValueError),
    "pl.add(a, x)": (r"cannot mix Tensor and Tile arguments", TypeError),
    "pl.tile.mul(a)": (r"pl\.tile operation 'mul': ", TypeError),
    "pl.tile.exp(pl.tile.add(a, b))": (r"pl\.tile operation 'add': ", ValueError),
    "pl.tile.gather_mask(a, 9)": (r"pl\.tile operation 'gather_mask': ", ValueError),
    "pl.tile.frobnicate(a)": (r"Unknown pl\.tile operation: frobnicate", type(None)),
    "pl.frobnicate(a)": (r"Unknown operation 'pl\.frobnicate'", type(None)),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_refusal_names_its_operation_and_its_cause(call: str) -> None:
    words, cause = REFUSED[call]
    text = f"""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Tensor[[16, 16], pl.FP32]):
    a = pl.load(x, [0, 0], [16, 32])
    b = pl.load(y, [0, 0], [16, 16])
    r = {call}
"""
    with pytest.raises(InvalidOperationError, match=words) as refused:
        pl.parse(text)
    assert type(refused.value.__cause__) is cause


def test_texts_of_our_own_say_it_shorter() -> None:
    text = (
        "import tilewright.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    pl.tensor.dim(x, 5)\n"
    )
    with pytest.raises(InvalidOperationError, match="axis 5") as refused:
        pl.parse(text)
    assert refused.value.__cause__ is None and "operation" not in str(refused.value)
