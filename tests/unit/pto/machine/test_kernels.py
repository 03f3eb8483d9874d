"""Scalars, order, addresses and choices: kernels of what tiles and vectors do not cover, and all ops together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.programs.compiler import compile
from tilewright.pto.lower import lower
from tilewright.pto.module import Module
from tilewright.pto.ops.examples import shown_for
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

KERNELS = Path(__file__).parent / "kernels"
ALL = sorted(KERNELS.parents[1].glob("*/kernels/*.pto"))


def read(path: Path) -> Module:
    module = parse(path.read_text(encoding="utf-8"), str(path))
    verify(module, is_portable=True)
    return module


@pytest.fixture
def run(target: str) -> Any:
    """Return what runs a kernel of this folder by its name."""

    def run(name: str, *args: Any) -> None:
        module = read(KERNELS / f"{name}.pto")
        program = lower(module, next(module.funcs()), target="a5")
        compile(program, platform=target)(1, *args)

    return run


def test_every_op_runs_in_some_kernel() -> None:
    ops = {op.name for path in ALL for f in read(path).funcs() if f.body for each in f.body.ops for op in each.walk()}
    tests = "".join(path.read_text(encoding="utf-8") for path in KERNELS.parents[1].rglob("test_*.py"))
    written = {
        f"pto.{word}" for word in re.findall(r'(?:pto\.|"(?!pto))(\w+(?:\.\w+)*)', tests)
    }  # ops whose tests write their text
    written |= {f"pto.{op}{form}" for op in ("tmatmul", "tgemv") for form in re.findall(r"\.mx(?:\.\w+)?", tests)}
    meant = {name for name in OPS if shown_for(name)}  # ops in an example, which NumPy says the meaning of
    assert {name for name, op in OPS.items() if not op.family} <= ops | written | meant
    assert len(ALL) >= 60


def halves(product: int) -> list[int]:
    words = np.array([product & 0xFFFFFFFF, (product >> 32) & 0xFFFFFFFF], np.uint32)
    return np.frombuffer(words.tobytes(), np.int32).tolist()


@pytest.mark.parametrize(("a", "b"), [(-123456789, 987654321), (-1, -1), (5, 6), (-(2**31), 2)])
def test_numbers(run: Any, a: int, b: int) -> None:
    out, floats, f = np.zeros(7, np.int32), np.array([2.5, 0, 0], np.float32), -1.5
    run("numbers", out, floats, a, b, f)
    unsigned = a % 2**32, b % 2**32
    total = sum(unsigned)
    bits = int(np.frombuffer(np.float32(f).tobytes(), np.int32)[0])
    assert out.tolist() == [*halves(a * b), *halves(unsigned[0] * unsigned[1]), *halves(total), bits]
    assert floats.tolist() == [2.5, 2.5, -1.5]


def test_measures(run: Any) -> None:
    p, o, q, u = (
        np.arange(512, dtype=np.float32),
        np.zeros(5, np.int64),
        np.zeros(1, np.float32),
        np.zeros(1, np.uint32),
    )
    run("measures", p, o, q, u, -1, 5)
    assert (o.tolist(), q[0], u[0]) == ([3, 5, 64, 8, 5], 2 * 64 + 5, 0xFFFFFFFF)


def test_order(run: Any) -> None:
    out = np.full(2, -1, np.int64)
    run("order", out, np.zeros(1, np.int64))
    assert out.tolist() == [7, 0]


def test_addresses(run: Any) -> None:
    x, out = np.arange(128, dtype=np.float32), np.zeros(16, np.float32)
    run("addresses", x, out)
    assert out.tolist() == [1.0, *range(17, 24), *range(32, 40)]


def test_better(run: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, (2, 32)).astype(np.float32)
    i, j = np.arange(32, dtype=np.int32), np.arange(32, dtype=np.int32) * 1000 - 9000
    low = j.astype(np.int8).tolist()
    expected = np.maximum(x, y), np.minimum(x, y), np.where(x >= y, i, j), np.where(x <= y, i, j)
    cut = np.zeros(32, np.int8)
    run("better", x, y, i, j, cut)
    for ours, wanted in zip((x, y, i, j), expected, strict=True):
        np.testing.assert_array_equal(ours, wanted)
    assert cut.tolist() == low


@pytest.mark.parametrize(("a", "b"), [(3, 5), (-1, -1), (1 << 62, -12), (-(1 << 63), (1 << 63) - 1)])
def test_wide_products(run: Any, a: int, b: int) -> None:
    out = np.zeros(5, np.int64)
    run("wide", out, a, b)
    whole, bare = a * b, (a % (1 << 64)) * (b % (1 << 64))
    wanted = [whole, whole >> 64, bare, bare >> 64, whole >> 64]
    assert [int(each) % (1 << 64) for each in out] == [each % (1 << 64) for each in wanted]
