"""Narrow matrices: programs on rows of a few columns, which fill no vector and often follow each other in memory.

What varies is how many columns there are, whether those are all that a tensor has, what elements they are, and whether
rows meet a row or a column, are folded, or are computed element by element.
"""

from __future__ import annotations

from property.product_grids import Draw

FLOATS = ("FP32", "FP16", "BF16", "FP64")
DTYPES = (*FLOATS, "FP32", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32")


FOLDS = ("row_max", "row_min", "row_sum")

KINDS: dict[str, tuple[str, ...]] = {
    "element": ("z = x + y", "z = pl.maximum(x, y)", "z = x * y - x"),
    "row": ("z = pl.col_expand_add(x + y, pl.load(r, [0, 0], [1, {columns}]))",),
    "column": tuple(f"z = pl.row_expand_add(y, pl.{fold}(x))" for fold in FOLDS),
    "fold": tuple(f"z = pl.{fold}({x})" for fold in FOLDS for x in ("x", "x + y")),
    "weights": ("e = pl.exp(x - pl.row_max(x)); z = e / pl.row_sum(e)",),
    "position": ("z = pl.argmax(x, axis=-1, keepdims=True)", "z = pl.argmin(x, axis=-1, keepdims=True)"),
    "chosen": ("z = pl.where(pl.arange({columns}) == 1, x, y)",),
    "twice": ("u = x + y; z = pl.row_expand_sub(u, pl.row_max(u)) + x",),
    "down": ("z = pl.col_sum(x)", "z = pl.col_max(x)", "z = pl.col_min(x)"),
    "changed": ("z = x + y", "z = pl.row_expand_sub(x, pl.row_max(x))"),
}
"""What is computed, in a few ways; `changed` reads what it writes to."""


def narrow(draw: Draw) -> str:
    """Return the text of a program."""

    def choose(*options: str) -> str:
        return options[draw(0, len(options) - 1)]

    kind = choose(*KINDS)
    dtype = choose(*(FLOATS if kind == "weights" else DTYPES))
    columns, rows, tall = draw(1, 9) if draw(0, 3) else draw(10, 40), draw(2, 40), draw(40, 300)
    gap = draw(1, 4) if draw(0, 3) == 0 else 0
    batch = 2 if draw(0, 3) == 0 and kind not in ("down", "row", "chosen") else 0
    all_, at, one = (f"{batch}, ", "k, ", "1, ") if batch else ("", "", "")
    window = f"[{at}i, {draw(0, gap)}], [{one}{tall if kind == 'down' else rows}, {columns}]"
    width, height = 1 if kind in ("fold", "position") else columns + gap, 1 if kind == "down" else tall
    into = window.split("], ")[0] + "]" if width > 1 else f"[{at}i, 0]"
    lines = choose(*KINDS[kind]).format(columns=columns).split("; ")
    loads = "pl.load(c, {0}), pl.load(a, {0})" if kind == "changed" else "pl.load(a, {0}), pl.load(b, {0})"
    work = "".join(f"\n                    {line}" for line in [f"x, y = {loads.format(window)}", *lines])
    shape = f"[{all_}{tall}, {columns + gap}], pl.{dtype}"
    return f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[{shape}], b: pl.Tensor[{shape}], r: pl.Tensor[[1, {columns}], pl.{dtype}],
        c: pl.InOut[pl.Tensor[[{all_}{height}, {width}], pl.{"INT32" if kind == "position" else dtype}]],
    ):
        for k in pl.parallel({batch or 1}):
            for i in pl.parallel(0, {height}, {rows}):
                with pl.at(level=pl.Level.CORE_GROUP):{work}
                    pl.store(z, {into}, c)
"""
