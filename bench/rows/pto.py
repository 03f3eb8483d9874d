"""pto: kernels written as PTO text, beside the same work through `pl.jit` and torch."""
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
# PTO declares parameters by values, which type checkers do not take for types.

from functools import partial

import torch
from contest import EAGER, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright import pto

N, BAND = 2048, 16
M, K_STEPS, TILE, STEP = 256, 64, 128, 64
F32, BF16 = pto.ptr(pto.f32, "gm"), pto.ptr(pto.bf16, "gm")
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


def matmul_text(m: int = M, steps: int = K_STEPS, tile: int = TILE, step: int = STEP) -> str:
    """A product of bfloat16 matrices: tiles move through the matrix memories and add up in one accumulator."""
    k = steps * step

    def buffer(loc: str, rows: int, cols: int, dtype: str, layouts: str, fractal: int = 512) -> str:
        outer, inner = layouts.split("/")
        return (
            f"!pto.tile_buf<loc={loc}, dtype={dtype}, rows={rows}, cols={cols}, v_row={rows}, v_col={cols}, "
            f"blayout={outer}_major, slayout={inner}_major, fractal={fractal}, pad=0>"
        )

    mat_a, mat_b = buffer("mat", tile, step, "bf16", "col/row"), buffer("mat", step, tile, "bf16", "col/row")
    left, right = buffer("left", tile, step, "bf16", "col/row"), buffer("right", step, tile, "bf16", "row/col")
    acc = buffer("acc", tile, tile, "f32", "col/row", 1024)
    view, sums = "!pto.tensor_view<?x?xbf16>", "!pto.tensor_view<?x?xf32>"
    part_a, part_b = (f"!pto.partition_tensor_view<{s}xbf16>" for s in (f"{tile}x{step}", f"{step}x{tile}"))
    part_c = f"!pto.partition_tensor_view<{tile}x{tile}xf32>"
    return f"""module {{
  func.func @product(%a: !pto.ptr<bf16>, %b: !pto.ptr<bf16>, %c: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at0 = arith.constant 0 : i64
    %at1 = arith.constant 65536 : i64
    %m = arith.constant {m} : index
    %k = arith.constant {k} : index
    %tile = arith.constant {tile} : index
    %step = arith.constant {step} : index
    %across = arith.constant {m // tile} : index
    %va = pto.make_tensor_view %a, shape = [%m, %k], strides = [%k, %c1] : {view}
    %vb = pto.make_tensor_view %b, shape = [%k, %m], strides = [%m, %c1] : {view}
    %vc = pto.make_tensor_view %c, shape = [%m, %m], strides = [%m, %c1] : {sums}
    %ma = pto.alloc_tile addr = %at0 : {mat_a}
    %mb = pto.alloc_tile addr = %at1 : {mat_b}
    %l = pto.alloc_tile addr = %at0 : {left}
    %r = pto.alloc_tile addr = %at0 : {right}
    %new = pto.alloc_tile addr = %at0 : {acc}
    %sum = pto.alloc_tile addr = %at0 : {acc}
    %id = pto.get_block_idx
    %block = arith.index_cast %id : i64 to index
    %i = arith.divui %block, %across : index
    %j = arith.remui %block, %across : index
    %row = arith.muli %i, %tile : index
    %col = arith.muli %j, %tile : index
    scf.for %at = %c0 to %k step %step {{
      %pa = pto.partition_view %va, offsets = [%row, %at], sizes = [%tile, %step] : {view} -> {part_a}
      %pb = pto.partition_view %vb, offsets = [%at, %col], sizes = [%step, %tile] : {view} -> {part_b}
      pto.tload ins(%pa : {part_a}) outs(%ma : {mat_a})
      pto.tload ins(%pb : {part_b}) outs(%mb : {mat_b})
      pto.tmov ins(%ma : {mat_a}) outs(%l : {left})
      pto.tmov ins(%mb : {mat_b}) outs(%r : {right})
      %first = arith.cmpi eq, %at, %c0 : index
      scf.if %first {{
        pto.tmatmul ins(%l, %r : {left}, {right}) outs(%new : {acc})
      }} else {{
        pto.tmatmul.acc ins(%sum, %l, %r : {acc}, {left}, {right}) outs(%new : {acc})
      }}
    }}
    %pc = pto.partition_view %vc, offsets = [%row, %col], sizes = [%tile, %tile] : {sums} -> {part_c}
    pto.tstore ins(%sum : {acc}) outs(%pc : {part_c})
    return
  }}
}}
"""


def enter_matmul(m: int = M, steps: int = K_STEPS, tile: int = TILE) -> Field:
    @pto.jit(source=matmul_text(m, steps, tile))
    def product(a: BF16, b: BF16, c: F32): ...

    depth = steps * STEP
    a, b = torch.randn(m, depth).bfloat16(), torch.randn(depth, m).bfloat16()
    text = output(m, m)
    kernel = product.compile()

    def by_text() -> torch.Tensor:
        kernel[(m // tile) ** 2, None](a, b, text)
        return text

    expected = (a.double() @ b.double()).float()
    return Field(
        expected,
        {PTO: by_text, EAGER: lambda: torch.matmul(a, b).float()},
        rtol=1e-2,  # torch's result has eight bits
        atol=0.5,
    )


ROWS = (
    Contest(
        f"swish {N}²", enter_swish, Work(bytes=2 * 4 * N * N), target=0.9, group=GROUP, subject=PTO, against=JIT,
        note="the same kernel as PTO text and through pl.jit; eager is `aten::silu.out`.",
    ),
    Contest(
        f"bf16 matmul {M}x{K_STEPS * STEP}x{M}", enter_matmul, Work(flops=2 * M * M * K_STEPS * STEP), target=1.0,
        group=GROUP, subject=PTO, against=EAGER, note=f"{K_STEPS} steps of K into one aliased accumulator tile.",
    ),
    *(
        Contest(
            f"bf16 matmul 1024³, tiles of {tile}", partial(enter_matmul, 1024, 16, tile), Work(flops=2 * 1024**3),
            target=1.0, group=GROUP, subject=PTO, against=EAGER, note="blocks below each other run as one.",
        )
        for tile in (128, 64)
    ),
)  # fmt: skip
