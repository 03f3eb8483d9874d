"""Every tile op that the GPU has a recipe for, against the interpreter, in every element type it accepts."""

from __future__ import annotations

import numpy as np
import pytest
from gpu.device import OnDevice
from ops.kernels import kernel
from ops.native import assert_same
from ops.test_every_op import example, title
from ops.test_far import compare_far, far_arguments, far_kernel, far_ops
from ops.test_meeting import GROUPS, check_pairs
from ops.test_native import batch, compare, family_ops

from tilewright.core.op import Kind, Op, OpSpec, specs


@pytest.mark.parametrize("packed", [True, False], ids=["aligned", "windows"])
@pytest.mark.parametrize("op", family_ops, ids=lambda op: op.spec.name)
def test_an_op_of_a_family_computes_what_the_interpreter_does(op: Op, packed: bool) -> None:
    ordinary, special = batch(op, False), batch(op, True)
    device = OnDevice(kernel("\n".join(ordinary.lines), **ordinary.parameters))
    for given in (ordinary, special):
        arrays = [name for name, value in zip(given.parameters, given.values, strict=True) if value.ndim]
        for name, (got, want) in zip(arrays, device.run(given.values, packed=packed), strict=True):
            if name in given.outputs:
                compare(given.outputs[name], got, want, given)


@pytest.mark.parametrize("op", far_ops, ids=lambda op: op.spec.name)
def test_an_op_keeps_its_promise_on_floats_of_all_sizes(op: Op) -> None:
    compare_far(op, OnDevice(far_kernel(op)).run(far_arguments(op), packed=True))


@pytest.mark.parametrize("spec", [s for s in specs() if Kind.TILE in s.kinds and s.example], ids=title)
def test_an_example_does_what_the_interpreter_does(spec: OpSpec) -> None:
    rng = np.random.default_rng(1)
    x, y, result = (rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3))
    device = OnDevice(example(spec))
    for packed in (True, False):
        for got, want in device.run([x, y, result, np.ones((16, 16), np.float32)], packed=packed):
            assert_same(got, want, max(spec.ulp, 4))


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_integers_of_two_types_meet_by_value(names: tuple[str, ...]) -> None:
    check_pairs(names, OnDevice)
