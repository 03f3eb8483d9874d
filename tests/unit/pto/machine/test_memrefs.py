"""Memrefs: text between passes runs as the tiles, windows and pointers that it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.errors import KernelError
from tilewright.programs.compiler import compile
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

KERNELS = Path(__file__).parent / "kernels"
VEC, GM = "#pto.address_space<vec>", "#pto.address_space<gm>"
BOXED = "blayout=#pto.blayout<{}>, slayout=#pto.slayout<{}>, s_fractal_size={}, pad=#pto.pad_value<null>"


def compiled(text: str, target: str = "interpret") -> Any:
    module = parse(text)
    verify(module, "a5")
    return compile(lower(module, next(module.funcs()), target="a5"), platform=target)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_windows_and_bound_parts(target: str, n: int) -> None:
    x: Any = np.arange(512, dtype=np.float32)
    out: Any = np.zeros(32 + 256, np.float32)
    compiled((KERNELS / "memrefs.pto").read_text(encoding="utf-8"), target)(1, x, out, n)
    rows = x.reshape(16, 32)
    wanted = rows[n : n + 8] + rows[::2]
    wanted[4 : 4 + n, 8:24] *= 2
    wanted[:4, 1:17] *= 2
    assert np.array_equal(out[32:].reshape(8, 32), wanted)
    assert out[:2].tolist() == [rows[0, 1], rows[n, 1]]


def bound(name: str, space: str, element: str, layout: tuple[str, str, int]) -> str:
    """Return a tile of 16x16 elements, laid out as the attribute of the op that binds it says."""
    type_ = f"memref<16x16x{element}, #pto.address_space<{space}>>"
    config = f"{{config = #pto.tile_buf_config<{BOXED.format(*layout)}>}}"
    return f"""
    %{name}_m = memref.alloc() : {type_}
    %{name} = pto.bind_tile %{name}_m, %c16, %c16 {config} : {type_} -> {type_}"""


def test_a_product_of_bound_tiles(target: str) -> None:
    def on(space: str, element: str = "f16") -> str:
        return f"memref<16x16x{element}, #pto.address_space<{space}>>"

    def view(name: str, element: str) -> str:
        sizes = "to offset: [0], sizes: [16, 16], strides: [16, 1]"
        return (
            f"memref.reinterpret_cast %{name} {sizes} : memref<?x{element}, {GM}> to memref<16x16x{element}, "
            f"strided<[16, 1]>, {GM}>"
        )

    flat, wide = f"memref<16x16xf16, strided<[16, 1]>, {GM}>", f"memref<16x16xf32, strided<[16, 1]>, {GM}>"
    boxes = ("col_major", "row_major", 512)
    text = f"""module {{
  func.func @product(%a: memref<?xf16, {GM}>, %b: memref<?xf16, {GM}>, %o: memref<?xf32, {GM}>) {{
    %c16 = arith.constant 16 : index
    %a_gm = {view("a", "f16")}
    %b_gm = {view("b", "f16")}
    %o_gm = {view("o", "f32")}
    {bound("am", "mat", "f16", boxes)}{bound("bm", "mat", "f16", boxes)}{bound("l", "left", "f16", boxes)}
    {bound("r", "right", "f16", ("row_major", "col_major", 512))}
    {bound("acc", "acc", "f32", ("col_major", "row_major", 1024))}
    pto.tload ins(%a_gm : {flat}) outs(%am : {on("mat")})
    pto.tload ins(%b_gm : {flat}) outs(%bm : {on("mat")})
    pto.tmov ins(%am : {on("mat")}) outs(%l : {on("left")})
    pto.tmov ins(%bm : {on("mat")}) outs(%r : {on("right")})
    pto.tmatmul ins(%l, %r : {on("left")}, {on("right")}) outs(%acc : {on("acc", "f32")})
    pto.tstore ins(%acc : {on("acc", "f32")}) outs(%o_gm : {wide})
    return
  }}
}}"""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    out: Any = np.zeros((16, 16), np.float32)
    compiled(text, target)(1, a.ravel(), b.ravel(), out.reshape(-1))
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("%m = memref.alloc() : memref<8x64xf32>", "`memref.alloc` cannot be run here: memref<8x64xf32> is no buffer"),
        (f"%m = memref.alloc(%n) : memref<?x64xf32, {VEC}>", "is no buffer of a local memory"),
        (f"%m = memref.alloc() : memref<4096x64xf32, {VEC}>", "a tile of 1048576 bytes is more than"),
        (f"%m = pto.pointer_cast(%z) %n : memref<8x64xf32, {VEC}>", "is given 1 valid extents"),
        (f"%m = pto.pointer_cast(%z, %z) : memref<8x64xf32, {VEC}>", "has 2 addresses"),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n"
            f"%s = memref.subview %m[0, 0] [4, 64] [1, 1] : memref<8x64xf32, {VEC}> to memref<8x64xf32, {VEC}>",
            "`memref.subview` makes 4x64 elements of memref<8x64xf32",
        ),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n"
            f"%s = memref.subview %m[6, 0] [4, 64] [1, 1] : memref<8x64xf32, {VEC}> to memref<4x64xf32, {VEC}>",
            "rows 6 to 10 leave a tile of 8 rows",
        ),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n%s = memref.reinterpret_cast %m to offset: [64], "
            f"sizes: [8, 64], strides: [64, 1] : memref<8x64xf32, {VEC}> to memref<8x64xf32, {VEC}>",
            "an offset does not lie within 0 to 0",
        ),
        (
            f"%m = memref.subview %x[4] [%n] [1] : memref<?xf32, {GM}> to memref<?xf32, strided<[1], offset: 4>, "
            f"{GM}>\n"
            f"%s = memref.reinterpret_cast %m to offset: [0], sizes: [8], strides: [1] : memref<?xf32, strided<[1], "
            f"offset: 4>, {GM}> to memref<8xf32, {GM}>",
            "counts from the start of a buffer",
        ),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n"
            f"%s = memref.cast %m : memref<8x64xf32, {VEC}> to memref<8x64xi32, {VEC}>",
            "keeps the elements",
        ),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n"
            f"%s = memref.subview %m : memref<8x64xf32, {VEC}> to memref<4x64xf32, {VEC}>",
            "`memref.subview` has [] numbers in its brackets",
        ),
        (
            f"%m = memref.alloc() : memref<8x64xf32, {VEC}>\n"
            f'%s = pto.bind_tile %m {{config = "boxed"}} : memref<8x64xf32, {VEC}> -> memref<8x64xf32, {VEC}>',
            "`config` of `pto.bind_tile` is 'boxed'",
        ),
    ],
)
def test_what_cannot_be_says_why(lines: str, message: str) -> None:
    head = f"func.func @kernel(%x: memref<?xf32, {GM}>, %n: index) {{\n%z = arith.constant 0 : i64"
    with pytest.raises(KernelError) as caught:
        compiled(f"module {{\n{head}\n{lines}\nreturn\n}}\n}}")
    assert message in str(caught.value)
