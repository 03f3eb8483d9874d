"""The machine: what an op's meaning cannot do is told with the op and its line, and whose fault it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted, ramp

import tilewright.language as pl
from tilewright.core.grid import CURRENT, ONLY
from tilewright.core.region import whole
from tilewright.errors import ExecutionError, InternalError
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine
from tilewright.ops.registry import OPS
from tilewright.runtime import RunConfig

INTERPRET = RunConfig(platform="interpret")
DOUBLED = in_core("t = pl.load(x, [0, 0], [4, 8])", "pl.store(t + t, [0, 0], out)")


def failing(error: Exception) -> Any:
    """Return a meaning that only raises."""

    def evaluate(*_: object, **__: object) -> None:
        raise error

    return evaluate


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the meaning of `add`."""

    def broken(error: Exception) -> None:
        op = OPS["tile.add"]
        monkeypatch.setattr(op, "spec", replace(op.spec, evaluate=failing(error)))

    return broken


def test_an_error_of_numpy_names_the_op_the_line_and_us(add: Any) -> None:
    kernel = jitted(DOUBLED)
    add(ValueError("operands could not be broadcast together"))
    with pytest.raises(InternalError) as caught:
        kernel(ramp(4, 8), ramp(4, 8), config=INTERPRET)
    message = str(caught.value)
    assert ":5:18: in kernel `kernel_incore_0`: `tile.add` cannot be evaluated: ValueError: operands" in message
    assert message.endswith("this is a bug in Tilewright, not in your kernel: please report it")


def test_memory_that_runs_out_is_not_our_mistake(add: Any) -> None:
    kernel = jitted(DOUBLED)
    add(MemoryError())
    with pytest.raises(ExecutionError, match="not enough memory") as caught:
        kernel(ramp(4, 8), ramp(4, 8), config=INTERPRET)
    assert caught.value.place.line == 5 and caught.value.function == "kernel"


def test_a_block_that_failed_is_the_current_one_no_longer() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, out: pl.Out[pl.Tensor[[8], pl.FP32]]):
        for b in pl.spmd(2):
            pl.device_assert(b > 5, "not yet")
            pl.store(pl.tile.full([8], dtype=pl.FP32, value=1.0), [0], out)
"""
    with pytest.raises(ExecutionError, match="not yet") as caught:
        machine.run(as_program(pl.parse(text)), "main", [whole(np.zeros(8, np.float32))])
    assert CURRENT.get() == ONLY, caught


@pytest.mark.parametrize("strides", ["[0, 1]", "[1, 0]", "[0, 0]", "[1, 1]", "[8, 1]"])
def test_atomic_adds_through_a_view_that_overlaps_itself_are_all_made(strides: str, target: str) -> None:
    kernel = jitted(
        f"v = pl.tensor.as_strided(out, [4, 8], {strides}, offset=0, dtype=pl.FP32)\n"
        + in_core("pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], v, atomic=pl.AtomicType.Add)")
    )
    x, out, expected = ramp(4, 8), np.ones(32, np.float32), np.ones(32, np.float32)
    a, b = (int(s) for s in strides.strip("[]").split(", "))
    np.add.at(expected, (np.arange(4) * a)[:, None] + np.arange(8) * b, x)
    kernel(x, out, config=RunConfig(platform=target))
    np.testing.assert_array_equal(out, expected)


def test_infinities_of_both_signs_are_added_without_a_warning() -> None:
    kernel = jitted(in_core("pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out, atomic=pl.AtomicType.Add)"))
    x, out = np.full((4, 8), -np.inf, np.float32), np.full((4, 8), np.inf, np.float32)
    kernel(x, out, config=INTERPRET)
    assert np.isnan(out).all()
