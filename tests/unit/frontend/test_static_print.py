"""Printing while a kernel is read: text as it is, values with their types as kernels write them."""

from __future__ import annotations

import pytest

import tilewright.language as pl

HEAD = """
@pl.function
def kernel(x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INT32]):
    t = pl.load(x, [0], [16], valid_shape=[8])
"""


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ('"shape"', "shape"),
        ("x", "x: pl.Tensor[[64], pl.FP32]"),
        ("n", "n: pl.Scalar[pl.INT32]"),
        ("t", "t: pl.Tile[[16], pl.FP32, pl.TileView(valid_shape=[8])]"),
        ("42", "42: pl.Scalar[pl.INDEX]"),
        ("0.5", "0.5: pl.Scalar[pl.FP32]"),
        ("True", "True: pl.Scalar[pl.BOOL]"),
        ("n + 1", "n + 1: pl.Scalar[pl.INT32]"),
        ('"a", n, "b"', "a n: pl.Scalar[pl.INT32] b"),
        ('f"{x} and {3}"', "x: pl.Tensor[[64], pl.FP32] and 3: pl.Scalar[pl.INDEX]"),
    ],
)
def test_what_is_printed(capsys: pytest.CaptureFixture[str], arguments: str, printed: str) -> None:
    pl.parse(f"{HEAD}    pl.static_print({arguments})\n", "kernel.py")
    out = capsys.readouterr().out.strip()
    assert out.startswith("static_print [kernel.py") and out.endswith(f":5]: {printed}")


@pytest.mark.parametrize("text", ["{x!r}", "{n:>8}"])
def test_formats_are_refused(text: str) -> None:
    with pytest.raises(pl.parser.UnsupportedFeatureError, match="without conversions or formats"):
        pl.parse(f'{HEAD}    pl.static_print(f"{text}")\n')
