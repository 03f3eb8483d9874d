"""A linear layer in one kernel: relu(x @ w + bias), nothing but the result going back to memory.

The classic spelling, with the memory of an NPU core in view: operands come into `Mat`, move to the
two sides of the matrix unit, and the fp32 accumulator is finished by the vector unit before it is
stored as bf16.
"""

import torch

import tilewright.language as pl

M, N = pl.dynamic("M"), pl.dynamic("N")
K = 128
TM, TN = 64, 64


@pl.jit.incore
def linear_relu(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    x_l1 = pl.load(x, [row, 0], [TM, K], target_memory=pl.Mem.Mat)
    w_l1 = pl.load(w, [0, col], [K, TN], target_memory=pl.Mem.Mat)
    x_l0 = pl.move(x_l1, target_memory=pl.Mem.Left)
    w_l0 = pl.move(w_l1, target_memory=pl.Mem.Right)
    acc: pl.Tile[[TM, TN], pl.FP32] = pl.matmul(x_l0, w_l0)
    bias_row = pl.load(bias, [0, col], [1, TN])
    linear = pl.col_expand_add(pl.move(acc, target_memory=pl.Mem.Vec), bias_row)
    result = pl.cast(pl.relu(linear), target_type=pl.BF16, mode="rint")
    return pl.store(result, [row, col], out)


@pl.jit
def fused_linear(
    x: pl.Tensor[[M, K], pl.BF16],
    w: pl.Tensor[[K, N], pl.BF16],
    bias: pl.Tensor[[1, N], pl.FP32],
    out: pl.Out[pl.Tensor[[M, N], pl.BF16]],
):
    for row in pl.parallel(0, M, TM):
        for col in pl.parallel(0, N, TN):
            out = linear_relu(x, w, bias, row, col, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(100 + seed, K, generator=generator).bfloat16()
    w = (torch.randn(K, 256, generator=generator) / K**0.5).bfloat16()
    return x, w, torch.randn(1, 256, generator=generator)


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.float() @ w.float() + bias).bfloat16()


def main() -> None:
    x, w, bias = make_inputs()
    out, expected = fused_linear(x, w, bias), reference(x, w, bias)
    torch.testing.assert_close(out, expected)
    same = (out == expected).float().mean()
    shapes = f"{list(x.shape)} @ {list(w.shape)}"
    print(f"fused_linear: {shapes} + bias, relu: {same:.1%} of bf16 results equal torch's to the bit")


if __name__ == "__main__":
    main()
