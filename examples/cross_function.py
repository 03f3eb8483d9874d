"""Functions calling functions: three ways to give a piece of a kernel a name.

- `@pl.jit.incore`: a kernel of its own, here with two results, made anew for each kind of arguments;
- `@pl.jit.inline`: written out where it is called, for tiles as well as numbers;
- `@pl.jit.opaque`: loops and kernel scopes of its own, called like a subroutine.

Together they standardize the rows of a tensor and mix them with another one.
"""

import torch

import tilewright.language as pl

ROWS = 32


@pl.jit.inline
def mean(tile, count: int):
    return pl.row_sum(tile) / count


@pl.jit.inline
def band(x: pl.Tensor, index: pl.INDEX):
    return pl.load(x, [index * ROWS, 0], [ROWS, x.shape[1]])


@pl.jit.incore
def lerp(a: pl.Tensor, b: pl.Tensor, weight: pl.FP32, out: pl.Out[pl.Tensor]):
    for i in pl.range(a.shape[0] // ROWS):
        x, y = band(a, i), band(b, i)
        pl.store(x + weight * (y - x), [i * ROWS, 0], out)
    return out


@pl.jit.incore
def moments(x: pl.Tensor, index: pl.INDEX, average: pl.Out[pl.Tensor], spread: pl.Out[pl.Tensor]):
    tile = band(x, index)
    m = mean(tile, x.shape[1])
    centered = tile - m
    average = pl.store(m, [index * ROWS, 0], average)
    spread = pl.store(pl.sqrt(mean(centered * centered, x.shape[1])), [index * ROWS, 0], spread)
    return average, spread


@pl.jit.opaque
def standardize(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    average = pl.create_tensor([rows, 1], dtype=x.dtype)
    spread = pl.create_tensor([rows, 1], dtype=x.dtype)
    for i in pl.parallel(rows // ROWS):
        average, spread = moments(x, i, average, spread)
    for i in pl.parallel(rows // ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="apply_moments"):
            tile = (band(x, i) - band(average, i)) / band(spread, i)
            pl.store(tile, [i * ROWS, 0], out)
    return out


@pl.jit
def cross_function(x: pl.Tensor, y: pl.Tensor, weight: pl.FP32, out: pl.Out[pl.Tensor]):
    standard = pl.create_tensor(x.shape, dtype=x.dtype)
    standard = standardize(x, standard)
    return lerp(standard, y, weight, out)


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, float]:
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(96, 128, generator=generator) - 1
    return x, torch.randn(96, 128, generator=generator), 0.25


def reference(x: torch.Tensor, y: torch.Tensor, weight: float) -> torch.Tensor:
    standard = (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
    return torch.lerp(standard, y, weight)


def main() -> None:
    inputs = make_inputs()
    out, expected = cross_function(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    names = ", ".join(cross_function.lower(*inputs).function_names)
    print(f"cross_function: {names}; what was inline is gone by then; max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
