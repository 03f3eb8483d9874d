"""One program for every size: log-softmax of a tensor whose rows and columns are both unknown until it is called.

A tile's shape is fixed; how much of it holds data is not. `valid_shape` says how much is loaded,
`pl.fillpad` puts a harmless value in the rest before a step that looks at the whole tile (the least
number before a maximum, zero before a sum), `pl.set_validshape` trims the result, and a store
writes the valid part alone.
"""

import torch

import tilewright.language as pl
from tilewright import ir

M = pl.dynamic("M")
N = pl.dynamic("N")
ROWS, COLS = 32, 128


@pl.program
class LogSoftmax:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(
        self,
        x: pl.Tensor[[M, N], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        height = pl.min(ROWS, M - row)
        raw = pl.load(x, [row, 0], [ROWS, COLS], valid_shape=[height, N])
        top = pl.row_max(pl.fillpad(raw, pad_value=pl.PadValue.min))
        shifted = pl.row_expand_sub(raw, top)
        total = pl.row_sum(pl.fillpad(pl.exp(shifted), pad_value=pl.PadValue.zero))
        result = pl.row_expand_sub(shifted, pl.log(total))
        return pl.store(pl.set_validshape(result, height, N), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]
    ) -> pl.Tensor[[M, N], pl.FP32]:
        for row in pl.parallel(0, M, ROWS):
            out = self.rows(x, row, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    m = int(torch.randint(1, 200, (), generator=generator))
    n = int(torch.randint(1, COLS + 1, (), generator=generator))
    return (5 * torch.randn(m, n, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, dim=-1)


def main() -> None:
    log_softmax = ir.compile(LogSoftmax)
    shapes: list[str] = []
    for seed in range(4):
        (x,) = make_inputs(seed)
        torch.testing.assert_close(log_softmax(x), reference(x))
        shapes.append(" x ".join(map(str, x.shape)))
    print(f"dynamic_valid_shape: compiled once, right for {', '.join(shapes)}")


if __name__ == "__main__":
    main()
