"""RMS norm: rows over their root mean square, times a weight per column."""

import torch
from contenders import inductor, ours
from contest import EAGER, INDUCTOR, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

N, ROWS_PER_TILE = 4096, 16
EPS = 1e-6


def program(n: int, rows: int = ROWS_PER_TILE) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]
    Row = pl.Tensor[[1, n], pl.FP32]

    @pl.program
    class RmsNorm:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, w: Row, out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    weight = pl.load(w, [0, 0], [1, n])
                    tile = pl.load(x, [row, 0], [rows, n])
                    scale = pl.rsqrt(pl.row_sum(tile * tile) * (1.0 / n) + EPS)
                    out = pl.store(pl.col_expand_mul(pl.row_expand_mul(tile, scale), weight), [row, 0], out)
            return out

    return RmsNorm


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, (N,), w[0], EPS)


def enter() -> Field:
    x, w = torch.randn(N, N), torch.randn(1, N)
    result, scale, compiled = output(N, N), output(N, 1), output(N, N)

    def eager() -> torch.Tensor:
        torch.mul(x, x, out=result)
        torch.mean(result, -1, keepdim=True, out=scale)
        scale.add_(EPS).rsqrt_()
        torch.mul(x, scale, out=result)
        return result.mul_(w)

    return Field(
        rms_norm(x, w),
        {
            OURS: ours(program(N), x, w, out=output(N, N)),
            EAGER: eager,
            INDUCTOR: inductor(lambda x, w, out: out.copy_(rms_norm(x, w)), x, w, compiled),
        },
    )


NOTE = (
    "torch has no `rms_norm(out=)`; eager is the ops it is made of, with `out=`: `F.rms_norm` takes as long or longer."
)
ROWS = (Contest(f"rms_norm {N}²", enter, Work(bytes=2 * 4 * N * N), target=1.2, note=NOTE),)
