"""Program cases: tiles that share bytes, control, blocks, and whole kernels."""

from __future__ import annotations

from typing import Any, cast

import numpy
from unit.pto.tiles.cases import case, data, room, small
from unit.pto.tiles.movement_cases import extremes, product, taken

np = cast("Any", numpy)
Array = Any


# shared bytes


@case("column_as_row", ("f32", "f16"), a=small(8, 16), o=room(9, 8))
def _column_as_row(a: Array, o: Array) -> None:
    sums = a.sum(1)
    o[0] = sums
    o[1:] = sums[:, None] / 2


@case("matrix_as_row", a=small(8, 128), o=room(3, 1024))
def _matrix_as_row(a: Array, o: Array) -> None:
    row = a.ravel()
    o[0], o[1], o[2] = row, row - row.sum(), row.sum() - row


@case("overlapping", a=data(8, 16, type="i32"), o=room(16, 16, type="i32"), p=room(8, 32, type="i16"))
def _overlapping(a: Array, o: Array, p: Array) -> None:
    memory = np.zeros(1024, np.uint8)
    first, second = memory[:512].view(np.int32), memory[256:768].view(np.int32)
    halves = memory[128:640].view(np.int16)
    first[:] = a.ravel()
    second[:] = first + 1
    o[:8] = first.reshape(8, 16)
    halves[:] = halves + halves
    o[8:], p[:] = second.reshape(8, 16), halves.reshape(8, 32)


@case("shifted_in_place", a=data(8, 16, type="i32"), o=room(12, 16, type="i32"))
def _shifted_in_place(a: Array, o: Array) -> None:
    memory = np.zeros(192, np.int32)
    memory[:128] = a.ravel()
    memory[32:160] = memory[:128] + 100
    memory[:128] = memory[32:160].copy()
    memory[16:144] = memory[:128].copy()
    o[:] = memory.reshape(12, 16)


def boxed(a: Array, box: tuple[int, int], by_rows: bool, inside_by_rows: bool) -> Array:
    """Return the elements of a matrix in the order its boxes lie."""
    rows, cols = a.shape
    parts = a.reshape(rows // box[0], box[0], cols // box[1], box[1])
    outer, inner = ((0, 2) if by_rows else (2, 0)), ((1, 3) if inside_by_rows else (3, 1))
    return parts.transpose(*outer, *inner).reshape(rows, cols)


@case(
    "boxes_as_bytes",
    ("f16", "bf16", "i16"),
    of="f16",
    exact=True,
    a=data(32, 32, type="f16"),
    o=room(160, 32, type="f16"),
)
def _boxes_as_bytes(a: Array, o: Array) -> None:
    orders = [(False, True), (True, True), (True, False), (False, False)]
    o[:128] = np.concatenate([boxed(a, (16, 16), by_rows, inside) for by_rows, inside in orders])
    o[128:] = a.T.reshape(32, 32)


@case("boxes_as_bytes", ("f32", "i8"), of="f16", exact=True, a=data(32, 32, type="f16"), o=room(160, 32, type="f16"))
def _narrow_boxes(a: Array, o: Array) -> None:
    short = 32 // a.dtype.itemsize
    by_rows, by_columns = (16, short), (short, 16)
    o[:32], o[32:64] = boxed(a, by_rows, False, True), boxed(a, by_rows, True, True)
    o[64:96], o[96:128] = boxed(a, by_columns, True, False), boxed(a, by_columns, False, False)
    o[128:] = a.T.reshape(32, 32)


@case("large_boxes", a=small(32, 32, type="f16"), b=small(32, 32, type="f16"), o=room(32, 32))
def _large_boxes(a: Array, b: Array, o: Array) -> None:
    o[:] = boxed(product(a, b), (16, 16), False, True)


def _ping_pong(a: Array, o: Array, n: int) -> None:
    parts = a.reshape(8, 4, 32)
    o[:4] = parts[:n].sum(0)
    o[4:12] = 0
    for turn in range(n):
        side = 4 + 4 * (turn % 2)
        o[side : side + 4] = parts[turn]


for _n in (0, 1, 2, 7, 8):
    case("ping_pong", label=str(_n), a=small(32, 32), o=room(33, 32), n=_n)(_ping_pong)


# control


def _carried_numbers(a: Array, o: Array, n: int) -> None:
    x, y = 0, 1
    for _ in range(n):
        x, y = y, x + y
    o[:] = a[0, :n].sum()
    o[0, 1], o[0, 2] = x, y


for _n in (0, 1, 9, 16):
    case("carried_numbers", label=str(_n), a=small(1, 16, type="i32"), o=room(1, 8, type="i32"), n=_n)(_carried_numbers)


def _carried_tiles(a: Array, b: Array, o: Array, n: int) -> None:
    x, y = a.copy(), b.copy()
    for _ in range(n):
        x, y = y, x + y
    o[:8], o[8:] = x, y


for _n in (0, 1, 2, 5):
    case("carried_tiles", label=str(_n), a=small(8, 16), b=small(8, 16), o=room(16, 16), n=_n)(_carried_tiles)


def _chosen_tile(a: Array, b: Array, o: Array, n: int) -> None:
    a, b = (-a * 3, b) if n < 5 else (a, b * 3)
    o[:] = np.concatenate([a if n < 5 else b, a, b])


for _n in (4, 5):
    case("chosen_tile", label=str(_n), a=small(8, 16), b=small(8, 16), o=room(24, 16), n=_n)(_chosen_tile)


def _branches(a: Array, o: Array, n: int) -> None:
    x = a * 2 if n % 2 == 0 else -(a + 10) if n > 4 else a + 10
    o[:] = x + 1 if n > 4 else x


for _n in (2, 3, 6, 7):
    case("branches", label=str(_n), a=small(8, 16), o=room(8, 16), n=_n)(_branches)


def _switched(a: Array, o: Array, n: int) -> None:
    by, place = {3: (-10, 8), -1: (4, 1)}.get(n, (1, 0))
    o[:] = a * by + 1
    o.reshape(-1)[place] = 2


for _n in (3, -1, 0, 7):
    case("switched", label=str(_n), a=small(8, 16), o=room(8, 16), n=_n)(_switched)


def _repeating(a: Array, o: Array, c: int) -> None:
    row, turns = a.copy(), 0
    while row[0, 0] < 100 and turns < c:
        row, turns = row + row, turns + 1
    row[0, 15] = turns
    o[:] = row


for _c in (0, 3, 50):
    case("repeating", label=str(_c), a=small(1, 16, low=3, high=9), o=room(1, 16), c=_c)(_repeating)


@case("helpers", a=small(8, 16), b=small(8, 16), o=room(16, 16), s=0.5)
def _helpers(a: Array, b: Array, o: Array, s: float) -> None:
    b = b * (2 * s)
    a = a + b
    a = a * s
    o[:8], o[8:] = a, b + a


@case("sections", a=small(16, 16, type="f16"), b=small(16, 16, type="f16"), o=room(16, 16))
def _sections(a: Array, b: Array, o: Array) -> None:
    o[:] = np.maximum(product(a, b), 0)


def _blocks(a: Array, o: Array, n: int) -> None:
    o[:n] = 2 * a[:n]


for _n, _grid in ((64, 1), (61, 3), (61, 20), (5, 4), (0, 2)):
    case("blocks", label=f"{_n}on{_grid}", grid=_grid, a=data(64, 32), o=room(64, 32), n=_n)(_blocks)


# whole kernels


def _softmax(a: Array, o: Array, c: int) -> None:
    x = np.exp(a[:, :c] - a[:, :c].max(1, keepdims=True))
    o[:, :c] = x / x.sum(1, keepdims=True)


for _c in (64, 50, 1):
    case("softmax", label=str(_c), a=data(8, 64), o=room(8, 64), c=_c)(_softmax)


@case(
    "long_product",
    slack=20.0,
    a=data(32, 2048, type="bf16", low=-1, high=1),
    b=data(2048, 32, type="bf16", low=-1, high=1),
    o=room(32, 32),
)
def _long_product(a: Array, b: Array, o: Array) -> None:
    o[:] = a.astype(np.float64) @ b.astype(np.float64)


@case(
    "attention_step",
    slack=50.0,
    q=data(16, 32, type="f16"),
    k=data(32, 32, type="f16"),
    v=data(32, 32, type="f16"),
    m=data(16, 1),
    l=data(16, 1, low=1.0, high=9.0),
    o=data(16, 32),
    s=0.17677669,
)
def _attention_step(q: Array, k: Array, v: Array, m: Array, l: Array, o: Array, s: float) -> None:  # noqa: E741
    scores = product(q, k.T) * np.float32(s)
    most = np.maximum(m, scores.max(1, keepdims=True))
    factor, weights = np.exp(m - most), np.exp(scores - most)
    m[:], l[:] = most, l * factor + weights.sum(1, keepdims=True)
    o[:] = o * factor + product(weights.astype(np.float16), v)


def _projection(x: Array, w: Array, o: Array, m: int) -> None:
    o[:m] = product(x[:m], w).astype(o.dtype)


for _m in (1, 5, 16):
    case(
        "projection",
        label=str(_m),
        grid=3,
        slack=2.0,
        x=data(16, 256, type="bf16"),
        w=data(256, 96, type="bf16"),
        o=room(16, 96, type="bf16"),
        m=_m,
    )(_projection)


@case("layer_norm", a=data(8, 64), g=data(1, 64), b=data(1, 64), o=room(8, 64), e=1e-5, slack=5.0)
def _layer_norm(a: Array, g: Array, b: Array, o: Array, e: float) -> None:
    x = a - a.mean(1, keepdims=True)
    o[:] = x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(e)) * g + b


@case("gelu", a=data(16, 64), o=room(16, 64))
def _gelu(a: Array, o: Array) -> None:
    o[:] = 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


# corners


@case("padded_ranks", ("f32", "i16"), exact=True, a=data(200), o=room(8, 16))
def _padded_ranks(a: Array, o: Array) -> None:
    o[:] = np.array(extremes(a.dtype)[0]).astype(o.dtype)
    o[:6, :13] = taken(a, (2, 3, 13), (64, 20, 1)).reshape(6, 13)


@case(
    "ragged_fractals",
    exact=True,
    a=data(4, 32, 16, type="f16"),
    o=room(32, 64, type="f16"),
    p=room(4, 32, 16, type="f16"),
)
def _ragged_fractals(a: Array, o: Array, p: Array) -> None:
    whole = a.transpose(1, 0, 2).reshape(32, 64)
    o[:] = 0
    o[:27, :50] = whole[:27, :50]
    for group in range(4):
        p[group, :27, : max(0, min(16, 50 - 16 * group))] = a[group, :27, : max(0, min(16, 50 - 16 * group))]


@case("sums_by_rank", ("f32", "i32"), a=small(8, 16), o=small(200))
def _sums_by_rank(a: Array, o: Array) -> None:
    taken(o, (2, 4, 16), (100, 20, 1))[:] += a.reshape(2, 4, 16)


@case("other_sign", a=data(8, 16, type="ui32"), o=room(8, 16, type="i32"))
def _other_sign(a: Array, o: Array) -> None:
    o[:] = a.view(np.int32) >> 1


def _ragged_masks(a: Array, b: Array, o: Array, u: Array, r: int, c: int) -> None:
    o[:r, :c] = np.minimum(a, b)[:r, :c]
    o[8:15, :45] = np.maximum(a, b)[:7, :45]
    u[:] = 0
    u[:r, : (c + 7) // 8] = np.packbits((a < b)[:r, :c], axis=1, bitorder="little")


for _r, _c in ((8, 64), (3, 13), (1, 1), (0, 5), (5, 0)):
    case(
        "ragged_masks",
        label=f"{_r}x{_c}",
        a=small(8, 64),
        b=small(8, 64),
        o=room(16, 64),
        u=room(8, 32, type="ui8"),
        r=_r,
        c=_c,
    )(_ragged_masks)


@case("wide_masks", exact=True, a=data(2, 512), b=data(2, 512), o=room(2, 512))
def _wide_masks(a: Array, b: Array, o: Array) -> None:
    o[:] = np.minimum(a, b)


def _resized_elsewhere(a: Array, o: Array, n: int) -> None:
    rows, cols = (3, 5) if n < 5 else (8, 16)
    o[:rows, :cols] = a[:rows, :cols]
    o[8:10, :9] = -a[:2, :9]


for _n in (4, 5):
    case("resized_elsewhere", label=str(_n), a=data(8, 16), o=room(16, 16), n=_n)(_resized_elsewhere)


def _repeating_tiles(a: Array, b: Array, o: Array, n: int) -> None:
    for _ in range(n):
        a, b = b, a + b
    o[:] = a


for _n in (0, 1, 4):
    case("repeating_tiles", label=str(_n), a=small(8, 16), b=small(8, 16), o=room(8, 16), n=_n)(_repeating_tiles)


def _helper_tiles(a: Array, o: Array, n: int) -> None:
    o[:] = a * 2 ** (n + 1)


for _n in (0, 3):
    case("helper_tiles", label=str(_n), a=data(8, 16), o=room(8, 16), n=_n)(_helper_tiles)


@case("nested_windows", a=data(8, 16), o=room(16, 32))
def _nested_windows(a: Array, o: Array) -> None:
    o[:] = 1
    o[3:11, 7:23] = a


@case("nothing_valid", a=data(8, 16), o=room(8, 16))
def _nothing_valid(a: Array, o: Array) -> None:
    """Everything stays as it is."""


@case("small_windows", a=data(4, 8), o=room(4, 8))
def _small_windows(a: Array, o: Array) -> None:
    o[:] = 2 * a


def _ragged_folds(a: Array, o: Array, p: Array, r: int, c: int) -> None:
    part = a[:r, :c]
    if part.size:
        o[:r, 0], o[:r, 1] = part.sum(1), part.max(1)
        p[0, :c] = part.argmax(0)


for _r, _c in ((8, 16), (3, 5), (1, 1)):
    case("ragged_folds", label=f"{_r}x{_c}", a=small(8, 16), o=room(8, 2), p=room(1, 16, type="i32"), r=_r, c=_c)(
        _ragged_folds
    )


def _partial_ragged(a: Array, b: Array, o: Array, r: int, c: int) -> None:
    held = (slice(2), slice(c))
    sums, least = a.copy(), a.copy()
    sums[held] += b[held]
    least[held] = np.minimum(a, b)[held]
    o[:r], o[8 : 8 + r] = sums[:r], least[:r]
    o[16:] = 0
    o[16:, :10] = a[:, :10]
    o[16:21] = b[:5]
    o[16:21, :10] = (a + b)[:5, :10]


for _r, _c in ((8, 16), (3, 5), (8, 0)):
    case("partial_ragged", label=f"{_r}x{_c}", a=small(8, 16), b=small(8, 16), o=room(24, 16), r=_r, c=_c)(
        _partial_ragged
    )


@case("left_boxes", exact=True, a=data(32, 32, type="f16"), o=room(32, 32, type="f16"))
def _left_boxes(a: Array, o: Array) -> None:
    o[:] = boxed(a, (16, 16), False, True)


@case("left_boxes", label="a3", target="a3", exact=True, a=data(32, 32, type="f16"), o=room(32, 32, type="f16"))
def _older_left_boxes(a: Array, o: Array) -> None:
    o[:] = boxed(a, (16, 16), True, True)


def _runtime_fractals(a: Array, o: Array, n: int, c: int) -> None:
    for group in range(n):
        held = max(0, min(16, c - 16 * group))
        o[group, :, :held] = a[group, :, :held]


for _n, _c in ((4, 64), (3, 64), (4, 37), (0, 64), (2, 0)):
    case(
        "runtime_fractals",
        label=f"{_n}x{_c}",
        exact=True,
        a=data(4, 32, 16, type="f16"),
        o=room(4, 32, 16, type="f16"),
        n=_n,
        c=_c,
    )(_runtime_fractals)
