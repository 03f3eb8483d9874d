"""A matrix product with few outputs and a long inner dimension, which is split among blocks that add up in memory.

There is one output tile and too little work in it for many cores, so each core takes a slice of K
and adds its partial product to the result with an atomic store. Addition in fp32 depends on its
order: the last bits may differ from run to run on a parallel machine.
"""

import torch

import tilewright.language as pl

M, N = 32, 32
SPLITS, STEP = 8, 64

C = pl.Tensor[[M, N], pl.FP32]


@pl.jit.incore
def clear(c: pl.Out[pl.Tensor]):
    return pl.store(pl.tile.full(c.shape, dtype=c.dtype, value=0.0), [0, 0], c)


@pl.jit.incore
def add_slice(a: pl.Tensor, b: pl.Tensor, start: pl.INDEX, stop: pl.INDEX, c: pl.InOut[pl.Tensor]):
    acc = pl.matmul(pl.load(a, [0, start], [M, STEP]), pl.load(b, [start, 0], [STEP, N]))
    for k in pl.range(start + STEP, stop, STEP):
        acc = pl.matmul_acc(acc, pl.load(a, [0, k], [M, STEP]), pl.load(b, [k, 0], [STEP, N]))
    return pl.store(acc, [0, 0], c, atomic=pl.AtomicType.Add)


@pl.jit
def split_k(a: pl.Tensor, b: pl.Tensor, c: pl.Out[C]):
    width = a.shape[1] // SPLITS
    c = clear(c)
    for split in pl.parallel(SPLITS):
        c = add_slice(a, b, split * width, (split + 1) * width, c)
    return c


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(M, 1024, generator=generator).half(), torch.randn(1024, N, generator=generator).half()


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() @ b.float()


def main() -> None:
    a, b = make_inputs()
    c, expected = split_k(a, b), reference(a, b)
    torch.testing.assert_close(c, expected, rtol=1e-4, atol=1e-4)
    k = a.shape[1]
    print(f"split_k: K = {k} in {SPLITS} slices of {k // SPLITS}, max error {(c - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
