"""Global memory by index: what indices outside stand for, and elements that are combined with what is there."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest

from tilewright import ir
from tilewright.pto.examples.lines import kernel
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
INDICES = np.array([[0, 3, 3, 511, 512, 700, -1, 1023]], np.int32)


def run(lines: str, target: str, *arguments: Any) -> None:
    module = parse(kernel(lines), "index.pto")
    verify(module)
    func = next(module.funcs())
    ir.compile(lower(module, func, target="a5"), platform=target)(1, *arguments)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("clamp", np.minimum(INDICES.view(np.uint32), 511)),
        ("wrap", INDICES.view(np.uint32) % 512),
        ("zero", np.where(INDICES.view(np.uint32) < 512, INDICES, 0)),
    ],
)
def test_an_index_outside_stands_for_what_the_op_says(mode: str, wanted: Any, target: str) -> None:
    x, out = np.arange(512, dtype=np.float32), np.zeros(8, np.float32)
    lines = "(%x: w1x512xf32, %i: t1x8xi32, %out: t1x8xf32); pto.mgather ins(%x, %i) outs(%out)"
    run(f"{lines} {{gatherOob = #pto<gather_oob {mode}>}}", target, x, INDICES.ravel(), out)
    np.testing.assert_array_equal(out, wanted.ravel())


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize(("word", "combine"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_elements_are_combined_with_what_is_there(word: str, combine: Any, dtype: str, target: str) -> None:
    kind = {"f32": np.float32, "i32": np.int32}[dtype]
    x, out = np.arange(-3, 5, dtype=kind), np.arange(512).astype(kind)
    wanted, inside = out.copy(), INDICES.ravel().view(np.uint32) < 512
    combine.at(wanted, INDICES.ravel()[inside], x[inside])
    lines = f"(%x: t1x8x{dtype}, %i: t1x8xi32, %out: w1x512x{dtype}); pto.mscatter ins(%x, %i) outs(%out)"
    words = f"{{scatterAtomicOp = #pto<scatter_atomic_op {word}>, scatterOob = #pto<scatter_oob skip>}}"
    run(f"{lines} {words}", target, x, INDICES.ravel(), out)
    np.testing.assert_array_equal(out, wanted)


ROWS = np.array([2, 0, 7, 8, -1, 2], np.int32)


@pytest.mark.parametrize("shape", ["1x8", "8x1"])
@pytest.mark.parametrize(("mode", "outside"), [("clamp", 7), ("wrap", None), ("zero", -1)])
def test_rows_come_by_index(mode: str, outside: int | None, shape: str, target: str) -> None:
    x, out = np.arange(256, dtype=np.float32).reshape(8, 32), np.full((8, 32), 9, np.float32)
    places = np.append(ROWS, np.zeros(2, np.int32))
    numbers = places.view(np.uint32).astype(np.int64)
    rows = numbers % 8 if outside is None else np.where(numbers < 8, numbers, outside)
    wanted = np.where((rows == -1)[:, None], 0, x[rows])
    layout = ", blayout=col_major" if shape == "8x1" else ""
    kind = f"!pto.tile_buf<vec, {shape}xi32{layout}>"
    lines = f"(%x: w8x32xf32, %i: {kind}, %out: t8x32xf32); pto.mgather ins(%x, %i) outs(%out)"
    run(
        f"{lines} {{coalesce = #pto<coalesce row>, gatherOob = #pto<gather_oob {mode}>}}", target, x.ravel(), places,
        out.reshape(-1),
    )  # fmt: skip
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("adds", [True, False])
def test_rows_go_by_index(adds: bool, said: bool, target: str) -> None:
    x, out = np.arange(128, dtype=np.float32).reshape(4, 32), np.ones((8, 32), np.float32)
    rows, wanted = np.array([5, 1, 5, 9, 0, 0, 0, 0], np.int32), out.copy()
    for row, values in zip(rows[:3], x[:3], strict=True):
        wanted[row] = wanted[row] + values if adds else values
    words = ["scatterOob = #pto<scatter_oob skip>"] + ["coalesce = #pto<coalesce row>"] * said
    words += ["scatterAtomicOp = #pto<scatter_atomic_op add>"] * adds
    lines = "(%x: t4x32xf32, %i: t1x8xi32, %out: w8x32xf32); pto.mscatter ins(%x, %i) outs(%out)"
    run(f"{lines} {{{', '.join(words)}}}", target, x.ravel(), rows, out.reshape(-1))
    np.testing.assert_array_equal(out, wanted)


def test_nothing_goes_where_nothing_is_valid(target: str) -> None:
    x, out, rows = np.ones(32, np.float32), np.zeros(32, np.float32), np.zeros(8, np.int32)
    kinds = "!pto.tile_buf<vec, 1x8xf32, valid=0x8>", "t1x8xi32"
    lines = f"(%x: w1x32xf32, %i: {kinds[1]}, %out: w1x32xf32); %t = pto.alloc_tile : {kinds[0]}"
    gather = f"pto.mgather ins(%x, %i : w1x32xf32, {kinds[1]}) outs(%t : {kinds[0]})"
    scatter = f"pto.mscatter ins(%t, %i : {kinds[0]}, {kinds[1]}) outs(%out : w1x32xf32)"
    words = "{coalesce = #pto<coalesce elem>}"
    run(f"{lines}; {gather} {words}; {scatter} {words}", target, x, rows, out)
    assert not out.any()
