"""Four activation functions, each a kernel of its own: ReLU, SiLU, GELU (tanh form) and SwiGLU.

All but ReLU are a value times a sigmoid, so the sigmoid is written once, as a `@pl.jit.inline`
function that each kernel writes out for its own tiles. GELU's tanh needs no function of its own:
0.5 * (1 + tanh(u)) is sigmoid(2 * u).
"""

import math

import torch
import torch.nn.functional as F

import tilewright.language as pl

TWO_SQRT_2_OVER_PI = 2 * math.sqrt(2 / math.pi)


@pl.jit.inline
def sigmoid(x):
    return 1.0 / (pl.exp(-x) + 1.0)


@pl.jit.incore
def relu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], x.shape)
    return pl.store(pl.relu(tile), [0, 0], out)


@pl.jit.incore
def silu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], x.shape)
    return pl.store(tile * sigmoid(tile), [0, 0], out)


@pl.jit.incore
def gelu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], x.shape)
    cubic = tile + 0.044715 * tile * tile * tile
    return pl.store(tile * sigmoid(TWO_SQRT_2_OVER_PI * cubic), [0, 0], out)


@pl.jit.incore
def swiglu(gate: pl.Tensor, up: pl.Tensor, out: pl.Out[pl.Tensor]):
    g = pl.load(gate, [0, 0], gate.shape)
    u = pl.load(up, [0, 0], up.shape)
    return pl.store(g * sigmoid(g) * u, [0, 0], out)


@pl.jit
def activations(
    x: pl.Tensor,
    up: pl.Tensor,
    relu_out: pl.Out[pl.Tensor],
    silu_out: pl.Out[pl.Tensor],
    gelu_out: pl.Out[pl.Tensor],
    swiglu_out: pl.Out[pl.Tensor],
):
    relu_out = relu(x, relu_out)
    silu_out = silu(x, silu_out)
    gelu_out = gelu(x, gelu_out)
    swiglu_out = swiglu(x, up, swiglu_out)
    return relu_out, silu_out, gelu_out, swiglu_out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(64, 256, generator=generator), torch.randn(64, 256, generator=generator)


def reference(x: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return F.relu(x), F.silu(x), F.gelu(x, approximate="tanh"), F.silu(x) * up


def main() -> None:
    inputs = make_inputs()
    results = activations(*inputs)
    torch.testing.assert_close(results, reference(*inputs))
    errors = [f"{(a - b).abs().max():.0e}" for a, b in zip(results, reference(*inputs), strict=True)]
    print(f"activations: relu, silu, gelu and swiglu within {', '.join(errors)} of torch")


if __name__ == "__main__":
    main()
