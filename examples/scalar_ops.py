"""Scalars steer the work: parameters, elements read from a tensor, arithmetic, a branch and a `while` loop.

Each band of rows has a gain. The orchestration function reads it, halves it until it is at most
`limit`, and hands it to the kernel; bands whose gain is not positive are filled with `offset`
instead.
"""

import torch

import tilewright.language as pl
from tilewright import ir

BANDS, BAND_ROWS, COLS = 8, 16, 64
ROWS = BANDS * BAND_ROWS


@pl.program
class Gains:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        gains: pl.Tensor[[BANDS], pl.FP32],
        limit: pl.Scalar[pl.FP32],
        offset: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        for band in pl.range(BANDS):
            row = band * BAND_ROWS
            gain = pl.read(gains, [band])
            while gain > limit:
                gain = gain / 2.0
            with pl.at(level=pl.Level.CORE_GROUP):
                shift = pl.cast(offset, pl.FP32)
                if gain > 0.0:
                    tile = pl.load(x, [row, 0], [BAND_ROWS, COLS])
                    out = pl.store(pl.add(pl.mul(tile, gain), shift), [row, 0], out)
                else:
                    flat = pl.tile.full([BAND_ROWS, COLS], dtype=pl.FP32, value=0.0)
                    out = pl.store(pl.adds(flat, shift), [row, 0], out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, float, int]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, COLS, generator=generator)
    gains = torch.tensor([0.5, 1.0, 3.0, -1.0, 100.0, 0.0, 7.5, 1.25]).roll(seed)
    return x, gains, 1.25, -3


def reference(x: torch.Tensor, gains: torch.Tensor, limit: float, offset: int) -> torch.Tensor:
    halvings = torch.log2(gains.clamp(min=limit) / limit).ceil()
    gain = (gains / 2**halvings).clamp(min=0).repeat_interleave(BAND_ROWS)
    return x * gain[:, None] + offset


def main() -> None:
    inputs = make_inputs()
    out = ir.compile(Gains)(*inputs)
    torch.testing.assert_close(out, reference(*inputs))
    print(f"scalar_ops: {BANDS} bands, each with its own gain out of {inputs[1].tolist()}")


if __name__ == "__main__":
    main()
