"""Scaled products of the cube: matrices of small floats with the scales of their blocks beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.machine.copying import Axis, Copy, run
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import FRACTAL, extents, up
from tilewright.pto.machine.scales import FRAGMENT, GROUP, beside
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule, declare, element_type, within
from tilewright.pto.ops.cube import Product, multiplies, multiply, product
from tilewright.pto.ops.raw import told_product
from tilewright.pto.text.form import free
from tilewright.pto.text.free import said
from tilewright.pto.types import I64, Space

_GIVEN = "x: f8E4M3FN 16x64, y: f8E4M3FN 64x32, u: ui8 16x2 in 126..129, v: ui8 32x2 in 126..129, out: f32 16x32"
_PLACES = (
    "x1: f8E4M3FN l1 0, y1: f8E4M3FN l1 4096, u1: ui8 l1 8192, v1: ui8 l1 8256, "
    "a: f8E4M3FN l0a 512, b: f8E4M3FN l0b 1024, c: f32 l0c 0, d: f32 bt 0, z: f32 l1 16384"
)
_STAGED = """
pto.mte_gm_l1_frac %x, %x1, nd2nz, shape(%n16, %n64), src_layout(%n64), dst_group(%n1, %n1, %n16, %n0), ctrl(%n0, %no)
pto.mte_gm_l1_frac %y, %y1, nd2nz, shape(%n64, %n32), src_layout(%n32), dst_group(%n1, %n1, %n64, %n0), ctrl(%n0, %no)
pto.mte_gm_l1 %u, %u1, %n32 nburst(%n1, %n0, %n0)
pto.mte_gm_l1 %v, %v1, %n64 nburst(%n1, %n0, %n0)
pto.mte_l1_l0a %x1, %a, %n16, %n64, %n0, %n0
pto.mte_l1_l0b %y1, %b, %n64, %n32, %n0, %n0 {transpose = true}
"""
_LOADED = "pto.mte_l1_l0a_mx %u1, %a, %n16, %n64\npto.mte_l1_l0b_mx %v1, %b, %n64, %n32\n"
_RAW = "pto.load_cbuf_to_ca_mx %u1, %a, %n16, %n64\npto.load_cbuf_to_cb_mx %v1, %b, %n0, %n0, %n2, %n1, %n2, %n2\n"
_OUT = "\npto.mte_l0c_gm %c, %out, %n16, %n32, %n16, %n32, %n0, %n0, nz2nd"


def _meant(op: str, x: Any, y: Any, u: Any, v: Any, *rest: Any) -> Any:
    powers = [2.0 ** (each.astype("f4") - 127) for each in (u, v)]
    left, right = x.astype("f4") * np.repeat(powers[0], 32, 1), y.astype("f4") * np.repeat(powers[1].T, 32, 0)
    return left @ right * (2 if op.endswith("_acc") else 1) + (rest[0] if "bias" in op else 0)


def _example(lines: str, loaded: str = _LOADED, given: str = _GIVEN) -> Example:
    return Example(given, f"{_STAGED}{loaded}{lines}{_OUT}", _meant, _PLACES)


_SIZES = "%n16, %n32, %n64"
_BIAS = "pto.mte_gm_l1 %w, %z, %n128 nburst(%n1, %n0, %n0)\npto.mte_l1_bt %z, %d, %n4 nburst(%n1, %n0, %n0)\n"
_WITH_BIAS = _GIVEN.replace("out:", "w: f32 32, out:")
_WORD = 16 | 64 << 12 | 32 << 24
_EXAMPLES = {
    "mad_mx": _example(f"{{op}} %a, %b, %c, {_SIZES}"),
    "mad_mx_acc": _example(f"pto.mad_mx %a, %b, %c, {_SIZES}\n{{op}} %a, %b, %c, {_SIZES}"),
    "mad_mx_bias": _example(f"{_BIAS}{{op}} %a, %b, %c, %d, {_SIZES}", given=_WITH_BIAS),
    "mad_mx_raw": _example(f"%fresh = arith.constant {_WORD - (1 << 63)} : i64\n{{op}} %a, %b, %c, %fresh", _RAW),
    "mad_mx_bias_raw": _example(f"{_BIAS}{{op}} %a, %b, %c, %d, %n{_WORD | 1 << 62}", _RAW, _WITH_BIAS),
}
_L1, _L0A, _L0B, _L0C, _BT = Space.MAT, Space.LEFT, Space.RIGHT, Space.ACC, Space.BIAS


@declare("pto.mte_l1_l0a_mx", free("ppii"), rule=within(_L1, _L0A), is_by_bytes=True, counts=I64)
@declare("pto.mte_l1_l0b_mx", free("ppii"), rule=within(_L1, _L0B), is_by_bytes=True, counts=I64)
def _load(m: Machine, op: Op, source: Pointer, target: Pointer, first: Expr, second: Expr) -> None:
    """The scales of a matrix whose rows, or columns, and depth these are, to beside it."""
    rows, depth = extents(op, *((first, second) if op.name.endswith("a_mx") else (second, first)))
    nbytes = up(rows, FRACTAL) // FRACTAL * (up(depth, 2 * GROUP) // (2 * GROUP)) * FRAGMENT
    run(m, Copy(source, beside(m, target), m.b.index(nbytes), (Axis(m.b.index(1), m.b.index(0), m.b.index(0)),)))


@declare("pto.load_cbuf_to_ca_mx", free("ppiii?i?i?i?"), rule=within(_L1, _L0A), is_by_bytes=True, counts=I64)
@declare("pto.load_cbuf_to_cb_mx", free("ppiiiiii"), rule=within(_L1, _L0B), is_by_bytes=True, counts=I64)
def _load_fragments(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """Fragments of scales from a row and column of them on, so many down and across; or those of a matrix."""
    if len(numbers) < 6:
        _load(m, op, source, target, *numbers[:2])
        return
    row, column, down, across, come, go = map(m.b.index, numbers)
    first = m.b.mul(m.b.add(m.b.scalar("mul", column, come), row), FRAGMENT)
    unit = m.b.index(FRAGMENT)
    axes = Axis(across, m.b.mul(come, FRAGMENT), m.b.mul(go, FRAGMENT)), Axis(down, unit, unit)
    run(m, Copy(replace(source, offset=m.b.add(source.offset, first)), beside(m, target), unit, axes))


def _scaled(*spaces: Space) -> Rule:
    """Return the rule of a scaled product."""
    plainly = multiplies(*spaces)

    def rule(op: Op, constants: Constants) -> None:
        for value in op.operands[:2]:
            if element_type(value.type).name != "f8E4M3FN":
                message = (
                    f"`{op.name}` multiplies f8E4M3FN with scales, `%{value.name}` holds {element_type(value.type)}"
                )
                raise PtoTypeMismatchError(message, help="use `pto.mad` where there are no scales")
        plainly(op, constants)

    return rule


_SCALED, _BIASED = _scaled(_L0A, _L0B, _L0C), _scaled(_L0A, _L0B, _L0C, _BT)


@declare("pto.mad_mx mad_mx_acc", product("pppiii"), rule=_SCALED, counts=I64, example=_EXAMPLES)
@declare("pto.mad_mx_bias", product("ppppiii"), rule=_BIASED, counts=I64, example=_EXAMPLES)
def _multiply(m: Machine, op: Op, a: Pointer, b: Pointer, c: Pointer, *rest: Pointer | Expr) -> None:
    """The product of two matrices, each element times the power of two of its block."""
    bias = rest[0] if isinstance(rest[0], Pointer) else None
    sizes = [each for each in rest if isinstance(each, Expr)]
    how = Product("sat" in said(op), adds=op.name.endswith("_acc"), bias=bias, is_scaled=True)
    multiply(m, how, a, b, c, extents(op, *sizes))


@declare("pto.mad_mx_raw", free("pppi"), rule=_SCALED, counts=I64, example=_EXAMPLES)
@declare("pto.mad_mx_bias_raw", free("ppppi"), rule=_BIASED, counts=I64, example=_EXAMPLES)
def _multiply_as_told(m: Machine, op: Op, a: Pointer, b: Pointer, c: Pointer, *rest: Pointer | Expr) -> None:
    """A scaled product as a word says: from zero, from a bias, or from what the accumulator holds."""
    how, sizes = told_product(m, op, a, *rest)
    multiply(m, replace(how, is_scaled=True), a, b, c, sizes)
