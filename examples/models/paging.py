"""What the paged attentions share: the sizes of a model, made-up caches, and what torch says they should give.

A sequence's keys and values lie in pages anywhere in a cache; row `b` of the block table says in which. A page holds
`page` tokens of every key head, head by head, so that the rows of one head of one page are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sizes:
    """A model's heads and a batch of sequences in its cache."""

    batch: int
    heads: int
    kv_heads: int
    dim: int
    page: int
    longest: int
    """The tokens of the longest sequence there is room for."""

    @property
    def group(self) -> int:
        """How many query heads share a key head."""
        return self.heads // self.kv_heads

    @property
    def table_width(self) -> int:
        """How many pages a sequence may have."""
        return -(-self.longest // self.page)

    @property
    def pages(self) -> int:
        """How many pages the cache has."""
        return self.batch * self.table_width

    @property
    def cache_rows(self) -> int:
        """How many rows of one head of one token the cache has."""
        return self.pages * self.kv_heads * self.page


SMALL = Sizes(batch=3, heads=8, kv_heads=2, dim=32, page=16, longest=80)
LLAMA3_8B = Sizes(batch=8, heads=32, kv_heads=8, dim=128, page=128, longest=4096)

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def make_inputs(seed: int = 0, sizes: Sizes = SMALL) -> Inputs:
    """Return queries, keys, values, the block table and the length of each sequence; most end inside a page."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(sizes.batch * sizes.heads, sizes.dim, generator=generator).bfloat16()
    k, v = (torch.randn(sizes.cache_rows, sizes.dim, generator=generator).bfloat16() for _ in range(2))
    table = torch.randperm(sizes.pages, generator=generator).view(sizes.batch, sizes.table_width).int()
    lengths = torch.randint(1, sizes.longest + 1, (sizes.batch,), generator=generator).int()
    lengths[0] = sizes.longest
    return q, k, v, table, lengths


def attended(
    sizes: Sizes, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Return what torch gives: pages gathered into whole sequences, then its own attention, a sequence at a time."""
    queries = q.view(sizes.batch, sizes.heads, 1, sizes.dim)
    keys, values = (_sequences(sizes, cache, table) for cache in (k, v))
    rows = [
        torch.nn.functional.scaled_dot_product_attention(
            queries[b : b + 1], keys[b : b + 1, :, :length], values[b : b + 1, :, :length], enable_gqa=True
        )
        for b, length in enumerate(lengths.tolist())
    ]
    return torch.cat(rows).view(q.shape).float()


def _sequences(sizes: Sizes, cache: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Return a cache as [batch, head, token, dim]."""
    pages = cache.view(sizes.pages, sizes.kv_heads, sizes.page, sizes.dim)[table.long()]
    return pages.transpose(1, 2).reshape(sizes.batch, sizes.kv_heads, -1, sizes.dim)
