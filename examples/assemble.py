"""Results put together from parts: rotary position embedding, x * cos + rotate_half(x) * sin.

Parts meet at two levels. Inside the kernel the two halves of `rotate_half(x)` are assembled into
one tile; outside, the orchestration function takes a view of each head, and what the kernel made of
it becomes that head's window of the result.
"""

import torch

import tilewright.language as pl
from tilewright import ir

HEADS, SEQ, DIM = 4, 64, 64
HALF = DIM // 2

Heads = pl.Tensor[[HEADS, SEQ, DIM], pl.FP32]
Head = pl.Tensor[[SEQ, DIM], pl.FP32]


@pl.program
class Rope:
    @pl.function(type=pl.FunctionType.InCore)
    def rotate(self, x: Head, cos: Head, sin: Head, out: pl.Out[Head]) -> Head:
        tile = pl.load(x, [0, 0], [SEQ, DIM])
        turned = pl.create_tile([SEQ, DIM], dtype=pl.FP32)
        turned = pl.assemble(turned, pl.neg(tile[:, HALF:]), [0, 0])
        turned = pl.assemble(turned, tile[:, :HALF], [0, HALF])
        c = pl.load(cos, [0, 0], [SEQ, DIM])
        s = pl.load(sin, [0, 0], [SEQ, DIM])
        return pl.store(tile * c + turned * s, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Heads, cos: Head, sin: Head, out: pl.Out[Heads]) -> Heads:
        for h in pl.range(HEADS):
            head = pl.create_tensor([SEQ, DIM], dtype=pl.FP32)
            head = self.rotate(x[h], cos, sin, head)
            out[h : h + 1, :, :] = head
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = torch.randn(HEADS, SEQ, DIM, generator=torch.Generator().manual_seed(seed))
    frequencies = 10000.0 ** (-torch.arange(HALF) / HALF)
    angles = torch.outer(torch.arange(SEQ), frequencies).repeat(1, 2)
    return x, angles.cos(), angles.sin()


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(Rope)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    kept = (out.norm(dim=-1) - inputs[0].norm(dim=-1)).abs().max()
    error = (out - expected).abs().max()
    print(f"assemble: {HEADS} heads turned, their norms kept within {kept:.1e}, max error {error:.1e}")


if __name__ == "__main__":
    main()
