"""Checks: on, they refuse what leaves a buffer and name the op's own line; off, legal programs compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.backends.cpu.running import Native, floats, kernel, native

from tilewright import settings

FIRST = 9
"""The line of a kernel's first statement, as `kernel` writes it."""

PARAMS = "x: pl.Tensor[[8, 16], pl.FP32], at: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]"

STORED, SLICED = (f"axis 0: a {what} of 8 element(s) at 9 does not fit 0 to 8" for what in ("store", "slice"))

USES: dict[str, tuple[str, str]] = {  # the op that fails for `at` of 9, after one line that is right, and the message
    "load": ("t = pl.load(x, [at, 0], [8, 16])", "axis 0: a load of 8 element(s) at 9 starts outside 0 to 8"),
    "valid part": ("t = pl.load(x, [0, 0], [8, 16], valid_shape=[at, 16])", "a valid part of 9 does not fit 8"),
    "store": ("out = pl.store(pl.load(x, [0, 0], [8, 16]), [at, 0], out)", STORED),
    "read": ("pl.write(out, [0, 0], pl.read(x, [at, 15]))", "axis 0: index 9 lies outside 0 to 8"),
    "write": ("pl.write(out, [at, 0], 1.0)", "axis 0: index 9 lies outside 0 to 8"),
    "slice": ("t = pl.load(pl.slice(x, [8, 16], [at, 0]), [0, 0], [8, 16])", SLICED),
    "tile slice": ("t = pl.slice(pl.load(x, [0, 0], [8, 16]), [4, 16], [at, 0])", SLICED.replace("8", "4", 1)),
    "tile write": (
        "t = pl.tile.write(pl.load(x, [0, 0], [8, 16]), [at, 0], 1.0)",
        "axis 0: index 9 lies outside 0 to 8",
    ),
    "tile assemble": (
        "t = pl.assemble(pl.load(x, [0, 0], [8, 16]), pl.load(x, [0, 0], [4, 16]), [at, 0])",
        STORED.replace("8", "4", 1),
    ),
    "assemble": ("out = pl.assemble(out, pl.slice(x, [8, 16], [0, 0]), [at, 0])", STORED),
    "array": (
        "pl.write(out, [pl.array.get_element(pl.array.create(4, pl.INT32), at), 0], 1.0)",
        "index 9 lies outside 0 to 4",
    ),
    "validshape": ("t = pl.set_validshape(pl.load(x, [0, 0], [8, 16]), at, 16)", "a valid part of 9 does not fit 8"),
    "division": ("pl.write(out, [0, 0], pl.cast(7 // (at - 9), pl.FP32))", "division by zero"),
    "step": ("for i in pl.range(0, 8, at - 9): pl.write(out, [i, 0], 1.0)", "a loop's step cannot be zero"),
}


def using(use: str) -> Native:
    """Return a kernel that uses an op on its third line, and what it makes."""
    line = USES[use][0]
    kept = ["out = pl.store(t, [0, 0], out)"] if line.startswith("t =") else []
    return kernel(PARAMS, "first = pl.load(x, [0, 0], [1, 16])", "out = pl.store(first, [0, 0], out)", line, *kept)


def given(at: int) -> tuple[Any, ...]:
    return floats(8, 16), at, np.zeros((8, 16), np.float32)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "off")


@pytest.mark.parametrize("use", USES)
def test_what_leaves_its_buffer_is_refused_at_its_own_line(use: str) -> None:
    error = using(use).fails(USES[use][1], *given(9))
    assert error.place.line == FIRST + 2


def test_a_slice_that_does_not_fit_says_what_is_cut_instead() -> None:
    error = using("slice").fails(SLICED, *given(9))
    assert str(error).endswith("help: pl.load is cut to what the tensor holds, and so is pl.slice with clamp=True")


def test_a_store_that_does_not_fit_says_what_is_stored() -> None:
    error = using("store").fails(STORED, *given(9))
    narrowed = (
        "and pl.set_validshape narrows that of other tiles, such as a sum to which a loop of no turns added nothing"
    )
    assert str(error).endswith(narrowed)


@pytest.mark.parametrize("use", USES)
def test_a_legal_program_computes_the_same_unchecked(use: str, unchecked: None) -> None:
    free = using(use)
    free.check(*given(0))
    assert "cmpxchg" not in free.native.code.texts["llvm"]()
    assert all("no memory" in error.message for error in free.native.code.errors)


UNKNOWN = """
M, N = pl.dynamic("M"), pl.dynamic("N")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def compute(self, x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        z = pl.row_expand_div(pl.exp(x), pl.row_sum(pl.exp(x)))
        z = pl.matmul(pl.matmul_acc(pl.matmul(z, x, b_trans=True), x, z, b_trans=True), pl.add(z, pl.row_max(x)))
        out[:, :] = pl.slice(pl.concat(z, x), [M, N], [0, 0])
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, N], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        part = pl.reshape(pl.slice(x, [n, N], [0, 0], clamp=True), [M, N])
        whole = pl.create_tensor([n, N], dtype=pl.FP32, init_value=1)
        for i in pl.parallel(n):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(part, [i, 0], [8, 32], clamp=True)
                whole = pl.assemble(whole, pl.slice(t, [1, 32], [0, 0], valid_shape=[1, N]), [i, 0])
        out = self.compute(whole, out)
        return out
"""


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_tensors_of_unknown_extents_compute_the_same_unchecked(rows: int, unchecked: None) -> None:
    free = native(UNKNOWN)
    free.check(floats(rows, 19), rows, np.zeros((rows, 19), np.float32))
    assert "cmpxchg" not in free.native.code.texts["llvm"]()


def test_the_setting_is_read_when_a_program_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, notes in (("on", True), ("off", False), ("1", True), ("0", False), ("", True)):
        monkeypatch.setenv("TILEWRIGHT_CHECKED", value)
        assert ("cmpxchg" in using("store").native.code.texts["llvm"]()) == notes
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "maybe")
    with pytest.raises(
        ValueError, match="TILEWRIGHT_CHECKED must be one of on, 1, true, yes, off, 0, false, no, got 'maybe'"
    ):
        settings.checked()
