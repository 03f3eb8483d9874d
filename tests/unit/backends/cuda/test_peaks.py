"""Peaks of GPUs, and what instructions tell of a line."""

from __future__ import annotations

import pytest

from tilewright.backends.cuda.anatomy import notes_of
from tilewright.backends.cuda.driver import Driver
from tilewright.backends.cuda.peaks import peaks
from tilewright.backends.interface import Line
from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, DataType


class Known(Driver):
    """Stands for the driver of a GPU with 100 multiprocessors at 1 GHz."""

    def __init__(self, capability: int) -> None:
        self.kind = capability

    def _number(self, name: str, *args: int) -> int:
        return {13: 10**6, 36: 10**6, 37: 4096, 16: 100, 75: self.kind // 10, 76: self.kind % 10}[args[0]]


@pytest.mark.parametrize(
    ("capability", "product", "name", "each"),
    [
        (90, None, "FMA", 256),
        (90, BF16, "tensor cores", 4096),
        (90, INT8, "tensor cores", 8192),
        (90, FP32, "tensor cores", 4096 / 6),
        (86, FP32, "FMA", 256),
        (89, FP16, "tensor cores", 1024),
        (80, FP64, "FP64", 128),
        (101, FP16, "tensor cores", 8192),
    ],
)
def test_products_are_held_against_who_makes_them(
    capability: int, product: DataType | None, name: str, each: float
) -> None:
    memory, units = peaks(Known(capability), 0, product)
    assert (memory.name, memory.most) == ("memory", 1024e9)
    assert units == (name, "FLOP/s", pytest.approx(each * 100 * 1e9))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%r83}", "tensor cores", "wgmma of bf16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1}", "tensor cores", "mma of tf32"),
        ("tcgen05.mma.cta_group::1.kind::f16 [ %r1 + 0 ], %rd1", "tensor cores", "tcgen05 of f16"),
        ("@%p1 cp.async.bulk.tensor.2d.shared::cluster.global [%r9]", "streamed", "whole boxes by the copy engine"),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;", "streamed", "16 bytes a thread"),
        ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];", "vectorized", "loads of 16 bytes a thread"),
        ("st.global.L1::evict_first.v2.b64 [%rd1], {%rd2, %rd3};", "vectorized", "stores of 16 bytes a thread"),
        ("@%p2 ld.global.nc.b16 { %rs1 }, [ %rd1 + 0 ];", "scalar moves", "loads of 2 bytes a thread"),
        ("add.s32 %r1, %r2, 64;", "", ""),
    ],
)
def test_an_instruction_tells_how_a_line_is_computed(text: str, kind: str, said: str) -> None:
    notes = notes_of([Line(text, "kernel.py", 7), Line(text, "kernel.py", 7), Line(text)])
    assert [(note.kind, note.number) for note in notes] == ([(kind, 7)] if kind else [])
    assert not notes or said in notes[0].text
