"""models: the layers of examples/models at real sizes, with made-up weights, beside the same layers in torch."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from contest import EAGER, OURS, Contest, Field, Work
from memory import output

from tilewright import ir

sys.path.append(str(Path(__file__).parents[2] / "examples" / "models"))

import llama_block as llama
import paged_attention as paged
import paging
import qwen3_decode as qwen

GROUP = "Models"
LLAMA, QWEN = llama.LLAMA2_7B, qwen.QWEN3_8B
ROUNDS = 7
"""A layer takes seconds; a few rounds tell it from another."""


def enter_paged() -> Field:
    sizes = paging.LLAMA3_8B
    inputs = paging.make_inputs(0, sizes)
    compiled, out = ir.compile(paged.paged_attention(sizes)), output(sizes.batch * sizes.heads, sizes.dim)

    def ours() -> torch.Tensor:
        compiled(*inputs, out)
        return out

    def theirs() -> torch.Tensor:
        return paging.attended(sizes, *inputs)

    return Field(theirs(), {OURS: ours, EAGER: theirs}, rtol=2e-2, atol=1e-2)


def enter_llama() -> Field:
    return _layer(llama.llama_block, llama.reference, llama.make_inputs(0, LLAMA), output(LLAMA.tokens, LLAMA.hidden))


def enter_qwen() -> Field:
    return _layer(qwen.qwen3_decode, qwen.reference, qwen.make_inputs(0, QWEN), output(QWEN.batch, QWEN.hidden))


def _layer(kernel: Any, reference: Any, inputs: Sequence[torch.Tensor], out: torch.Tensor) -> Field:
    out = out.bfloat16()

    def ours() -> torch.Tensor:
        kernel(*inputs, out)
        return out

    def theirs() -> torch.Tensor:
        return reference(*inputs)

    return Field(theirs(), {OURS: ours, EAGER: theirs}, rtol=5e-2, atol=1e-1)


def _weights(sizes: llama.Sizes) -> int:
    return 4 * sizes.hidden**2 + 3 * sizes.hidden * sizes.inner


ROWS = (
    Contest(
        "paged attention, LLaMA-3 8B, 8 x 4096", enter_paged, Work(bytes=4 * paging.LLAMA3_8B.cache_rows * 128),
        group=GROUP, most_rounds=ROUNDS, note="torch gathers the pages, then attends a sequence at a time.",
    ),
    Contest(
        "LLaMA-2 7B block, 256 tokens", enter_llama, Work(flops=2 * LLAMA.tokens * _weights(LLAMA)), group=GROUP,
        most_rounds=ROUNDS,
    ),
    Contest(
        "Qwen3 8B decode layer, batch 16", enter_qwen,
        Work(bytes=2 * QWEN.hidden * (2 * (QWEN.heads + QWEN.kv_heads) * QWEN.dim + 3 * QWEN.inner)), group=GROUP,
        most_rounds=ROUNDS,
    ),
)  # fmt: skip
