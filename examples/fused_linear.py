"""A linear layer in one kernel: relu(x @ w + bias), nothing but the result going back to memory.

The classic spelling, with the memory of an NPU core in view: operands come into `Mat`, move to the
two sides of the matrix unit, and the fp32 accumulator is finished by the vector unit before it is
stored as bf16.
"""

import torch

import tilewright.language as pl
from tilewright import ir

M, K, N = 64, 128, 256
TILE_N = 64


@pl.program
class FusedLinear:
    @pl.function(type=pl.FunctionType.InCore)
    def linear_relu(
        self,
        x: pl.Tensor[[M, K], pl.BF16],
        w: pl.Tensor[[K, N], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        col: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ) -> pl.Tensor[[M, N], pl.BF16]:
        x_l1 = pl.load(x, [0, 0], [M, K], target_memory=pl.Mem.Mat)
        w_l1 = pl.load(w, [0, col], [K, TILE_N], target_memory=pl.Mem.Mat)
        x_l0 = pl.move(x_l1, target_memory=pl.Mem.Left)
        w_l0 = pl.move(w_l1, target_memory=pl.Mem.Right)
        acc: pl.Tile[[M, TILE_N], pl.FP32] = pl.matmul(x_l0, w_l0)
        bias_row = pl.load(bias, [0, col], [1, TILE_N])
        linear = pl.col_expand_add(pl.move(acc, target_memory=pl.Mem.Vec), bias_row)
        result = pl.cast(pl.relu(linear), target_type=pl.BF16, mode="rint")
        return pl.store(result, [0, col], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, K], pl.BF16],
        w: pl.Tensor[[K, N], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ) -> pl.Tensor[[M, N], pl.BF16]:
        for col in pl.parallel(0, N, TILE_N):
            out = self.linear_relu(x, w, bias, col, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(M, K, generator=generator).bfloat16()
    w = (torch.randn(K, N, generator=generator) / K**0.5).bfloat16()
    return x, w, torch.randn(1, N, generator=generator)


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.float() @ w.float() + bias).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(FusedLinear)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    same = (out == expected).float().mean()
    print(f"fused_linear: [{M}, {K}] @ [{K}, {N}] + bias, relu: {same:.1%} of bf16 results equal torch's to the bit")


if __name__ == "__main__":
    main()
