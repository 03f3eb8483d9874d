"""Examples of the cube: matrices staged, multiplied and brought out, by micro-ops and by raw machine ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.arrays import np
from tilewright.pto.example import Example

_PLACES = "x1: f16 l1 0, y1: f16 l1 8192, a: f16 l0a 0, b: f16 l0b 0, c: f32 l0c 0, w1: f32 l1 16384, "
_MORE = "d: f32 bt 0, l: f32 l1 32768, u: f32 ub 0, fb: f32 fb 256, h: f16 ub 4096"
_STAGED = """
pto.mte_gm_l1_frac %x, %x1, nd2nz, shape(%n16, %n32), src_layout(%n64), dst_group(%n1, %n1, %n16, %n0), ctrl(%n0, %no)
pto.mte_gm_l1_frac %y, %y1, nd2nz, shape(%n32, %n16), src_layout(%n32), dst_group(%n1, %n1, %n32, %n0), ctrl(%n0, %no)
pto.mte_l1_l0a %x1, %a, %n16, %n32, %n0, %n0
pto.mte_l1_l0b %y1, %b, %n32, %n16, %n0, %n0 {transpose = true}
"""
_MADE = "pto.mad %a, %b, %c, %n16, %n16, %n32"
_STORED = "pto.mte_l0c_gm %c, %out, %n16, %n16, %n16, %n16, %n0, %n0, nz2nd"
_WRITTEN = "pto.mte_ub_gm %u, %out, %n1024 nburst(%n1, %n0, %n0)"
_TWOS = "w: ui64 16 in 1073741824..1073741824, "
"""Words whose low half is an f32, two."""


def _product(op: str, x: Any, y: Any, *rest: Any) -> Any:
    return x.astype("f4") @ y.astype("f4")


def _twice(*given: Any) -> Any:
    return 2 * _product(*given)


def _biased(op: str, x: Any, y: Any, w: Any, out: Any) -> Any:
    return _product(op, x, y) + w


def _multiplied(lines: str, gives: Callable[..., Any], more: str = "") -> Example:
    """Return a kernel that stages two matrices, multiplies them by some lines and brings the product out."""
    arguments = f"x: f16 16x32, y: f16 32x16, {more}out: f32 16x16"
    return Example(arguments, f"{_STAGED}{lines}", gives, f"{_PLACES}{_MORE}")


PRODUCTS = {
    "mad": _multiplied(f"{_MADE}\n{_STORED}", _product),
    "mad_acc": _multiplied(f"{_MADE}\n{{op}} %a, %b, %c, %n16, %n16, %n32\n{_STORED}", _twice),
    "mad_bias": _multiplied(
        "pto.mte_gm_l1 %w, %w1, %n64 nburst(%n1, %n0, %n0)\npto.mte_l1_bias %w1, %d, %n2 nburst(%n1, %n0, %n0)\n"
        f"{{op}} %a, %b, %c, %d, %n16, %n16, %n32\n{_STORED}",
        _biased,
        "w: f32 16, ",
    ),
}
LEAVING = {
    "mte_l0c_l1": _multiplied(
        f"{_MADE}\n{{op}} %c, %l, %n16, %n16, %n16, %n16, nz2nd\n"
        f"pto.mte_l1_ub %l, %u, %n32 nburst(%n1, %n0, %n0)\n{_WRITTEN}",
        _product,
    ),
    "mte_l0c_ub": _multiplied(
        f"{_MADE}\n{{op}} %c, %u, %n16, %n16, %n16, %n16, dst_mode(%n0), nz2nd\n{_WRITTEN}", _product
    ),
    "mte_l0c_gm": _multiplied(
        "pto.mte_gm_l1 %w, %w1, %n128 nburst(%n1, %n0, %n0)\npto.mte_l1_fb %w1, %fb, %n2 nburst(%n1, %n0, %n0)\n"
        f"{_MADE}\n{{op}} %c, %out, %n16, %n16, %n16, %n16, %n0, %n0, pre_quant(%fb, mode = qf322f32_pre_vec), nz2nd",
        _twice,
        _TWOS,
    ),
}
_SQUARE = f"""
pto.set_mte2_nz_para %n{1 | 1 << 16 | 16 << 32}
pto.set_channel_para %n0
pto.set_loop3_para %n0, %n0
pto.copy_gm_to_cbuf_multi_dn2nz %x, %x1, %n0, %n32, %n0, %n16, %n16, %n0, %no
pto.load_cbuf_to_ca %x1, %a, %n0, %n0, %n1, %n1, %n1, %n1
pto.load_cbuf_to_cb %x1, %b, %n0, %n0, %n1, %n1, %n1, %n1
"""
_SIZES, _AREA, _WAY = 16 | 16 << 12 | 16 << 24, 16 << 4 | 16 << 16 | 16 << 32, 16 | 1 << 43


def _sloped(op: str, x: Any, w: Any, out: Any) -> Any:
    made = x.astype("f4").T @ x.astype("f4") + w
    return made * (1 - 0.75 * (made < 0))


def _clipped(op: str, x: Any, w: Any, out: Any) -> Any:
    return np.minimum(2 * x.astype("f4").T @ x.astype("f4"), 3)


RAW = {
    "mad_bias_raw": Example(
        "x: f16 16x16, w: f32 16, out: f32 16x16",
        f"""{_SQUARE}
        pto.copy_gm_to_cbuf %w, %w1, %n1, %n64, %n0, %n0
        pto.copy_cbuf_to_bt %w1, %d, %no, %n1, %n2, %n0, %n0
        pto.mad_bias_raw %a, %b, %c, %d, %n{_SIZES | 1 << 62}
        pto.set_relu_alpha %n{0x3E800000}
        pto.copy_matrix_cc_to_cbuf %c, %l, %n{_AREA}, %n{_WAY | 2 << 39}
        pto.copy_cbuf_to_ubuf %l, %u, %n0, %n1, %n32, %n0, %n0
        {_WRITTEN}
        """,
        _sloped,
        f"{_PLACES}{_MORE}",
    ),
    "mad_raw": Example(
        f"x: f16 16x16, {_TWOS}out: f16 16x16",
        f"""{_SQUARE}
        %fresh = arith.constant {_SIZES - (1 << 63)} : i64
        pto.mad_raw %a, %b, %c, %fresh
        pto.copy_gm_to_cbuf %w, %w1, %n1, %n128, %n0, %n0
        pto.copy_cbuf_to_fbuf %w1, %fb, %n1, %n2, %n0, %n0
        pto.set_fpc %n{2 << 8}
        pto.set_fix_clip_relu %n{0x4200}
        pto.copy_matrix_cc_to_ub %c, %h, %n{_AREA}, %n{_WAY | 31 << 34 | 1 << 30}
        pto.mte_ub_gm %h, %out, %n512 nburst(%n1, %n0, %n0)
        """,
        _clipped,
        f"{_PLACES}{_MORE}",
    ),
}


def _control(op: str, out: Any) -> Any:
    return np.array([32])


CONTROL = Example(
    "out: i64 1",
    """
    %was = pto.get_ctrl : i64
    %a = pto.sbitset1 %was, %n3 -> i64
    %b = pto.sbitset1 %a, %n5 -> i64
    %d = pto.sbitset0 %b, %n3 -> i64
    pto.set_ctrl %d
    %r = pto.get_ctrl : i64
    pto.store_scalar %r, %out[%c0] : !pto.ptr<i64, gm>, i64
    """,
    _control,
)


def _part(op: str, x: Any, out: Any) -> Any:
    return x[3:67]


UNALIGNED = Example(
    "x: f32 128, out: f32 64",
    """
    pto.mte_gm_ub %x, %u, %n0, %n512 nburst(%n1, %n0, %n0)
    pto.vecscope {
    %m = pto.pset_b32 "PAT_ALL" : m32
    %v = pto.uvld %u[%c3] : !pto.ptr<f32, ub> -> v64xf32
    pto.vsts %v, %w[%c0], %m : v64xf32, !pto.ptr<f32, ub>, m32
    }
    pto.mte_ub_gm %w, %out, %n256 nburst(%n1, %n0, %n0)
    """,
    _part,
    "u: f32 ub 0, w: f32 ub 2048",
)
