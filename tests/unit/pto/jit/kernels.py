"""Kernels that the tests of `@pto.jit` share; the stand-in for lowering lets each copy its first pointer."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import pto

TEXT = """module {
  func.func @copy(%x: !pto.ptr<f32>, %out: !pto.ptr<f32, gm>, %n: index) {
    return
  }
}
"""

VIEW, PART, TILE = "!pto.tensor_view<?x16xf32>", "!pto.partition_tensor_view<8x16xf32>", "!pto.tile_buf<vec, 8x16xf32>"
ADD = f"""module {{
  func.func @add(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %out: !pto.ptr<f32>, %rows: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %block = pto.get_block_idx
    %number = arith.index_cast %block : i64 to index
    %row = arith.muli %number, %c8 : index
    %va = pto.make_tensor_view %a, shape = [%rows, %c16], strides = [%c16, %c1] : {VIEW}
    %vb = pto.make_tensor_view %b, shape = [%rows, %c16], strides = [%c16, %c1] : {VIEW}
    %vo = pto.make_tensor_view %out, shape = [%rows, %c16], strides = [%c16, %c1] : {VIEW}
    %pa = pto.partition_view %va, offsets = [%row, %c0], sizes = [%c8, %c16] : {VIEW} -> {PART}
    %pb = pto.partition_view %vb, offsets = [%row, %c0], sizes = [%c8, %c16] : {VIEW} -> {PART}
    %po = pto.partition_view %vo, offsets = [%row, %c0], sizes = [%c8, %c16] : {VIEW} -> {PART}
    %ta = pto.alloc_tile : {TILE}
    %tb = pto.alloc_tile : {TILE}
    pto.tload ins(%pa : {PART}) outs(%ta : {TILE})
    pto.tload ins(%pb : {PART}) outs(%tb : {TILE})
    pto.tadd ins(%ta, %tb : {TILE}, {TILE}) outs(%ta : {TILE})
    pto.tstore ins(%ta : {TILE}) outs(%po : {PART})
    return
  }}
}}
"""
"""Adds blocks of 8 rows of 16 columns."""


def copy_from(source: str, **options: Any) -> pto.KernelHandle:
    """Return a kernel with a source that declares `@copy`."""

    @pto.jit(source=source, **options)
    def copy(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), n: pto.index) -> None:
        raise AssertionError("the body of a kernel with a source never runs")

    return copy


def kernel_of(*types: Any) -> pto.KernelHandle:
    """Return a kernel with parameters of some types, called a, b, c and so on."""
    names = "abcdefgh"[: len(types)]
    text = ", ".join(f"%{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    scope: dict[str, Callable[..., Any]] = {}
    exec(f"def kernel({', '.join(names)}): ...", scope)
    scope["kernel"].__annotations__ = dict(zip(names, types, strict=True))
    return pto.jit(source=f"module {{\n  func.func @kernel({text}) {{\n    return\n  }}\n}}\n")(scope["kernel"])


def adding() -> pto.KernelHandle:
    """Return a kernel that adds, as it is really lowered."""

    @pto.jit(source=ADD)
    def add(a: pto.ptr(pto.f32, "gm"), b: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index): ...

    return add
