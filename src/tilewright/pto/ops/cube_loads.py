"""Cube loads: matrices that go on from L1 to where they are multiplied, whole or by their fractals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoOperandError
from tilewright.pto.machine.copying import Axis, Copy, run
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import BLOCK, FRACTAL, Matrix, extents, lanes, told, up
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule, declare, within
from tilewright.pto.ops.open_cube import load_open
from tilewright.pto.ops.transfers import check_apart, refuse_overlap
from tilewright.pto.text.form import free
from tilewright.pto.text.free import said
from tilewright.pto.types import I64, Space

_L1, _L0A, _L0B = Space.MAT, Space.LEFT, Space.RIGHT
_FRACTAL_BYTES = FRACTAL * BLOCK


def is_turned(op: Op) -> bool:
    """Return whether an op turns what it loads: it says `transpose`, and not that this is false."""
    return op.attributes.get("transpose", False) is not False


_STEPS = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
"""What loads fractals, in the order in which numbers without words say it."""
_LEFT, _RIGHT = (
    free(
        "ppiiiii?i?",
        words=" ".join(_STEPS),
        phrase=f"%src, %dst, {extents}, %start_row=0, %start_col=0 {{transpose}} : #",
    )
    for extents in ("%m, %k", "%k, %n")
)


def _loads(*spaces: Space) -> Rule:
    """Return the rule of a load for a product: extents and a start, or all that fractals are loaded by."""
    lie = within(*spaces)

    def rule(op: Op, constants: Constants) -> None:
        lie(op, constants)
        words, count = said(op), len(op.operands) - 2
        if count not in (4, 6) or (any(name in words for name in _STEPS) and not all(name in words for name in _STEPS)):
            help = f"extents and a start, or six numbers: {', '.join(_STEPS)}"
            raise PtoOperandError(f"`{op.name}` has {count} numbers", help=help)

    return rule


@declare("pto.mte_l1_l0a", _LEFT, rule=_loads(_L1, _L0A), is_by_bytes=True, counts=I64)
@declare("pto.mte_l1_l0b", _RIGHT, rule=_loads(_L1, _L0B), is_by_bytes=True, counts=I64)
def _load(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """A factor of a product: a matrix of the left one, or of the right one by columns; `transpose` turns it.

    Six numbers load fractals, as `pto.load_cbuf_to_ca` does.
    """
    if len(numbers) == len(_STEPS):
        words = said(op)
        named = [m.expr(words[name].values[0]) for name in _STEPS if name in words]
        load_fractals(m, op, source, target, named or numbers)
        return
    first, second, row, column = numbers
    if known(row) != 0 or known(column) != 0:
        message = f"`{op.name}` from another row or column than the first cannot be run here"
        raise UnsupportedFeatureError(message, help="move the pointer with `pto.addptr`")
    sizes = (first, second) if op.name.endswith("a") else (second, first)
    sides = told(op, *sizes)
    if sides is None:
        load_open(m, source, target, m.b.index(sizes[0]), m.b.index(sizes[1]), is_turned=is_turned(op))
        return
    major, depth = sides
    if not is_turned(op):
        pitch = up(major, FRACTAL)
        held = Matrix(source, pitch, up(depth, lanes(source.element)), pitch)
        Matrix(target, pitch, held.cols, pitch).write(m, held.read(m))
        return
    unit = max(FRACTAL, lanes(source.element))
    major, depth = up(major, unit), up(depth, unit)
    value = Matrix(source, depth, major, depth).read(m, is_turned=True)
    Matrix(target, major, depth, major).write(m, value)


def load_fractals(m: Machine, op: Op, source: Pointer, target: Pointer, numbers: Sequence[Expr]) -> None:
    """Emit the loads of fractals from a row and column of them on, so many down and across, each turned or not."""
    row, column, down, across, come, go = map(m.b.index, numbers)
    first = m.b.mul(m.b.add(m.b.scalar("mul", column, come), row), _FRACTAL_BYTES)
    start = replace(source, offset=m.b.add(source.offset, first))
    if not is_turned(op):
        unit = m.b.index(_FRACTAL_BYTES)
        axes = (Axis(across, m.b.mul(come, _FRACTAL_BYTES), m.b.mul(go, _FRACTAL_BYTES)), Axis(down, unit, unit))
        run(m, Copy(start, target, unit, axes))
        return
    if source.element.nbytes != 2:
        message = f"`{op.name}` turns fractals of 16 x 16 elements here, got {source.element}"
        raise UnsupportedFeatureError(message, help="use `pto.mte_l1_l0a` or `pto.mte_l1_l0b` with extents")
    sizes, whole = extents(op, across, down), FRACTAL * FRACTAL
    shape = (*sizes, FRACTAL, FRACTAL)
    places = (across, down), (m.b.index(1), go)
    refuse_overlap(*places, "let dst_stride step over the fractals that lie across")
    check_apart(m, *places)
    held = bytes_view(m, start, shape, (m.b.mul(come, whole), whole, 1, FRACTAL))
    m.b.store(bytes_view(m, target, shape, (whole, m.b.mul(go, whole), FRACTAL, 1)), m.b.load(held, shape))
