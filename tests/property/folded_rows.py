"""Folded rows: programs that go over the rows of matrices several times, each time with what the last has folded.

Native code takes a few short rows through each pass before the next one. What varies is how long rows are and how many
a tile has, what passes hand on, what they share, and whether they store in between, or to what is read.
"""

from __future__ import annotations

from property.product_grids import Draw

FLOATS = ("FP32", "FP32", "FP32", "FP16", "BF16", "FP64")
WIDTHS = (1, 7, 16, 33, 64, 100, 257, 512, 1000, 2100)
HEIGHTS = (1, 2, 3, 5, 8, 11, 16, 32, 48)

KINDS: dict[str, tuple[str, ...]] = {
    "weights": (
        "e = pl.exp(x - pl.row_max(x)); z = e / pl.row_sum(e)",
        "u = x * y; e = pl.exp(u - pl.row_max(u)); z = e / pl.row_sum(e) + x",
    ),
    "logarithms": ("u = x - pl.row_max(x); z = u - pl.log(pl.row_sum(pl.exp(u)))",),
    "norm": (
        "u = x - pl.row_sum(x) * {part}; z = u * pl.rsqrt(pl.row_sum(u * u) * {part} + 1.0) * row",
        "z = x * pl.rsqrt(pl.row_sum(x * x) * {part} + 1.0) * row + y",
        "u = pl.row_expand_sub(x, pl.row_min(x)); z = pl.row_expand_add(u, pl.row_max(u * row)) + column",
    ),
    "between": (
        "m = pl.row_max(x); pl.store(x - m, [r, 0], more); z = x - m + pl.row_min(y)",
        "m = pl.row_max(x + y); pl.store(m, [r, 0], folded); z = pl.maximum(x - m, y) * column",
        "pl.store(x, [r, 0], more); m = pl.row_max(y); pl.store(y - m, [r, 0], more); z = x + m",
    ),
    "changed": (
        "held = pl.load(out, {window}); z = pl.row_expand_sub(held, pl.row_max(x + held))",
        "held = pl.load(out, {window}); m = pl.row_max(held); pl.store(m, [r, 0], folded); z = x - m",
    ),
    "position": (
        "p = pl.argmax(x, axis=-1, keepdims=True); z = pl.where(pl.arange({wide}) == p, y, x)",
        "p = pl.argmin(x * y, axis=-1, keepdims=True); z = pl.where(pl.arange({wide}) < p, y - pl.row_max(y), x)",
    ),
    "deep": ("s = pl.row_max(x); t = pl.row_max(y - s); u = pl.row_max(x * 0.5 + t); z = pl.where(x > u, y - t, x)",),
    "batched": ("u = pl.reshape(x, [1, {tall}, {wide}]); m = pl.max(u, axis=-1, keepdims=True); "
                "z = pl.reshape(u - m, [{tall}, {wide}]) + y",),
}  # fmt: skip
"""What is computed, in a few ways."""


def folded_rows(draw: Draw) -> str:
    """Return the text of a program."""

    def choose(*options: str) -> str:
        return options[draw(0, len(options) - 1)]

    dtype, wide, tall = choose(*FLOATS), WIDTHS[draw(0, 9)] + draw(0, 2), HEIGHTS[draw(0, 8)]
    rows = tall * draw(1, 3) if draw(0, 1) else tall + draw(0, 40)
    rows = min(rows, max(tall, 20_000 // wide))
    kind = choose(*KINDS)
    window = f"[r, 0], [{tall}, {wide}]"
    work = choose(*KINDS[kind]).format(part=1 / wide, window=window, wide=wide, tall=tall).split("; ")
    loop = "pl.range" if draw(0, 5) == 0 else "pl.parallel"
    body = [
        f"x, y = pl.load(a, {window}), pl.load(b, {window})",
        f"row = pl.load(shared, [0, 0], [1, {wide}])",
        f"column = pl.load(own, [r, 0], [{tall}, 1])",
        *work,
        "pl.store(z, [r, 0], out)",
    ]
    text = "".join(f"\n{'    ' * 4}{line}" for line in body)
    shape = f"[{rows}, {wide}], pl.{dtype}"
    return f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[{shape}], b: pl.Tensor[{shape}], shared: pl.Tensor[[1, {wide}], pl.{dtype}],
        own: pl.Tensor[[{rows}, 1], pl.{dtype}], folded: pl.InOut[pl.Tensor[[{rows}, 1], pl.{dtype}]],
        more: pl.InOut[pl.Tensor[{shape}]], out: pl.InOut[pl.Tensor[{shape}]],
    ):
        for r in {loop}(0, {rows}, {tall}):
            with pl.at(level=pl.Level.CORE_GROUP):{text}
"""
