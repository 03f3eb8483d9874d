"""Addresses that only the running program knows: a tile begins at a line, and lies inside its memory."""

from __future__ import annotations

import pytest
from unit.pto.tiles.running import np, read, run

from tilewright.errors import ExecutionError
from tilewright.pto.lower import lower

TILE = "!pto.tile_buf<vec, 8x64xi32>"
TEXT = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%o: !pto.ptr<i32>, %n: i64) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %three = arith.constant 3 : i32
    %bytes = arith.constant 2048 : i64
    %v = pto.make_tensor_view %o, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xi32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c64]
      : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<8x64xi32>
    %twice = arith.addi %n, %n : i64
    %at = arith.muli %twice, %bytes : i64
    %a = pto.alloc_tile addr = %n : {TILE}
    pto.texpands ins(%three : i32) outs(%a : {TILE})
    pto.tstore ins(%a : {TILE}) outs(%p : !pto.partition_tensor_view<8x64xi32>)
    return
  }}
}}
"""


def ran(target: str, address: int, text: str = TEXT, length: int = 512) -> list[int]:
    (out,) = run(read(text, "kernel.pto"), "kernel", target, 1, [np.zeros(length, np.int32), address])
    return sorted({*out.tolist()})


def test_a_tile_may_begin_at_any_line(target: str) -> None:
    assert ran(target, 96) == [3]


@pytest.mark.parametrize("address", [7, 16, -8])
def test_a_tile_between_two_lines_stops_the_program_at_the_tile(address: int, target: str) -> None:
    with pytest.raises(
        ExecutionError, match="a tile begins at a multiple of 32 bytes, and this address is none"
    ) as told:
        ran(target, address)
    assert str(told.value).startswith("kernel.pto:14:")


ELSEWHERE = f"%a = pto.tassign %b, %n : {TILE} -> {TILE}"
SEVERAL = "!pto.multi_tile_buf<vec, 8x64xi32, count=2>"
OTHERS = {
    "assigned": f"%b = pto.alloc_tile : {TILE}\n    {ELSEWHERE}",
    "one of several": f"%b = pto.alloc_multi_tile addr = %n : {SEVERAL}\n"
    f"    %a = pto.multi_tile_get %b[%c1] : {SEVERAL} -> {TILE}",
}


@pytest.mark.parametrize("way", OTHERS)
def test_other_tiles_begin_at_lines_too(way: str, target: str) -> None:
    text = TEXT.replace(f"%a = pto.alloc_tile addr = %n : {TILE}", OTHERS[way])
    assert ran(target, 96, text) == [3]
    with pytest.raises(ExecutionError, match="a tile begins at a multiple of 32 bytes"):
        ran(target, 16, text)


@pytest.mark.parametrize("address", [-32, 251936, 1 << 40, -(1 << 40)])
def test_a_tile_outside_its_memory_names_address_size_and_memory(address: int) -> None:
    said = [str(pytest.raises(ExecutionError, ran, target, address).value) for target in ("cpu", "interpret")]
    assert said[0] == said[1]
    bytes_of_it = f"bytes {address} to {address + 2048} of 253952"
    assert f"a view does not lie inside its buffer, `vec`: {bytes_of_it}\n" in said[0]


def test_an_argument_that_is_too_small_is_named_with_what_to_do() -> None:
    said = [str(pytest.raises(ExecutionError, ran, target, 0, length=256).value) for target in ("cpu", "interpret")]
    assert said[0] == said[1]
    assert "inside its buffer, `o`: bytes 0 to 2048 of 1024\n" in said[0]
    assert said[0].splitlines()[-1].endswith("where `o` is an argument, a larger one does too")


def test_an_address_that_counts_lines_is_not_checked() -> None:
    module = read(TEXT.replace("addr = %n", "addr = %at"), "kernel.pto")
    assert "a tile begins" not in lower(module, next(iter(module.funcs())), target="a5").as_python()
    module = read(TEXT.replace("addr = %n", "addr = %twice"), "kernel.pto")
    assert "a tile begins" in lower(module, next(iter(module.funcs())), target="a5").as_python()
