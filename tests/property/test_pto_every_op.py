"""Every op as PTO text: its example exports and gives the same bits when it is read back, or is one that PTO lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import launch
from ops.test_every_op import every_example, example
from property.exported import run_exported

from tilewright import pto
from tilewright.core.op import Kind, OpSpec, specs
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.export import as_pto

SILENT = {
    "PTO has no such function, and the export adds no approximation of its own": (
        "sin cos tanh exp2 expm1 log2 log10 log1p sinh cosh tan asin acos atan asinh acosh atanh erf erfc sigmoid silu "
        "softplus gelu gelu_tanh pow atan2"
    ),
    "rounded as no op of PTO's is": "fma lerp floor_divide",
    "PTO sorts runs of 32 and merges runs, and has no running folds": (
        "sort argsort row_topk topk cumsum cumprod cummax cummin"
    ),
    "PTO draws words, and nothing from them": "rand randn randint",
    "a function for one core has no other to meet": (
        "aiv_shard aic_gather tfree_to_aic tfree_to_aiv aic_initialize_pipe aiv_initialize_pipe reserve_buffer "
        "import_peer_buffer get_subblock_idx set_ffts syncall"
    ),
    "PTO has no tasks, and prints numbers otherwise": "task_dummy print_value",
    "PTO waits for a flag that something has set": "sync_dst",
    "PTO reads exponents of blocks as bytes": "matmul_mx matmul_mx_acc matmul_mx_bias",
    "views of bytes, and tensors that are gathered from as a whole": (
        "as_strided view expand_clone create_l1 paged_gather gather scatter"
    ),
}
"""What is refused, by why."""
REFUSED = {name for names in SILENT.values() for name in names.split()}
TENSOR_ONLY = {"gather", "scatter"}
"""Names of two ops, of which only that of tensors is refused."""


def is_refused(spec: OpSpec) -> bool:
    return spec.name in REFUSED and not (spec.name in TENSOR_ONLY and Kind.TILE in spec.kinds)


@every_example
def test_an_example_gives_the_same_bits_when_it_is_read_back(spec: OpSpec) -> None:
    function = example(spec)
    program = as_program(function)
    if is_refused(spec):
        with pytest.raises(pto.NoPtoError):
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


def test_nothing_is_refused_that_does_not_exist() -> None:
    assert {spec.name for spec in specs()} >= REFUSED
