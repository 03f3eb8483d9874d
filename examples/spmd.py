"""One kernel on many blocks, each finding its share of the work from its own index: the norm of every row.

`ByLoop` names the index in the loop that starts the blocks. `ByIndex` starts fewer blocks than
there are chunks and lets the kernel ask who it is: block `i` of `n` takes chunks i, i + n, i + 2 *
n, ..., so the grid can be as large as the machine and no larger.
"""

import torch

import tilewright.language as pl
from tilewright import ir

CHUNKS, ROWS, COLS = 12, 16, 96
M = CHUNKS * ROWS
BLOCKS = 5

Matrix = pl.Tensor[[M, COLS], pl.FP32]
Column = pl.Tensor[[M, 1], pl.FP32]


@pl.program
class ByLoop:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Column]) -> Column:
        for chunk in pl.spmd(CHUNKS, name_hint="row_norms"):
            tile = pl.load(x, [chunk * ROWS, 0], [ROWS, COLS])
            out = pl.store(pl.sqrt(pl.row_sum(tile * tile)), [chunk * ROWS, 0], out)
        return out


@pl.program
class ByIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def row_norms(self, x: Matrix, out: pl.Out[Column]) -> Column:
        first = pl.tile.get_block_idx()
        for chunk in pl.range(first, CHUNKS, pl.tile.get_block_num()):
            tile = pl.load(x, [chunk * ROWS, 0], [ROWS, COLS])
            out = pl.store(pl.sqrt(pl.row_sum(tile * tile)), [chunk * ROWS, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Column]) -> Column:
        with pl.spmd(BLOCKS):
            out = self.row_norms(x, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    return (torch.randn(M, COLS, generator=torch.Generator().manual_seed(seed)),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def main() -> None:
    inputs = make_inputs()
    by_loop, by_index = ir.compile(ByLoop)(*inputs), ir.compile(ByIndex)(*inputs)
    torch.testing.assert_close(by_loop, reference(*inputs))
    torch.testing.assert_close(by_index, by_loop, rtol=0, atol=0)
    print(f"spmd: {CHUNKS} chunks on {CHUNKS} blocks or on {BLOCKS}, the same {M} row norms")


if __name__ == "__main__":
    main()
