"""Numbers of ops: the text of every op for a GPU, run by NumPy, held against the interpreter.

Functions of CUDA's library count as exact here; what is written around them, masks and conversions is what is tested.
"""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import kernel
from ops.native import assert_same, numbers_of
from ops.test_every_op import example, title
from ops.test_far import compare_far, far_arguments, far_kernel, far_ops
from ops.test_native import batch, compare, family_ops
from unit.backends.cuda.test_numbers_of_texts import held

from tilewright.core.op import Kind, Op, OpSpec, specs


@pytest.mark.parametrize("op", family_ops, ids=lambda op: op.spec.name)
def test_an_op_of_a_family_is_what_the_interpreter_makes_of_it(op: Op) -> None:
    ordinary, special = batch(op, False), batch(op, True)
    function = kernel("\n".join(ordinary.lines), **ordinary.parameters)
    for given in (ordinary, special):
        arrays = [name for name, value in zip(given.parameters, given.values, strict=True) if value.ndim]
        for name, (got, want) in zip(arrays, held(function, numbers_of(given.values)), strict=True):
            if name in given.outputs:
                compare(given.outputs[name], got, want, given)


@pytest.mark.parametrize("op", far_ops, ids=lambda op: op.spec.name)
def test_an_op_keeps_its_promise_on_floats_of_all_sizes(op: Op) -> None:
    compare_far(op, held(far_kernel(op), far_arguments(op)))


REPEATED = ("atomic_cas", "atomic_max", "atomic_min")
"""Ops that take many steps for each element of floats, and a minute here."""
EXAMPLES = [s for s in specs() if Kind.TILE in s.kinds and s.example and s.name not in REPEATED]


@pytest.mark.parametrize("spec", EXAMPLES, ids=title)
def test_an_example_is_what_the_interpreter_makes_of_it(spec: OpSpec) -> None:
    rng = np.random.default_rng(1)
    x, y, result = (rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3))
    for got, want in held(example(spec), [x, y, result, np.ones((16, 16), np.float32)]):
        assert_same(got, want, max(spec.ulp, 4))
