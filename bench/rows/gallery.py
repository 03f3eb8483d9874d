"""gallery: convolutions, layer norm and embedding as examples/gallery has them, at the sizes that it shows."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from contest import EAGER, OURS, Contest, Field, Work

sys.path.append(str(Path(__file__).parents[2] / "examples" / "gallery"))

import conv2d as convolutions
import embedding as embeddings
import layer_norm_training as norms

import tilewright.language as pl

N, COLS = 4096, 1024
IMAGES, CHANNELS, SIZE = 4, 64, 56
WORDS, TOKENS = 32000, 8192


def _first(result: Any) -> torch.Tensor:
    return result[0] if isinstance(result, tuple) else result


def _beside(kernel: Any, reference: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Field:
    """Return a kernel that writes outputs beside torch, both held to what torch returns first."""

    def ours() -> torch.Tensor:
        kernel(*inputs, *outputs)
        return outputs[0]

    def theirs() -> torch.Tensor:
        return _first(reference(*inputs))

    return Field(theirs().clone(), {OURS: ours, EAGER: theirs}, rtol=1e-4, atol=1e-3)


def conv2d() -> Field:
    inputs = convolutions.make_inputs_conv2d(images=IMAGES, channels=CHANNELS, outputs=CHANNELS, size=SIZE)
    outputs = convolutions.make_output_conv2d(*inputs)
    return _beside(convolutions.conv2d, convolutions.reference_conv2d, inputs, outputs)


def depthwise() -> Field:
    inputs = convolutions.make_inputs_depthwise(images=IMAGES, channels=2 * CHANNELS, size=SIZE)
    outputs = convolutions.make_output_depthwise(*inputs)
    return _beside(convolutions.depthwise, convolutions.reference_depthwise, inputs, outputs)


def layer_norm() -> Field:
    inputs = norms.make_inputs(rows=N, width=COLS)
    return _beside(norms.layer_norm_of(COLS, pl.FP32), norms.torch_layer_norm, inputs, norms.make_output(*inputs))


def there_and_back() -> Field:
    """Layer norm by way of autograd, whose results are new each time."""
    inputs, ours = norms.make_inputs(rows=N, width=COLS), norms.layer_norm_of(COLS, pl.FP32)
    runs = {OURS: ours, EAGER: norms.torch_layer_norm}
    contenders = {who: partial(_gradient, function, inputs) for who, function in runs.items()}
    return Field(contenders[EAGER](), contenders, rtol=1e-4, atol=1e-3)


def _gradient(function: Any, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    return norms.gradients(function, *inputs)[0]


def embedding() -> Field:
    inputs = embeddings.make_inputs_embedding(words=WORDS, width=COLS, count=TOKENS)
    outputs = embeddings.make_output_embedding(*inputs)
    return _beside(embeddings.embedding, embeddings.reference_embedding, inputs, outputs)


PIXELS = IMAGES * CHANNELS * SIZE**2
ROWS = (
    Contest(f"conv 3x3 {CHANNELS} channels", conv2d, Work(flops=2 * 9 * CHANNELS * PIXELS), target=1.0),
    Contest("conv 3x3 depthwise", depthwise, Work(bytes=2 * 4 * 2 * PIXELS), target=1.0),
    Contest(f"layer_norm {N}x{COLS}", layer_norm, Work(bytes=2 * 4 * N * COLS), target=1.0),
    Contest("layer_norm there and back", there_and_back, Work(bytes=5 * 4 * N * COLS), target=1.0),
    Contest(f"embedding {TOKENS}x{COLS}", embedding, Work(bytes=2 * 4 * TOKENS * COLS), target=1.0),
)
