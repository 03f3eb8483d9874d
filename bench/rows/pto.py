"""pto: a loop over tiles written as PTO text, beside the same kernel through `pl.jit` and torch."""
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
# PTO declares parameters by values, which type checkers do not take for types.

import torch
from contest import EAGER, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright import pto

N, BAND = 2048, 16
F32 = pto.ptr(pto.f32, "gm")
PTO, JIT = "pto text", "pl.jit"
GROUP = "PTO text"


def swish_text(n: int = N, band: int = BAND) -> str:
    """x / (1 + exp(-x)), a band of rows per block."""
    tile, part = f"!pto.tile_buf<vec, {band}x{n}xf32>", f"!pto.partition_tensor_view<{band}x{n}xf32>"
    view = "!pto.tensor_view<?x?xf32>"
    return f"""module {{
  func.func @swish(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {n} : index
    %band = arith.constant {band} : index
    %minus = arith.constant -1.0 : f32
    %one = arith.constant 1.0 : f32
    %id = pto.get_block_idx
    %block = arith.index_cast %id : i64 to index
    %row = arith.muli %block, %band : index
    %vx = pto.make_tensor_view %x, shape = [%n, %n], strides = [%n, %c1] : {view}
    %vo = pto.make_tensor_view %out, shape = [%n, %n], strides = [%n, %c1] : {view}
    %px = pto.partition_view %vx, offsets = [%row, %c0], sizes = [%band, %n] : {view} -> {part}
    %po = pto.partition_view %vo, offsets = [%row, %c0], sizes = [%band, %n] : {view} -> {part}
    %a = pto.alloc_tile : {tile}
    %b = pto.alloc_tile : {tile}
    pto.tload ins(%px : {part}) outs(%a : {tile})
    pto.tmuls ins(%a, %minus : {tile}, f32) outs(%b : {tile})
    pto.texp ins(%b : {tile}) outs(%b : {tile})
    pto.tadds ins(%b, %one : {tile}, f32) outs(%b : {tile})
    pto.tdiv ins(%a, %b : {tile}, {tile}) outs(%b : {tile})
    pto.tstore ins(%b : {tile}) outs(%po : {part})
    return
  }}
}}
"""


@pl.jit
def swish_jit(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, N, BAND):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [BAND, N])
            pl.store(t / (pl.exp(t * -1.0) + 1.0), [row, 0], out)


def enter_swish() -> Field:
    @pto.jit(source=swish_text())
    def swish(x: F32, out: F32): ...

    x, text, jit, eager = torch.randn(N, N), output(N, N), output(N, N), output(N, N)
    kernel = swish.compile()

    def by_text() -> torch.Tensor:
        kernel[N // BAND, None](x, text)
        return text

    def by_jit() -> torch.Tensor:
        swish_jit(x, jit)
        return jit

    def by_torch() -> torch.Tensor:
        return torch.ops.aten.silu.out(x, out=eager)

    return Field(torch.nn.functional.silu(x), {PTO: by_text, JIT: by_jit, EAGER: by_torch})


ROWS = (
    Contest(
        f"swish {N}²", enter_swish, Work(bytes=2 * 4 * N * N), target=0.9, group=GROUP, subject=PTO, against=JIT,
        note="the same kernel as PTO text and through pl.jit; eager is `aten::silu.out`.",
    ),
)  # fmt: skip
