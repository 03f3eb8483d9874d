"""Tasks and their order, by hand: column-wise standardization as a graph of kernels.

Inside `pl.manual_scope()` nothing is ordered unless `deps=` says so. Each band of rows leaves
its column sums and sums of squares; the kernel that turns them into mean and scale waits for all of
them; the bands are then normalized, in any order, after it. `pl.submit` dispatches functions of a
program by name, so this is a `@pl.program` class, every type written out, compiled with `ir.compile`.

    sum band 0 --+                            +--> normalize band 0
    sum band 1 --+--> all summed --> moments -+--> normalize band 1
    ...        --+                            +--> ...
"""

import torch

import tilewright.language as pl
from tilewright import ir

BANDS, ROWS, COLS = 4, 32, 64
M = BANDS * ROWS

Matrix = pl.Tensor[[M, COLS], pl.FP32]
Parts = pl.Tensor[[BANDS, COLS], pl.FP32]
Row = pl.Tensor[[1, COLS], pl.FP32]


@pl.program
class Standardize:
    @pl.function(type=pl.FunctionType.InCore)
    def partial_sums(
        self, x: Matrix, band: pl.Scalar[pl.INDEX], sums: pl.InOut[Parts], squares: pl.InOut[Parts]
    ) -> pl.Tuple[Parts, Parts]:
        tile = pl.load(x, [band * ROWS, 0], [ROWS, COLS])
        sums = pl.store(pl.col_sum(tile), [band, 0], sums)
        squares = pl.store(pl.col_sum(tile * tile), [band, 0], squares)
        return sums, squares

    @pl.function(type=pl.FunctionType.InCore)
    def normalize(self, x: Matrix, mean: Row, scale: Row, band: pl.Scalar[pl.INDEX], out: pl.InOut[Matrix]) -> Matrix:
        tile = pl.load(x, [band * ROWS, 0], [ROWS, COLS])
        centered = pl.col_expand_sub(tile, pl.load(mean, [0, 0], [1, COLS]))
        result = pl.col_expand_mul(centered, pl.load(scale, [0, 0], [1, COLS]))
        return pl.store(result, [band * ROWS, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        sums = pl.create_tensor([BANDS, COLS], dtype=pl.FP32)
        squares = pl.create_tensor([BANDS, COLS], dtype=pl.FP32)
        mean = pl.create_tensor([1, COLS], dtype=pl.FP32)
        scale = pl.create_tensor([1, COLS], dtype=pl.FP32)
        with pl.manual_scope():
            tasks = pl.array.create(BANDS, pl.TASK_ID)
            for band in pl.range(BANDS):
                sums, squares, task = pl.submit(self.partial_sums, x, band, sums, squares)
                tasks[band] = task
            all_summed = pl.system.task_dummy(deps=[tasks[0], tasks[1], tasks[2], tasks[3]])
            with pl.at(level=pl.Level.CORE_GROUP, deps=[all_summed], name_hint="moments") as moments:
                average = pl.col_sum(pl.load(sums, [0, 0], [BANDS, COLS])) / M
                variance = pl.col_sum(pl.load(squares, [0, 0], [BANDS, COLS])) / M - average * average
                mean = pl.store(average, [0, 0], mean)
                scale = pl.store(pl.rsqrt(variance), [0, 0], scale)
            for band in pl.range(BANDS):
                out, _ = pl.submit(self.normalize, x, mean, scale, band, out, deps=[moments])
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    return (2 * torch.randn(M, COLS, generator=torch.Generator().manual_seed(seed)) + 1,)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(0)) / x.std(0, correction=0)


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(Standardize)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    print(f"task_graph: {2 * BANDS + 2} tasks in three waves, max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
