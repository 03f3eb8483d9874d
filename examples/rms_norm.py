"""RMS normalization of bf16 rows, computed in fp32: x / sqrt(mean(x ** 2) + eps) * weight.

The classic spelling: a scratch tile for the reduction, `row_expand_*` and `col_expand_*` for the
broadcasts, explicit casts on the way in and out.
"""

import torch

import tilewright.language as pl
from tilewright import ir

M, HIDDEN = 128, 256
ROWS = 32
EPS = 1e-6


@pl.program
class RmsNorm:
    @pl.function(type=pl.FunctionType.InCore)
    def rms_norm(
        self,
        x: pl.Tensor[[M, HIDDEN], pl.BF16],
        weight: pl.Tensor[[1, HIDDEN], pl.BF16],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, HIDDEN], pl.BF16]],
    ) -> pl.Tensor[[M, HIDDEN], pl.BF16]:
        x_bf16: pl.Tile[[ROWS, HIDDEN], pl.BF16] = pl.load(x, [row, 0], [ROWS, HIDDEN])
        x_fp32: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.cast(x_bf16, target_type=pl.FP32)
        scratch: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.create_tile([ROWS, HIDDEN], dtype=pl.FP32)
        squares: pl.Tile[[ROWS, 1], pl.FP32] = pl.row_sum(pl.mul(x_fp32, x_fp32), scratch)
        mean: pl.Tile[[ROWS, 1], pl.FP32] = pl.muls(squares, 1.0 / HIDDEN)
        rms: pl.Tile[[ROWS, 1], pl.FP32] = pl.sqrt(pl.adds(mean, EPS))
        scaled: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.row_expand_mul(x_fp32, pl.recip(rms))
        w: pl.Tile[[1, HIDDEN], pl.FP32] = pl.cast(pl.load(weight, [0, 0], [1, HIDDEN]), target_type=pl.FP32)
        normed: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.col_expand_mul(scaled, w)
        return pl.store(pl.cast(normed, target_type=pl.BF16, mode="rint"), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, HIDDEN], pl.BF16],
        weight: pl.Tensor[[1, HIDDEN], pl.BF16],
        out: pl.Out[pl.Tensor[[M, HIDDEN], pl.BF16]],
    ) -> pl.Tensor[[M, HIDDEN], pl.BF16]:
        for row in pl.parallel(0, M, ROWS):
            out = self.rms_norm(x, weight, row, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(M, HIDDEN, generator=generator)
    return x.bfloat16(), (torch.rand(1, HIDDEN, generator=generator) + 0.5).bfloat16()


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x.float(), (HIDDEN,), weight[0].float(), EPS).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(RmsNorm)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    print(f"rms_norm: {M} rows of {HIDDEN} bf16, {(out == expected).float().mean():.2%} equal torch's to the bit")


if __name__ == "__main__":
    main()
