"""Looped copies: their two outer loops are settings of the machine that ops before them make."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.build import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import get_cell, set_cell
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.copies import Axis, Copy, run
from tilewright.pto.text.form import Form

_WAYS = {"pto.copy_gm_to_ubuf": "outtoub", "pto.copy_ubuf_to_gm": "ubtoout"}
_SETTINGS = tuple(
    f"set_{name}_{way}" for way in _WAYS.values() for name in ("loop_size", "loop1_stride", "loop2_stride")
)


def _is_straight(m: Machine) -> bool:
    """Return whether settings are only made by the entry itself, outside of loops and branches."""
    for func in m.funcs:
        ops = func.body.ops if func.body else []
        outside = ops if func is m.calls[0] else []
        if any(
            inner.name.removeprefix("pto.") in _SETTINGS for op in ops for inner in op.walk() if inner not in outside
        ):
            return False
    return True


@declare(f"pto.{' '.join(_SETTINGS)}", Form("ii"))
def _set(m: Machine, op: Op, *numbers: Expr) -> None:
    """Note two numbers: here where that is all that can happen, else in memory where the program finds them."""
    name = op.name.removeprefix("pto.")
    if _is_straight(m):
        m.settings[name] = m.b.index(numbers[0]), m.b.index(numbers[1])
        return
    for which, value in enumerate(numbers):
        set_cell(m, (name, which), value)


def _setting(m: Machine, name: str) -> tuple[Expr, Expr]:
    """Return the two numbers of a setting, zero where nobody made it."""
    if name in m.settings or _is_straight(m):
        return m.settings.get(name, (m.b.index(0), m.b.index(0)))
    return get_cell(m, (name, 0)), get_cell(m, (name, 1))


def _outer(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the two outer loops as they are set; a size of zero, which is what nobody set, means once."""
    way, one = _WAYS[op.name], m.b.index(1)
    sizes = _setting(m, f"set_loop_size_{way}")
    counts = [m.b.scalar("max", size, one) for size in sizes]
    strides = [_setting(m, f"set_loop{loop}_stride_{way}") for loop in (1, 2)]
    return Axis(counts[1], *strides[1]), Axis(counts[0], *strides[0])


@declare("pto.copy_gm_to_ubuf", Form("glx*"), is_by_bytes=True)
def _copy_in(m: Machine, op: Op, come: Pointer, go: Pointer, *_: object) -> None:
    """Operands: bursts and their length, padding left and right, and strides at the end, source first."""
    if len(op.operands) != 11:
        raise UnsupportedFeatureError(f"{op.name} takes 11 operands, got {len(op.operands)}")
    count, length, left, right = (m.index(v) for v in op.operands[3:7])
    if known(left) != 0 or known(right) != 0:
        raise UnsupportedFeatureError(f"{op.name} cannot pad here", help="use pto.mte_gm_ub with pad(...)")
    source, target = (m.index(v) for v in op.operands[9:])
    run(m, Copy(come, go, length, (*_outer(m, op), Axis(count, source, target))))


@declare("pto.copy_ubuf_to_gm", Form("lgx*"), is_by_bytes=True)
def _copy_out(m: Machine, op: Op, come: Pointer, go: Pointer, *_: object) -> None:
    """Operands: bursts and their length, and strides at the end, the target's first."""
    if len(op.operands) != 8:
        raise UnsupportedFeatureError(f"{op.name} takes 8 operands, got {len(op.operands)}")
    count, length = (m.index(v) for v in op.operands[3:5])
    target, source = (m.index(v) for v in op.operands[6:])
    run(m, Copy(come, go, length, (*_outer(m, op), Axis(count, source, target))))
