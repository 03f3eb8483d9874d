"""The feed-forward block of a transformer: down(silu(gate(x)) * up(x)), in bf16 with fp32 accumulators.

Two kernels and one intermediate in memory. The first computes the gate and up projections of a
column block together, so that their product never leaves the core unfinished; the second is the
down projection. Each loop over K is a pipeline: the loads of a step may start while earlier ones
compute. The number of tokens is dynamic: one compiled program serves every batch.
"""

import torch

import tilewright.language as pl

T = pl.dynamic("T")
HIDDEN, INNER = 128, 256
TM, TK, TN = 32, 64, 64

Tokens = pl.Tensor[[T, HIDDEN], pl.BF16]


@pl.jit.incore
def gate_up(x: pl.Tensor, w_gate: pl.Tensor, w_up: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    gate = pl.tile.full([TM, TN], dtype=pl.FP32, value=0.0)
    up = pl.tile.full([TM, TN], dtype=pl.FP32, value=0.0)
    for k in pl.pipeline(0, x.shape[1], TK, stage=2):
        tile = pl.load(x, [row, k], [TM, TK])
        gate = pl.matmul_acc(gate, tile, pl.load(w_gate, [k, col], [TK, TN]))
        up = pl.matmul_acc(up, tile, pl.load(w_up, [k, col], [TK, TN]))
    swiglu = gate / (pl.exp(-gate) + 1.0) * up
    return pl.store(pl.cast(swiglu, out.dtype, mode="rint"), [row, col], out)


@pl.jit.incore
def down(x: pl.Tensor, w: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    acc = pl.tile.full([TM, TN], dtype=pl.FP32, value=0.0)
    for k in pl.pipeline(0, x.shape[1], TK, stage=2):
        acc = pl.matmul_acc(acc, pl.load(x, [row, k], [TM, TK]), pl.load(w, [k, col], [TK, TN]))
    return pl.store(pl.cast(acc, out.dtype, mode="rint"), [row, col], out)


@pl.jit
def feed_forward(x: Tokens, w_gate: pl.Tensor, w_up: pl.Tensor, w_down: pl.Tensor, out: pl.Out[Tokens]):
    inner = pl.create_tensor([T, w_up.shape[1]], dtype=x.dtype)
    for row in pl.parallel(0, T, TM):
        for col in pl.parallel(0, inner.shape[1], TN):
            inner = gate_up(x, w_gate, w_up, row, col, inner)
    for row in pl.parallel(0, T, TM):
        for col in pl.parallel(0, out.shape[1], TN):
            out = down(inner, w_down, row, col, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(*shape, generator=generator)).bfloat16()

    wide = [randn(HIDDEN, INNER, scale=HIDDEN**-0.5) for _ in range(2)]
    return randn(40 + seed, HIDDEN), *wide, randn(INNER, HIDDEN, scale=INNER**-0.5)


def reference(x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor) -> torch.Tensor:
    gate, up = x.float() @ w_gate.float(), x.float() @ w_up.float()
    inner = (torch.nn.functional.silu(gate) * up).bfloat16()
    return (inner.float() @ w_down.float()).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out, expected = feed_forward(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-3)
    error = (out.float() - expected.float()).abs().max()
    print(f"ffn: {len(out)} tokens through {HIDDEN} -> {INNER} -> {HIDDEN}, max error {error:.1e} in bf16")


if __name__ == "__main__":
    main()
