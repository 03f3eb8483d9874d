"""Singly: ops that no machine has for whole tiles, or not for their elements, one element after the other.

What floats go through on the way is a double, which is rounded once, as the meaning of every op of floats is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tilewright import dtypes as dt
from tilewright.core.expr import Call
from tilewright.core.op import SCRATCH
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.choices import bits_of, conditions_of
from tilewright.programs.pto_text.elements import set_at
from tilewright.programs.pto_text.meeting import met_at, refuse_meeting, valid_of_all
from tilewright.programs.pto_text.scalars import chosen, computed, converted, remainder
from tilewright.programs.pto_text.values import NoPtoError, Number, Tile, element, kept
from tilewright.programs.pto_text.words import ALONE, Given, in_vec, matrix, no_function, result
from tilewright.programs.pto_text.writer import Writer

Formula = Callable[[Writer, list[Number], DataType], Number]
"""What an op makes of one element of each operand, as a number of its result's type."""


def _plain(name: str) -> Formula:
    """Return the formula of an op that numbers have, too."""
    return lambda w, numbers, dtype: reduce(lambda a, b: computed(w, name, [a, b], dtype), _as(w, numbers, dtype))


def _as(w: Writer, numbers: list[Number], dtype: DataType) -> list[Number]:
    return [converted(w, number, dtype) for number in numbers]


def _guarded(of_integers: Formula, of_floats: Formula) -> Formula:
    """Return the formula of a quotient or of what it leaves: nothing where an integer is divided by zero."""

    def formula(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
        a, b = _as(w, numbers, dtype)
        if dtype.is_float():
            return of_floats(w, [a, b], dtype)
        zero = w.constant(0, dtype)
        is_zero = computed(w, "eq", [b, zero], dt.BOOL)
        found = of_integers(w, [a, chosen(w, is_zero, w.constant(1, dtype), b)], dtype)
        return chosen(w, is_zero, zero, found)

    return formula


def _left(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Write what is left of an integer, with its own sign."""
    a, b = numbers
    whole = computed(w, "mul", [computed(w, "div", [a, b], dtype), b], dtype)
    return computed(w, "sub", [a, whole], dtype)


def _sized(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Write the magnitude of a number, which is no negative zero."""
    (x,) = _as(w, numbers, dtype)
    if dtype.is_unsigned_int():
        return x
    if dtype.is_float():
        zero = w.constant(0.0, dtype)
        return chosen(w, computed(w, "gt", [x, zero], dt.BOOL), x, computed(w, "sub", [zero, x], dtype))
    return computed(w, "max", [x, computed(w, "neg", [x], dtype)], dtype)


def _signed(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    (x,) = numbers
    zero, one = w.constant(0, dtype), w.constant(1, dtype)
    below = zero if dtype.is_unsigned_int() else w.constant(-1, dtype)
    side = chosen(w, computed(w, "lt", [x, zero], dt.BOOL), below, zero)
    return chosen(w, computed(w, "gt", [x, zero], dt.BOOL), one, side)


def _squared(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    return computed(w, "mul", [numbers[0], numbers[0]], dtype)


def _positive(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    return computed(w, "max", [numbers[0], w.constant(0, dtype)], dtype)


def _over(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    return computed(w, "div", [w.constant(1.0, dtype), numbers[0]], dtype)


def _leaky(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    x, slope = _as(w, numbers, dtype)
    return chosen(w, computed(w, "lt", [x, w.constant(0.0, dtype)], dt.BOOL), computed(w, "mul", [x, slope], dtype), x)


def _chosen(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    condition, a, b = numbers
    return chosen(w, converted(w, condition, dt.BOOL), *_as(w, [a, b], dtype))


def _fused(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Write a product and a sum, rounded once to fp32, in which shorter floats are computed."""
    if not dtype.is_float():
        a, b, c = _as(w, numbers, dtype)
        return computed(w, "add", [computed(w, "mul", [a, b], dtype), c], dtype)
    if dtype == dt.FP64:
        raise NoPtoError(
            "PTO has `fma` for floats of 32 and fewer bits, not for fp64", help="round twice: write x * y + z"
        )
    wide = w.number("pto.fma", _as(w, numbers, dt.FP32), dt.FP32, "f32, f32, f32 -> f32")
    return converted(w, wide, dtype)


def _spread(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Return what a line has for a place, whatever the tile has whose shape it takes."""
    return numbers[-1]


def _between(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Write the number that is so far between two, counted from the nearer one."""
    start, end, weight = _as(w, numbers, dt.FP64)

    def does(name: str, a: Number, b: Number) -> Number:
        return computed(w, name, [a, b], dt.FP64)

    apart = does("sub", end, start)
    size = does("max", weight, computed(w, "neg", [weight], dt.FP64))
    forth = does("add", start, does("mul", weight, apart))
    back = does("sub", end, does("mul", apart, does("sub", w.constant(1.0, dt.FP64), weight)))
    is_near = computed(w, "lt", [size, w.constant(0.5, dt.FP64)], dt.BOOL)
    return converted(w, chosen(w, is_near, forth, back), dtype)


def _function(name: str, *types: DataType, widened: DataType | None = None) -> Formula:
    """Return the formula of a function that the machine has for numbers of some types.

    What is `widened` goes through fp32, which gives the same bits: every number of that type has been tried.
    """

    def formula(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
        computes = dt.FP32 if dtype == widened else dtype
        if computes not in types:
            raise no_function(name, types, dtype)
        shown = element(computes)
        typing = f"{', '.join([shown] * len(numbers))} -> {shown}"
        return converted(w, w.number(f"pto.{name}", _as(w, numbers, computes), computes, typing), dtype)

    return formula


_POINTWISE: dict[str, Formula] = {
    **{name: _plain(name) for name in ("add", "sub", "mul", "shl", "shr")},
    **{name: _plain(word) for name, word in (("and_", "bit_and"), ("or_", "bit_or"), ("xor", "bit_xor"))},
    **{name: _plain(word) for name, word in (("maximum", "max"), ("minimum", "min"))},
    **{name: _plain(word) for name, word in (("addc", "add"), ("subc", "sub"))},
    "div": _guarded(_plain("div"), _plain("div")),
    "floor_divide": _guarded(_plain("floordiv"), _plain("floordiv")),
    "rem": _guarded(_plain("mod"), _plain("mod")),
    "fmod": _guarded(_left, lambda w, numbers, dtype: remainder(w, *numbers)),
    "neg": lambda w, numbers, dtype: computed(w, "neg", numbers, dtype),
    "not_": lambda w, numbers, dtype: computed(w, "invert", numbers, dtype),
    "abs": _sized, "sign": _signed, "square": _squared, "relu": _positive,
    **dict.fromkeys(("where", "sel", "sels"), _chosen),
    "fma": _fused, "lerp": _between,
    "pow": _function("pow", dt.FP32, dt.FP16), "recip": _over, "lrelu": _leaky,
    **{name: _function(name, dt.FP32, widened=dt.BF16) for name in ("sin", "cos")},
}  # fmt: skip


def _finite(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
    """Write whether zero times a float is zero, which is none of what is not finite."""
    (x,) = numbers
    zero = w.constant(0.0, x.dtype)
    return computed(w, "eq", [computed(w, "mul", [x, zero], x.dtype), zero], dt.BOOL)


_EXPANDED = {"max": "maximum", "min": "minimum"}
_FORMULAS = (
    _POINTWISE
    | {"isfinite": _finite}
    | {
        f"{axis}_expand_{word}": _POINTWISE[_EXPANDED.get(word, word)]
        for axis in ("row", "col")
        for word in ("add", "sub", "mul", "div", "max", "min")
    }
    | dict.fromkeys(("row_expand", "col_expand"), _spread)
)


def _alone(w: Writer, call: Call, given: Given) -> Tile:
    return _by_element(w, call, given, _FORMULAS[call.op.spec.name])


def _by_element(w: Writer, call: Call, given: Given, formula: Formula) -> Tile:
    """Write what an op makes of each element, where tiles meet others of one row or column."""
    shape, type_ = matrix(call)
    operands = [
        in_vec(w, each) if isinstance(each, Tile) else each
        for name, each in given.items()
        if isinstance(each, Tile | Number) and name not in SCRATCH
    ]
    tiles = [each for each in operands if isinstance(each, Tile)]
    refuse_meeting(call, tiles, shape)
    out = result(w, call, valid_of_all(w, tiles, shape))
    with w.counted(out.valid[0], "row") as row, w.counted(out.valid[1], "column") as column:
        numbers = [met_at(w, each, row, column) for each in operands]
        set_at(w, out, row, column, formula(w, numbers, kept(type_.dtype)))
    return bits_of(w, out) if type_.dtype == dt.BOOL else out


def _clamped(w: Writer, call: Call, given: Given) -> Tile:
    """Write each element, or the bound that it is beyond, the upper one last."""
    words = [word for word, bound in (("max", given["min"]), ("min", given["max"])) if bound is not None]

    def formula(w: Writer, numbers: list[Number], dtype: DataType) -> Number:
        made, *bounds = _as(w, numbers, dtype)
        for word, bound in zip(words, bounds, strict=True):
            made = computed(w, word, [made, bound], dtype)
        return made

    return _by_element(w, call, given, formula)


def _selected(w: Writer, call: Call, given: Given) -> Tile:
    """Write a selection by conditions, or by the bits of integers."""
    sides = [each for name, each in given.items() if isinstance(each, Tile) and name not in (*SCRATCH, "mask")]
    shape = matrix(call)[0]
    like = Tile("", dt.INT8, shape, valid_of_all(w, sides, shape))
    return _alone(w, call, {**given, "mask": conditions_of(w, call, given["mask"], like)})


ALONE.update({f"tile.{name}": _alone for name in _FORMULAS})
ALONE.update({"tile.sel": _selected, "tile.sels": _selected, "tile.clamp": _clamped})
