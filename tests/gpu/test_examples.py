"""The examples on a GPU: their kernels as they are, on tensors of the device, against their torch references."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from examples.loading import EXAMPLES, Example, Kernel, on, several
from examples.test_examples import assert_close, each_kernel
from examples.test_gallery import CLOSE, kernels, named
from examples.test_gallery import NAMES as GALLERY
from examples.test_models import PAGED

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


@pytest.fixture(autouse=True)
def beside_each_other() -> Iterator[None]:
    """Let files import what they share, as running one as a script does."""
    folders = [str(EXAMPLES / name) for name in ("gallery", "models")]
    sys.path[:0] = folders
    yield
    sys.path[:] = [path for path in sys.path if path not in folders]


@pytest.mark.parametrize("name", GALLERY)
def test_a_kernel_of_the_gallery_agrees_with_torch(name: str) -> None:
    module = importlib.import_module(name)
    for kernel, run in kernels(module).items():
        inputs = named(module, "make_inputs", kernel)(1)
        make_output = named(module, "make_output", kernel)
        outputs = [there(each) for each in make_output(*inputs)] if make_output else []
        returned = run(*map(there, inputs), *outputs)
        expected = several(named(module, "reference", kernel)(*inputs))
        for got, wanted in zip(outputs or several(returned), expected, strict=True):
            assert got.is_cuda
            torch.testing.assert_close(got.cpu(), wanted, rtol=CLOSE[wanted.dtype], atol=CLOSE[wanted.dtype])


@pytest.mark.parametrize("name", PAGED)
def test_paged_attention_agrees_with_torch(name: str) -> None:
    module = importlib.import_module(name)
    run = on("cuda", module.PagedAttention if name == "paged_attention" else getattr(module, name))
    for seed in (0, 1):
        inputs = module.make_inputs(seed)
        torch.testing.assert_close(run(*map(there, inputs)).cpu(), module.reference(*inputs), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["llama_block", "qwen3_decode"])
def test_a_model_agrees_with_torch(name: str) -> None:
    module = importlib.import_module(name)
    inputs = module.make_inputs(1)
    ours = [there(each.clone()) if isinstance(each, torch.Tensor) else each for each in inputs]
    out = torch.full_like(ours[0], float("nan"))
    getattr(module, name)(*ours, out)
    torch.testing.assert_close(out.cpu(), module.reference(*inputs), rtol=5e-2, atol=5e-2)
