"""Programs as PTO text: it reads back, and runs as the program does."""
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.pto.lower import lower
from tilewright.pto.module import Func
from tilewright.pto.types import Ptr, Scalar
from tilewright.pto.verify import verify
from tilewright.runtime import RunConfig
from tilewright.tools.cli import main

M = pl.dynamic("M")
Rows = pl.Tensor[[M, 64], pl.FP32]
Odd = pl.Tensor[[M, 10], pl.FP32]
Words = pl.Tensor[[8, 16], pl.INT32]
Block = pl.Tensor[[16, 64], pl.FP32]
Left = pl.Tensor[[32, 64], pl.FP32]
Right = pl.Tensor[[64, 48], pl.FP32]
Product = pl.Tensor[[32, 48], pl.FP32]
Bytes = pl.Tensor[[64, 64], pl.INT8]


def run_as_pto(kernel: Any, arguments: list[Any], grid: int = 1) -> str:
    """Run a kernel through its PTO text on arguments, and then each extent by its name; return the text."""
    text = kernel.compile(*arguments).as_pto()
    module = pto.parse(text)
    verify(module)
    (func,) = module.funcs()
    extents = [len(arguments[0])] * (len(func.arguments) - len(arguments))
    declared(func, text)[grid, None](*arguments, *extents)
    return text


def declared(func: Func, text: str) -> Any:
    """Return the kernel that a text is."""
    names = {argument.name: argument.type for argument in func.arguments}
    types = {name: type_ for name, type_ in names.items() if isinstance(type_, Ptr | Scalar)}
    code = f"def {func.name}({', '.join(types)}): ..."
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    function = namespace[func.name]
    function.__annotations__ = types
    return pto.jit(source=text)(function)


@pl.jit
def softmax(x: Rows, out: pl.Out[Rows]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            e = pl.exp(t - pl.max(t, axis=-1, keepdims=True))
            pl.store(e / pl.sum(e, axis=-1, keepdims=True), [r, 0], out)


@pl.jit
def layer_norm(x: Rows, weight: pl.Tensor[[1, 64], pl.FP32], out: pl.Out[Rows]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            centred = t - pl.row_sum(t) * (1 / 64)
            spread = pl.row_sum(centred * centred) * (1 / 64)
            pl.store(centred * pl.rsqrt(spread + 1e-5) * pl.load(weight, [0, 0], [1, 64]), [r, 0], out)


@pl.jit
def clipped(x: Rows, limit: pl.Scalar[pl.FP32], out: pl.Out[Rows]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64])
            half = pl.cast(pl.cast(pl.where(t > limit, 1.0 - t, pl.where(t * t > t, 2.0 / t, t)), pl.FP16), pl.FP32)
            pl.store(half, [r, 0], out)


@pl.jit
def fibonacci(x: Block, out: pl.Out[Block]):
    """Tiles and a number that a loop carries, the tiles changing places."""
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        b = a * 2.0
        turns = 0
        for i in pl.range(5):
            a, b = b, a + b
            turns = turns + i
        if turns > 9:
            c = pl.transpose(pl.transpose(b, 0, 1), 0, 1)
        else:
            c = a
        pl.store(c, [0, 0], out)


@pl.jit
def product(a: Left, b: Right, out: pl.Out[Product]):
    for i in pl.parallel(0, 32, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul(pl.load(a, [i, 0], [16, 16]), pl.load(b, [0, 0], [16, 48]))
            for k in pl.range(16, 64, 16):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [16, 16]), pl.load(b, [k, 0], [16, 48]))
            pl.store(pl.relu(acc), [i, 0], out)


@pl.jit
def bytes_product(a: Bytes, b: Bytes, out: pl.Out[pl.Tensor[[64, 64], pl.INT32]]):
    """A product whose right side fills boxes of more columns than its sums would."""
    for i in pl.parallel(0, 64, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul(pl.load(a, [i, 0], [8, 32]), pl.load(b, [0, 0], [32, 48]))
            acc = pl.matmul_acc(acc, pl.load(a, [i, 32], [8, 32]), pl.load(b, [32, 0], [32, 48]))
            pl.store(acc, [i, 0], out)


@pl.jit
def odd(x: Odd, out: pl.Out[Odd]):
    """Rows and columns that fill neither lines nor boxes of any memory."""
    for r in pl.parallel(0, M, 6):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [6, 10])
            half = pl.cast(pl.cast(pl.where(t > 0.25, pl.exp(t), t * 2.0), pl.FP16), pl.FP32)
            product = pl.matmul(half / pl.sum(t * t, axis=-1, keepdims=True), pl.load(x, [0, 0], [10, 10]))
            pl.store(product + pl.sum(t, axis=0, keepdims=True), [r, 0], out)


@pl.jit
def whole_numbers(x: Words, out: pl.Out[Words]):
    """Bits, shifts and remainders, by tiles, rows and numbers; single elements in and out."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 16])
        row = pl.load(x, [3, 0], [1, 16])
        bits = pl.xor(pl.and_(t, 12345), pl.or_(pl.not_(row), t))
        shifted = pl.shl(t, 3) + pl.shr(bits, row)
        left = pl.rem(t, 7) + pl.fmod(t, 5) + pl.rem(9, t) + pl.square(t)
        pl.store(pl.col_expand(t, row) - shifted * left, [0, 0], out)
        pl.write(out, [7, 15], pl.read(x, [2, 5]))


def _rows(rng: np.random.Generator, rows: int) -> list[Any]:
    return [rng.normal(size=(rows, 64)).astype(np.float32), np.zeros((rows, 64), np.float32)]


@pl.jit
def wholes(x: Rows, out: pl.Out[Rows]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [8, 64]) * 3.0
            pl.store(pl.floor(t) + 10.0 * pl.ceil(t) + 100.0 * pl.trunc(t) + 1000.0 * pl.round(t), [row, 0], out)


CASES: dict[str, tuple[Any, Callable[[np.random.Generator], list[Any]]]] = {
    "softmax": (softmax, lambda rng: _rows(rng, 41)),
    "layer_norm": (
        layer_norm,
        lambda rng: [(r := _rows(rng, 41))[0], rng.normal(size=(1, 64)).astype(np.float32), r[1]],
    ),
    "clipped": (clipped, lambda rng: [(r := _rows(rng, 20))[0], 0.25, r[1]]),
    "odd": (odd, lambda rng: [rng.normal(size=(12, 10)).astype(np.float32), np.zeros((12, 10), np.float32)]),
    "whole_numbers": (
        whole_numbers,
        lambda rng: [rng.integers(1, 1 << 20, (8, 16), dtype=np.int32), np.zeros((8, 16), np.int32)],
    ),
    "bytes_product": (
        bytes_product,
        lambda rng: [*(rng.integers(-128, 127, (64, 64), dtype=np.int8) for _ in "ab"), np.zeros((64, 64), np.int32)],
    ),
    "wholes": (wholes, lambda rng: _rows(rng, 16)),
    "fibonacci": (fibonacci, lambda rng: _rows(rng, 16)),
    "product": (
        product,
        lambda rng: [*(rng.normal(size=s).astype(np.float32) for s in ((32, 64), (64, 48))), np.zeros((32, 48), "f4")],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("grid", [1, 3])
def test_the_text_runs_as_the_program_does(name: str, grid: int) -> None:
    kernel, made = CASES[name]
    arguments = made(np.random.default_rng(0))
    run_as_pto(kernel, arguments, grid)
    found = arguments[-1].copy()
    arguments[-1][...] = 0
    kernel(*arguments)
    assert np.any(found)
    np.testing.assert_allclose(found, arguments[-1], rtol=1e-5, atol=1e-5)  # products add up in another order


@pl.jit
def casts(
    x: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor], c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor],
    e: pl.Out[pl.Tensor], f: pl.Out[pl.Tensor], g: pl.Out[pl.Tensor], h: pl.Out[pl.Tensor], i: pl.Out[pl.Tensor],
    j: pl.Out[pl.Tensor], k: pl.Out[pl.Tensor], m: pl.Out[pl.Tensor],
):  # fmt: skip
    """A tile as every type of elements that memory has, the last two there and back."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [1, 128])
        pl.store(pl.cast(t, pl.FP32), [0, 0], a)
        pl.store(pl.cast(t, pl.FP16), [0, 0], b)
        pl.store(pl.cast(t, pl.BF16), [0, 0], c)
        pl.store(pl.cast(t, pl.INT8), [0, 0], d)
        pl.store(pl.cast(t, pl.UINT8, mode="floor"), [0, 0], e)
        pl.store(pl.cast(t, pl.INT16, mode="odd"), [0, 0], f)
        pl.store(pl.cast(t, pl.UINT16, mode="ceil"), [0, 0], g)
        pl.store(pl.cast(t, pl.INT32, mode="rint"), [0, 0], h)
        pl.store(pl.cast(t, pl.UINT32, mode="none"), [0, 0], i)
        pl.store(pl.cast(t, pl.INT64, mode="trunc"), [0, 0], j)
        pl.store(pl.cast(pl.cast(t, pl.FP8E4M3FN), pl.FP32), [0, 0], k)
        pl.store(pl.cast(pl.cast(t, pl.FP8E5M2), pl.FP32), [0, 0], m)


GIVEN: list[Any] = [
    np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
]  # fmt: skip


def edges(dtype: Any) -> Any:
    """Return a row of numbers around the limits of all types."""
    row = np.zeros((1, 128), dtype)
    powers = [
        sign * 2**n + more for n in (0, 7, 8, 15, 16, 24, 31, 32, 53, 62) for more in (-1, 0, 1) for sign in (1, -1)
    ]
    if np.dtype(dtype).kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        numbers: list[Any] = [low, high, *(n for n in powers if low <= n <= high)]
    else:
        more = [0.5, 1.5, 2.5, 127.5, 255.5, 448, 464, 500, 57344, 61440, 65504, 65520, 1e30, 3.4e38, 1e-8, np.inf]
        numbers = [*powers, *more, *(-n for n in more), np.nan, -0.0]
    with np.errstate(all="ignore"):
        row[0, : len(numbers)] = np.array(numbers, dtype if np.dtype(dtype).kind in "iu" else np.float64)
    return row


@pytest.mark.parametrize("dtype", GIVEN, ids=lambda dtype: dtype.__name__)
def test_conversions_read_back_give_every_bit(dtype: Any) -> None:
    x, config = edges(dtype), RunConfig(platform="interpret")
    wanted, found = ([np.zeros((1, 128), each) for each in (*GIVEN, np.float32, np.float32)] for _ in range(2))
    casts(x, *wanted, config=config)
    module = pto.parse(casts.compile(x, *found, config=config).as_pto())
    (func,) = module.funcs()
    ir.compile(lower(module, func, target="a5"), platform="interpret")(1, *map(np.ravel, (x, *found)))
    for one, other in zip(found, wanted, strict=True):
        assert one.tobytes() == other.tobytes(), one.dtype


def rounded(by: str) -> Any:
    """Return a kernel that rounds single numbers."""

    @pl.jit
    def rounded(x: pl.Tensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(7):
                pl.write(out, [0, i], pl.cast(pl.read(x, [0, i]), pl.INT32, mode=by))
            pl.write(out, [0, 7], pl.cast(pl.cast(pl.read(x, [0, 7]), pl.BOOL), pl.INT32))

    return rounded


@pytest.mark.parametrize("mode", ["trunc", "round", "rint", "floor", "ceil"])
def test_numbers_become_integers_as_is_said(mode: str) -> None:
    x, found = np.array([[0, 2.7, -2.7, 0.5, -0.5, -3e9, 5, 0.5]], np.float32), np.zeros((1, 8), np.int32)
    wanted = np.zeros_like(found)
    rounded(mode)(x, wanted)
    run_as_pto(rounded(mode), [x, found])
    assert found.tolist() == wanted.tolist()


@pl.jit
def turned_around_one_axis(x: Block, out: pl.Out[Block]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        pl.store(pl.transpose(t, 1, -1) + pl.transpose(t, 0, -1), [0, 0], out)


def test_an_axis_that_takes_its_own_place_turns_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((16, 64), dtype=np.float32)
    wanted, found = np.zeros_like(x), np.zeros_like(x)
    turned_around_one_axis(x, wanted)
    run_as_pto(turned_around_one_axis, [x, found])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(wanted[:, :16], x[:, :16] + np.swapaxes(x[:, :16], 0, 1))


@pl.jit
def counted_down(x: Block, out: pl.Out[Block]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.load(x, [15, 0], [1, 64])
        for r in pl.range(14, -1, -3):
            total = total * 0.5 + pl.load(x, [r, 0], [1, 64])
            pl.store(total, [r, 0], out)


@pl.jit
def counted_either_way(
    x: Block, out: pl.Out[Block], start: pl.Scalar[pl.INDEX], stop: pl.Scalar[pl.INDEX], step: pl.Scalar[pl.INDEX]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.load(x, [15, 0], [1, 64])
        for r in pl.range(start, stop, step):
            total = total * 0.5 + pl.load(x, [r, 0], [1, 64])
            pl.store(total, [r, 0], out)


@pytest.mark.parametrize("ends", [(14, -1, -3), (14, 1, -3), (3, 14, 4), (3, 15, 4), (3, 3, 1), (3, 4, -1), (4, 3, -1)])
def test_loops_count_down_or_either_way(ends: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).standard_normal((16, 64), dtype=np.float32)
    for kernel, given in ((counted_down, []), (counted_either_way, [*ends])):
        wanted, found = np.zeros_like(x), np.zeros_like(x)
        kernel(x, wanted, *given)
        run_as_pto(kernel, [x, found, *given])
        np.testing.assert_array_equal(found, wanted)


@pl.jit
def squashed(x: Rows, out: pl.Out[Rows]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tanh(pl.load(x, [0, 0], [16, 64])), [0, 0], out)


def test_what_cannot_be_said_is_named_at_its_line() -> None:
    x = np.ones((16, 64), np.float32)
    out = np.zeros_like(x)
    words = r"this export has no words for `pl\.tile\.tanh"
    with pytest.raises(pto.NoPtoError, match=rf"^{re.escape(__file__)}:\d+:\d+: {words}"):
        squashed.compile(x, out).as_pto()


def test_what_cannot_be_said_shows_its_line_with_a_caret_and_what_to_try() -> None:
    x = np.ones((16, 64), np.float32)
    with pytest.raises(pto.NoPtoError) as caught:
        squashed.compile(x, np.zeros_like(x)).as_pto()
    _, line, carets, *_, help = str(caught.value).splitlines()
    op = "pl.tanh(pl.load(x, [0, 0], [16, 64]))"
    assert op in line
    assert carets.index("^") == line.index(op) and carets.count("^") == len(op)
    assert help.startswith("    help: ")


@pl.jit
def small(x: pl.Tensor[[16, 64], pl.INT4], out: pl.Out[Rows]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.cast(pl.load(x, [0, 0], [16, 64]), pl.FP32), [0, 0], out)


def test_a_parameter_that_cannot_be_said_is_shown() -> None:
    with pytest.raises(pto.NoPtoError, match="no words for elements of int4") as caught:
        small.compile().as_pto()
    assert "def small(x: pl.Tensor" in str(caught.value) and "^" in str(caught.value)


@pl.jit
def shown(x: pl.Tensor[[16, 64], pl.BF16], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.print(t)
        pl.store(t, [0, 0], out)


def test_what_no_machine_takes_is_named_at_its_line() -> None:
    with pytest.raises(
        pto.NoPtoError, match=rf"^{re.escape(__file__)}:\d+:9: PTO text cannot say this: A5 tprint takes"
    ):
        shown.compile().as_pto()


ALONE = """
import sys
import tilewright.language as pl

@pl.jit
def squares(x: pl.Tensor[[16, 64], pl.INT64], out: pl.Out[pl.Tensor[[16, 64], pl.INT64]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.store(t * t, [0, 0], out)

@pl.jit
def shown(x: pl.Tensor[[16, 64], pl.BF16], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.print(pl.load(x, [0, 0], [16, 64]))
        pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)

compiled, other = squares.compile(), shown.compile()
assert "tilewright.pto" not in sys.modules
print("arith.muli" in compiled.as_pto())
try:
    other.as_pto()
except NotImplementedError as error:
    print(error)
"""


def test_text_is_verified_where_nobody_has_loaded_the_dialect(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE, encoding="utf-8")
    done = subprocess.run([sys.executable, str(tmp_path / "alone.py")], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True\n")
    assert "alone.py:14:9: PTO text cannot say this: A5 tprint takes" in done.stdout


def test_show_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "examples/softmax.py", "--pto"]) == 0
    verify(pto.parse(capsys.readouterr().out))
