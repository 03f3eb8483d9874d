"""Layer normalization: every row shifted to mean 0, scaled to variance 1, then by `gamma` and `beta`.

Written with operators throughout. A [ROWS, 1] column and a [1, COLS] row both broadcast against a
[ROWS, COLS] tile, as they would in NumPy, and reductions need no scratch tile.
"""

import torch

import tilewright.language as pl

M = pl.dynamic("M")
ROWS, COLS = 64, 192
EPS = 1e-5

Matrix = pl.Tensor[[M, COLS], pl.FP32]


@pl.jit
def layer_norm(x: Matrix, gamma: pl.Tensor, beta: pl.Tensor, out: pl.Out[Matrix]):
    for row in pl.parallel(0, M, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="normalize"):
            tile = pl.load(x, [row, 0], [ROWS, COLS])
            tile -= pl.row_sum(tile) / COLS
            variance = pl.row_sum(tile * tile) / COLS
            tile *= pl.rsqrt(variance + EPS)
            tile *= pl.load(gamma, [0, 0], [1, COLS])
            tile += pl.load(beta, [0, 0], [1, COLS])
            pl.store(tile, [row, 0], out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 5 * torch.randn(250 + seed, COLS, generator=generator) + 2
    return x, torch.rand(1, COLS, generator=generator) + 0.5, torch.randn(1, COLS, generator=generator)


def reference(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (COLS,), gamma[0], beta[0], EPS)


def main() -> None:
    inputs = make_inputs()
    out, expected = layer_norm(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    print(f"layer_norm: {len(out)} rows of {COLS}, max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
