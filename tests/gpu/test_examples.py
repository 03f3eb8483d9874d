"""The examples on a GPU: their kernels as they are, on tensors of the device, against their torch references."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from examples.loading import Example, Kernel, on, several
from examples.test_examples import assert_close, each_kernel

from tilewright.errors import UnsupportedFeatureError


def there(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


@each_kernel
def test_an_example_agrees_with_its_reference(example: Example, kernel: Kernel) -> None:
    inputs = example.make_inputs(0)
    try:
        results = several(on("cuda", kernel)(*map(there, inputs)))
    except UnsupportedFeatureError as error:
        assert "no CUDA recipe for" in str(error)
        pytest.skip(str(error).splitlines()[0])
    for actual, wanted in zip(results, example.expected(inputs), strict=True):
        assert actual.is_cuda
        assert_close(actual.cpu(), wanted)
