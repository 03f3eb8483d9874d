"""A matrix product whose inner dimension is taken in steps, the accumulator carried from one step to the next.

A loop carries state in either of two spellings. `rebinding` assigns `acc` again in the body, and
whatever it is after the last step is what comes out. `yielding` says so: `init_values` is what goes
in, `pl.yield_` names what comes out. All three extents are dynamic: what is left over at the edges
takes a tile that is partly filled.
"""

import torch

import tilewright.language as pl

M, K, N = pl.dynamic("M"), pl.dynamic("K"), pl.dynamic("N")
TM, TK, TN = 64, 64, 64

A = pl.Tensor[[M, K], pl.FP16]
B = pl.Tensor[[K, N], pl.FP16]
C = pl.Tensor[[M, N], pl.FP32]


@pl.jit
def rebinding(a: A, b: B, c: pl.Out[C]):
    for m in pl.parallel(0, M, TM):
        for n in pl.parallel(0, N, TN):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="matmul"):
                acc = pl.matmul(pl.load(a, [m, 0], [TM, TK]), pl.load(b, [0, n], [TK, TN]))
                for k in pl.range(TK, K, TK):
                    acc = pl.matmul_acc(acc, pl.load(a, [m, k], [TM, TK]), pl.load(b, [k, n], [TK, TN]))
                pl.store(acc, [m, n], c)
    return c


@pl.jit.incore
def block(a: pl.Tensor, b: pl.Tensor, m: pl.INDEX, n: pl.INDEX, c: pl.Out[pl.Tensor]):
    zero: pl.Tile[[TM, TN], pl.FP32, pl.Mem.Acc] = pl.create_tile([TM, TN], dtype=pl.FP32, target_memory=pl.Mem.Acc)
    for k, (acc,) in pl.range(0, a.shape[1], TK, init_values=(zero,)):
        a_l1 = pl.load(a, [m, k], [TM, TK], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [k, n], [TK, TN], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        result = pl.yield_(pl.matmul_acc(acc, a_l0, b_l0, init_cond=k == 0))
    return pl.store(result, [m, n], c)


@pl.jit
def yielding(a: A, b: B, c: pl.Out[C]):
    for m in pl.parallel(0, M, TM):
        for n in pl.parallel(0, N, TN):
            c = block(a, b, m, n, c)
    return c


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    m, k, n = 128 + seed, 256 + seed, 100 + seed
    return torch.randn(m, k, generator=generator).half(), torch.randn(k, n, generator=generator).half()


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() @ b.float()


def main() -> None:
    a, b = make_inputs()
    expected = reference(a, b)
    results = rebinding(a, b), yielding(a, b)
    for result in results:
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-4)
    errors = " and ".join(f"{(c - expected).abs().max():.1e}" for c in results)
    steps = -(-a.shape[1] // TK)
    print(f"matmul_tiled: fp16 {list(a.shape)} @ {list(b.shape)} in {steps} steps, max error {errors}")


if __name__ == "__main__":
    main()
