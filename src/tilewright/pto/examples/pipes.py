"""Examples of pipes: a matrix that the vector core hands to the cube and takes back, in tiles and in slots."""

from __future__ import annotations

from typing import Any

from tilewright.pto.example import Example

_V, _P = "!pto.tensor_view<16x16xf32>", "w16x16xf32"
_T, _M = "t16x16xf32", "!pto.tile_buf<mat, 16x16xf32>"
_WHOLE = "offsets = [%c0, %c0], sizes = [%c16, %c16]"
_VIEWS = "\n".join(
    f"%v{name} = pto.make_tensor_view %{name}, shape = [%c16, %c16], strides = [%c16, %c1] : {_V}\n"
    f"%p{name} = pto.partition_view %v{name}, {_WHOLE} : {_V} -> {_P}"
    for name in ("x", "out")
)
_LOADED = f"%t = pto.alloc_tile : {_T}\npto.tload ins(%px : {_P}) outs(%t : {_T})"


def _same(op: str, x: Any, *rest: Any) -> Any:
    return x


def _buffers(name: str) -> str:
    return f"c2v_consumer_buf = %{name} : i32, v2c_consumer_buf = %{name} : i32"


def _cores(cube: str, vector: str, more: str = "", arch: str = "a5") -> Example:
    """Return a kernel of a section for the cube and one for the vector cores."""
    lines = f"{_VIEWS}{more}\npto.section.cube {{\n{cube}\n}}\npto.section.vector {{\n{vector}\n}}"
    slots = "slots: f32 8x16x16, " if more else ""
    return Example(f"x: f32 16x16, {slots}out: f32 16x16", lines, _same, arch=arch)


TILES = _cores(
    f"""
    %far = pto.import_reserved_buffer {{name = "ring", peer_func = @example}} -> i32
    pto.aic_initialize_pipe {{id = 0, dir_mask = 3, slot_size = 1024}} ({_buffers("far")})
    %m = pto.tpop_from_aiv {{id = 0, split = 0}} -> {_M}
    pto.tpush_to_aiv(%m : {_M}) {{id = 0, split = 0}}
    pto.tfree_from_aiv {{id = 0, split = 0}}
    """,
    f"""
    %near = pto.reserve_buffer {{name = "ring", size = 4096, location = #pto.address_space<vec>, auto = true}} -> i32
    pto.aiv_initialize_pipe {{id = 0, dir_mask = 3, slot_size = 1024}} ({_buffers("near")})
    {_LOADED}
    pto.tpush_to_aic(%t : {_T}) {{id = 0, split = 0}}
    %b = pto.tpop_from_aic {{id = 0, split = 0}} -> {_T}
    pto.tstore ins(%b : {_T}) outs(%pout : {_P})
    pto.tfree_from_aic {{id = 0, split = 0}}
    """,
)
_SLOT_VIEW = f"\n%vs = pto.make_tensor_view %slots, shape = [%c16, %c16], strides = [%c16, %c1] : {_V}"


def _slot(name: str) -> str:
    return f"%p{name} = pto.partition_view %{name}, {_WHOLE} : {_V} -> {_P}"


SLOTS = _cores(
    f"""
    pto.aic_initialize_pipe {{id = 1, dir_mask = 1, slot_size = 1024}} (gm_slot_tensor = %vs : {_V})
    %m = pto.alloc_tile : {_M}
    pto.tload ins(%px : {_P}) outs(%m : {_M})
    %e = pto.talloc_to_aiv {{id = 1, split = 0}} -> {_V}
    {_slot("e")}
    pto.tstore ins(%m : {_M}) outs(%pe : {_P})
    pto.tpush_to_aiv(%e : {_V}) {{id = 1, split = 0}}
    """,
    f"""
    pto.aiv_initialize_pipe {{id = 1, dir_mask = 1, slot_size = 1024}} (gm_slot_tensor = %vs : {_V})
    %t = pto.alloc_tile : {_T}
    %f = pto.tpop_from_aic {{id = 1, split = 0}} -> {_V}
    {_slot("f")}
    pto.tload ins(%pf : {_P}) outs(%t : {_T})
    pto.tfree_from_aic(%f : {_V}) {{id = 1, split = 0}}
    pto.tstore ins(%t : {_T}) outs(%pout : {_P})
    """,
    _SLOT_VIEW,
    "a3",
)
SLOTS_BACK = _cores(
    f"""
    pto.aic_initialize_pipe {{id = 1, dir_mask = 2, slot_size = 1024}} (gm_slot_tensor = %vs : {_V})
    %m = pto.alloc_tile : {_M}
    %f = pto.tpop_from_aiv {{id = 1, split = 0}} -> {_V}
    {_slot("f")}
    pto.tload ins(%pf : {_P}) outs(%m : {_M})
    pto.tfree_from_aiv(%f : {_V}) {{id = 1, split = 0}}
    pto.tstore ins(%m : {_M}) outs(%pout : {_P})
    """,
    f"""
    pto.aiv_initialize_pipe {{id = 1, dir_mask = 2, slot_size = 1024}} (gm_slot_tensor = %vs : {_V})
    {_LOADED}
    %e = pto.talloc_to_aic {{id = 1, split = 0}} -> {_V}
    {_slot("e")}
    pto.tstore ins(%t : {_T}) outs(%pe : {_P})
    pto.tpush_to_aic(%e : {_V}) {{id = 1, split = 0}}
    """,
    _SLOT_VIEW,
    "a3",
)
_MADE = "%q = pto.initialize_l2l_pipe {{dir_mask = {}, slot_size = 1024, slot_num = 8}}(%i0 : i32) -> !pto.pipe"
_MADE_FAR = f"%q = pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 4}}(%vs : {_V}) -> !pto.pipe"
VALUES = _cores(
    f"""
    {_MADE.format(2)}
    %m = pto.declare_tile -> {_M}
    pto.tpop(%m, %q : {_M}, !pto.pipe) {{split = 0}}
    pto.tfree(%q : !pto.pipe) {{split = 0}}
    pto.tstore ins(%m : {_M}) outs(%pout : {_P})
    """,
    f"""
    {_MADE.format(2)}
    {_LOADED}
    pto.tpush(%t, %q : {_T}, !pto.pipe) {{split = 0}}
    """,
    arch="a3",
)
VALUES_FAR = _cores(
    f"""
    {_MADE_FAR}
    %m = pto.alloc_tile : {_M}
    pto.tload ins(%px : {_P}) outs(%m : {_M})
    %e = pto.declare_global -> {_V}
    pto.talloc(%e, %q : {_V}, !pto.pipe) {{split = 0}}
    {_slot("e")}
    pto.tstore ins(%m : {_M}) outs(%pe : {_P})
    pto.tpush(%e, %q : {_V}, !pto.pipe) {{split = 0}}
    """,
    f"""
    {_MADE_FAR}
    %t = pto.alloc_tile : {_T}
    %f = pto.declare_global -> {_V}
    pto.tpop(%f, %q : {_V}, !pto.pipe) {{split = 0}}
    {_slot("f")}
    pto.tload ins(%pf : {_P}) outs(%t : {_T})
    pto.tfree(%f, %q : {_V}, !pto.pipe) {{split = 0}}
    pto.tstore ins(%t : {_T}) outs(%pout : {_P})
    """,
    _SLOT_VIEW,
    "a3",
)
