"""The models of `examples/models/`: each agrees with torch on every target, and says in one line what it did."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from examples.loading import EXAMPLES, on

from tilewright.runtime import RunConfig

MODELS = EXAMPLES / "models"
NAMES = sorted(path.stem for path in MODELS.glob("*.py") if path.stem != "paging")
PAGED = [name for name in NAMES if name.startswith("paged") and not name.endswith("multi_config")]


@pytest.fixture(autouse=True)
def beside_each_other() -> Iterator[None]:
    """Let models import what they share, as running one as a script does."""
    sys.path.insert(0, str(MODELS))
    yield
    sys.path.remove(str(MODELS))


def model(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.mark.parametrize("name", PAGED)
def test_paged_attention_agrees_with_torch(name: str, target: str) -> None:
    module = model(name)
    entry = module.PagedAttention if name == "paged_attention" else getattr(module, name)
    run = on(target, entry)
    for seed in (0, 1):
        inputs = module.make_inputs(seed)
        torch.testing.assert_close(run(*inputs), module.reference(*inputs), rtol=2e-2, atol=1e-2)


def test_one_paged_attention_serves_several_models(target: str) -> None:
    module = model("paged_attention_multi_config")
    for seed in range(3):
        sizes, inputs = module.make_inputs(seed)
        out = torch.full_like(inputs[0], float("nan"), dtype=torch.float32)
        config = RunConfig(platform=target)
        module.paged_attention_multi_config(*inputs, sizes.kv_heads, sizes.page, out, config=config)
        torch.testing.assert_close(out, module.reference(sizes, inputs), rtol=2e-2, atol=1e-2)


def test_a_block_of_llama_agrees_with_torch(target: str) -> None:
    module = model("llama_block")
    inputs = module.make_inputs(1)
    out = torch.full_like(inputs[0], float("nan"))
    module.llama_block(*inputs, out, config=RunConfig(platform=target))
    torch.testing.assert_close(out, module.reference(*inputs), rtol=5e-2, atol=5e-2)


def test_a_step_of_qwen3_agrees_with_torch_and_grows_the_caches_alike(target: str) -> None:
    module = model("qwen3_decode")
    inputs = module.make_inputs(1)
    ours, theirs = module.copied(inputs), module.copied(inputs)
    out = torch.full_like(inputs[0], float("nan"))
    module.qwen3_decode(*ours, out, config=RunConfig(platform=target))
    torch.testing.assert_close(out, module.reference(*theirs), rtol=5e-2, atol=5e-2)
    torch.testing.assert_close(ours[-2:], theirs[-2:], rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_says_in_one_line_what_it_did(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    model(name).main()
    output = capsys.readouterr().out
    assert output.startswith(f"{name}: ")
    assert output.count("\n") == 1
