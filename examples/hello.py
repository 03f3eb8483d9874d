"""Hello, tiles: two tensors are added, the whole of each as one tile.

A program is a class. Its orchestration function is what a caller starts; a `pl.at` scope inside it
is a kernel, which loads tiles from tensors, computes with them, and stores the result.
"""

import torch

import tilewright.language as pl
from tilewright import ir

ROWS, COLS = 128, 128


@pl.program
class Hello:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[ROWS, COLS], pl.FP32],
        b: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [ROWS, COLS])
            y = pl.load(b, [0, 0], [ROWS, COLS])
            out = pl.store(pl.add(x, y), [0, 0], out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, COLS, generator=generator), torch.randn(ROWS, COLS, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def main() -> None:
    a, b = make_inputs()
    total = ir.compile(Hello)(a, b)
    torch.testing.assert_close(total, reference(a, b))
    print(f"hello: a[0, 0] + b[0, 0] = {a[0, 0]:.3f} + {b[0, 0]:.3f} = {total[0, 0]:.3f}, as torch says")


if __name__ == "__main__":
    main()
