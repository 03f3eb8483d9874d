"""Four activation functions, each a kernel of its own: ReLU, SiLU, GELU (tanh form) and SwiGLU.

All but ReLU are a value times a sigmoid, so the sigmoid is written once, as a `@pl.inline` template
that each kernel expands. GELU's tanh needs no function of its own: 0.5 * (1 + tanh(u)) is sigmoid(2
* u).
"""

import math

import torch
import torch.nn.functional as F

import tilewright.language as pl
from tilewright import ir

ROWS, COLS = 64, 256
TWO_SQRT_2_OVER_PI = 2 * math.sqrt(2 / math.pi)

Matrix = pl.Tensor[[ROWS, COLS], pl.FP32]


@pl.inline
def sigmoid(x):
    return 1.0 / (pl.exp(-x) + 1.0)


@pl.program
class Activations:
    @pl.function(type=pl.FunctionType.InCore)
    def relu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        return pl.store(pl.relu(tile), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def silu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        return pl.store(tile * sigmoid(tile), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def gelu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        cubic = tile + 0.044715 * tile * tile * tile
        return pl.store(tile * sigmoid(TWO_SQRT_2_OVER_PI * cubic), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def swiglu(self, gate: Matrix, up: Matrix, out: pl.Out[Matrix]) -> Matrix:
        g = pl.load(gate, [0, 0], [ROWS, COLS])
        u = pl.load(up, [0, 0], [ROWS, COLS])
        return pl.store(g * sigmoid(g) * u, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: Matrix,
        up: Matrix,
        relu_out: pl.Out[Matrix],
        silu_out: pl.Out[Matrix],
        gelu_out: pl.Out[Matrix],
        swiglu_out: pl.Out[Matrix],
    ) -> pl.Tuple[Matrix, Matrix, Matrix, Matrix]:
        relu_out = self.relu(x, relu_out)
        silu_out = self.silu(x, silu_out)
        gelu_out = self.gelu(x, gelu_out)
        swiglu_out = self.swiglu(x, up, swiglu_out)
        return relu_out, silu_out, gelu_out, swiglu_out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(ROWS, COLS, generator=generator), torch.randn(ROWS, COLS, generator=generator)


def reference(x: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return F.relu(x), F.silu(x), F.gelu(x, approximate="tanh"), F.silu(x) * up


def main() -> None:
    inputs = make_inputs()
    results = ir.compile(Activations)(*inputs)
    torch.testing.assert_close(results, reference(*inputs))
    errors = [f"{(a - b).abs().max():.0e}" for a, b in zip(results, reference(*inputs), strict=True)]
    print(f"activations: relu, silu, gelu and swiglu within {', '.join(errors)} of torch")


if __name__ == "__main__":
    main()
