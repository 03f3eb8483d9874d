"""Torch text: the example of every op, as far as torch can say it; `test_uses.py` has every use."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import launch
from ops.test_every_op import every_example, example
from ops.torch_texts import check_torch

from tilewright.core.op import OpSpec

pytest.importorskip("torch")


@every_example
def test_the_example_of_an_op_is_written_down_or_refused_by_name(spec: OpSpec) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3)]
    arguments = [*arrays, np.ones((16, 16), np.float32)]
    launch(example(spec), *(left := [np.array(value) for value in arguments]))
    check_torch(example(spec), arguments, left, max(spec.ulp, 1))
