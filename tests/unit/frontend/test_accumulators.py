"""Accumulators: what an op adds to in place is seen by every name of the tile, and by the tile a slice is part of."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, out, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Function
from tilewright.errors import KernelError, OperandError, UnsupportedFeatureError

LOADS = """
a = pl.load(x, [0, 0], [4, 8])
b = pl.load(y, [0, 0], [8, 6])
acc = pl.tile.full([4, 12], dtype=pl.FP32, value=1.0)
"""
X, Y = (np.reshape(np.arange(m * n) % 5, (m, n)).astype(np.float32) for m, n in ((4, 8), (8, 6)))

LEFT, RIGHT = "pl.tile.slice(acc, [4, 6], [0, 0])", "pl.slice(acc, [4, 6], [0, 6])"

SUMS: dict[str, tuple[str, dict[int, int]]] = {
    "assigned": (f"w = {RIGHT}\nw = pl.matmul_acc(w, a, b)", {6: 1}),
    "as a statement": (f"w = {RIGHT}\npl.matmul_acc(w, a, b)", {6: 1}),
    "under another name": (f"w = {RIGHT}\nr = pl.matmul_acc(w, a, b)\npl.matmul_acc(w, a, b)", {6: 2}),
    "by name": (f"w = {RIGHT}\npl.matmul_acc(lhs=a, rhs=b, acc=w)", {6: 1}),
    "in one expression": (f"pl.tile.matmul_acc({RIGHT}, a, b)", {6: 1}),
    "a subscript": ("pl.matmul_acc(acc[:, 6:12], a, b)", {6: 1}),
    "in a loop": (f"for k in pl.range(3):\n    w = {RIGHT}\n    w = pl.matmul_acc(w, a, b)", {6: 3}),
    "taken before a loop": (f"w = {RIGHT}\nfor k in pl.range(3):\n    w = pl.matmul_acc(w, a, b)", {6: 3}),
    "a statement in a loop": (f"w = {RIGHT}\nfor k in pl.range(3):\n    pl.matmul_acc(w, a, b)", {6: 3}),
    "two": (
        f"v = {LEFT}\nw = {RIGHT}\nfor k in pl.range(3):\n    w = pl.matmul_acc(w, a, b)\n    pl.matmul_acc(v, a, b)",
        {0: 3, 6: 3},
    ),
    "where the program decides": (
        "for n in pl.range(0, 12, 6):\n    w = pl.slice(acc, [4, 6], [0, n])\n"
        "    for k in pl.range(2):\n        w = pl.matmul_acc(w, a, b)",
        {0: 2, 6: 2},
    ),
    "one after the other by one name": (
        f"w = {LEFT}\nfor k in pl.range(2):\n    w = pl.matmul_acc(w, a, b)\n"
        f"w = {RIGHT}\nfor k in pl.range(3):\n    w = pl.matmul_acc(w, a, b)",
        {0: 2, 6: 3},
    ),
    "overlapping": (
        f"v = pl.slice(acc, [4, 6], [0, 3])\nw = {RIGHT}\npl.matmul_acc(w, a, b)\npl.matmul_acc(v, a, b)",
        {3: 1, 6: 1},
    ),
    "of a slice": (
        "v = pl.slice(acc, [4, 9], [0, 3])\nw = pl.slice(v, [4, 6], [0, 2])\n"
        "pl.matmul_acc(w, a, b)\npl.matmul_acc(w, a, b)",
        {5: 2},
    ),
    "in a branch": (
        f"w = {RIGHT}\nfor k in pl.range(4):\n    if k > 1:\n        w = pl.matmul_acc(w, a, b)",
        {6: 2},
    ),
    "of a tile with two names": (f"same = acc\npl.matmul_acc({RIGHT}, a, b)\nacc = pl.add(same, 0.0)", {6: 1}),
    "of a tile that is made anew": (
        "for turn in pl.range(2):\n    acc = pl.tile.full([4, 12], dtype=pl.FP32, value=1.0)\n"
        f"    for k in pl.range(2):\n        w = {RIGHT}\n        pl.matmul_acc(w, a, b)",
        {6: 2},
    ),
    "no slice any more": (
        f"w = {RIGHT}\nfor k in pl.range(2):\n    w = pl.matmul(a, b)\n    w = pl.matmul_acc(w, a, b)",
        {},
    ),
    "no slice any more where a branch is": (
        f"w = {RIGHT}\nfor k in pl.range(2):\n    w = pl.matmul(a, b)\n"
        "    if k > 0:\n        w = pl.matmul_acc(w, a, b)",
        {},
    ),
    "moved apart": (f"w = pl.move({RIGHT}, target_memory=pl.Mem.Acc)\npl.matmul_acc(w, a, b)", {}),
}


def adding(body: str) -> Function:
    text = f"{LOADS}{body}\nout = pl.store(acc, [0, 0], out)"
    return kernel(text, x=tensor(pl.FP32, 4, 8), y=tensor(pl.FP32, 8, 6), out=out(pl.FP32, 4, 12))


@pytest.mark.parametrize("way", SUMS)
def test_what_is_added_to_a_slice_is_added_to_its_tile(way: str) -> None:
    body, columns = SUMS[way]
    expected: Array = np.ones((4, 12), np.float32)
    for start, times in columns.items():
        expected[:, start : start + 6] += times * np.matmul(X, Y)
    *_, (native, interpreted) = Native(adding(body)).run([X, Y, np.zeros((4, 12), np.float32)])
    assert native.tolist() == interpreted.tolist() == expected.tolist()


@pytest.mark.parametrize("way", SUMS)
def test_a_kernel_that_adds_to_slices_reads_back_as_it_prints(way: str) -> None:
    text = str(adding(SUMS[way][0]))
    assert str(pl.parse(text)) == text


def test_a_slice_shows_what_was_added_to_its_tile_through_another() -> None:
    body = f"v = pl.slice(acc, [4, 8], [0, 4])\npl.matmul_acc({RIGHT}, a, b)\nacc = pl.assemble(acc, v, [0, 0])"
    *_, (native, interpreted) = Native(adding(body)).run([X, Y, np.zeros((4, 12), np.float32)])
    assert native.tolist() == interpreted.tolist()
    assert interpreted[:, 2:8].tolist() == (np.matmul(X, Y) + 1).tolist()


def test_what_is_no_slice_any_more_stays_as_it_is() -> None:
    body = (
        f"v = {RIGHT}\nw = {RIGHT}\nfor k in pl.range(2):\n    v = pl.matmul(a, b)\n    w = pl.matmul_acc(w, a, b)\n"
        "    sums = pl.store(v, [0, 0], sums)"
    )
    text = f"{LOADS}{body}\nout = pl.store(acc, [0, 0], out)"
    left = {"x": tensor(pl.FP32, 4, 8), "y": tensor(pl.FP32, 8, 6)}
    function = kernel(text, **left, sums=inout(pl.FP32, 4, 6), out=out(pl.FP32, 4, 12))
    arrays = [X, Y, np.zeros((4, 6), np.float32), np.zeros((4, 12), np.float32)]
    *_, (sums, stored), (native, interpreted) = Native(function).run(arrays)
    product = np.matmul(X, Y)
    assert sums.tolist() == stored.tolist() == product.tolist()
    assert native.tolist() == interpreted.tolist()
    assert native[:, 6:].tolist() == (2 * product + 1).tolist()


def test_reading_a_slice_leaves_its_tile_as_it_was() -> None:
    *_, (native, interpreted) = Native(adding(f"w = {RIGHT}\nw = pl.add(w, 1.0)")).run(
        [X, Y, np.zeros((4, 12), np.float32)]
    )
    assert native.tolist() == interpreted.tolist() == np.ones((4, 12)).tolist()


@pytest.mark.parametrize("op", ["matmul_acc", "batch_matmul_acc", "gemv_acc"])
def test_a_sum_that_nobody_binds_is_in_the_accumulator(op: str) -> None:
    function = kernel(
        f"""
        a = pl.load(x, [0, 0], [1, 8])
        b = pl.load(y, [0, 0], [8, 6])
        acc = pl.matmul(a, b)
        for k in pl.range(3):
            pl.{op}(acc, a, b)
        out = pl.store(acc, [0, 0], out)
        """,
        x=tensor(pl.FP32, 4, 8),
        y=tensor(pl.FP32, 8, 6),
        out=out(pl.FP32, 1, 6),
    )
    *_, (native, interpreted) = Native(function).run([X, Y, np.zeros((1, 6), np.float32)])
    assert native.tolist() == interpreted.tolist() == (4 * np.matmul(X[:1], Y)).tolist()


def test_a_sum_of_tensors_that_nobody_binds_is_in_the_tensor() -> None:
    body = "for k in pl.range(2):\n    pl.matmul_acc(acc, x, y)"
    function = kernel(body, x=tensor(pl.FP32, 4, 8), y=tensor(pl.FP32, 8, 6), acc=inout(pl.FP32, 4, 6))
    *_, (native, interpreted) = Native(function).run([X, Y, np.ones((4, 6), np.float32)])
    assert native.tolist() == interpreted.tolist() == (2 * np.matmul(X, Y) + 1).tolist()


def test_a_tile_that_is_written_in_a_loop_is_written_for_good() -> None:
    body = "for k in pl.range(2):\n    pl.assemble(acc, pl.matmul(a, b), [0, k * 6])"
    *_, (native, interpreted) = Native(adding(body)).run([X, Y, np.zeros((4, 12), np.float32)])
    assert native.tolist() == interpreted.tolist() == np.concatenate([np.matmul(X, Y)] * 2, -1).tolist()


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            f"if pl.read(x, [0, 0]) > 0.0:\n    w = {LEFT}\nelse:\n    w = {RIGHT}\npl.matmul_acc(w, a, b)",
            UnsupportedFeatureError,
            "depends on the path to this line which slice",
        ),
        (
            f"for k, (w,) in pl.range(2, init_values=({LEFT},)):\n    w = pl.yield_(pl.matmul_acc(w, a, b))",
            UnsupportedFeatureError,
            "depends on the path to this line which slice",
        ),
        (
            f"v = pl.slice(acc, [4, 6], [0, 3])\nif pl.read(x, [0, 0]) > 0.0:\n    v = pl.matmul(a, b)\nw = {RIGHT}\n"
            "pl.matmul_acc(w, a, b)",
            UnsupportedFeatureError,
            "`v` may be a slice of the tile that is added to, or another one",
        ),
        (
            "pl.matmul_acc(pl.slice(pl.add(acc, acc), [4, 6], [0, 0]), a, b)",
            UnsupportedFeatureError,
            "the tile whose slice is added to has no name",
        ),
        (
            f"w = {LEFT}\nfor k in pl.range(2):\n    pl.matmul_acc(w, a, b)\n    w = {RIGHT}",
            OperandError,
            "`w` is added to in place, and is another tile on other paths",
        ),
        (
            f"w = {LEFT}\nfor k in pl.range(2):\n    pl.matmul_acc(w, a, b)\n    acc = pl.add(acc, acc)",
            OperandError,
            "`acc` has a slice that is added to in this block, and gets another tile",
        ),
    ],
)
def test_a_slice_that_may_be_several_is_not_added_to(body: str, kind: type[KernelError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        adding(body)
    assert caught.value.help


def test_what_a_loop_carries_is_written_to_in_a_branch(target: str) -> None:
    @pl.program
    class Written:
        @pl.function(type=pl.FunctionType.InCore)
        def main(self, x: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            v = pl.load(x, [0, 0], [4, 8])
            for i, (c,) in pl.range(4, init_values=(v,)):
                if i < 2:
                    pl.write(c, [i, 0], 9.0)
                r = pl.yield_(c)
            z = pl.store(r, [0, 0], z)  # pyright: ignore[reportPossiblyUnboundVariable]
            return z

    want: Array = X + 0
    want[:2, 0] = 9
    found = np.zeros_like(X)
    ir.compile(Written, platform=target)(X, found)
    np.testing.assert_array_equal(found, want)
