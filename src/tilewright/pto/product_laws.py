"""Laws of products: matrices in the memories and layouts that the cube multiplies, on A2/A3 and on A5."""

from __future__ import annotations

from tilewright.pto.elements import A3, A5, CALLED
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.module import Constants, Op, Value
from tilewright.pto.tile_laws import NZ, holds, laid_out_as, lies_in, plain, shaped_alike, short, valid_alike, valid_in
from tilewright.pto.types import Space, TileBuf

_TURNED = ("row_major", "col_major")
_MOST = 4095
EXPONENTS = ("f8E8M0FNU", "i8", "ui8", "si8")
"""Scales of which one goes with 32 elements, where others are as many as the elements."""


def multiplied(op: Op, constants: Constants) -> None:
    """Refuse a product of matrices in other memories, of other shapes, layouts or elements, or of too many rows."""
    is_scaled, is_vector = ".mx" in op.name, op.name.startswith("pto.tgemv")
    values = list(op.ins[1:] if op.name.endswith(".acc") else op.ins)
    (a, *left), (b, *right), rest = (
        (values[:2], values[2:4], values[4:]) if is_scaled else (values[:1], values[1:2], values[2:])
    )
    sums = [op.outs[0], *op.ins[:1]] if op.name.endswith(".acc") else [op.outs[0]]
    if is_scaled and is_vector and constants.arch == A3:
        raise PtoOperandError(f"there is no {short(op)} on {CALLED[A3]}", help='say `pto.target_arch = "a5"`')
    for value, space, layout in (
        (a, Space.LEFT, NZ),
        (b, Space.RIGHT, _TURNED),
        *((each, Space.ACC, NZ) for each in sums),
    ):
        lies_in(op, value, space)
        if constants.arch == A5:
            laid_out_as(op, value, layout)
    for value, factor in zip((*left, *right), (a, b), strict=False):
        lies_in(op, value, Space.SCALING)
        if is_vector and value.of(TileBuf).element.name not in EXPONENTS:
            shaped_alike(op, value, factor)
            valid_alike(op, value, factor)
    _refuse_shapes(op, a, b, sums)
    for bias in rest:
        _refuse_bias(op, bias, is_scaled, constants.arch)
    if is_vector:
        for value in (a, op.outs[0]):
            valid_in(op, value, rows=1)
    if not is_scaled:
        _refuse_elements(op, a, b, sums)
        return
    for value in sums:
        holds(op, value, "f32")


def _refuse_shapes(op: Op, a: Value, b: Value, sums: list[Value]) -> None:
    for value in (a, b, *sums):
        for extent in (value.of(TileBuf).valid_rows, value.of(TileBuf).valid_cols):
            if extent is not None and not 1 <= extent <= _MOST:
                message = f"{short(op)}: valid extents are 1 to {_MOST}, `%{value.name}` has {extent}"
                raise PtoValidShapeError(message, help="split the product")
    lhs, rhs = a.of(TileBuf), b.of(TileBuf)
    for value in sums:
        out = value.of(TileBuf)
        if (lhs.cols, (lhs.rows, rhs.cols)) != (rhs.rows, (out.rows, out.cols)):
            shapes = f"{lhs.rows}x{lhs.cols} by {rhs.rows}x{rhs.cols} into {out.rows}x{out.cols}"
            message = f"{short(op)}: shapes must go together, got {shapes}"
            raise PtoTypeMismatchError(
                message, help=f"make `%{value.name}` {lhs.rows}x{rhs.cols}, of depths that are equal"
            )


def _refuse_bias(op: Op, bias: Value, is_scaled: bool, arch: str) -> None:
    lies_in(op, bias, Space.BIAS)
    if bias.of(TileBuf).rows != 1:
        raise PtoTypeMismatchError(f"{short(op)}: a bias is one row, got {bias.of(TileBuf).rows}", help="write rows=1")
    holds(op, bias, "f32" if is_scaled else plain(op.outs[0].of(TileBuf).element))
    if arch == A5 and bias.of(TileBuf).blayout != "row_major":
        raise PtoTypeMismatchError(f"A5 {short(op)}: a bias is row-major", help="write blayout=row_major in its type")


def _refuse_elements(op: Op, a: Value, b: Value, sums: list[Value]) -> None:
    come = [plain(each.of(TileBuf).element) for each in (a, b)]
    made = "i32" if come == ["i8", "i8"] else "f32" if come[0] == come[1] and come[0] in ("f16", "bf16", "f32") else ""
    if not made:
        message = f"{short(op)}: i8 or equal f16, bf16, f32 are multiplied, got {come[0]} and {come[1]}"
        raise PtoTypeMismatchError(message, help="convert one of them with `pto.tcvt` before it is moved")
    for value in sums:
        holds(op, value, made)
