"""Results put together from parts: rotary position embedding, x * cos + rotate_half(x) * sin.

Parts meet at two levels. Inside `rotate` the two halves of `rotate_half(x)` are assembled into one
tile; outside, `rope` takes a view of each head, and what the kernel made of it becomes that head's
window of the result.
"""

import torch

import tilewright.language as pl

HEADS, SEQ, DIM = 4, 64, 64

Heads = pl.Tensor[[HEADS, SEQ, DIM], pl.FP32]


@pl.jit.incore
def rotate(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    half = x.shape[1] // 2
    tile = pl.load(x, [0, 0], x.shape)
    turned = pl.create_tile(x.shape, dtype=x.dtype)
    turned = pl.assemble(turned, -tile[:, half:], [0, 0])
    turned = pl.assemble(turned, tile[:, :half], [0, half])
    c = pl.load(cos, [0, 0], x.shape)
    s = pl.load(sin, [0, 0], x.shape)
    return pl.store(tile * c + turned * s, [0, 0], out)


@pl.jit
def rope(x: Heads, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[Heads]):
    for h in pl.range(HEADS):
        head = pl.create_tensor(cos.shape, dtype=cos.dtype)
        head = rotate(x[h], cos, sin, head)
        out[h : h + 1, :, :] = head
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = torch.randn(HEADS, SEQ, DIM, generator=torch.Generator().manual_seed(seed))
    frequencies = 10000.0 ** (-2 * torch.arange(DIM // 2) / DIM)
    angles = torch.outer(torch.arange(SEQ), frequencies).repeat(1, 2)
    return x, angles.cos(), angles.sin()


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def main() -> None:
    inputs = make_inputs()
    out, expected = rope(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    kept = (out.norm(dim=-1) - inputs[0].norm(dim=-1)).abs().max()
    error = (out - expected).abs().max()
    print(f"assemble: {HEADS} heads turned, their norms kept within {kept:.1e}, max error {error:.1e}")


if __name__ == "__main__":
    main()
