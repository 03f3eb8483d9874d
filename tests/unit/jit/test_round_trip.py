"""The round trip: a `@pl.jit` kernel lowers to exactly what its author would have written as a program."""

from __future__ import annotations

import pytest
from examples.loading import LOADED
from unit.jit.round_trip import (
    activation,
    assemble,
    dynamic,
    elementwise,
    fused,
    inline,
    matmul,
    multi_function,
    norm,
    opaque,
    softmax,
)
from unit.jit.round_trip.family import Pair

import tilewright.language as pl
from tilewright import ir
from tilewright.passes.manager import PassManager

MODULES = (elementwise, fused, matmul, activation, softmax, norm, assemble, dynamic, inline, opaque, multi_function)
PAIRS = [
    pytest.param(pair, id=f"{module.FAMILY.name}-{pair.by_hand.name}")
    for module in MODULES
    for pair in module.FAMILY.pairs
]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_kernel_lowers_to_the_program_written_by_hand(pair: Pair) -> None:
    lowered = pair.kernel.lower(*pair.args)
    ir.assert_structural_equal(lowered, PassManager.get_strategy().run_passes(pair.by_hand))


def test_other_arguments_give_another_program() -> None:
    (pair,) = [pair for pair in softmax.FAMILY.pairs if pair.by_hand.name == "Expanded"]
    shorter = pair.kernel.lower(*(array[:64] for array in pair.args))
    assert not ir.structural_equal(shorter, PassManager.get_strategy().run_passes(pair.by_hand))


def test_every_family_has_two_kernels_and_more() -> None:
    sizes = {module.FAMILY.name: len({pair.kernel for pair in module.FAMILY.pairs}) for module in MODULES}
    assert len(sizes) == 11 and min(sizes.values()) >= 2
    assert sum(sizes.values()) >= 24


def test_every_kernel_of_the_examples_is_written_both_ways() -> None:
    paired = {pair.kernel for module in MODULES for pair in module.FAMILY.pairs}
    kernels = [k for example in LOADED.values() for k in example.kernels.values() if isinstance(k, pl.JITFunction)]
    assert [kernel.name for kernel in kernels if kernel not in paired] == []
