"""Tensors too large for one tile, taken in chunks: (a + b) * (a - b).

Two spellings of the same kernel. `by_tile` loads and stores tiles by hand, over a grid of chunks that
may run at the same time; the last ones need not be full. `by_window` writes what it means with
subscripts and operators: a window of a tensor is read and assigned like NumPy's.
"""

import torch

import tilewright.language as pl

TILE_ROWS, TILE_COLS = 64, 128


@pl.jit
def by_tile(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = a.shape
    for row in pl.parallel(0, rows, TILE_ROWS):
        for col in pl.parallel(0, cols, TILE_COLS):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="difference_of_squares"):
                x = pl.load(a, [row, col], [TILE_ROWS, TILE_COLS])
                y = pl.load(b, [row, col], [TILE_ROWS, TILE_COLS])
                product = pl.mul(pl.add(x, y), pl.sub(x, y))
                pl.store(product, [row, col], out)
    return out


@pl.jit
def by_window(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, a.shape[0], TILE_ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = a[row : row + TILE_ROWS, :]
            y = b[row : row + TILE_ROWS, :]
            out[row : row + TILE_ROWS, :] = (x + y) * (x - y)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(256, 500, generator=generator), torch.randn(256, 500, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a + b) * (a - b)


def main() -> None:
    a, b = make_inputs()
    tiled, windowed = by_tile(a, b), by_window(a, b)
    torch.testing.assert_close(tiled, reference(a, b))
    torch.testing.assert_close(windowed, tiled, rtol=0, atol=0)
    rows, cols = a.shape
    tiles = -(-rows // TILE_ROWS) * -(-cols // TILE_COLS)
    print(f"elementwise_chunks: {tiles} tiles, {-(-rows // TILE_ROWS)} windows, bit for bit the same {rows} x {cols}")


if __name__ == "__main__":
    main()
