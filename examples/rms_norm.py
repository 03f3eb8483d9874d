"""RMS normalization of bf16 rows, computed in fp32: x / sqrt(mean(x ** 2) + eps) * weight.

The classic spelling: a scratch tile for the reduction, `row_expand_*` and `col_expand_*` for the
broadcasts, explicit casts on the way in and out. Annotations of locals are optional, and checked.
"""

import torch

import tilewright.language as pl

M = pl.dynamic("M")
ROWS, HIDDEN = 32, 256

Matrix = pl.Tensor[[M, HIDDEN], pl.BF16]


@pl.jit.incore
def some_rows(x: pl.Tensor, weight: pl.Tensor, eps: pl.FP32, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    x_bf16: pl.Tile[[ROWS, HIDDEN], pl.BF16] = pl.load(x, [row, 0], [ROWS, HIDDEN])
    x_fp32: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.cast(x_bf16, target_type=pl.FP32)
    scratch: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.create_tile([ROWS, HIDDEN], dtype=pl.FP32)
    squares: pl.Tile[[ROWS, 1], pl.FP32] = pl.row_sum(pl.mul(x_fp32, x_fp32), scratch)
    mean: pl.Tile[[ROWS, 1], pl.FP32] = pl.muls(squares, 1.0 / HIDDEN)
    rms: pl.Tile[[ROWS, 1], pl.FP32] = pl.sqrt(pl.adds(mean, eps))
    scaled: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.row_expand_mul(x_fp32, pl.recip(rms))
    w: pl.Tile[[1, HIDDEN], pl.FP32] = pl.cast(pl.load(weight, [0, 0], [1, HIDDEN]), target_type=pl.FP32)
    normed: pl.Tile[[ROWS, HIDDEN], pl.FP32] = pl.col_expand_mul(scaled, w)
    return pl.store(pl.cast(normed, target_type=pl.BF16, mode="rint"), [row, 0], out)


@pl.jit
def rms_norm(x: Matrix, weight: pl.Tensor, eps: pl.FP32, out: pl.Out[Matrix]):
    for row in pl.parallel(0, M, ROWS):
        out = some_rows(x, weight, eps, row, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, float]:
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(120 + seed, HIDDEN, generator=generator)
    return x.bfloat16(), (torch.rand(1, HIDDEN, generator=generator) + 0.5).bfloat16(), 1e-6


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x.float(), (HIDDEN,), weight[0].float(), eps).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out, expected = rms_norm(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    print(
        f"rms_norm: {len(out)} rows of {HIDDEN} bf16, {(out == expected).float().mean():.2%} equal torch's to the bit"
    )


if __name__ == "__main__":
    main()
