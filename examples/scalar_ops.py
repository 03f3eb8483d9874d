"""Scalars steer the work: parameters, elements read from a tensor, arithmetic, a branch and a `while` loop.

Each band of rows has a gain. The kernel reads it, halves it until it is at most `limit`, and scales
the band with it; bands whose gain is not positive are filled with `offset` instead.

A number passed to a kernel becomes part of its code, which is compiled once for each value. To leave
it open, compile with `pl.RUNTIME` in its place: one program then takes any value.
"""

import torch

import tilewright.language as pl

BANDS, BAND_ROWS, COLS = 8, 16, 64

Matrix = pl.Tensor[[BANDS * BAND_ROWS, COLS], pl.FP32]
Gains = pl.Tensor[[BANDS], pl.FP32]


@pl.jit
def scale_bands(x: Matrix, gains: Gains, limit: pl.FP32, offset: pl.INT32, out: pl.Out[Matrix]):
    for band in pl.range(BANDS):
        row = band * BAND_ROWS
        gain = pl.read(gains, [band])
        while gain > limit:
            gain = gain / 2.0
        with pl.at(level=pl.Level.CORE_GROUP):
            shift = pl.cast(offset, pl.FP32)
            if gain > 0.0:
                tile = pl.load(x, [row, 0], [BAND_ROWS, COLS])
                pl.store(tile * gain + shift, [row, 0], out)
            else:
                flat = pl.tile.full([BAND_ROWS, COLS], dtype=pl.FP32, value=0.0)
                pl.store(flat + shift, [row, 0], out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, float, int]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(BANDS * BAND_ROWS, COLS, generator=generator)
    gains = torch.tensor([0.5, 1.0, 3.0, -1.0, 100.0, 0.0, 7.5, 1.25]).roll(seed)
    return x, gains, 1.25, -3


def reference(x: torch.Tensor, gains: torch.Tensor, limit: float, offset: int) -> torch.Tensor:
    halvings = torch.log2(gains.clamp(min=limit) / limit).ceil()
    gain = (gains / 2**halvings).clamp(min=0).repeat_interleave(BAND_ROWS)
    return x * gain[:, None] + offset


def main() -> None:
    x, gains, limit, offset = make_inputs()
    torch.testing.assert_close(scale_bands(x, gains, limit, offset), reference(x, gains, limit, offset))
    for_any = scale_bands.compile(limit=pl.RUNTIME, offset=pl.RUNTIME)
    for limit in (0.5, 2.0, 64.0):
        torch.testing.assert_close(for_any(x, gains, limit, offset), reference(x, gains, limit, offset))
    print(f"scalar_ops: {BANDS} bands of gains {gains.tolist()}, and one program for three limits")


if __name__ == "__main__":
    main()
