"""The feed-forward block of a transformer: down(silu(gate(x)) * up(x)), in bf16 with fp32 accumulators.

Two kernels and one intermediate in memory. The first computes the gate and up projections of a
column block together, so that their product never leaves the core unfinished; the second is the
down projection. Each loop over K is a pipeline: the loads of a step may start while earlier ones
compute.
"""

import torch

import tilewright.language as pl
from tilewright import ir

TOKENS, HIDDEN, INNER = 32, 128, 256
TK, TN = 64, 64

X = pl.Tensor[[TOKENS, HIDDEN], pl.BF16]
Wide = pl.Tensor[[HIDDEN, INNER], pl.BF16]
Tall = pl.Tensor[[INNER, HIDDEN], pl.BF16]
Inner = pl.Tensor[[TOKENS, INNER], pl.BF16]


@pl.program
class FeedForward:
    @pl.function(type=pl.FunctionType.InCore)
    def gate_up(self, x: X, w_gate: Wide, w_up: Wide, col: pl.Scalar[pl.INDEX], out: pl.Out[Inner]) -> Inner:
        gate = pl.tile.full([TOKENS, TN], dtype=pl.FP32, value=0.0)
        up = pl.tile.full([TOKENS, TN], dtype=pl.FP32, value=0.0)
        for k in pl.pipeline(0, HIDDEN, TK, stage=2):
            tile = pl.load(x, [0, k], [TOKENS, TK])
            gate = pl.matmul_acc(gate, tile, pl.load(w_gate, [k, col], [TK, TN]))
            up = pl.matmul_acc(up, tile, pl.load(w_up, [k, col], [TK, TN]))
        swiglu = gate / (pl.exp(-gate) + 1.0) * up
        return pl.store(pl.cast(swiglu, pl.BF16, mode="rint"), [0, col], out)

    @pl.function(type=pl.FunctionType.InCore)
    def down(self, x: Inner, w: Tall, col: pl.Scalar[pl.INDEX], out: pl.Out[X]) -> X:
        acc = pl.tile.full([TOKENS, TN], dtype=pl.FP32, value=0.0)
        for k in pl.pipeline(0, INNER, TK, stage=2):
            acc = pl.matmul_acc(acc, pl.load(x, [0, k], [TOKENS, TK]), pl.load(w, [k, col], [TK, TN]))
        return pl.store(pl.cast(acc, pl.BF16, mode="rint"), [0, col], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: X, w_gate: Wide, w_up: Wide, w_down: Tall, out: pl.Out[X]) -> X:
        inner = pl.create_tensor([TOKENS, INNER], dtype=pl.BF16)
        for col in pl.parallel(0, INNER, TN):
            inner = self.gate_up(x, w_gate, w_up, col, inner)
        for col in pl.parallel(0, HIDDEN, TN):
            out = self.down(inner, w_down, col, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(*shape, generator=generator)).bfloat16()

    wide = [randn(HIDDEN, INNER, scale=HIDDEN**-0.5) for _ in range(2)]
    return randn(TOKENS, HIDDEN), *wide, randn(INNER, HIDDEN, scale=INNER**-0.5)


def reference(x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor) -> torch.Tensor:
    gate, up = x.float() @ w_gate.float(), x.float() @ w_up.float()
    inner = (torch.nn.functional.silu(gate) * up).bfloat16()
    return (inner.float() @ w_down.float()).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(FeedForward)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-3)
    error = (out.float() - expected.float()).abs().max()
    print(f"ffn: {TOKENS} tokens through {HIDDEN} -> {INNER} -> {HIDDEN}, max error {error:.1e} in bf16")


if __name__ == "__main__":
    main()
