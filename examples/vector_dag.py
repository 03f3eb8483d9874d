"""A small graph of vector kernels over intermediate tensors: (a - b) ** 2 / (a ** 2 + b ** 2 + 1).

Each kernel does one thing and is called where its operands are ready; the intermediates are tensors
that the program makes for itself. What may run at the same time follows from who reads and writes
what:

    a, b --> diff --> square --------------------+--> ratio --> out
    a ----> square --+--> sum --> plus one ------+
    b ----> square --+
"""

import torch

import tilewright.language as pl


@pl.jit.incore
def sub(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(a, [0, 0], a.shape) - pl.load(b, [0, 0], b.shape), [0, 0], out)


@pl.jit.incore
def square(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], x.shape)
    return pl.store(tile * tile, [0, 0], out)


@pl.jit.incore
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(a, [0, 0], a.shape) + pl.load(b, [0, 0], b.shape), [0, 0], out)


@pl.jit.incore
def add_scalar(x: pl.Tensor, value: pl.FP32, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], x.shape) + value, [0, 0], out)


@pl.jit.incore
def div(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(a, [0, 0], a.shape) / pl.load(b, [0, 0], b.shape), [0, 0], out)


@pl.jit.inline
def like(x: pl.Tensor):
    return pl.create_tensor(x.shape, dtype=x.dtype)


@pl.jit
def vector_dag(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    diff = sub(a, b, like(a))
    above = square(diff, like(diff))
    a_squared = square(a, like(a))
    b_squared = square(b, like(b))
    total = add(a_squared, b_squared, like(a))
    below = add_scalar(total, 1.0, like(total))
    return div(above, below, out)


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(128, 128, generator=generator), torch.randn(128, 128, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b) ** 2 / (a**2 + b**2 + 1)


def main() -> None:
    inputs = make_inputs()
    out, expected = vector_dag(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    print(f"vector_dag: 7 kernel calls, 6 intermediates, max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
