"""Scalar cases: arithmetic on numbers, gathers, scatters, sorts and order."""

from __future__ import annotations

from typing import Any, cast

import numpy
from unit.pto.tiles.cases import Buffer, case, data, room, small

np = cast("Any", numpy)
Array = Any


def _whole(value: int) -> int:
    """Return the lowest 32 bits of a number, with a sign."""
    return (value + 2**31) % 2**32 - 2**31


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _scalars(o: Array, p: Array, x: int, y: int, s: int) -> None:
    u, v = x % 2**32, y % 2**32
    results = [
        *(x + y, x - y, x * y, _truncated(x, y), u // v, x - y * _truncated(x, y), u % v, -(-x // y), -(-u // v)),
        *(x // y, x & y, x | y, x ^ y, x << s, x >> s, u >> s, max(x, y), max(u, v), min(x, y), min(u, v)),
    ]
    o[: len(results)] = [_whole(n) for n in results]
    holds = [x == y, x != y, x < y, x <= y, x > y, x >= y, u < v, u <= v, u > v, u >= v]
    p[:10] = holds
    p[10], p[11], p[12] = _whole(x * x >> 32), _whole(u >> 16), (x + 128) % 256 - 128
    p[16] = x < y and not u < v
    p[13], p[14], p[15] = x if x < y else y, -1 if (x < y) != (u < v) else 0, _whole(x + y)


for _x, _y, _s in ((7, 2, 3), (-7, 2, 1), (7, -2, 0), (-7, -2, 31), (2**31 - 1, 3, 4), (-(2**31), 7, 5), (300, 300, 2)):
    case(
        "scalars",
        label=f"{_x},{_y}",
        o=room(24, type="i32"),
        p=room(24, type="i32"),
        x=_x,
        y=_y,
        s=_s,
    )(_scalars)


def _float_scalars(o: Array, p: Array, x: float, y: float) -> None:
    a, b = np.float32(x), np.float32(y)
    o[:9] = [
        a + b,
        a - b,
        a * b,
        a / b,
        np.fmod(a, b),
        np.maximum(a, b),
        np.minimum(a, b),
        np.fmax(a, b),
        np.fmin(a, b),
    ]
    o[9], o[10], o[11] = -a, np.float32(np.float16(a)), _brain(a)
    is_number = not (np.isnan(a) or np.isnan(b))
    plain = [a == b, a > b, a >= b, a < b, a <= b]
    p[:16] = [
        *(bool(h) and is_number for h in plain), bool(a != b) and is_number, is_number,
        *(bool(h) or not is_number for h in plain), bool(a != b) or not is_number, not is_number, True, False,
    ]  # fmt: skip


def _brain(a: Any) -> Any:
    """Return a float rounded to its upper half."""
    bits = int(np.array(a, np.float32).view(np.uint32))
    if np.isnan(a):
        return np.float32(np.nan)
    return np.array((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000, np.uint32).view(np.float32)


for _a, _b in ((1.5, -0.75), (-7.25, 2.0), (3.0, 3.0), (float("nan"), 1.0), (2.0, float("nan")), (1e6, -3.5)):
    case("float_scalars", label=f"{_a},{_b}", o=room(16), p=room(20, type="i32"), x=_a, y=_b)(_float_scalars)


def _converted(o: Array, p: Array, x: float, n: int) -> None:
    o[0], o[1] = int(x), int(abs(x))
    p[0], p[1] = np.float32(n), np.float32(n % 2**32)
    p[max(2, min(5, int(x) % 2**32))] = np.float32(n)


for _f, _n in ((3.75, 9), (-2.5, -9), (100.0, -(2**31))):
    case("converted_scalars", label=f"{_f},{_n}", o=room(4, type="i32"), p=room(8), x=_f, n=_n)(_converted)


def places(*shape: int, below: int, type: str = "i32", step: int = 1) -> Buffer:
    """Return random indices."""
    return Buffer(lambda source: (source[0].integers(0, below, shape) * step).astype(source[1]), type)


def shuffled(*shape: int, type: str = "i32") -> Buffer:
    """Return every index once."""
    return Buffer(lambda source: source[0].permutation(int(np.prod(shape))).reshape(shape).astype(source[1]), type)


@case(
    "gathers",
    exact=True,
    a=data(8, 32),
    i=places(8, 32, below=256),
    b=places(8, 4, below=32, step=32, type="ui32"),
    o=room(48, 32),
)
def _gathers(a: Array, i: Array, b: Array, o: Array) -> None:
    o[:8] = a.ravel()[i]
    o[8:16, :16], o[16:24, :8] = a[:, 1::2], a[:, 2::4]
    o[24:32] = a.reshape(-1, 8)[b // 32].reshape(8, 32)
    o[32:40] = 0
    for row in range(8):
        for column in range(32):
            o[32 + (i[row, column] & 7), column] = a[row, column]


@case("memory_gathers", exact=True, a=data(1, 256), i=shuffled(8, 32), o=room(8, 32), p=room(1, 256))
def _memory_gathers(a: Array, i: Array, o: Array, p: Array) -> None:
    o[:] = a[0, i]
    p[0, i] = a[0, i]


@case(
    "sorting",
    exact=True,
    a=small(1, 128, low=-9, high=9),
    i=shuffled(1, 128, type="ui32"),
    o=room(1, 256),
    m=room(1, 256),
)
def _sorting(a: Array, i: Array, o: Array, m: Array) -> None:
    runs = [np.argsort(-a[0, s : s + 32], kind="stable") + s for s in range(0, 128, 32)]
    order = np.concatenate(runs)
    o[0, ::2], o.view(np.uint32)[0, 1::2] = a[0, order], i[0, order]
    merged = order[np.argsort(-a[0, order], kind="stable")]
    m[0, ::2], m.view(np.uint32)[0, 1::2] = a[0, merged], i[0, merged]


def _shared_indices(a: Array, i: Array, o: Array, p: Array, n: int) -> None:
    for out, indices in ((o, np.repeat(i[:1], 4, axis=0)), (p, i if n == 4 else np.repeat(i[:1], 4, axis=0))):
        for row in range(4):
            order = np.concatenate([np.argsort(-a[row, s : s + 32], kind="stable") + s for s in (0, 32)])
            out[row, ::2], out.view(np.uint32)[row, 1::2] = a[row, order], indices[row, order]


for _rows in (1, 4):
    case(
        "shared_indices",
        exact=True,
        label=f"{_rows}",
        a=small(4, 64, low=-9, high=9),
        i=shuffled(4, 64, type="ui32"),
        o=room(4, 128),
        p=room(4, 128),
        n=_rows,
    )(_shared_indices)


@case("ordered", a=data(8, 16), o=room(8, 16))
def _ordered(a: Array, o: Array) -> None:
    o[:] = a + np.float32(1)
