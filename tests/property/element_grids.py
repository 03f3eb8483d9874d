"""Element grids: programs that cut matrices into tiles, however small, and compute each element by itself, or nearly.

Native code goes along rows of memory instead, where nobody can tell. What varies is how tiles and matrices are shaped,
how loops are nested, and what else looks at a tile as a whole: positions in it, folds, other places, what is there.
"""

from __future__ import annotations

from property.product_grids import Draw

DTYPES = ("FP32", "FP32", "FP16", "BF16", "FP64", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT32")
HEIGHTS, WIDTHS = (1, 2, 5, 8, 16, 40), (1, 3, 8, 16, 24, 32, 64, 100)

KINDS: dict[str, tuple[str, ...]] = {
    "element": ("z = x + y", "z = x * y - x", "z = pl.maximum(x, y)", "z = pl.where(x > y, x, y)"),
    "vectors": (
        "z = x * pl.load(row, [0, {c}], [1, {wide}]) - y",
        "z = pl.load(column, [{r}, 0], [{tall}, 1]) + x * y",
        "z = x + pl.load(row, [0, {c}], [1, {wide}]) * pl.load(column, [{r}, 0], [{tall}, 1])",
    ),
    "cast": ("z = pl.cast(pl.cast(x, pl.FP32) + pl.cast(y, pl.FP32), pl.{dtype})",),
    "axes": (
        "z = pl.reshape(pl.reshape(x, [1, {tall}, {wide}]), [{tall}, {wide}]) + y",
        "z = pl.transpose(pl.transpose(x, 0, 1) + pl.transpose(y, 0, 1), 0, 1)",
    ),
    "position": (
        "z = pl.where(pl.arange({wide}) == 1, x, y)",
        "z = pl.where(pl.iota([{tall}, 1], axis=0) < 2, x, y)",
        "z = pl.where(pl.iota([1, {wide}], axis=1) + {c} > 7, x, y)",
    ),
    "folded": ("z = pl.row_expand_add(y, pl.row_max(x))", "z = pl.col_expand_add(x + y, pl.col_min(y))"),
    "elsewhere": (
        "z = pl.load(shifted, [{r}, {c} + 1], [{tall}, {wide}]) + y",
        "z = x + pl.load(b, [0, 0], [1, 1])",
    ),
    "changed": (
        "z = pl.load(out, [{r}, {c}], [{tall}, {wide}]) + x",
        "pl.store(x, [{r}, {c}], out); z = pl.load(out, [{r}, {c}], [{tall}, {wide}]) + y",
        "pl.store(y, [{r}, {c}], more); z = x + pl.load(more, [{r}, {c}], [{tall}, {wide}])",
    ),
    "updated": (
        "m = pl.load(more, {at}) + x; pl.store(m, [{r}, {c}], more); z = pl.load(out, {at}) - m",
        "m = pl.load(more, {at}); z = pl.load(out, {at}) + y; pl.store(z, [{r}, {c}], more); z = m - x",
        "m = pl.load(more, {at}); pl.store(m * y, [{r}, {c}], more); z = pl.row_expand_add(x, pl.row_max(m))",
        "m = pl.load(more, [{r}, {c}], [1, {wide}]); pl.store(m + m, [{r}, {c}], more); z = x + m",
    ),
    "two": ("pl.store(x - y, [{r}, {c}], more); z = x + y",),
}
"""What is computed, in a few ways."""


def element_grid(draw: Draw) -> str:
    """Return the text of a program."""

    def choose(*options: str) -> str:
        return options[draw(0, len(options) - 1)]

    dtype, tall, wide = choose(*DTYPES), HEIGHTS[draw(0, 5)], WIDTHS[draw(0, 7)]
    rows = tall * draw(1, 3) if draw(0, 1) else tall + draw(0, 60)
    columns = wide * draw(1, 5) if draw(0, 1) else wide + draw(0, 300)
    loop = "pl.range" if draw(0, 5) == 0 else "pl.parallel"
    counted = draw(0, 3) == 0
    r, c = (f"r * {tall}", f"c * {wide}") if counted else ("r", "c")
    each = f"for r in {loop}(" + (f"{-(-rows // tall)}):" if counted else f"0, {rows}, {tall}):")
    across = f"for c in {loop}(" + (f"{-(-columns // wide)}):" if counted else f"0, {columns}, {wide}):")
    nest = [across, each] if draw(0, 3) == 0 else [each, across]
    window = f"[{r}, {c}], [{tall}, {wide}]"
    named = {"r": r, "c": c, "tall": str(tall), "wide": str(wide), "dtype": dtype, "at": window}
    work = choose(*KINDS[choose(*KINDS)]).format(**named).split("; ")
    lines = [*nest, "with pl.at(level=pl.Level.CORE_GROUP):"]
    body = [f"x, y = pl.load(a, {window}), pl.load(b, {window})", *work, f"pl.store(z, [{r}, {c}], out)"]
    text = "".join(f"\n{'    ' * (depth + 2)}{line}" for depth, line in enumerate(lines))
    text += "".join(f"\n{'    ' * 5}{line}" for line in body)
    shape = f"[{rows}, {columns}], pl.{dtype}"
    return f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[{shape}], b: pl.Tensor[{shape}], shifted: pl.Tensor[[{rows}, {columns + 1}], pl.{dtype}],
        row: pl.Tensor[[1, {columns}], pl.{dtype}], column: pl.Tensor[[{rows}, 1], pl.{dtype}],
        more: pl.InOut[pl.Tensor[{shape}]], out: pl.InOut[pl.Tensor[{shape}]],
    ):{text}
"""
