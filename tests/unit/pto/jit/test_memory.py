"""Launches on memory that overlaps, lies between elements, or is known by its address alone."""
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.pto.jit.kernels import adding

from tilewright import pto
from tilewright.errors import ExecutionError

np = cast("Any", numpy)
F32 = pto.ptr(pto.f32, "gm")
BYTES = 8 * 16 * 4
kernel = cache(adding)
place = st.one_of(st.integers(0, 600).map(lambda n: n * 4), st.integers(0, 2400))


def views(memory: Any, places: tuple[int, ...]) -> list[Any]:
    return [memory[at : at + BYTES].view(np.float32) for at in places]


@settings(deadline=None, max_examples=60)
@given(st.tuples(place, place, place), st.lists(st.booleans(), min_size=3, max_size=3))
def test_pointers_may_overlap_anyhow(places: tuple[int, ...], bare: list[bool]) -> None:
    memory = np.random.default_rng(1).integers(0x30, 0x40, 2400 + BYTES, np.uint8)  # numbers wherever one starts
    expected = memory.copy()
    a, b, out = views(expected, places)
    out[:] = a + b
    given = [x.ctypes.data if is_bare else x for x, is_bare in zip(views(memory, places), bare, strict=True)]
    kernel()[1, None](*given, 8)
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("start", [0, 1, 4])
def test_the_end_of_a_shared_buffer_is_its_end(start: int) -> None:
    memory = np.zeros(4096, np.uint8)
    a = memory[start : start + BYTES].view(np.float32)
    with pytest.raises(ExecutionError, match="inside its buffer"):
        kernel()[2, None](a, a, a, 16)
    kernel()[1, None](a, a, a, 8)


def test_a_pointer_that_overlaps_another_reaches_no_further_than_its_own_array() -> None:
    memory = np.zeros(3 * BYTES, np.uint8)
    whole = memory.view(np.float32)
    short = whole[: BYTES // 4 - 1]
    with pytest.raises(ExecutionError, match="inside its buffer"):
        kernel()[1, None](whole, whole, short, 8)
    assert not memory.any()


TOUCHING = """module {{
  func.func @k(%x: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 8 : index
    %vx = pto.make_tensor_view %x, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<?x?xf32>
    %vo = pto.make_tensor_view %o, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<?x?xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<?x?xf32>
    %po = pto.partition_view %vo, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<?x?xf32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32>
    pto.tload ins(%px : !pto.partition_tensor_view<1x8xf32>) outs(%a : !pto.tile_buf<vec, 1x8xf32>)
    pto.tstore ins(%a : !pto.tile_buf<vec, 1x8xf32>) outs(%po : !pto.partition_tensor_view<1x8xf32>){how}
    return
  }}
}}
"""


@pytest.mark.parametrize("how", ["", " {atomicType = #pto<atomic_type atomic_add>}"])
def test_only_what_is_written_must_be_writable(how: str) -> None:
    @pto.jit(source=TOUCHING.format(how=how))
    def k(x: F32, o: F32) -> None: ...

    fixed, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    fixed.flags.writeable = False
    for _ in range(8):  # also where machine code takes the launch
        out[:] = 0
        k[1, None](fixed, out)
        np.testing.assert_array_equal(out, fixed)
    with pytest.raises(ValueError, match="parameter `o` is written, but the array given is read-only"):
        k[1, None](out, fixed)
