"""A matrix product with few outputs and a long inner dimension, which is split among blocks that add up in memory.

There is one output tile and too little work in it for many cores, so each core takes a slice of K
and adds its partial product to the result with an atomic store. Addition in fp32 depends on its
order: the last bits may differ from run to run on a parallel machine.
"""

import torch

import tilewright.language as pl
from tilewright import ir

M, K, N = 32, 1024, 32
SPLITS, STEP = 8, 64
SLICE = K // SPLITS

A = pl.Tensor[[M, K], pl.FP16]
B = pl.Tensor[[K, N], pl.FP16]
C = pl.Tensor[[M, N], pl.FP32]


@pl.program
class SplitK:
    @pl.function(type=pl.FunctionType.InCore)
    def clear(self, c: pl.Out[C]) -> C:
        return pl.store(pl.tile.full([M, N], dtype=pl.FP32, value=0.0), [0, 0], c)

    @pl.function(type=pl.FunctionType.InCore)
    def add_slice(self, a: A, b: B, start: pl.Scalar[pl.INDEX], c: pl.InOut[C]) -> C:
        acc = pl.matmul(pl.load(a, [0, start], [M, STEP]), pl.load(b, [start, 0], [STEP, N]))
        for k in pl.range(start + STEP, start + SLICE, STEP):
            acc = pl.matmul_acc(acc, pl.load(a, [0, k], [M, STEP]), pl.load(b, [k, 0], [STEP, N]))
        return pl.store(acc, [0, 0], c, atomic=pl.AtomicType.Add)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: A, b: B, c: pl.Out[C]) -> C:
        c = self.clear(c)
        for split in pl.parallel(SPLITS):
            c = self.add_slice(a, b, split * SLICE, c)
        return c


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(M, K, generator=generator).half(), torch.randn(K, N, generator=generator).half()


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() @ b.float()


def main() -> None:
    inputs = make_inputs()
    c, expected = ir.compile(SplitK)(*inputs), reference(*inputs)
    torch.testing.assert_close(c, expected, rtol=1e-4, atol=1e-4)
    print(f"split_k: K = {K} in {SPLITS} slices of {SLICE}, max error {(c - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
