"""Programs are text too: `pl.parse` reads one from a string, and a printed program reads back the same.

So a program can be generated, kept in a file (`pl.loads`), sent around, or compared with
yesterday's. It is the text of a `@pl.program`, which is also how `@pl.jit` kernels print. Here a
template is filled in with an expression: one fused elementwise kernel per formula, for tensors with
any number of rows.
"""

import torch

import tilewright.language as pl
from tilewright import ir

TEMPLATE = """
ROWS, COLS = 16, 64

@pl.program
class Fused:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, COLS], pl.FP32], y: pl.Tensor[[M, COLS], pl.FP32],
             out: pl.Out[pl.Tensor[[M, COLS], pl.FP32]]):
        for row in pl.parallel(0, M, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.load(x, [row, 0], [ROWS, COLS])
                b = pl.load(y, [row, 0], [ROWS, COLS])
                out = pl.store({formula}, [row, 0], out)
        return out
"""


def fused(formula: str):
    """Return the program that computes `formula` of tiles `a` and `b`, element by element."""
    return pl.parse(TEMPLATE.format(formula=formula))


Hypot = fused("pl.sqrt(a * a + b * b)")


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(40 + seed, 64, generator=generator), torch.randn(40 + seed, 64, generator=generator)


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.hypot(x, y)


def main() -> None:
    x, y = make_inputs()
    torch.testing.assert_close(ir.compile(Hypot)(x, y), reference(x, y))
    torch.testing.assert_close(ir.compile(fused("pl.maximum(a, b) - b"))(x, y), torch.relu(x - y))
    again = pl.parse(str(Hypot))
    assert str(again) == str(Hypot)
    lines = len(str(Hypot).splitlines())
    print(f"from_text: two kernels from one template; the {lines} lines that print one read back the same")


if __name__ == "__main__":
    main()
