"""Hello, tiles: two tensors are added, the whole of each as one tile.

`@pl.jit` makes a kernel of a function. Call it with tensors: the first call with new shapes or dtypes
compiles it. A `pl.at` scope inside it is what runs on a core: it loads tiles from tensors, computes
with them, and stores the result.
"""

import torch

import tilewright.language as pl


@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], a.shape)
        y = pl.load(b, [0, 0], b.shape)
        pl.store(x + y, [0, 0], out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(128, 128, generator=generator), torch.randn(128, 128, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def main() -> None:
    a, b = make_inputs()
    total = add(a, b)
    torch.testing.assert_close(total, reference(a, b))
    print(f"hello: a[0, 0] + b[0, 0] = {a[0, 0]:.3f} + {b[0, 0]:.3f} = {total[0, 0]:.3f}, as torch says")


if __name__ == "__main__":
    main()
