"""Movement cases: products, tiles from memory to memory, windows, padding, loads and stores."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy
from unit.pto.tiles.cases import EVERY, case, data, room, small, wide

np = cast("Any", numpy)
Array = Any


def product(a: Array, b: Array) -> Array:
    """Return a product, summed as the matrix unit sums: in f32, or in i32."""
    kind = np.int32 if a.dtype.kind == "i" else np.float32
    return a.astype(kind) @ b.astype(kind)


PAIRS = [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")]


@case(
    "product",
    PAIRS,
    of=("f16", "f32"),
    slack=4.0,
    a=small(32, 64, type="f16"),
    b=small(64, 32, type="f16"),
    o=room(32, 32),
)
def _product(a: Array, b: Array, o: Array) -> None:
    o[:] = product(a, b)


@case(
    "product_bias",
    PAIRS,
    of=("f16", "f32"),
    a=small(32, 64, type="f16"),
    b=small(64, 32, type="f16"),
    c=small(1, 32),
    o=room(64, 32),
)
def _product_bias(a: Array, b: Array, c: Array, o: Array) -> None:
    o[:32] = product(a, b) + c
    o[32:] = 2 * product(a, b) + c


@case(
    "vector_product",
    PAIRS,
    of=("f16", "f32"),
    a=small(1, 64, type="f16"),
    b=small(64, 32, type="f16"),
    c=small(1, 32),
    o=room(3, 32),
)
def _vector_product(a: Array, b: Array, c: Array, o: Array) -> None:
    row = product(a, b)
    o[0], o[1], o[2] = row, 2 * row, row + c


def _ragged(a: Array, b: Array, o: Array, m: int, d: int, n: int) -> None:
    o[:m, :n] = product(a[:m, :d], b[:d, :n])


for _m, _d, _n in ((16, 32, 32), (1, 32, 32), (7, 13, 29), (16, 1, 1), (3, 32, 5)):
    case("product_ragged", label=f"{_m}x{_d}x{_n}", a=small(16, 32), b=small(32, 32), o=room(16, 32), m=_m, d=_d, n=_n)(
        _ragged
    )


@case("through_memories", ("f32", "f16", "bf16", "i16", "i32", "ui32"), exact=True, a=data(32, 32), o=room(128, 32))
def _through_memories(a: Array, o: Array) -> None:
    o[:] = np.tile(a, (4, 1))


@case(
    "leaving_acc",
    a=data(16, 32, type="f16"),
    b=data(32, 16, type="f16"),
    o=room(48, 16),
    h=room(16, 16, type="f16"),
    p=room(16, 16, type="bf16"),
    slack=8.0,
)
def _leaving_acc(a: Array, b: Array, o: Array, h: Array, p: Array) -> None:
    sums = product(a, b)
    o[:] = np.concatenate([sums, np.maximum(sums, 0), -sums])
    h[:], p[:] = sums.astype(h.dtype), sums.astype(p.dtype)


@case("extracting", ("f32", "i32", "f16", "bf16", "i16"), exact=True, a=data(32, 32), o=room(32, 16), i=9)
def _extracting(a: Array, o: Array, i: int) -> None:
    o[:] = np.concatenate([a[3:11, 5:21], a[i : i + 8, i : i + 16], a[16:24, 8:24], a[i : i + 8, i : i + 16]])


@case(
    "inserting", ("f32", "i32", "f16", "bf16", "i16"), exact=True, a=data(32, 32), b=data(8, 16), o=room(128, 32), i=9
)
def _inserting(a: Array, b: Array, o: Array, i: int) -> None:
    o[:] = np.tile(a, (4, 1))
    for n, (row, col) in enumerate(((3, 5), (i, i), (16, 8), (i, i))):
        o[32 * n + row : 32 * n + row + 7, col : col + 13] = b[:7, :13]


def _joining(a: Array, b: Array, o: Array, c: int) -> None:
    o[:8] = np.concatenate([a, b], axis=1)
    o[8:] = 9
    o[8:, : c + 32] = np.concatenate([a[:, :c], b], axis=1)


for _cols in (0, 1, 17, 32):
    case("joining", label=str(_cols), exact=True, a=data(8, 32), b=data(8, 32), o=room(16, 64), c=_cols)(_joining)


@case("turning", EVERY, exact=True, a=data(16, 32), o=room(96, 16))
def _turning(a: Array, o: Array) -> None:
    o[:32] = o[32:64] = a.T
    o[64:85, :13] = a[:13, :21].T


def extremes(dtype: Any) -> tuple[Any, Any]:
    """Return the largest and the smallest finite number of a type."""
    if np.dtype(dtype).kind in "iu":
        return np.iinfo(dtype).max, np.iinfo(dtype).min
    most = float(cast("Any", ml_dtypes).finfo(dtype).max)
    return most, -most


@case("padding", EVERY, exact=True, a=data(8, 32), o=room(40, 32))
def _padding(a: Array, o: Array) -> None:
    most, least = extremes(a.dtype)
    for start, stop, pad in ((0, 8, 0), (8, 16, most), (16, 24, least), (24, 40, most)):
        o[start:stop] = np.array(pad).astype(o.dtype)
        o[start : start + 5, :19] = a[:5, :19]


def _padding_in_place(a: Array, o: Array, c: int) -> None:
    o[:] = np.array(extremes(a.dtype)[1]).astype(o.dtype)
    o[:, :c] = a[:, :c]


for _cols in (0, 1, 19, 32):
    case(
        "padding_in_place",
        ("f32", "f16", "i32", "i8"),
        label=str(_cols),
        exact=True,
        a=data(8, 32),
        o=room(8, 32),
        c=_cols,
    )(_padding_in_place)


def _resized(a: Array, o: Array, r: int, c: int) -> None:
    o[:r, :c] = a[:r, :c]
    o[16:32] = 0
    o[16 : 16 + r, :c] = a[:r, :c]
    o[32:48] = o[48:] = 2 * a
    for n in range(1, 5):
        o[48 : 48 + n, :n] += 100


for _rows, _cols in ((16, 32), (5, 19), (0, 0)):
    case("resized", label=f"{_rows}x{_cols}", a=small(16, 32), o=room(64, 32), r=_rows, c=_cols)(_resized)


@case("reshaping", a=data(8, 32), o=room(4, 64), u=room(8, 128, type="ui8"))
def _reshaping(a: Array, o: Array, u: Array) -> None:
    o[:] = a.reshape(4, 64) + np.float32(1)
    u[:] = o.view(np.uint8).reshape(8, 128)


def _windows(a: Array, o: Array, i: int) -> None:
    whole = a.copy()
    whole[4:12, 8:24] = o[:8, :16] = -a[4:12, 8:24]
    whole[i : i + 3, i : i + i] = o[8:11, :i] = 5
    o[16:32] = whole


for _at in (0, 1, 7):
    case("windows", label=str(_at), exact=True, a=data(16, 32), o=room(40, 32), i=_at)(_windows)


@case("elements", ("f32", "f16", "bf16"), exact=True, a=data(8, 16), o=room(16, 16), i=77)
@case("elements", ("i8", "i16", "i32", "i64", "ui8", "ui32"), a=data(8, 16), o=room(16, 16), i=77)
def _elements(a: Array, o: Array, i: int) -> None:
    rows, columns = a.ravel().copy(), a.T.ravel().copy()
    x, y = rows[19], columns[i]
    rows[i], columns[19] = x, y
    o[:8], o[8:] = rows.reshape(8, 16), columns.reshape(16, 8).T


def taken(flat: Array, shape: tuple[int, ...], strides: tuple[int, ...], at: int = 0) -> Array:
    """Return a strided window on a flat array, which writes through."""
    size = flat.dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat[at:], shape, [s * size for s in strides])


@case("ranks", EVERY, exact=True, a=data(1300), o=room(3000))
def _ranks(a: Array, o: Array) -> None:
    o[:64] = a[7:71]
    o[64:1088] = taken(a, (4, 8, 32), (300, 40, 1)).ravel()
    o[1088:2112] = taken(a, (2, 2, 8, 32), (512, 256, 32, 1)).ravel()
    taken(o, (2, 2, 8, 16), (300, 140, 17, 1), 2112)[:] = taken(a, (2, 2, 8, 16), (512, 128, 16, 1))


def _ranks_ragged(a: Array, o: Array, n: int, r: int) -> None:
    source, target = taken(a, (4, 4, 16), (100, 20, 1)), taken(o, (4, 4, 16), (90, 17, 1))
    for row in range(min(r, 4 * n)):
        target[row // 4, row % 4, :11] = 2 * source[row // 4, row % 4, :11]


for _n, _r in ((4, 16), (4, 9), (2, 16), (0, 16), (3, 0), (1, 3)):
    case("ranks_ragged", label=f"{_n}x{_r}", a=data(400), o=room(400), n=_n, r=_r)(_ranks_ragged)


@case(
    "fractals",
    ("f16", "bf16", "i16"),
    of="f16",
    a=small(4, 32, 16, type="f16"),
    o=room(32, 64, type="f16"),
    p=room(4, 32, 16, type="f16"),
)
def _fractals(a: Array, o: Array, p: Array) -> None:
    o[:] = a.transpose(1, 0, 2).reshape(32, 64)
    p[:] = wide(a) + wide(a)


@case("by_columns", EVERY, a=small(32, 16), o=room(32, 32))
def _by_columns(a: Array, o: Array) -> None:
    o[:16] = wide(a.T) + wide(a.T)
    o[16:].reshape(-1)[:] = a.ravel()


@case(
    "padded_loads",
    ("f32", "f16", "bf16", "i8", "i16", "i32", "ui8", "ui16", "ui32"),
    exact=True,
    a=data(8, 32),
    o=room(24, 32),
)
def _padded_loads(a: Array, o: Array) -> None:
    for n, pad in enumerate((0, *extremes(a.dtype))):
        o[8 * n : 8 * n + 8] = np.array(pad).astype(o.dtype)
        o[8 * n : 8 * n + 5, :19] = a[:5, :19]


def _padded_ragged(a: Array, o: Array, r: int, c: int) -> None:
    o[:] = np.array(extremes(a.dtype)[0]).astype(o.dtype)
    o[:r, :c] = a[:r, :c]


for _rows, _cols in ((8, 32), (5, 19), (0, 5), (3, 0)):
    case(
        "padded_loads_ragged",
        ("f32", "i16"),
        label=f"{_rows}x{_cols}",
        exact=True,
        a=data(8, 32),
        o=room(8, 32),
        r=_rows,
        c=_cols,
    )(_padded_ragged)


@case("sums_in_memory", ("f32", "i32"), grid=6, a=small(24, 16), o=small(8, 16))
def _sums_in_memory(a: Array, o: Array) -> None:
    parts = a.reshape(6, 4, 16).sum(0).astype(a.dtype)
    o[:4] += parts
    o[4:7, :9] += parts[:3, :9]


@case(
    "matches", ["f32", "f16", "i32"], x=small(8, 30, low=-3, high=3), k=1,
    p=room(8, 32, type="i32"), n=room(8, 8, type="i32"), q=room(8, 32, type="i32"), e=room(8, 8, type="i32"),
)  # fmt: skip
def _matches(x: Array, k: int, p: Array, n: Array, q: Array, e: Array) -> None:
    for places, counts, found, offset in ((p, n, x > k, 100), (q, e, x == k, 0)):
        before = np.zeros((8, 32), np.int32) if places is p else p
        places[:], counts[:] = before, 0
        for row, matching in enumerate(found):
            columns = np.flatnonzero(matching)
            places[row, : len(columns)], counts[row, 0] = offset + columns, len(columns)


@case("seen_as", x=data(8, 32), o=room(8, 32, type="i32"), h=room(8, 32, type="ui16"), s=room(8, 32), at=512)
def _seen_as(x: Array, o: Array, h: Array, s: Array, at: int) -> None:
    o[:] = x.view(np.int32) + 1
    h[:] = o.view(np.uint16).reshape(-1)[:256].reshape(8, 32)
    s[:] = 0
    s[:4] = o.view(np.float32)[4:]
