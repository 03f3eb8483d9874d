"""Row shares: few turns keep all threads busy, and leave what the interpreter leaves on any number of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from unit.backends.cpu.running import Native, floats, native

M, N = 40, 24
LOAD = f"t = pl.load(x, [r, 0], [ROWS, {N}])"
DIVIDED = {
    "elements": (LOAD, "out = pl.store(t + 1.0, [r, 0], out)"),
    "rows folded": (LOAD, "out = pl.store(pl.exp(t - pl.row_max(t)), [r, 0], out)"),
    "a row for all": (LOAD, f"w = pl.load(x, [0, 0], [1, {N}])",
                      "out = pl.store(pl.col_expand_mul(t, w), [r, 0], out)"),
    "a row computed": (
        LOAD, f"w = pl.load(x, [0, 0], [1, {N}]) * 2.0", "out = pl.store(pl.col_expand_mul(t, w), [r, 0], out)",
    ),
    "in place": (f"t = pl.load(out, [r, 0], [ROWS, {N}])", "out = pl.store(t * 2.0, [r, 0], out)"),
    "added": (LOAD, "out = pl.store(t, [0, 0], out, atomic=pl.AtomicType.Add)"),
    "two stores": (
        f"a, b = pl.load(x, [r, 0], [ROWS, {N // 2}]), pl.load(x, [r, {N // 2}], [ROWS, {N // 2}])",
        "out = pl.store(a - b, [r, 0], out)", f"out = pl.store(a + b, [r, {N // 2}], out)",
    ),
}  # fmt: skip
WHOLE = {
    "columns folded": (LOAD, "out = pl.store(pl.col_expand_add(t, pl.col_sum(t)), [r, 0], out)"),
    "transposed": (f"t = pl.load(x, [r, 0], [ROWS, {N}])", "out = pl.store(pl.transpose(t, 0, 1), [0, r % 8], out)"),
    "one after the other": (LOAD, "out = pl.store(t + 1.0, [r, 0], out)",
                            f"u = pl.load(out, [r, 0], [ROWS, {N}])", "out = pl.store(u * t, [r, 0], out)"),
    "by block": (LOAD, "b = pl.cast(pl.tile.get_block_num(), pl.FP32)", "out = pl.store(t * b, [r, 0], out)"),
}  # fmt: skip


def program(body: tuple[str, ...], rows: int) -> Native:
    lines = (chr(10) + 16 * " ").join(body).replace("ROWS", str(rows))
    return native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{M}, {N}], pl.FP32], out: pl.InOut[pl.Tensor[[{M}, {M}], pl.FP32]]):
        for r in pl.parallel(0, {M}, {rows}):
            with pl.at(level=pl.Level.CORE_GROUP):
                {lines}
        return out
""")


def divides(made: Native) -> bool:
    """Return whether a kernel asks which of its rows fall to it."""
    functions = re.findall(r"^define.*?^}", made.native.code.texts["llvm"](), re.MULTILINE | re.DOTALL)
    return any("udiv" in text for text in functions if "_incore_" in text.splitlines()[0])


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [M, 16, 13, 4])
@pytest.mark.parametrize("name", [*DIVIDED, *WHOLE])
def test_few_turns_leave_the_same_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, name: str, rows: int, threads: int
) -> None:
    if name in ("transposed", "added") and M % rows:
        pytest.skip("turns of several sizes would write to the same place")
    if name == "transposed" and M // rows > 1:
        pytest.skip("turns would write to the same place")
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(threads))
    made = program((DIVIDED | WHOLE)[name], rows)
    made.check(np.round(floats(M, N) * 8), np.round(floats(M, M, seed=1) * 8))
    assert divides(made) == (name in DIVIDED and rows > 4)


@pytest.mark.parametrize(("rows", "tile", "is_shared"), [(8, 64, False), (8, 128, False), (1024, 512, True)])
def test_rows_are_divided_where_there_are_enough_of_them_for_threads(
    monkeypatch: pytest.MonkeyPatch, rows: int, tile: int, is_shared: bool
) -> None:
    monkeypatch.setenv("TILEWRIGHT_SMALL_WORK", "alone")
    made = native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{rows}, 64], pl.FP32], out: pl.Out[pl.Tensor[[{rows}, 64], pl.FP32]]):
        for r in pl.parallel(0, {rows}, {tile}):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, 0], [{tile}, 64], clamp=True)
                out = pl.store(pl.exp(t - pl.row_max(t)), [r, 0], out)
        return out
""")
    made.check(floats(rows, 64), floats(rows, 64))
    assert divides(made) == is_shared
