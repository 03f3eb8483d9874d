"""Every op as PTO text: its example exports and gives the same bits when it is read back, or is one that PTO lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import launch
from ops.test_every_op import every_example, example
from property.exported import run_exported

from tilewright import pto
from tilewright.core.op import OPS, Kind, OpSpec, specs
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.body import WRITERS
from tilewright.programs.pto_text.export import as_pto
from tilewright.programs.pto_text.unsaid import UNSAID, unsaid
from tilewright.programs.pto_text.words import ALONE
from tilewright.programs.pto_text.words import OPS as SAID


@every_example
def test_an_example_gives_the_same_bits_when_it_is_read_back(spec: OpSpec) -> None:
    function = example(spec)
    program = as_program(function)
    if spec.name in UNSAID:
        with pytest.raises(pto.NoPtoError, match=UNSAID[spec.name].why):
            as_pto(program)
        return
    text = as_pto(program)
    rng = np.random.default_rng(1)
    wanted: list[Any] = [rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3)]
    wanted.append(np.ones((16, 16), np.float32))
    found = [array.copy() for array in wanted]
    launch(function, *wanted)
    run_exported(text, program.entries[-1].name, found, {})
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32), err_msg=text)


def test_every_op_of_tiles_is_said_or_has_a_reason() -> None:
    data = [op for op in OPS.values() if op.kind is not Kind.SCALAR and op.kind is not Kind.TENSOR]
    silent = [op.name for op in data if not op.spec.expand and op.name not in {**SAID, **ALONE} and unsaid(op) is None]
    assert WRITERS and not silent


def test_nothing_is_refused_that_does_not_exist() -> None:
    assert {spec.name for spec in specs()} >= {*UNSAID}
