"""Chains of products on the GPU: attention with roles for its warps, at every size, twice the same."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy
import pytest
from gpu.device import from_device, on_device
from unit.backends.cuda.test_roles import (
    attention,
    attention_to,
    causal_attention,
    earlier,
    inputs,
    kernel_of,
    reference,
    summed,
    weighted,
    weighted_reference,
)

np: Any = numpy  # elements are of any type here
torch: Any = pytest.importorskip("torch")


def left_by(kernel: Any, given: list[Any], heads: int) -> Any:
    """Return what attention leaves where nothing was, looking that another run leaves the same."""
    tensors = [on_device(x) for x in given]
    found = [torch.full_like(tensors[0], torch.nan) for _ in range(2)]
    for out in found:
        kernel(*tensors, heads, out)
    assert torch.equal(*(each.nan_to_num() for each in found))
    return from_device(found[0], given[0].dtype).astype(np.float64)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "length", "dim"), [(1, 128, 64), (3, 384, 128), (150, 128, 64), (40, 512, 128), (2, 256, 256)]
)
def test_attention_is_what_it_is_everywhere(heads: int, length: int, dim: int, causal: bool) -> None:
    kernel = causal_attention if causal else attention
    for dtype in (np.float16, ml_dtypes.bfloat16):
        given = inputs(heads, length, dim, dtype)
        found, wanted = left_by(kernel, given, heads), reference(given, heads, causal)
        assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)
        assert np.abs(found - wanted).max() < 2e-2


def test_of_lengths_that_leave_something_over_whole_blocks_are_right() -> None:
    given = [x[:250] for x in inputs(1, 256, 64)]
    found = left_by(attention, given, 1)
    wanted = reference([given[0], *(x[:192] for x in given[1:])], 1, causal=False)
    assert np.linalg.norm(found[:128] - wanted[:128]) < 5e-3 * np.linalg.norm(wanted[:128])
    assert np.isnan(found[128:]).all()


@pytest.mark.parametrize("keys", [1, 64, 100, 1000])
def test_keys_that_leave_something_over_are_masked(keys: int) -> None:
    q, k, v = inputs(1, 1024, 64)
    given = [on_device(x) for x in (q, k[:keys], v[:keys])]
    out = torch.full_like(given[0], torch.nan)
    attention_to(*given, out)
    found, wanted = from_device(out, q.dtype).astype(np.float64), reference([q, k[:keys], v[:keys]], 1, causal=False)
    assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)


def test_a_chain_without_a_second_product() -> None:
    q, k, _ = inputs(1, 512, 64)
    bias = np.linspace(-8, 8, 512, dtype=np.float32)[None]
    out = torch.full((512, 1), torch.nan, device="cuda")
    assert kernel_of(summed, q, k, bias, np.zeros((512, 1), np.float32)).roles
    summed(*(on_device(x) for x in (q, k, bias)), out)
    scores = q.astype(np.float64) @ k.astype(np.float64).T + bias
    wanted = np.maximum(scores, 0).sum(1, keepdims=True)
    np.testing.assert_allclose(from_device(out, np.dtype(np.float32)), wanted, rtol=1e-5)


def test_blocks_without_turns_leave_what_they_began_with() -> None:
    given = [on_device(x) for x in inputs(1, 1280, 64)]
    out = torch.full((1280, 64), torch.nan, device="cuda")
    earlier(*given, out)
    q, k, v = (x.double() for x in given)
    wanted = torch.zeros_like(q)
    for block in range(10):
        rows = slice(128 * block, 128 * block + 128)
        for key in range(0, 128 * block, 64):
            weights = (q[rows] @ k[key : key + 64].T).relu().to(given[0].dtype).double()
            wanted[rows] = wanted[rows] * 0.5 + weights @ v[key : key + 64]
    assert (out.double() - wanted).norm() < 5e-3 * wanted.norm() and not out[:128].any()


@pytest.mark.parametrize(("heads", "length"), [(3, 128), (90, 256), (2, 192)])
def test_neighbours_that_stream_the_same_blocks_share_them(heads: int, length: int) -> None:
    q, k, v = inputs(heads, length, 64)
    out = torch.full(q.shape, torch.nan, device="cuda")
    weighted(*(on_device(x) for x in (q, k, v)), heads, out)
    found, wanted = from_device(out, np.dtype(np.float32)), weighted_reference(q, k, v, heads)
    assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)
