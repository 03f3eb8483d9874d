"""ragged: what it costs to know that no tile is looked at where nobody wrote.

Columns are summed 64 at a time into a tile whose extents differ from those of the last load: the box in which the
accumulator holds data is followed through the loop and compared once per row of tiles. The same sums over padded loads
need no such box. TILEWRIGHT_CHECKED decides while a program is compiled whether it makes checks.
"""

import torch
from contenders import ours
from contest import EAGER, Contest, Field, Work
from memory import output

import tilewright.language as pl
from rows.checked import setting
from tilewright.core.program import Program

N, WIDE, TILE = 4096, 4032, 64
PADDED = "pad=0.0"
UNCHECKED = "unchecked"
CHECKED = "checked"


def program(is_padded: bool, n: int = N, wide: int = WIDE, tile: int = TILE) -> Program:
    Matrix, Sums = pl.Tensor[[n, pl.dynamic("W")], pl.FP32], pl.Tensor[[n, 1], pl.FP32]
    pad = 0.0 if is_padded else None

    @pl.program
    class RowSums:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Sums]) -> Sums:
            for r in pl.parallel(0, n, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.tile_full([16, tile], pl.FP32, 0.0)
                    for c in pl.range(0, pl.tensor.dim(x, 1), tile):
                        acc += pl.load(x, [r, c], [16, tile], pad=pad)
                    out = pl.store(pl.row_sum(acc), [r, 0], out)
            return out

    return RowSums


def enter() -> Field:
    x, result = torch.randn(N, WIDE), output(N, 1)
    with setting("0"):
        unchecked = ours(program(is_padded=False), x, out=output(N, 1))
    return Field(
        x.sum(1, keepdim=True),
        {
            CHECKED: ours(program(is_padded=False), x, out=output(N, 1)),
            UNCHECKED: unchecked,
            PADDED: ours(program(is_padded=True), x, out=output(N, 1)),
            EAGER: lambda: torch.sum(x, 1, keepdim=True, out=result),
        },
        rtol=1e-4,
        atol=1e-3,
    )


ROWS = (
    Contest(
        f"row sums {N}x{WIDE}",
        enter,
        Work(bytes=4 * N * WIDE),
        note="one program, compiled with and without checks; `pad=0.0` loads whole tiles; eager is `sum(out=)`.",
        group="What ragged sums cost",
        subject=CHECKED,
        against=UNCHECKED,
    ),
)
