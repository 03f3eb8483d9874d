"""Elementwise cases: arithmetic, functions, folds, meetings, casts and choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy
from unit.pto.tiles.cases import EVERY, FLOATS, INTEGERS, SIGNED, UNSIGNED, Buffer, case, data, room, small, wide

np = cast("Any", numpy)
Array = Any
Binary = Callable[[Array, Array], Array]


def put(o: Array, *values: Array) -> None:
    """Write values one under the other."""
    at = 0
    for value in values:
        rows, cols = value.shape
        o[at : at + rows, :cols] = value.astype(o.dtype)
        at += rows


@case("arithmetic", EVERY, a=data(8, 64), b=data(8, 64), o=room(40, 64))
def _arithmetic(a: Array, b: Array, o: Array) -> None:
    a, b = wide(a), wide(b)
    put(o, a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b))


@case("division", FLOATS, a=data(8, 64), b=data(8, 64, low=0.5), o=room(32, 64), s=2.5)
def _division(a: Array, b: Array, o: Array, s: float) -> None:
    a, b = wide(a), wide(b)
    put(o, a / b, a / b, a / np.float32(s), np.float32(s) / b)


@case(
    "division",
    ("i16", "i32", "ui32"),
    a=small(8, 64, low=-900, high=900),
    b=small(8, 64, low=2, high=30),
    o=room(32, 64),
    s=7,
)
def _whole_division(a: Array, b: Array, o: Array, s: int) -> None:
    put(o, *(np.trunc(x / y) for x, y in ((a, b), (a, b), (a, s), (s, b))))


@case("with_number", FLOATS, a=data(8, 64), o=room(40, 64), s=1.25)
@case("with_number", SIGNED, a=data(8, 64), o=room(40, 64), s=-3)
@case("with_number", UNSIGNED, a=data(8, 64), o=room(40, 64), s=3)
def _with_number(a: Array, o: Array, s: float) -> None:
    a, n = wide(a), np.array(s).astype(wide(a).dtype)
    put(o, a + n, a - n, a * n, np.maximum(a, n), np.minimum(a, n))


@case(
    "remainders",
    ("f32", "f16"),
    a=data(8, 64, low=-50, high=50),
    b=data(8, 64, low=1),
    o=room(32, 64),
    s=-2.5,
    label="up",
)
@case(
    "remainders",
    ("f32",),
    a=data(8, 64, low=-50, high=50),
    b=data(8, 64, low=-4, high=-1),
    o=room(32, 64),
    s=2.5,
    label="down",
)
def _float_remainders(a: Array, b: Array, o: Array, s: float) -> None:
    a, b, n = wide(a), wide(b), np.float32(s)
    put(o, np.fmod(a, b), np.fmod(a, n), np.remainder(a, b), np.fmod(a, n))


@case("remainders", ("i16", "i32"), a=data(8, 64), b=small(8, 64, low=3, high=50), o=room(32, 64), s=-7, label="up")
@case("remainders", ("i16", "i32"), a=data(8, 64), b=small(8, 64, low=-50, high=-3), o=room(32, 64), s=7, label="down")
@case("remainders", ("ui16",), a=data(8, 64), b=small(8, 64, low=3, high=50), o=room(32, 64), s=7)
def _whole_remainders(a: Array, b: Array, o: Array, s: int) -> None:
    n = np.array(s).astype(a.dtype)
    put(o, np.fmod(a, b), np.fmod(a, n), np.remainder(a, b), np.remainder(a, n))


@case("functions", FLOATS, a=data(8, 64, low=0.1), o=room(72, 64))
def _functions(a: Array, o: Array) -> None:
    a = wide(a)
    put(o, np.exp(a), np.log(a), np.sqrt(a), 1 / np.sqrt(a), 1 / a, np.abs(a), -a, np.maximum(a, 0), 1 / np.sqrt(a))


@case("slopes", FLOATS, a=data(8, 64), b=data(8, 64), o=room(24, 64), s=0.125)
def _slopes(a: Array, b: Array, o: Array, s: float) -> None:
    a, b = wide(a), wide(b)
    put(o, np.where(a > 0, a, a * np.float32(s)), np.where(a > 0, a, a * b), np.maximum(a, 0))


@case("chains", FLOATS, a=small(8, 64), b=small(8, 64), c=small(8, 64), o=room(32, 64), s=1.5)
@case("chains", INTEGERS, a=data(8, 64), b=data(8, 64), c=data(8, 64), o=room(32, 64), s=3)
def _chains(a: Array, b: Array, c: Array, o: Array, s: float) -> None:
    a, b, c = wide(a), wide(b), wide(c)
    n = np.array(s).astype(a.dtype)
    put(o, a + b + c, a - b + c, a + n + c, a - n + c)


@case("axpy", a=data(8, 64), h=data(8, 64, type="f16"), o=data(16, 64), s=0.75)
def _axpy(a: Array, h: Array, o: Array, s: float) -> None:
    o += np.float32(s) * np.concatenate([a, h.astype(np.float32)])


@case(
    "bits", INTEGERS, of="i32", a=data(8, 64, type="i32"), b=data(8, 64, type="i32"), o=room(56, 64, type="i32"), s=0x55
)
def _bits(a: Array, b: Array, o: Array, s: int) -> None:
    n = np.array(s).astype(a.dtype)
    put(o, a & b, a | b, a ^ b, ~a, a & n, a | n, a ^ n)


@case(
    "shifts",
    INTEGERS,
    of="i32",
    a=data(8, 64, type="i32"),
    b=small(8, 64, type="i32", low=0, high=70),
    o=room(32, 64, type="i32"),
    s=3,
)
def _shifts(a: Array, b: Array, o: Array, s: int) -> None:
    most = a.dtype.itemsize * 8 - 1
    counts, n = b & np.array(most).astype(a.dtype), np.array(s).astype(a.dtype)
    put(o, a << counts, a >> counts, a << n, a >> n)


@case("signs", SIGNED, of="i32", a=data(8, 64, type="i32"), o=room(24, 64, type="i32"))
def _signs(a: Array, o: Array) -> None:
    put(o, np.abs(a), -a, np.maximum(a, 0))


@case("filling", ("i16", "i32", "ui16", "ui32"), of="i32", o=room(32, 16, type="i32"), s=5)
def _filling(o: Array, s: int) -> None:
    o[:8] = s
    o[8:13, :11] = 7
    o[16] = s + np.arange(16)
    o[17] = (s - np.arange(16)).astype(o.dtype)
    o[18:20, :10] = 100 + np.arange(20).reshape(2, 10)
    o[20:28] = np.arange(128).reshape(8, 16)


@case("partly_valid", EVERY, a=data(8, 32), b=data(8, 32), o=room(16, 32))
def _partly_valid(a: Array, b: Array, o: Array) -> None:
    total = (wide(a) + wide(b)).astype(a.dtype)
    o[:8] = a
    o[:5, :19] = o[8:13, :19] = total[:5, :19]


def _runtime(a: Array, b: Array, o: Array, r: int, c: int) -> None:
    total = (a + b)[:r, :c]
    o[:r, :c], o[16 : 16 + r, :c] = total, 2 * total
    o[32 : 32 + r] = np.exp(a[:r])


for _rows, _cols in ((16, 32), (5, 19), (1, 1), (0, 7), (7, 0)):
    case("runtime_valid", label=f"{_rows}x{_cols}", a=data(16, 32), b=data(16, 32), o=room(48, 32), r=_rows, c=_cols)(
        _runtime
    )


def folded(x: Array, axis: int) -> list[Array]:
    x = wide(x)
    kind = {"dtype": x.dtype}
    return [np.add.reduce(x, axis, **kind), np.max(x, axis), np.min(x, axis), np.multiply.reduce(x, axis, **kind)]


@case("row_folds", FLOATS, slack=4.0, a=data(16, 32, low=0.5, high=1.5), o=room(16, 8))
@case("row_folds", INTEGERS, a=data(16, 32), o=room(16, 8))
def _row_folds(a: Array, o: Array) -> None:
    for n, column in enumerate(folded(a[:13, :27], 1)):
        o[:13, n] = o[:13, 4 + n] = column.astype(o.dtype)


@case("col_folds", FLOATS, slack=4.0, a=data(16, 32, low=0.5, high=1.5), o=room(8, 32))
@case("col_folds", INTEGERS, a=data(16, 32), o=room(8, 32))
def _col_folds(a: Array, o: Array) -> None:
    for n, row in enumerate(folded(a[:13, :27], 0)):
        o[n, :27] = o[4 + n, :27] = row.astype(o.dtype)


@case(
    "row_positions",
    ("f32", "f16", "i16", "ui16", "i8", "bf16"),
    a=small(8, 48),
    o=room(8, 2, type="i32"),
    u=room(8, 2, type="ui32"),
)
def _row_positions(a: Array, o: Array, u: Array) -> None:
    a = a[:7, :41]
    for out in (o, u):
        out[:7, 0], out[:7, 1] = np.argmax(a, 1), np.argmin(a, 1)


@case(
    "col_positions",
    ("f32", "f16", "i16", "ui16", "i8", "bf16"),
    a=small(8, 48),
    o=room(2, 48, type="i32"),
    u=room(2, 48, type="ui32"),
)
def _col_positions(a: Array, o: Array, u: Array) -> None:
    a = a[:7, :41]
    for out in (o, u):
        out[0, :41], out[1, :41] = np.argmax(a, 0), np.argmin(a, 0)


def odd(*shape: int) -> Buffer:
    """Return random integers of which none is zero."""
    return Buffer(lambda source: data(*shape).make(source) | 1, "f32")


def met(a: Array, b: Array, o: Array) -> None:
    a, b = wide(a), wide(b)
    put(o, a + b, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b), np.exp(a - b))


@case("row_meetings", FLOATS, a=data(8, 64), b=data(8, 1, low=0.5), o=room(56, 64))
@case("row_meetings_blocks", FLOATS, a=data(8, 64), b=data(8, 8, low=0.5), o=room(56, 64))
def _row_meetings(a: Array, b: Array, o: Array) -> None:
    met(a, b[:, :1], o)


@case("row_meetings_groups", FLOATS, a=data(8, 64), b=data(8, 8, low=0.5), o=room(56, 64))
def _row_groups(a: Array, b: Array, o: Array) -> None:
    met(a, np.repeat(b, 8, axis=1), o)


@case("col_meetings", FLOATS, a=data(8, 64), b=data(1, 64, low=0.5), o=room(56, 64))
def _col_meetings(a: Array, b: Array, o: Array) -> None:
    met(a, b, o)


@case(
    "whole_quotients",
    ("i8", "i16", "i32", "ui8", "ui16", "ui32"),
    exact=True,
    a=data(8, 64),
    b=odd(8, 32),
    c=small(1, 64, low=2, high=30),
    o=room(24, 64),
)
def _whole_quotients(a: Array, b: Array, c: Array, o: Array) -> None:
    put(o, *(np.trunc(a / y) for y in (b[:, :1], np.repeat(b[:, :8], 8, axis=1), c)))


@case("expansions", EVERY, exact=True, a=data(8, 32), o=room(16, 32))
def _expansions(a: Array, o: Array) -> None:
    o[:6, :29] = a[:6, :1]
    o[8:14, :29] = a[:1, :29]


# casts

WRAPPED = {("f16", "ui8"), ("f16", "i8"), ("f16", "i16"), ("f32", "i16"), ("i64", "i32"), ("i32", "i16")}
WORDS = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}
ROUNDED: list[Callable[[Array], Array]] = [
    np.rint,
    np.rint,
    lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.rint,
]


def name_of(array: Array) -> str:
    kind = {"i": "i", "u": "ui"}.get(array.dtype.kind)
    return f"{kind}{array.dtype.itemsize * 8}" if kind else WORDS.get(array.dtype, "bf16")


def cast_to(x: Array, dtype: Any, how: Callable[[Array], Array], saturates: bool) -> Array:
    """Return numbers in another type; integers beyond it stop at its limits or lose their high bits."""
    is_whole = np.dtype(dtype).kind in "iu"
    if x.dtype.kind not in "iu":
        x = x.astype(np.float64)
        if not is_whole:
            most = float(cast("Any", ml_dtypes).finfo(dtype).max)
            return (np.clip(x, -most, most) if saturates else x).astype(np.float32).astype(dtype)
        whole = how(x)
    elif not is_whole:
        return x.astype(dtype)
    else:
        whole = x
    if saturates:
        limits = np.iinfo(dtype)
        inside = np.clip(whole, float(limits.min), float(limits.max)) if whole.dtype.kind == "f" else whole
        return np.array([max(limits.min, min(limits.max, int(n))) for n in inside.ravel()], dtype).reshape(x.shape)
    return whole.astype(np.int64).astype(dtype)


def _casts(a: Array, o: Array) -> None:
    wraps = (name_of(a), name_of(o)) in WRAPPED
    saturation = [not wraps] * 6 + [True, False]
    put(o, *(cast_to(a, o.dtype, how, sat) for how, sat in zip(ROUNDED, saturation, strict=True)))


REACH = {"f32": 40000.0, "f16": 300.0, "bf16": 300.0}
for _come in EVERY:
    for _go in EVERY:
        if _come != _go:
            _reach = REACH.get(_come, 1.0)
            case(
                "casts",
                [(_come, _go)],
                of=("f32", "i32"),
                a=data(8, 64, low=-_reach, high=_reach),
                o=room(64, 64, type="i32"),
            )(_casts)


@case(
    "casts", [("f32", "f32")], of=("f32", "i32"), exact=True, a=data(8, 64, low=-9, high=9), o=room(64, 64, type="i32")
)
def _whole_numbers(a: Array, o: Array) -> None:
    put(o, *(how(a) for how in ROUNDED))


COMPARED: list[Binary] = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


@case("comparisons", ("f32", "f16", "i32", "i16"), a=small(8, 64), b=small(8, 64), o=room(96, 32, type="ui8"), s=1)
def _comparisons(a: Array, b: Array, o: Array, s: float) -> None:
    mask = np.zeros((8, 32), np.uint8)
    for n, how in enumerate(COMPARED):
        o[8 * n : 8 * n + 8, :8] = mask[:, :8] = np.packbits(how(a, b), axis=1, bitorder="little")
    for n, how in enumerate(COMPARED):
        width = 64 if a.dtype.itemsize == 4 else 128  # of a row of bits, in chunks of 16 bytes
        bits = np.zeros((8, width), bool)
        bits[:, :64] = how(a, s)
        mask.reshape(-1)[:width] = np.packbits(bits, bitorder="little")
        o[48 + 8 * n : 56 + 8 * n, :8] = mask[:, :8]


@case("selections", EVERY, exact=True, a=data(8, 64), b=data(8, 64), m=data(8, 32, type="ui8"), o=room(24, 64), s=2)
def _selections(a: Array, b: Array, m: Array, o: Array, s: float) -> None:
    bits = np.unpackbits(m, axis=1, bitorder="little")[:, :64].astype(bool)
    put(o, np.where(bits, a, b), np.where(bits, a, np.array(s).astype(a.dtype)), np.where(a > b, b, a))


@case("partial", EVERY, a=data(8, 32), b=data(8, 32), o=room(64, 32))
def _partial(a: Array, b: Array, o: Array) -> None:
    x, y = wide(a), wide(b)
    values: list[Array] = []
    for how in (np.add, np.multiply, np.maximum, np.minimum):
        whole = x.copy()
        whole[:5, :20] = how(x, y)[:5, :20]
        values += [whole, whole]
    put(o, *values)
