"""Canaries: no program writes outside the tiles, buffers and arrays it was given."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from examples.loading import Example
from examples.test_examples import PROGRAMS, as_numpy, in_order
from ops.native import Native as OpNative
from ops.test_every_op import example as op_example
from ops.test_every_op import title
from property.guards import Guard
from property.native import check as check_random
from property.programs import program as random_program
from unit.backends.cpu.canaries import Canaries, watch
from unit.backends.cpu.running import Fenced, floats, kernel, native
from unit.backends.cpu.test_checked import UNKNOWN

from tilewright import ir
from tilewright.backends.cpu.emit import memory
from tilewright.backends.cpu.host import tensors
from tilewright.core.op import Kind, OpSpec, specs
from tilewright.core.program import Program
from tilewright.core.types import TileType
from tilewright.dtypes import BY_NAME
from tilewright.native.llvm import Value, i64


@pytest.fixture(params=[1, 2])
def canaries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canaries]:
    """Canaries that must be alive when the test ends."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(request.param))
    seen = watch(monkeypatch)
    yield seen
    assert seen.died() == 0


@pytest.mark.parametrize(("example", "program"), PROGRAMS)
def test_examples_write_nothing_but_their_outputs(example: Example, program: Program, canaries: Canaries) -> None:
    run, inputs = ir.compile(program, platform="cpu"), example.make_inputs(0)
    expected = example.expected(inputs)
    fenced = [Fenced(as_numpy(tensor)) if hasattr(tensor, "numpy") else tensor for tensor in (*inputs, *expected)]
    arrays: list[Any] = [f.array if isinstance(f, Fenced) else f for f in fenced]
    given, outputs = arrays[: len(inputs)], arrays[len(inputs) :]
    for output in outputs:
        output[...] = np.nan
    run(*in_order(run, tuple(given), outputs))
    assert all(f.is_intact for f in fenced if isinstance(f, Fenced))
    for output, tensor in zip(outputs, expected, strict=True):
        wanted: Any = as_numpy(tensor)
        np.testing.assert_allclose(output.astype(np.float64), wanted.astype(np.float64), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("spec", [s for s in specs() if Kind.TILE in s.kinds and s.example], ids=title)
def test_ops_write_nothing_but_their_results(spec: OpSpec, canaries: Canaries) -> None:
    x, y, result = (floats(16, 32, seed=seed) for seed in range(3))
    OpNative(op_example(spec)).run([x, y, result, np.ones((16, 16), np.float32)])


@pytest.mark.parametrize("number", range(40))
def test_random_programs_write_nothing_but_their_values(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    check_random(random_program(Random(number).randint), guard=Guard.NOTHING)
    assert seen.died() == 0


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_tensors_of_unknown_extents_stay_within_their_buffers(rows: int, canaries: Canaries) -> None:
    native(UNKNOWN).check(floats(rows, 19), rows, np.zeros((rows, 19), np.float32))
    assert canaries.were_looked_at()


ELEMENTS = {"FP32": "fp32", "FP16": "fp16", "BF16": "bfloat16", "INT8": "int8", "INT32": "int32"}


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 5, 3), (13, 33, 17), (32, 64, 48)])
def test_products_of_odd_shapes_stay_within_their_tiles(m: int, k: int, n: int, dtype: str, canaries: Canaries) -> None:
    product = kernel(
        f"x: pl.Tensor[[{m}, {k}], pl.{dtype}], y: pl.Tensor[[{k}, {n}], pl.{dtype}], out: pl.Out[pl.Tensor[[{m}, {n}],"
        f" pl.{'INT32' if 'INT' in dtype else 'FP32'}]]",
        f"a = pl.load(x, [0, 0], [{m}, {k}])",
        f"b = pl.load(y, [0, 0], [{k}, {n}])",
        "out = pl.store(pl.matmul_acc(pl.matmul(a, b), a, b), [0, 0], out)",
    )
    element, total = (BY_NAME[name].numpy for name in (ELEMENTS[dtype], "int32" if "INT" in dtype else "fp32"))
    product.check(np.ones((m, k), element), np.ones((k, n), element), np.zeros((m, n), total))
    assert canaries.were_looked_at()


def too_small_a_room(type_: TileType) -> int:
    return type_.nbytes - 4


def too_small_a_buffer(*_: object) -> Value:
    return i64(8 * 16 * 4 - 4)


@pytest.mark.parametrize(
    ("module", "name", "wrong"), [(memory, "room_of", too_small_a_room), (tensors, "size_of", too_small_a_buffer)]
)
def test_a_canary_dies_where_there_is_less_room_than_is_written(
    module: object, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch(monkeypatch)
    monkeypatch.setattr(module, name, wrong)
    monkeypatch.setattr(tensors, "LOCAL", 0)  # buffers have a size of their own only outside the arena
    turned = kernel(
        "x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]",
        "copy = pl.create_tensor([8, 16], dtype=pl.FP32)",
        "copy = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], copy)",
        "out = pl.store(pl.transpose(pl.load(copy, [0, 0], [8, 16]) * 2.0, 0, 1), [0, 0], out)",
    )
    turned.run([floats(8, 16), np.zeros((16, 8), np.float32)])
    assert seen.died() > 0
