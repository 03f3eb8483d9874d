"""Batches on the GPU: planes of tensors, however they lie in memory, and elements that kernels read themselves."""

from __future__ import annotations

from typing import Any

import pytest
from unit.backends.cuda.test_inner_reads import by_the_largest, scaled
from unit.backends.cuda.test_planes import attention, batched, of_any_count, of_batches, of_tiles

torch: Any = pytest.importorskip("torch")


def whole(*shape: int) -> Any:
    """Return whole numbers, whose products are exact."""
    return torch.randint(-4, 5, shape, generator=torch.Generator("cuda").manual_seed(len(shape)), device="cuda").half()


def is_right(kernel: Any, a: Any, b: Any) -> bool:
    out = torch.empty(*a.shape[:2], 128, device="cuda")
    kernel(a, b, out)
    return torch.equal(out.double(), a.double() @ b.double())


@pytest.mark.parametrize("kernel", [batched, of_any_count, of_tiles, of_batches])
def test_products_of_planes_are_right_however_they_lie(kernel: Any) -> None:
    a, b = whole(5, 256, 192), whole(5, 192, 128)
    turned, apart = a.transpose(0, 1).contiguous().transpose(0, 1), whole(5, 300, 192)[:, :256]
    for left in (a, turned, apart, a[:1].expand(5, -1, -1), a[1:2].expand(5, -1, -1)):
        assert is_right(kernel, left, b)
    assert is_right(kernel, a[:1], b[:1])


def test_rows_that_end_inside_a_tile_are_not_those_of_the_next_plane() -> None:
    a, b = whole(3, 250, 200), whole(3, 200, 128)
    for kernel in (batched, of_tiles, of_batches):
        assert is_right(kernel, a, b)


def test_attention_to_planes_is_that_of_each_head() -> None:
    q, k, v = (torch.randn(6, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    wanted = torch.softmax(q.double() @ k.double().transpose(1, 2) * 0.125, -1) @ v.double()
    found = attention(q, k, v).double()
    assert (found - wanted).norm() < 6e-3 * wanted.norm()


def test_kernels_read_elements_that_were_written_before_them() -> None:
    for turn in range(20):
        x = torch.randn(64, 64, device="cuda")
        n = torch.tensor([1 + turn % 3, 3, 5 + turn, 7], dtype=torch.int32, device="cuda")
        out = torch.empty_like(x)
        scaled(x, n, out)
        assert torch.equal(out, x * (float(n[int(n[0])]) * 0.5))
        first = x[:, 0].max()
        assert torch.equal(by_the_largest(x), x * first + first)
