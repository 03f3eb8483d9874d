"""One compiled kernel for every size: log-softmax of tensors whose rows and columns both differ from call to call.

An axis that `bind_dynamic` names is no part of what the kernel is compiled for. A tile's shape stays
fixed; how much of it holds data does not. `valid_shape` says how much is loaded, `pl.fillpad` puts a
harmless value in the rest before a step that looks at the whole tile (the least number before a
maximum, zero before a sum), `pl.set_validshape` trims the result, and a store writes the valid part
alone.
"""

import torch

import tilewright.language as pl

ROWS, COLS = 32, 128


@pl.jit.incore
def some_rows(x: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    m, n = x.shape
    height = pl.min(ROWS, m - row)
    raw = pl.load(x, [row, 0], [ROWS, COLS], valid_shape=[height, n])
    top = pl.row_max(pl.fillpad(raw, pad_value=pl.PadValue.min))
    shifted = pl.row_expand_sub(raw, top)
    total = pl.row_sum(pl.fillpad(pl.exp(shifted), pad_value=pl.PadValue.zero))
    result = pl.row_expand_sub(shifted, pl.log(total))
    return pl.store(pl.set_validshape(result, height, n), [row, 0], out)


@pl.jit
def log_softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    M, N = pl.dynamic("M"), pl.dynamic("N")
    x.bind_dynamic(0, M)
    x.bind_dynamic(1, N)
    for row in pl.parallel(0, M, ROWS):
        out = some_rows(x, row, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    m = int(torch.randint(1, 200, (), generator=generator))
    n = int(torch.randint(1, COLS + 1, (), generator=generator))
    return (5 * torch.randn(m, n, generator=generator),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(x, dim=-1)


def main() -> None:
    shapes: list[str] = []
    for seed in range(4):
        (x,) = make_inputs(seed)
        torch.testing.assert_close(log_softmax(x), reference(x))
        shapes.append(" x ".join(map(str, x.shape)))
    print(f"dynamic_valid_shape: {log_softmax.cache_info().currsize} compiled program, right for {', '.join(shapes)}")


if __name__ == "__main__":
    main()
