"""Softmax as PTO text, and as Python over the same ops: both run on this machine, checked against torch."""

# pyright: basic, reportInvalidTypeForm=false
# PTO declares parameters by values, which type checkers do not take for types.

import torch

from tilewright import pto

COLS, BLOCKS = 128, 4


@pto.jit(source="softmax.pto")
def softmax(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.i32):
    """The body is softmax.pto, beside this file; what it takes is checked against this signature."""


@pto.jit()
def traced(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.i32, *, HEIGHT: pto.const_expr = 16):
    source = pto.make_tensor_view(x, shape=[rows, COLS], strides=[COLS, 1])
    target = pto.make_tensor_view(out, shape=[rows, COLS], strides=[COLS, 1])
    for row in range(pto.get_block_idx() * HEIGHT, rows, pto.get_block_num() * HEIGHT):
        here = min(rows - row, HEIGHT)
        tile = pto.alloc_tile(shape=[HEIGHT, COLS], dtype=pto.f32, valid_row=here)
        fold = pto.alloc_tile(shape=[HEIGHT, 1], dtype=pto.f32, valid_row=here, blayout="col_major")
        pto.tile.load(pto.partition_view(source, offsets=[row, 0], sizes=[here, COLS]), tile)
        pto.tile.rowmax(tile, fold)
        pto.tile.rowexpandsub(tile, fold, tile)
        pto.tile.exp(tile, tile)
        pto.tile.rowsum(tile, fold)
        pto.tile.rowexpanddiv(tile, fold, tile)
        pto.tile.store(tile, pto.partition_view(target, offsets=[row, 0], sizes=[here, COLS]))


def main() -> None:
    x = 4 * torch.randn(1003, COLS, generator=torch.Generator().manual_seed(0))
    for kernel in softmax, traced:
        out = torch.empty_like(x)
        kernel[BLOCKS, None](x, out, len(x))
        torch.testing.assert_close(out, torch.softmax(x, dim=-1))
        print(f"{kernel.name}: {len(kernel.mlir_text().splitlines())} lines of PTO, as torch says")


if __name__ == "__main__":
    main()
