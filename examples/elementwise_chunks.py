"""A tensor too large for one tile, taken in chunks: (a + b) * (a - b).

Two spellings of the same program. `Chunks` loads and stores tiles by hand, over a grid of chunks
that may run at the same time. `Windows` writes what it means with subscripts and operators: a
window of a tensor is read and assigned like NumPy's.
"""

import torch

import tilewright.language as pl
from tilewright import ir

ROWS, COLS = 256, 512
TILE_ROWS, TILE_COLS = 64, 128

Matrix = pl.Tensor[[ROWS, COLS], pl.FP32]


@pl.program
class Chunks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, ROWS, TILE_ROWS):
            for col in pl.parallel(0, COLS, TILE_COLS):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="difference_of_squares"):
                    x = pl.load(a, [row, col], [TILE_ROWS, TILE_COLS])
                    y = pl.load(b, [row, col], [TILE_ROWS, TILE_COLS])
                    product = pl.mul(pl.add(x, y), pl.sub(x, y))
                    out = pl.store(product, [row, col], out)
        return out


@pl.program
class Windows:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, ROWS, TILE_ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = a[row : row + TILE_ROWS, :]
                y = b[row : row + TILE_ROWS, :]
                out[row : row + TILE_ROWS, :] = (x + y) * (x - y)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, COLS, generator=generator), torch.randn(ROWS, COLS, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b) * (a - b)


def main() -> None:
    a, b = make_inputs()
    by_tile, by_window = ir.compile(Chunks)(a, b), ir.compile(Windows)(a, b)
    torch.testing.assert_close(by_tile, reference(a, b))
    torch.testing.assert_close(by_window, by_tile, rtol=0, atol=0)
    tiles = (ROWS // TILE_ROWS) * (COLS // TILE_COLS)
    print(
        f"elementwise_chunks: {tiles} tiles, {ROWS // TILE_ROWS} windows, bit for bit the same {ROWS} x {COLS} result"
    )


if __name__ == "__main__":
    main()
