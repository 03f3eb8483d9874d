"""Kernels whose body is Python: constants, what they read from outside, and what they call."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnusedCoroutine=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tilewright import pto

FACTOR = 2.0


@dataclass(frozen=True)
class Tiling:
    rows: int
    cols: int


WIDE = Tiling(8, 32)


@pto.jit(entry=False)
def store(tile: pto.Tile, view: pto.PartitionTensorView):
    pto.tile.store(tile, view)


@pto.jit()
def scale(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index, *, TILING: pto.const_expr = WIDE):
    source = pto.make_tensor_view(x, shape=[rows, TILING.cols], strides=[TILING.cols, 1])
    target = pto.make_tensor_view(out, shape=[rows, TILING.cols], strides=[TILING.cols, 1])
    row = pto.get_block_idx() * TILING.rows
    before = pto.alloc_tile(shape=[TILING.rows, TILING.cols], dtype=pto.f32)
    after = pto.alloc_tile(shape=[TILING.rows, TILING.cols], dtype=pto.f32)
    pto.tile.load(pto.partition_view(source, offsets=[row, 0], sizes=[TILING.rows, TILING.cols]), before)
    pto.tile.muls(before, FACTOR, after)
    store(after, pto.partition_view(target, offsets=[row, 0], sizes=[TILING.rows, TILING.cols]))


def run(kernel: Any) -> float:
    """Return by how much a kernel scales."""
    return run_on(kernel[4, None])


def run_on(launch: Any) -> float:
    x, out = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
    launch(x, out, 32)
    assert (out == out[0, 0]).all()
    return float(out[0, 0])


def test_a_body_is_launched_like_text() -> None:
    assert run(scale) == run(scale.compile()) == 2


def test_the_text_of_a_body_is_a_source() -> None:
    text = scale.mlir_text()

    @pto.jit(name="scale", source=text)
    def again(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index): ...

    assert run(again) == 2


def test_constants_make_specializations() -> None:
    small = scale.compile(TILING=Tiling(4, 32))
    assert small is scale.compile(TILING=Tiling(4, 32)) is not scale.compile()
    assert small.constexpr_bindings == {"TILING": Tiling(4, 32)}
    assert scale.compile(TILING=Tiling(8, 32)) is scale.compile()


def test_constants_are_told_apart_by_type_and_bits() -> None:
    @pto.jit()
    def kernel(x: pto.ptr(pto.f32, "gm"), *, N: pto.const_expr = 1):
        pto.store_scalar(pto.const(N, pto.f32), x, 0)

    texts = {kernel.compile(N=value).mlir_text() for value in (0.0, -0.0, 1.0)}
    assert len(texts) == 3
    assert kernel.compile(N=0.0) is kernel.compile(N=0.0)


def test_a_changed_global_is_another_specialization(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(scale) == 2
    old = scale.compile()
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert run(scale) == 3
    assert run(old) == 2
    assert scale.compile() is not old
    monkeypatch.undo()
    assert scale.compile() is old
    assert run(scale) == 2


@pytest.mark.parametrize("launches", [0, 1, 6])
def test_a_launch_that_somebody_holds_follows_a_changed_global(monkeypatch: pytest.MonkeyPatch, launches: int) -> None:
    kernel: Any = pto.jit()(scale.function)
    held, kept = kernel[4, None], kernel.compile()[4, None]
    for _ in range(launches):
        assert run_on(held) == run_on(kept) == FACTOR
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert run_on(held) == run_on(kernel[4, None]) == 3.0 != run_on(kept)


def test_a_changed_callee_is_another_specialization(monkeypatch: pytest.MonkeyPatch) -> None:
    @pto.jit(entry=False)
    def double(tile: pto.Tile, view: pto.PartitionTensorView):
        pto.tile.muls(tile, 2.0, tile)
        pto.tile.store(tile, view)

    assert run(scale) == 2
    monkeypatch.setitem(globals(), "store", double)
    assert run(scale) == 4


def test_its_source_is_where_it_is_declared() -> None:
    metadata = scale.build_metadata()
    assert metadata["source_kind"] == "traced"
    assert str(metadata["source"]).startswith(__file__)
