"""Updates: tiles stored where they were loaded from, in the loop that reads them or after it."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import Native, floats, program_of

R, N = 8, 40
LOAD = "t = pl.load(x, [{r}, 0], [8, 40])"
UPDATES = {
    "scaled": (LOAD, "x = pl.store(t * 2.0, [{r}, 0], x)"),
    "kept as it was": (LOAD, "x = pl.store(t * 2.0, [{r}, 0], x)", "y = pl.store(t, [{r}, 0], y)"),
    "read once more": (
        LOAD,
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(pl.row_expand_mul(t, pl.row_sum(t)), [{r}, 0], y)",
    ),
    "normed": (LOAD, "x = pl.store(pl.row_expand_mul(t, pl.rsqrt(pl.row_sum(t * t))), [{r}, 0], x)"),
    "normed and kept": (
        LOAD,
        "e = pl.exp(t)",
        "x = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [{r}, 0], x)",
        "y = pl.store(e + t, [{r}, 0], y)",
    ),
    "summed before it is stored": (
        LOAD,
        "s = pl.row_sum(t)",
        "x = pl.store(pl.exp(t), [{r}, 0], x)",
        "y = pl.store(pl.row_expand_add(t, s), [{r}, 0], y)",
    ),
    "another tile": (
        LOAD,
        "u = pl.load(y, [{r}, 0], [8, 40])",
        "x = pl.store(u * 2.0, [{r}, 0], x)",
        "y = pl.store(t + u, [{r}, 0], y)",
    ),
    "the row above": (
        "t = pl.load(x, [{r}, 0], [7, 40])",
        "u = pl.load(x, [{r} + 1, 0], [7, 40])",
        "x = pl.store(t + u, [{r} + 1, 0], x)",
    ),
    "the row below": ("x = pl.store(pl.load(x, [{r}, 0], [7, 40]) * 2.0, [{r} + 1, 0], x)",),
    "the columns before": ("x = pl.store(pl.load(x, [{r}, 0], [8, 39]) * 2.0, [{r}, 1], x)",),
    "its first column": (
        "u = pl.load(y, [{r}, 0], [8, 40])",
        "x = pl.store(pl.row_expand_add(u, pl.load(x, [{r}, 0], [8, 1])), [{r}, 0], x)",
    ),
    "read in a second pass": (
        LOAD,
        "u = pl.row_expand_mul(t, pl.row_sum(t))",
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(u, [{r}, 0], y)",
    ),
    "read in a wider pass": (
        LOAD,
        "e = t + 1.0",
        "z = pl.store(pl.reinterpret_view(t * 3.0, pl.INT16), [{r}, 0], z)",
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(e, [{r}, 0], y)",
    ),
    "where more follows": (LOAD, "x = pl.store(t * 2.0, [{r}, 0], x, mask=pl.row_expand_add(t, pl.row_sum(t)) > 0.0)"),
    "one of its rows": (LOAD, "x = pl.store(t * pl.load(x, [{r} + 2, 0], [1, 40]), [{r}, 0], x)"),
    "one of its columns": (LOAD, "x = pl.store(pl.row_expand_add(t, pl.load(x, [{r}, 3], [8, 1])), [{r}, 0], x)"),
    "a slice": ("x[{r}:{r} + 8, 3:40] = pl.exp(x[{r}:{r} + 8, 3:40])",),
    "a slice of a slice": (
        "s = pl.slice(x, [8, 20], [{r}, 10])",
        "s[0:8, :] = pl.slice(s, [8, 20], [0, 0]) * 3.0",
        "s[0:8, 0:19] = pl.slice(s, [8, 19], [0, 1]) * 3.0",
    ),
    "some of its rows": (
        "t = pl.load(x, [{r}, 0], [8, 40], valid_shape=[n, n + 10])",
        "x = pl.store(t * t, [{r}, 0], x)",
        "y = pl.store(t, [{r}, 0], y)",
    ),
    "where it is wider": (
        "t = pl.load(x, [{r}, 0], [8, 40], valid_shape=[8, n])",
        "u = pl.maximum(pl.load(y, [{r}, 0], [8, 40]), 0.5)",
        "x = pl.store(t + 1.0, [{r}, 0], x)",
        "y = pl.store(pl.part_add(u, t), [{r}, 0], y)",
    ),
    "its other half": (
        LOAD,
        "x = pl.store(pl.slice(t, [8, 20], [0, 20]) + pl.slice(t, [8, 20], [0, 0]), [{r}, 20], x)",
    ),
    "multiplied": (
        LOAD,
        "x = pl.store(t + 1.0, [{r}, 0], x)",
        "y = pl.store(pl.matmul(t, pl.load(y, [0, 0], [40, 40])), [{r}, 0], y)",
    ),
    "both": (
        LOAD,
        "m = t * 0.5 + pl.load(y, [{r}, 0], [8, 40])",
        "x = pl.store(m, [{r}, 0], x)",
        "y = pl.store(pl.load(y, [{r}, 0], [8, 40]) - pl.sqrt(pl.maximum(m, 0.0)), [{r}, 0], y)",
    ),
    "both, of rows that are folded": (
        LOAD,
        "x = pl.store(pl.row_expand_mul(t, pl.row_sum(t)), [{r}, 0], x)",
        "u = pl.load(y, [{r}, 0], [8, 40])",
        "y = pl.store(pl.row_expand_add(u + t, pl.row_sum(u)), [{r}, 0], y)",
    ),
    "of one row": (
        "t = pl.load(x, [{r}, 0], [1, 40])",
        "x = pl.store(pl.load(y, [{r}, 0], [1, 40]), [{r}, 0], x)",
        "y = pl.store(t, [{r}, 0], y)",
        "u = pl.load(y, [{r} + 1, 0], [7, 40]) + t",
        "y = pl.store(u, [{r} + 1, 0], y)",
        "z = pl.store(pl.cast(u, pl.INT16), [{r} + 1, 40], z)",
    ),
    "of one row, some of it": (
        "t = pl.load(x, [{r}, 0], [1, 40], valid_shape=[1, n])",
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(pl.load(y, [{r}, 0], [1, 40]) - 1.0, [{r}, 0], y)",
        "y = pl.store(t, [{r} + 1, 0], y)",
    ),
    "where some are larger": (
        LOAD,
        "u = pl.load(y, [{r}, 0], [8, 40])",
        "x = pl.store(u, [{r}, 0], x, mask=u > 0.5)",
        "y = pl.store(pl.where(t > 0.0, t, u), [{r}, 0], y)",
    ),
    "beside narrower tiles in memory": (
        "u = pl.slice(pl.exp(pl.load(y, [{r}, 0], [8, 40])), [8, 7], [0, 20])",
        "w = pl.transpose(pl.transpose(u, 0, 1), 0, 1)",
        LOAD,
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(u, [{r}, 0], y)",
        "y = pl.store(w, [{r}, 20], y)",
    ),
    "after narrower tiles in memory": (
        "u = pl.slice(pl.exp(pl.load(y, [{r}, 0], [8, 40])), [8, 7], [0, 20])",
        LOAD,
        "y = pl.store(u, [{r}, 0], y)",
        "x = pl.store(t * 2.0, [{r}, 0], x)",
    ),
    "and gathered from": (
        LOAD,
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "i = pl.tile.ci(3, [1, 8], dtype=pl.INT32)",
        "y = pl.store(pl.mgather(x, i), [{r}, 0], y)",
    ),
    "and turned": (
        "t = pl.load(x, [{r}, 0], [8, 8])",
        "x = pl.store(t * 2.0, [{r}, 0], x)",
        "y = pl.store(pl.transpose(t, 0, 1), [{r}, 0], y)",
    ),
    "added": (LOAD, "x = pl.store(t * 2.0, [{r}, 0], x, atomic=pl.AtomicType.Add)"),
    "twice": (LOAD, "x = pl.store(t * 2.0, [{r}, 0], x)", LOAD, "x = pl.store(t + 1.0, [{r}, 0], x)"),
    "its largest": (
        LOAD,
        "x = pl.store(t, [{r}, 0], x)",
        "y = pl.store(pl.cast(pl.row_argmax(t, t), pl.FP32), [{r}, 0], y)",
    ),
}


BLOCKS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, p: pl.InOut[pl.Tensor[[n], pl.FP32]], m: pl.InOut[pl.Tensor[[n], pl.FP32]],
             g: pl.InOut[pl.Tensor[[n], pl.FP32]], sums: pl.Out[pl.Tensor[[n], pl.FP32]]):
        for number in pl.parallel(-(-{n} // {block})):
            with pl.at(level=pl.Level.CORE_GROUP):
                old = pl.load(m, [number * {block}], [{block}])
                grad = pl.load(g, [number * {block}], [{block}])
                mm = old * 0.5 + grad
                pl.store(mm, [number * {block}], m)
                pl.store(old, [number * {block}], g)
                pl.store(pl.load(p, [number * {block}], [{block}]) - mm / (pl.exp(grad) + 1.0), [number * {block}], p)
                pl.store(mm + old, [number * {block}], sums)
"""


@pytest.mark.parametrize("n", [4096, 1000])
def test_blocks_of_one_axis_are_updated_together(n: int) -> None:
    program = Native(program_of(BLOCKS.replace("[n]", f"[{n}]").format(n=n, block=512)))
    program.check(floats(n), floats(n, seed=1), floats(n, seed=2), np.zeros(n, np.float32))


def test_each_update_reads_what_was_there() -> None:
    rows = R * len(UPDATES)
    tensor = f"pl.InOut[pl.Tensor[[{rows}, {N}], pl.FP32]]"
    words = f"pl.InOut[pl.Tensor[[{rows}, {2 * N}], pl.INT16]]"
    lines = [f"    def main(self, x: {tensor}, y: {tensor}, z: {words}, n: pl.Scalar[pl.INDEX]):"]
    for number, body in enumerate(UPDATES.values()):
        lines.append("        with pl.at(level=pl.Level.CORE_GROUP):")
        lines += [f"            {line.format(r=number * R)}" for line in body]
    program = Native(
        program_of(
            "\n".join(["@pl.program", "class P:", "    @pl.function(type=pl.FunctionType.Orchestration)", *lines])
        )
    )
    for n in (5, 0):
        program.check(floats(rows, N), floats(rows, N, seed=1), np.zeros((rows, 2 * N), np.int16), np.int64(n))
