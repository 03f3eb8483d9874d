"""Ops in traced bodies, laid out as their forms say."""

# ruff: noqa: F841
# pyright: reportUnusedVariable=false

from __future__ import annotations

import re
from typing import Any

import pytest
from unit.pto.traced.tracing import lines

from tilewright import pto
from tilewright.errors import OperandError, OutsideKernelError
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Syntax
from tilewright.pto.traced import directives, ops, views
from tilewright.pto.traced.enumerations import BarrierType, MemorySpace, Pipe
from tilewright.pto.traced.namespace import DIRECTIVES, operations

TILE = r"!pto\.tile_buf<loc=(\w+), dtype=(\w+), rows=(\d+), cols=(\d+)[^>]*>"
UB = pto.ptr(pto.f32, "ub")


def brief(function: Any, **constants: object) -> list[str]:
    """Return the lines of a body with tile types in short."""
    return [re.sub(TILE, r"<\1 \3x\4x\2>", line) for line in lines(function, **constants)]


def test_views_say_what_is_known_of_their_sizes() -> None:
    def body(p: Any, n: Any, m: Any) -> None:
        view = pto.make_tensor_view(p, shape=[n, 64], strides=[64, 1])
        part = pto.partition_view(view, offsets=[m, 0], sizes=[16, n])

    assert lines(body) == [
        "%view = pto.make_tensor_view %p, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>",
        "%0 = arith.index_cast %m : i32 to index",
        "%part = pto.partition_view %view, offsets = [%0, %c0], sizes = [%c16, %n] : "
        "!pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<16x?xf32>",
    ]


def test_tiles_have_places_layouts_and_valid_regions() -> None:
    def body(n: Any) -> None:
        a = pto.alloc_tile(shape=[16, 64], dtype=pto.f32, addr=4096, valid_row=n, valid_col=60, pad="min")
        b = pto.alloc_tile(shape=[16, 1], dtype=pto.f16, blayout="ColMajor", valid_shape=[12, 1])
        c = pto.alloc_tile(shape=[16, 16], dtype=pto.f32, memory_space="acc")

    assert lines(body) == [
        "%a = pto.alloc_tile addr = %c4096_i64 valid_row = %n : !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, "
        "v_row=?, v_col=60, blayout=row_major, slayout=none_box, fractal=512, pad=3>",
        "%b = pto.alloc_tile : !pto.tile_buf<loc=vec, dtype=f16, rows=16, cols=1, "
        "v_row=12, v_col=1, blayout=col_major, slayout=none_box, fractal=512, pad=0>",
        "%c = pto.alloc_tile : !pto.tile_buf<loc=acc, dtype=f32, rows=16, cols=16, "
        "v_row=16, v_col=16, blayout=col_major, slayout=row_major, fractal=1024, pad=0>",
    ]


def test_tile_ops_write_their_last_operand() -> None:
    def body(x: Any) -> None:
        a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        b = pto.alloc_tile(shape=[8, 64], dtype=pto.f16)
        c = pto.alloc_tile(shape=[8, 1], dtype=pto.f32, blayout="col_major")
        bits = pto.alloc_tile(shape=[8, 32], dtype=pto.ui8)
        pto.tile.add(a, a, a)
        pto.tile.muls(a, x, a)
        pto.tile.divs(1, a, a)
        pto.tile.cvt(a, b, rmode="ROUND")
        pto.tile.rowsum(a, a, c)
        pto.tile.rowmax(a, c)
        pto.tile.expands(0, b)
        pto.tile.cmps(a, 2, bits, cmpMode="lt")
        pto.tile.sels(bits, a, 0.5, a)
        pto.tile.extract(a, 0, 0, a)
        pto.tile.and_(bits, bits, bits)

    assert brief(body)[4:] == [
        "pto.tadd ins(%a, %a : <vec 8x64xf32>, <vec 8x64xf32>) outs(%a : <vec 8x64xf32>)",
        "pto.tmuls ins(%a, %x : <vec 8x64xf32>, f32) outs(%a : <vec 8x64xf32>)",
        "pto.tdivs ins(%cst, %a : f32, <vec 8x64xf32>) outs(%a : <vec 8x64xf32>)",
        "pto.tcvt ins(%a : <vec 8x64xf32>) outs(%b : <vec 8x64xf16>) {rmode = #pto.round_mode<ROUND>}",
        "pto.trowsum ins(%a, %a : <vec 8x64xf32>, <vec 8x64xf32>) outs(%c : <vec 8x1xf32>)",
        "pto.trowmax ins(%a : <vec 8x64xf32>) outs(%c : <vec 8x1xf32>)",
        "pto.texpands ins(%cst_f16 : f16) outs(%b : <vec 8x64xf16>)",
        "pto.tcmps ins(%a, %cst_1 : <vec 8x64xf32>, f32) outs(%bits : <vec 8x32xui8>) {cmpMode = #pto.cmp<lt>}",
        "pto.tsels ins(%bits, %a, %cst_2 : <vec 8x32xui8>, <vec 8x64xf32>, f32) outs(%a : <vec 8x64xf32>)",
        "pto.textract ins(%a, %c0, %c0 : <vec 8x64xf32>, index, index) outs(%a : <vec 8x64xf32>)",
        "pto.tand ins(%bits, %bits : <vec 8x32xui8>, <vec 8x32xui8>) outs(%bits : <vec 8x32xui8>)",
    ]


def test_matrix_ops_are_spelled_with_underscores() -> None:
    def body(n: Any) -> None:
        a = pto.alloc_tile(shape=[16, 32], dtype=pto.f16, loc="left")
        b = pto.alloc_tile(shape=[32, 16], dtype=pto.f16, loc="right")
        c = pto.alloc_tile(shape=[16, 16], dtype=pto.f32, loc="acc")
        pto.tile.matmul(a, b, c)
        pto.tile.matmul_acc(c, a, b, c)

    assert [line.partition(" ")[0] for line in brief(body)[3:]] == ["pto.tmatmul", "pto.tmatmul.acc"]


def test_tiles_are_viewed_again() -> None:
    def body(n: Any) -> None:
        a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        b = pto.tile.reshape(a, shape=[1, 512])
        c = pto.subview(a, [n, 0], sizes=[4, 32])
        address = a.as_ptr()
        pto.store_scalar(a.shape[1] * 1.0, address, 3)
        value = pto.tile.getval(a, 5)

    assert brief(body) == [
        "%a = pto.alloc_tile : <vec 8x64xf32>",
        "%b = pto.treshape %a : <vec 8x64xf32> -> <vec 1x512xf32>",
        "%c = pto.subview %a[%n, %c0] sizes [4, 32] : <vec 8x64xf32> -> <vec 4x32xf32>",
        "%address = pto.tile_buf_addr %a : <vec 8x64xf32> -> !pto.ptr<f32, ub>",
        "pto.store_scalar %cst, %address[%c3] : !pto.ptr<f32, ub>, f32",
        "%value = pto.tgetval ins(%a, %c5 : <vec 8x64xf32>, index) outs : f32",
    ]


def test_a_valid_region_of_values_can_be_set_again() -> None:
    def body(n: Any) -> None:
        a = pto.alloc_tile(shape=[8, 64], dtype=pto.f32, valid_shape=[n, pto.const(64)])
        pto.set_validshape(a, 8, n)

    first, second = lines(body)
    assert first.startswith("%a = pto.alloc_tile valid_row = %n valid_col = %c64 : ")
    assert "v_row=?, v_col=?" in first
    assert second.startswith("pto.set_validshape %a, %c8, %n : ")


def test_a_copy_can_name_the_window_of_a_view() -> None:
    def body(p: Any, n: Any) -> None:
        view = pto.make_tensor_view(p, shape=[n, 64], strides=[64, 1])
        tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        pto.tile.load(view, tile, offsets=[n, 0])
        pto.tile.store(tile, view, offsets=[0, 0], sizes=[16, 32])

    found = brief(body)
    partition = "%{} = pto.partition_view %view, offsets = [{}, %c0], sizes = [{}, {}] : "
    assert found[2].startswith(partition.format("0", "%n", "%c8", "%c64"))
    assert found[4].startswith(partition.format("1", "%c0", "%c16", "%c32"))
    assert found[5] == "pto.tstore ins(%tile : <vec 8x64xf32>) outs(%1 : !pto.partition_tensor_view<16x32xf32>)"


def test_pointers_are_cast_and_moved() -> None:
    def body(k: Any, n: Any) -> None:
        a = pto.castptr(1024, UB)
        b = pto.castptr(k, pto.ptr(pto.ui16, "ub"))
        c = pto.castptr(a, pto.ptr(pto.i32, "ub"))
        d = a + n
        e = pto.addptr(a, 64)
        x = pto.load_scalar(d, n)

    assert lines(body) == [
        "%a = pto.castptr %c1024_i64 : i64 -> !pto.ptr<f32, ub>",
        "%b = pto.castptr %k : i64 -> !pto.ptr<ui16, ub>",
        "%c = pto.castptr %a : !pto.ptr<f32, ub> -> !pto.ptr<i32, ub>",
        "%d = pto.addptr %a, %n : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>",
        "%e = pto.addptr %a, %c64 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>",
        "%x = pto.load_scalar %d[%n] : !pto.ptr<f32, ub> -> f32",
    ]


def test_vector_ops_infer_their_results() -> None:
    def body(u: Any, w: Any, m: Any, x: Any) -> None:
        with pto.vecscope():
            every = pto.pset_b32("PAT_ALL")
            some, rest = pto.plt_b32(m)
            a = pto.vlds(u, 64, dist="BRC_B32")
            b = pto.vadd(a, a, every)
            c = pto.vmuls(b, 2, some)
            d = pto.vcmp(a, b, every, "lt")
            e = pto.vsel(a, b, d)
            f = pto.vcvt(e, every, dtype=pto.f16, rnd="R", sat="SAT", part="EVEN")
            g = pto.vbr(x)
            h = pto.vdup(1.5, every, dtype=pto.f32)
            low, high = pto.vintlv(a, b)
            both = pto.pand(every, some, d)
            i = pto.vlds(w)
            pto.vsts(e, u, 0, every, dist="NORM_B32")
            pto.vsts(i, w)

    assert [line.removeprefix("  ") for line in lines(body)[1:-1]] == [
        '%every = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>',
        "%some, %rest = pto.plt_b32 %m : i32 -> !pto.mask<b32>, i32",
        '%a = pto.vlds %u[%c64] {dist = "BRC_B32"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>',
        "%b = pto.vadd %a, %a, %every : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>",
        "%c = pto.vmuls %b, %cst, %some : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.vreg<64xf32>",
        '%d = pto.vcmp %a, %b, %every, "lt" : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.mask<b32>',
        "%e = pto.vsel %a, %b, %d : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>",
        '%f = pto.vcvt %e, %every {rnd = "R", sat = "SAT", part = "EVEN"} : '
        "!pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<128xf16>",
        "%g = pto.vbr %x : f32 -> !pto.vreg<64xf32>",
        "%h = pto.vdup %cst_1, %every : f32, !pto.mask<b32> -> !pto.vreg<64xf32>",
        "%low, %high = pto.vintlv %a, %b : "
        "!pto.vreg<64xf32>, !pto.vreg<64xf32> -> !pto.vreg<64xf32>, !pto.vreg<64xf32>",
        "%both = pto.pand %every, %some, %d : !pto.mask<b32>, !pto.mask<b32>, !pto.mask<b32> -> !pto.mask<b32>",
        "%i = pto.vlds %w[%c0] : !pto.ptr<i32, ub> -> !pto.vreg<64xi32>",
        'pto.vsts %e, %u[%c0], %every {dist = "NORM_B32"} : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>',
        "pto.vsts %i, %w[%c0] : !pto.vreg<64xi32>, !pto.ptr<i32, ub>",
    ]


def test_copies_count_bytes() -> None:
    def body(p: Any, u: Any, m: Any) -> None:
        rows = pto.cast(m, pto.index)
        pto.mte_gm_ub(p, u, 0, 128, nburst=(rows, 128, 256), loop=[(2, 4096, 4096), (3, 1, 2)], pad=(0.0, 0, 32))
        pto.mte_store(u, p, 128, nburst=(32, 128, 128))

    found = lines(body)
    assert found[1] == "%0 = arith.index_cast %rows : index to i64"
    assert found[2].startswith(
        "pto.mte_gm_ub %p, %u, %c0_i64, %c128_i64 nburst(%0, %c128_i64, %c256_i64) "
        "loop(%c2_i64, %c4096_i64, %c4096_i64) loop(%c3_i64, %c1_i64, %c2_i64) pad(%cst, %c0_i64, %c32_i64) : "
    )
    assert found[3].startswith("pto.mte_ub_gm %u, %p, %c128_i64 nburst(%c32_i64, %c128_i64, %c128_i64) : ")


def test_pipes_events_and_sections() -> None:
    def body(n: Any) -> None:
        pto.set_flag("MTE2", "V", event_id=3)
        pto.wait_flag("PIPE_MTE2", "PIPE_V", "EVENT_ID3")
        pto.set_flag("V", "MTE3", event_id=n & 1)
        pto.barrier("ALL")
        pto.pipe_barrier("PIPE_V")
        pto.mem_bar("VST_VLD")
        with pto.section.vector():
            pto.barrier("ALL")

    assert lines(body) == [
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]",
        "%0 = arith.andi %n, %c1 : index",
        "pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %0]",
        "pto.barrier <PIPE_ALL>",
        "pto.pipe_barrier <PIPE_V>",
        'pto.mem_bar "VST_VLD"',
        "pto.section.vector {",
        "  pto.barrier <PIPE_ALL>",
        "}",
    ]


def test_enumerations_stand_for_their_words() -> None:
    def body(n: Any) -> None:
        pto.set_flag(Pipe.MTE2, Pipe.V, event_id=0)
        pto.barrier(Pipe.ALL)
        pto.mem_bar(BarrierType.VV_ALL)
        tile = pto.alloc_tile(shape=[16, 16], dtype=pto.f32, memory_space=MemorySpace.ACC)
        pointer = pto.castptr(0, pto.ptr(pto.f32, MemorySpace.UB))

    found = lines(body)
    assert found[:3] == [
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.barrier <PIPE_ALL>",
        'pto.mem_bar "VV_ALL"',
    ]
    assert "loc=acc" in found[3]
    assert found[4] == "%pointer = pto.castptr %c0_i64 : i64 -> !pto.ptr<f32, ub>"


def test_what_types_have_is_known_at_compile_time() -> None:
    def body(u: Any, n: Any) -> None:
        tile = pto.alloc_tile(shape=[8, pto.elements_per_vreg(pto.f32)], dtype=pto.f32)
        rows, cols = tile.shape
        assert (rows, cols, tile.dtype, tile.memory_space) == (8, 64, pto.f32, "vec")
        pto.mte_load(pto.castptr(0, pto.ptr(pto.f32, "gm")), u, 0, cols * pto.bytewidth(tile.dtype), nburst=(1, 1, 1))

    assert any("%c256_i64" in line for line in lines(body))


def test_every_op_of_the_table_has_a_name() -> None:
    spelled = {operation.op for operation in operations().values()}
    callable_syntax = (Syntax.PLAIN, Syntax.REGION)
    assert {op for op, each in OPS.items() if op.startswith("pto.") and each.form.syntax in callable_syntax} <= spelled


def test_every_directive_does_something() -> None:
    assert directives and views
    assert all(name in ops.HANDLERS or operations()[name].op for name in DIRECTIVES)


def test_names_are_listed_and_tell_the_nearest() -> None:
    assert {"add", "matmul_acc", "load", "not_"} <= set(dir(pto.tile))
    assert dir(pto.section) == ["cube", "vector"]
    with pytest.raises(AttributeError, match="there is no pto.tile.ad"):
        _ = pto.tile.ad


@pytest.mark.parametrize("call", [lambda: pto.vadd(1, 2), lambda: pto.tile.add(1, 2), lambda: pto.const(1)])
def test_ops_mean_nothing_outside_a_kernel(call: Any) -> None:
    with pytest.raises(OutsideKernelError, match="describes work for a kernel"):
        call()


def test_a_wrong_kind_of_operand_is_shown_where_it_is_written() -> None:
    def body(u: Any, x: Any) -> None:
        a = pto.vlds(u, 0)
        pto.vadd(a, x, pto.pset_b32("PAT_ALL"))

    with pytest.raises(OperandError, match="`pto.vadd` takes a vector register here, got f32") as caught:
        lines(body)
    text = caught.value.place
    assert (text.end_column - text.column, text.line) == (1, body.__code__.co_firstlineno + 2)
