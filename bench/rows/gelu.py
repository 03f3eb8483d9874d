"""gelu: gelu(x * w + b) in its tanh form, with one weight and one bias per column."""

import torch
from contenders import inductor, ours
from contest import EAGER, INDUCTOR, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

N, ROWS_PER_TILE = 4096, 16
CUBIC = 0.044715
SLOPE = -1.5957691216  # -2 * sqrt(2 / pi): v / 2 * (1 + tanh(u)) is v / (1 + exp(-2 * u))


def program(n: int, rows: int = ROWS_PER_TILE) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]
    Row = pl.Tensor[[1, n], pl.FP32]

    @pl.program
    class Gelu:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, w: Row, b: Row, out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    weight, bias = pl.load(w, [0, 0], [1, n]), pl.load(b, [0, 0], [1, n])
                    tile = pl.load(x, [row, 0], [rows, n])
                    v = pl.col_expand_add(pl.col_expand_mul(tile, weight), bias)
                    out = pl.store(v / (pl.exp((v + v * v * v * CUBIC) * SLOPE) + 1.0), [row, 0], out)
            return out

    return Gelu


def gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def enter() -> Field:
    x, (w, b) = torch.randn(N, N), torch.randn(2, 1, N)
    between, result, compiled = output(N, N), output(N, N), output(N, N)

    def eager() -> torch.Tensor:
        torch.add(torch.mul(x, w, out=between), b, out=between)
        return torch.ops.aten.gelu.out(between, approximate="tanh", out=result)

    return Field(
        gelu(x * w + b),
        {
            OURS: ours(program(N), x, w, b, out=output(N, N)),
            EAGER: eager,
            INDUCTOR: inductor(lambda x, w, b, out: out.copy_(gelu(x * w + b)), x, w, b, compiled),
        },
    )


NOTE = "eager is `mul(out=)`, `add(out=)` and `aten::gelu.out`; gelu has no `out=` in torch's Python API."
ROWS = (Contest(f"gelu(x * w + b) {N}²", enter, Work(bytes=2 * 4 * N * N), target=1.2, note=NOTE),)
