"""One kernel on many blocks, each finding its share of the work from its own index: the norm of every row.

`by_loop` names the index in the loop that starts the blocks. `by_index` starts fewer blocks than
there are chunks and lets the kernel ask who it is: block `i` of `n` takes chunks i, i + n, i + 2 *
n, ..., so the grid can be as large as the machine and no larger.
"""

import torch

import tilewright.language as pl

CHUNKS, ROWS, COLS = 12, 16, 96
BLOCKS = 5

Matrix = pl.Tensor[[CHUNKS * ROWS, COLS], pl.FP32]
Column = pl.Tensor[[CHUNKS * ROWS, 1], pl.FP32]


@pl.jit.inline
def norms_of_chunk(x, chunk, out):
    tile = pl.load(x, [chunk * ROWS, 0], [ROWS, COLS])
    pl.store(pl.sqrt(pl.row_sum(tile * tile)), [chunk * ROWS, 0], out)


@pl.jit
def by_loop(x: Matrix, out: pl.Out[Column]):
    for chunk in pl.spmd(CHUNKS, name_hint="row_norms"):
        norms_of_chunk(x, chunk, out)
    return out


@pl.jit.incore
def row_norms(x: Matrix, out: pl.Out[Column]):
    for chunk in pl.range(pl.tile.get_block_idx(), CHUNKS, pl.tile.get_block_num()):
        norms_of_chunk(x, chunk, out)
    return out


@pl.jit
def by_index(x: Matrix, out: pl.Out[Column]):
    with pl.spmd(BLOCKS):
        out = row_norms(x, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    return (torch.randn(CHUNKS * ROWS, COLS, generator=torch.Generator().manual_seed(seed)),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def main() -> None:
    (x,) = make_inputs()
    torch.testing.assert_close(by_loop(x), reference(x))
    torch.testing.assert_close(by_index(x), by_loop(x), rtol=0, atol=0)
    print(f"spmd: {CHUNKS} chunks on {CHUNKS} blocks or on {BLOCKS}, the same {len(x)} row norms")


if __name__ == "__main__":
    main()
