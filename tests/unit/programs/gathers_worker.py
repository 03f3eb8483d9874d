"""What each of several processes runs: rows of every kind of element gathered, beside torch.distributed's."""

from typing import Any

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

dist: Any = torch.distributed
KINDS: list[tuple[Any, torch.dtype, int]] = [
    (pl.FP32, torch.float32, 8),
    (pl.FP16, torch.float16, 48),
    (pl.BF16, torch.bfloat16, 16),
    (pl.INT8, torch.int8, 32),
    (pl.INT32, torch.int32, 40_000),
]


def gathering(ranks: int, size: int, dtype: Any) -> pl.JITFunction:
    """Return a host function that gathers a row of each rank, twice in windows that are used again."""
    Row, Rows = pl.Tensor[[1, size], dtype], pl.Tensor[[ranks, size], dtype]

    @pl.jit
    def publish(x: Row, own: pl.InOut[pld.DistributedTensor[[1, size], dtype]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [1, size]), [0, 0], own)

    @pl.jit
    def take(held: pld.DistributedTensor[[ranks, size], dtype], y: pl.Out[Rows]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(ranks):
                y = pl.store(pl.load(held, [r, 0], [1, size]), [r, 0], y)
        return y

    @pl.jit.host
    def gather(
        x: pl.Tensor[[2, ranks, 1, size], dtype],
        y: pl.Out[pl.Tensor[[2, ranks, ranks, size], dtype]],
    ):
        rows = pld.alloc_window_buffer([1, size], dtype=dtype)
        all_rows = pld.alloc_window_buffer([ranks, size], dtype=dtype)
        cells = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        own, held = pld.window(rows, [1, size], dtype=dtype), pld.window(all_rows, [ranks, size], dtype=dtype)
        for turn in pl.range(2):
            for r in pl.range(pld.world_size()):
                publish(x[turn, r], own, device=r)
            pld.tensor.allgather(own, held, pld.window(cells, [ranks, 1], dtype=pl.INT32))
            for r in pl.range(pld.world_size()):
                take(held, y[turn, r], device=r)
        return y

    return gather


def main() -> None:
    dist.init_process_group("gloo")
    ranks, rank = dist.get_world_size(), dist.get_rank()
    for dtype, elements, size in KINDS:
        x = torch.arange(2 * ranks * size).remainder(101).to(elements).reshape(2, ranks, 1, size)
        y = torch.zeros(2, ranks, ranks, size, dtype=elements)
        gathering(ranks, size, dtype)(x, y, config=RunConfig(device_ids=range(ranks)))
        for turn in range(2):
            wanted = [torch.empty_like(x[turn, rank]) for _ in range(ranks)]
            dist.all_gather(wanted, x[turn, rank].contiguous())
            assert torch.equal(y[turn, rank], torch.cat(wanted)), (dtype, turn)
    print("gathered", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
