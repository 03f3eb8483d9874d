"""Cores together: kernels whose cube and vector functions meet in pipes and events, held to NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy
import pytest
from unit.pto.cube.test_products import each_way, staged
from unit.pto.cube.writing import kernel, opened
from unit.pto.cube.writing import run as run_text

from tilewright import ir, pto
from tilewright.errors import ExecutionError, UnsupportedFeatureError
from tilewright.pto.errors import PtoOperandError
from tilewright.pto.examples.lines import example
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
KERNELS = Path(__file__).parent / "kernels"


def run(name: str, target: str, *arguments: Any, grid: int = 1, arch: str = "a5") -> None:
    """Run the function that a file is named after; its buffers change in place."""
    module = parse((KERNELS / f"{name}.pto").read_text(), f"{name}.pto")
    verify(module, is_portable=True)
    func = next(func for func in module.funcs() if func.name == name)
    ir.compile(lower(module, func, target=arch), platform=target)(grid, *arguments)


def test_each_vector_core_takes_half_of_what_the_cube_pushes(target: str) -> None:
    x = np.random.default_rng(0).integers(-4, 5, (5, 16, 16)).astype(np.float16)
    y = np.random.default_rng(1).integers(-4, 5, (16, 16)).astype(np.float16)
    o = np.zeros((5, 3, 16, 16), np.float16)
    run("one_way", target, x.reshape(-1), y.reshape(-1), o.reshape(-1), grid=5)
    for turn in range(3):
        np.testing.assert_array_equal(o[:, turn], (turn + 1) * (x @ y) + 1)


def test_there_and_back(target: str) -> None:
    """The cube takes what a vector core has prepared, and hands the product back; its function is called first."""
    x = np.random.default_rng(0).integers(-4, 5, (3, 16, 32)).astype(np.float16)
    y = np.random.default_rng(1).integers(-4, 5, (32, 16)).astype(np.float16)
    o = np.zeros((3, 16, 16), np.float32)
    run("there_and_back", target, x.reshape(-1), y.reshape(-1), o.reshape(-1), grid=3)
    np.testing.assert_array_equal(o, 2 * x.astype(np.float32) @ y.astype(np.float32))


def test_slots_of_global_memory_are_used_again(target: str) -> None:
    """Eight slots, and twenty entries: each is written once it is free, and read once it is written."""
    x = np.random.default_rng(0).integers(-99, 100, (20, 16, 16)).astype(np.float32)
    slots, back = np.zeros((2, 8, 16, 16), np.float32)
    o, p = np.zeros((2, 20, 16, 16), np.float32)
    run("slots", target, *(each.reshape(-1) for each in (x, slots, o, back, p)), arch="a3")
    np.testing.assert_array_equal(o, 2 * x)
    np.testing.assert_array_equal(p, 2 * x)
    np.testing.assert_array_equal(slots[:4], x[16:])


PUSH = "pto.tpush_to_aiv(%acc"
FREE = "pto.tfree_from_aic {id = 2, split = 1}"


def pushed(text: str, times: int, platform: str, arch: str) -> Any:
    """Run `one_way` on a machine with as many turns of its cube's loop; three tiles are taken."""
    cube, found, rest = text.replace('pto.target_arch = "a5"', f'pto.target_arch = "{arch}"').partition("scf.for")
    module = parse(cube.replace("%c3 = arith.constant 3", f"%c3 = arith.constant {times}") + found + rest, "pushed.pto")
    func = next(func for func in module.funcs() if func.name == "one_way")
    x, o = np.eye(16, dtype=np.float16).reshape(-1), np.zeros(768, np.float16)
    ir.compile(lower(module, func, target=arch), platform=platform)(1, x, x.copy(), o)
    return o.reshape(3, 16, 16)


def test_who_pushes_more_than_a_pipe_has_slots_for_waits_until_one_is_free(target: str) -> None:
    """Eight slots, of which three are freed: on A5 by `tfree`, on A2/A3 as they are taken."""
    text = (KERNELS / "one_way.pto").read_text()
    for arch, free in (("a5", FREE), ("a3", FREE), ("a3", "")):
        o = pushed(text.replace(FREE, free), 11, target, arch)
        np.testing.assert_array_equal(o[2], 3 * np.eye(16) + 1)
    for arch, free, times, says in (("a5", FREE, 12, "tfree"), ("a5", "", 9, "tfree"), ("a3", FREE, 12, "tpop")):
        with pytest.raises(
            ExecutionError, match=rf"pipe 2 has 8 slots, and all .*`pto\.{says}_from_aic` frees"
        ) as caught:
            pushed(text.replace(FREE, free), times, target, arch)
        assert PUSH in str(caught.value)


EVENTS = [
    "section.cube {",
    staged("x", 16, 16, 4), staged("y", 16, 32, 4),
    "mte_l1_l0a %x1, %a, %n16, %n16, %n0, %n0", "mte_l1_l0b %y1, %b, %n16, %n32, %n0, %n0 {transpose = true}",
    "mad %a, %b, %c, %n16, %n32, %n16",
    "mte_l0c_ub %c, %u, %n16, %n32, %n16, %n32, dst_mode(split_{split})",
    "sync.set <PIPE_FIX>, 1", "sync.set <PIPE_FIX>, 17",
    "sync.wait <PIPE_MTE1>, 0", "sync.wait <PIPE_MTE1>, 16",
    "mte_l1_ub %l1, %v, %n8 nburst(%n1, %n0, %n0)",
    "sync.set <PIPE_FIX>, 1",
    "}",
    "section.vector {",
    "%sub = pto.get_subblock_idx",
    "%far = arith.muli %sub, %n512 : i64",
    "%mine = pto.addptr %o, %far : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>",
    "sync.wait <PIPE_MTE3>, 1",
    "pto.mte_ub_gm %u, %mine, %n2048 nburst(%n1, %n0, %n0) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64",
    "%blocks = arith.muli %sub, %n32 : i64",
    "%part = pto.addptr %l1, %blocks : !pto.ptr<f32, l1> -> !pto.ptr<f32, l1>",
    "pto.mte_ub_l1 %u, %part, %n4 nburst(%n1, %n0, %n0) : !pto.ptr<f32, ub>, !pto.ptr<f32, l1>, i64, i64, i64, i64",
    "sync.set <PIPE_MTE3>, 0",
    "%first = arith.cmpi eq, %sub, %n0 : i64",
    "scf.if %first {  // :",
    "sync.wait <PIPE_MTE3>, 1",
    "mte_ub_gm %v, %p, %n256 nburst(%n1, %n0, %n0)",
    "}",
    "}",
]  # fmt: skip
"""Halves of a product to both vector cores, parts of them back to the cube, and those to the first vector core."""


@each_way
@pytest.mark.parametrize("split", ["m", "n"])
def test_events_and_memories_that_cores_share(split: str, is_open: bool, target: str) -> None:
    arguments = {"x": "f32, gm", "y": "f32, gm", "o": "f32, gm", "p": "f32, gm"}
    places = {
        "x1": ("f32, l1", 0), "y1": ("f32, l1", 4096), "l1": ("f32, l1", 8192), "a": ("f32, l0a", 0),
        "b": ("f32, l0b", 0), "c": ("f32, l0c", 0), "u": ("f32, ub", 64), "v": ("f32, ub", 8192),
    }  # fmt: skip
    lines = [line.replace("{split}", split) for line in EVENTS]
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    text = kernel(arguments, places, lines)
    x, y = (np.random.default_rng(n).integers(-4, 5, (16, 16 * n)).astype(np.float32) for n in (1, 2))
    o, p = np.zeros((2, 16, 32), np.float32), np.zeros(64, np.float32)
    run_text(text, target, x, y, o, p, *numbers)
    wanted = np.zeros((2, 16, 32), np.float32)
    wanted[0, :8], wanted[1, :8] = np.split(x @ y, 2) if split == "m" else (0, 0)
    if split == "n":
        wanted[:, :, :16] = np.stack(np.split(x @ y, 2, axis=1))
    np.testing.assert_array_equal(o, wanted)
    np.testing.assert_array_equal(p, wanted.reshape(2, -1)[:, :32].reshape(-1))


def test_waiting_for_nobody_is_an_error(target: str) -> None:
    lines = ["section.cube {", "sync.wait <PIPE_FIX>, 0", "}", "section.vector {", "sync.wait <PIPE_MTE3>, 0", "}"]
    with pytest.raises(ExecutionError, match="wait for each other"):
        run_text(kernel({"x": "f32, gm"}, {}, lines), target, np.zeros(1, np.float32))


def test_a_core_alone_has_nobody_to_take_from() -> None:
    module = parse((KERNELS / "one_way.pto").read_text())
    func = next(func for func in module.funcs() if func.name == "vector")
    with pytest.raises(UnsupportedFeatureError, match=r"`pto\.tpop_from_aic` meets no other core") as caught:
        lower(module, func, target="a5")
    assert "calls both" in str(caught.value)


ACC = "!pto.tile_buf<acc, 16x32xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT, VEC = "!pto.tile_buf<mat, 16x32xf32>", "!pto.tile_buf<vec, 16x16xf32>"
PART = "!pto.tile_buf<acc, 16x32xf32, valid=?x?, blayout=col_major, slayout=row_major, fractal=1024>"
HALVES = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @halves(%x: !pto.ptr<f32>, %o: !pto.ptr<f32>, %p: !pto.ptr<f32>, %q: !pto.ptr<f32>, %rows: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %a64 = arith.constant 64 : i64
    %two = arith.constant 2.0 : f32
    %vx = pto.make_tensor_view %x, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf32>
    %vo = pto.make_tensor_view %o, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf32>
    %vp = pto.make_tensor_view %p, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf32>
    %vq = pto.make_tensor_view %q, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf32>
    %there = pto.alloc_tile addr = %a64 : {VEC}
    pto.section.cube {{
      pto.aic_initialize_pipe {{id = 3, dir_mask = 3, slot_size = 2048}} ()
      %acc = pto.alloc_tile : {ACC}
      pto.tload ins(%vx : !pto.tensor_view<16x32xf32>) outs(%acc : {ACC})
      %some = pto.alloc_tile valid_row = %rows valid_col = %c32 : {PART}
      pto.tmov ins(%acc : {ACC}) outs(%some : {PART})
      pto.tpush_to_aiv(%acc : {ACC}) {{id = 3, split = 2}}
      pto.tpush_to_aiv(%some : {PART}) {{id = 3, split = 2}}
      %back = pto.tpop_from_aiv {{id = 3, split = 2}} -> {MAT}
      pto.tstore ins(%back : {MAT}) outs(%vo : !pto.tensor_view<16x32xf32>)
      pto.tmov ins(%acc : {ACC}) outs(%there : {VEC}) {{accToVecMode = #pto<acc_to_vec_mode dual_mode_split_n>}}
      pto.sync.set <PIPE_FIX>, 2
      pto.sync.set <PIPE_FIX>, 18
    }}
    pto.section.vector {{
      pto.aiv_initialize_pipe {{id = 3, dir_mask = 3, slot_size = 2048}} ()
      %t = pto.tpop_from_aic {{id = 3, split = 2}} -> {VEC}
      pto.tmuls ins(%t, %two : {VEC}, f32) outs(%t : {VEC})
      pto.tpush_to_aic(%t : {VEC}) {{id = 3, split = 2}}
      %s = pto.tpop_from_aic(%rows, %c16) {{id = 3, split = 2}} -> !pto.tile_buf<vec, 16x16xf32, valid=?x?>
      %sub = pto.get_subblock_idx
      %lane = arith.index_cast %sub : i64 to index
      %first = arith.muli %lane, %c16 : index
      %pp = pto.partition_view %vp, offsets = [%c0, %first], sizes = [%rows, %c16]
        : !pto.tensor_view<16x32xf32> -> !pto.partition_tensor_view<?x16xf32>
      pto.tstore ins(%s : !pto.tile_buf<vec, 16x16xf32, valid=?x?>) outs(%pp : !pto.partition_tensor_view<?x16xf32>)
      pto.sync.wait <PIPE_MTE3>, 2
      %pq = pto.partition_view %vq, offsets = [%c0, %first], sizes = [%c16, %c16]
        : !pto.tensor_view<16x32xf32> -> !pto.partition_tensor_view<16x16xf32>
      pto.tstore ins(%there : {VEC}) outs(%pq : !pto.partition_tensor_view<16x16xf32>)
    }}
    return
  }}
}}
"""


def test_halves_of_columns_both_ways_and_to_both_memories(target: str) -> None:
    x = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    o, p, q = np.zeros((3, 16, 32), np.float32)
    run_text(HALVES, target, x, o, p, q, 5)
    np.testing.assert_array_equal(o, 2 * x)
    np.testing.assert_array_equal(p[:5], x[:5])
    assert not p[5:].any()
    np.testing.assert_array_equal(q, x)


def test_buffers_that_overlap() -> None:
    @pto.jit(name="one_way", source=(KERNELS / "one_way.pto").read_text())
    def kernel(x: pto.ptr(pto.f16, "gm"), y: pto.ptr(pto.f16, "gm"), o: pto.ptr(pto.f16, "gm")) -> None: ...  # pyright: ignore

    x, y = np.random.default_rng(0).integers(-4, 5, (2, 16, 16)).astype(np.float16)
    whole = np.concatenate([x.reshape(-1), y.reshape(-1), np.zeros(768, np.float16)])
    kernel[1, None](whole, whole[256:], whole[512:])
    np.testing.assert_array_equal(whole[512:].reshape(3, 16, 16), np.stack([turn * (x @ y) + 1 for turn in (1, 2, 3)]))


def test_what_would_lie_in_one_place_twice_is_refused() -> None:
    text, tile = (KERNELS / "one_way.pto").read_text(), "!pto.tile_buf<vec, 8x16xf16>"
    loop, store = "scf.for %i = %c0 to %c3 step %c1", "outs(%part : !pto.partition_tensor_view<8x16xf16>)\n"
    before, _, after = text.rpartition(loop)
    first = f"%t0 = pto.tpop_from_aic {{id = 2, split = 1}} -> {tile}\n    %last = "
    kept = f"{before}{first}{loop} iter_args(%before = %t0) -> ({tile}){after}"
    kept = kept.replace(store, f"{store}      scf.yield %t : {tile}\n")
    both = (KERNELS / "slots.pto").read_text().replace("id = 5, dir_mask = 1", "id = 5, dir_mask = 3")
    for written, name, said in ((kept, "one_way", "handed on to the next turn"), (both, "slots", "for both ways")):
        module = parse(written)
        with pytest.raises(UnsupportedFeatureError, match=said):
            lower(module, next(func for func in module.funcs() if func.name == name), target="a3")


SLOT, WHOLE = "!pto.tensor_view<16x16xf32>", "!pto.tensor_view<96x16xf32>"
TILE = "!pto.tile_buf<mat, 16x16xf32>"
TAKEN = "!pto.tile_buf<vec, 16x16xf32>"
VALUES = f"""
module attributes {{pto.target_arch = "a3"}} {{
  func.func @values(%x: !pto.ptr<f32>, %g: !pto.ptr<f32>, %o: !pto.ptr<f32>, %p: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %c16 = arith.constant 16 : index
    %c96 = arith.constant 96 : index
    %local = arith.constant 0 : i32
    %vg = pto.make_tensor_view %g, shape = [%c16, %c16], strides = [%c16, %c1] : {SLOT}
    pto.section.cube {{
      %tiles = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 8}}(%local : i32) -> !pto.pipe
      %slots = pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 4}}(%vg : {SLOT}) -> !pto.pipe
      %e = pto.declare_global -> {SLOT}
      %t = pto.alloc_tile : {TILE}
      scf.for %i = %c0 to %c6 step %c1 {{
        PART
        pto.tload ins(%part : !pto.partition_tensor_view<16x16xf32>) outs(%t : {TILE})
        pto.tpush(%t, %tiles : {TILE}, !pto.pipe) {{split = 0}}
        pto.talloc(%e, %slots : {SLOT}, !pto.pipe) {{split = 0}}
        pto.tstore ins(%t : {TILE}) outs(%e : {SLOT})
        pto.tpush(%e, %slots : {SLOT}, !pto.pipe) {{split = 0}}
      }}
    }}
    pto.section.vector {{
      %tiles = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 8}}(%local : i32) -> !pto.pipe
      %slots = pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 4}}(%vg : {SLOT}) -> !pto.pipe
      %t = pto.declare_tile -> {TAKEN}
      %e = pto.declare_global -> {SLOT}
      %s = pto.alloc_tile : {TAKEN}
      scf.for %i = %c0 to %c6 step %c1 {{
        pto.tpop(%t, %tiles : {TAKEN}, !pto.pipe) {{split = 0}}
        pto.tfree(%tiles : !pto.pipe) {{split = 0}}
        pto.tpop(%e, %slots : {SLOT}, !pto.pipe) {{split = 0}}
        pto.tload ins(%e : {SLOT}) outs(%s : {TAKEN})
        pto.tfree(%e, %slots : {SLOT}, !pto.pipe) {{split = 0}}
        OUT
      }}
    }}
    return
  }}
}}
"""


def turn(pointer: str, name: str) -> str:
    """Return the rows of a matrix that belong to a turn of a loop."""
    return f"""%row_{name} = arith.muli %i, %c16 : index
        %v_{name} = pto.make_tensor_view %{pointer}, shape = [%c96, %c16], strides = [%c16, %c1] : {WHOLE}
        %{name} = pto.partition_view %v_{name}, offsets = [%row_{name}, %c0], sizes = [%c16, %c16]
          : {WHOLE} -> !pto.partition_tensor_view<16x16xf32>"""


def values_text() -> str:
    """Return a kernel that takes what it pushes from pipes that are values, and stores it."""
    stores = [
        f"pto.tstore ins(%{tile} : {TAKEN}) outs(%{to} : !pto.partition_tensor_view<16x16xf32>)"
        for tile, to in (("t", "first"), ("s", "second"))
    ]
    out = "\n        ".join([turn("o", "first"), turn("p", "second"), *stores])
    return VALUES.replace("PART", turn("x", "part")).replace("OUT", out)


def test_slots_of_pipes_that_are_values_hold_their_entries() -> None:
    module = parse(values_text().replace("slot_size = 1024, slot_num = 8", "slot_size = 512, slot_num = 8"))
    with pytest.raises(PtoOperandError, match="has 1024 bytes, and a slot of its pipe 512"):
        lower(module, next(module.funcs()), target="a3")


def test_what_an_accumulator_becomes_fits_its_slot() -> None:
    def lowered(size: int) -> None:
        module = parse((KERNELS / "one_way.pto").read_text().replace("slot_size = 1024", f"slot_size = {size}", 1))
        lower(module, next(func for func in module.funcs() if func.name == "one_way"), target="a5")

    lowered(256)
    with pytest.raises(PtoOperandError, match="has 256 bytes, and a slot of pipe 2 255"):
        lowered(255)


def test_pipes_that_are_values(target: str) -> None:
    text = values_text()
    x = np.random.default_rng(0).normal(size=(6, 16, 16)).astype(np.float32)
    o, p = np.zeros((2, 6, 16, 16), np.float32)
    run_text(text, target, x, np.zeros(1024, np.float32), o, p, arch="a3")
    np.testing.assert_array_equal(o, x)
    np.testing.assert_array_equal(p, x)


def test_a_slot_that_nobody_allocated_is_refused_at_its_use() -> None:
    kept = [line for line in example("pto.talloc").splitlines() if "pto.talloc(" not in line]
    module = parse("\n".join(kept), "unbound.pto")
    with pytest.raises(PtoOperandError, match="is a slot, and nothing says yet which one") as caught:
        *_, func = module.funcs()
        lower(module, func, target="a3")
    assert "^" in str(caught.value)


def test_a_tile_of_which_less_was_pushed_is_undefined_there(target: str) -> None:
    text = example("pto.tpush_to_aiv").replace("mat, 16x16xf32", "mat, 2x16xf32")
    module = parse(text, "less.pto")
    *_, func = module.funcs()
    with pytest.raises(ExecutionError, match="looks at elements that nobody wrote"):
        ir.compile(lower(module, func, target="a5"), platform=target)(1, np.ones(256, "f4"), np.zeros(256, "f4"))
