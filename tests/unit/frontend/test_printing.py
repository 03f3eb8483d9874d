"""Printing: what native code writes is what the interpreter does."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted

import tilewright.language as pl
from tilewright.errors import DTypeMismatchError, ExecutionError, UnsupportedFeatureError
from tilewright.runtime import RunConfig

BODY = 'pl.print("before", n, n > 3)\n' + in_core(
    "t = pl.load(x, [0, 0], [4, 32])",
    'pl.print(f"{x.shape} n={n:} t:", t, "end", 2.5, t.shape[0], f"{0.125:.1f}")',
    'pl.print("text only 100%")',
    "pl.print(x[0], pl.row_sum(t), pl.cast(t, pl.UINT8), pl.cast(t, pl.FP16))",
    "pl.print()",
    'pl.device_assert(n < 5, f"n is too large for {x.shape[0]} rows")',
    "pl.store(t, [0, 0], out)",
)
PARAMETERS = "x: pl.Tensor, n: pl.Scalar[pl.INT8, pl.RUNTIME], out: pl.Out[pl.Tensor]"


def printed(capfd: Any, platform: str, n: int) -> str:
    x = np.reshape(np.arange(60, dtype=np.float32) / 3, (3, 20))
    x[0, 1], x[0, 2], x[1, 1] = -np.nan, -np.inf, 1e-20
    kernel = jitted(BODY.replace("{n:}", "{n}"), PARAMETERS)
    capfd.readouterr()
    kernel(x, n, config=RunConfig(platform=platform))
    sys.stdout.flush()
    return capfd.readouterr().out


def test_native_code_prints_what_the_interpreter_does(capfd: pytest.CaptureFixture[str]) -> None:
    native, meant = (printed(capfd, platform, -3) for platform in ("cpu", "interpret"))
    assert native == meant
    first, second, *rest = native.splitlines()
    assert first == "before -3 False"
    assert second.startswith("(3, 20) n=-3 t: [[0, nan, -inf, 1, 1.33333,") and second.endswith("end 2.5 4 0.1")
    assert rest[0] == "text only 100%" and rest[1].startswith("[0, nan, -inf, 1,") and "..." in rest[1]
    assert rest[2] == ""


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_an_assertion_says_its_message(capfd: pytest.CaptureFixture[str], platform: str) -> None:
    with pytest.raises(ExecutionError, match="n is too large for 3 rows"):
        printed(capfd, platform, 7)


def test_what_has_no_text_is_refused() -> None:
    x = np.zeros((2, 2), np.float32)
    with pytest.raises(UnsupportedFeatureError, match="without conversions or formats"):
        jitted(in_core('pl.print(f"{pl.read(x, [0, 0]):.2f}")'))(x)
    with pytest.raises(DTypeMismatchError, match="fp8e5m2 elements have no text"):
        jitted(in_core("pl.print(pl.cast(pl.load(x, [0, 0], [2, 2]), pl.FP8E5M2))"))(x)


def test_in_plain_python_it_is_pythons(capsys: pytest.CaptureFixture[str]) -> None:
    pl.print("n", 3)
    assert capsys.readouterr().out == "n 3\n"
