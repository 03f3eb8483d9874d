"""Expert parallelism: tokens go to the rank whose expert they chose, and what it makes of them comes back.

Each rank packs its tokens by destination, `all_to_all_v` exchanges them, every expert multiplies what it was sent, and
a second exchange brings the rows back to where they were.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

TOKENS, WIDTH = 16, 64
NR, ROWS = pl.dynamic("NR"), pl.dynamic("ROWS")  # as many rows as there are tokens on all ranks


@pl.jit
def pack(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    chosen: pl.Tensor[[TOKENS, 1], pl.INT32],
    places: pl.InOut[pl.Tensor[[TOKENS, 1], pl.INT32]],
    counts: pl.InOut[pl.Tensor[[NR, 1], pl.INT32]],
    packed: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
):
    """Lay tokens out by the rank they go to, and note where each of them is."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for token in pl.range(TOKENS):
            expert = pl.read(chosen, [token, 0])
            count = pl.read(counts, [expert, 0])
            place = expert * TOKENS + count
            packed = pl.store(pl.load(x, [token, 0], [1, WIDTH]), [pl.cast(place, pl.INDEX), 0], packed)
            pl.write(places, [token, 0], place)
            pl.write(counts, [expert, 0], count + 1)


@pl.jit
def exchange(
    packed: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
    there: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    counts: pl.Tensor[[NR, 1], pl.INT32],
    came: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    """Send every rank its rows."""
    with pl.at(level=pl.Level.CORE_GROUP):
        there = pld.tensor.all_to_all_v(packed, there, signal, counts, came)


@pl.jit
def apply_expert(
    w: pl.Tensor[[WIDTH, WIDTH], pl.FP32],
    there: pld.DistributedTensor[[ROWS, WIDTH], pl.FP32],
    came: pld.DistributedTensor[[NR, 1], pl.INT32],
    made: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
):
    """Multiply the rows that came from each rank, and no others."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for rank in pl.range(came.shape[0]):
            count = pl.cast(pl.read(came, [rank, 0]), pl.INDEX)
            rows = pl.load(there, [rank * TOKENS, 0], [TOKENS, WIDTH], valid_shape=[count, WIDTH])
            made = pl.store(pl.matmul(rows, pl.load(w, [0, 0], [WIDTH, WIDTH])), [rank * TOKENS, 0], made)


@pl.jit
def unpack(
    places: pl.Tensor[[TOKENS, 1], pl.INT32],
    back: pld.DistributedTensor[[ROWS, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
):
    """Bring rows back into the order of the tokens."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for token in pl.range(TOKENS):
            place = pl.cast(pl.read(places, [token, 0]), pl.INDEX)
            y = pl.store(pl.load(back, [place, 0], [1, WIDTH]), [token, 0], y)
    return y


@pl.jit.host
def mixture(
    x: pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32],
    chosen: pl.Tensor[[NR, TOKENS, 1], pl.INT32],
    w: pl.Tensor[[NR, WIDTH, WIDTH], pl.FP32],
    places: pl.InOut[pl.Tensor[[NR, TOKENS, 1], pl.INT32]],
    counts: pl.InOut[pl.Tensor[[NR, NR, 1], pl.INT32]],
    y: pl.Out[pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32]],
):
    n = pld.world_size()
    size = n * TOKENS * WIDTH * pl.FP32.get_byte()
    going = pld.alloc_window_buffer(size)
    coming = pld.alloc_window_buffer(size)
    computed = pld.alloc_window_buffer(size)
    returned = pld.alloc_window_buffer(size)
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    arrived = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    again = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        packed = pld.window(going, [n * TOKENS, WIDTH], dtype=pl.FP32)
        there = pld.window(coming, [n * TOKENS, WIDTH], dtype=pl.FP32)
        made = pld.window(computed, [n * TOKENS, WIDTH], dtype=pl.FP32)
        back = pld.window(returned, [n * TOKENS, WIDTH], dtype=pl.FP32)
        signal = pld.window(signals, [n, 1], dtype=pl.INT32)
        came = pld.window(arrived, [n, 1], dtype=pl.INT32)
        pack(x[r], chosen[r], places[r], counts[r], packed, device=r)
        exchange(packed, there, signal, counts[r], came, device=r)
        apply_expert(w[r], there, came, made, device=r)
        exchange(made, back, signal, came, pld.window(again, [n, 1], dtype=pl.INT32), device=r)
        unpack(places[r], back, y[r], device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return every token as its expert made it, and what torch makes of them."""
    torch.manual_seed(0)
    x, w = torch.randn(ranks, TOKENS, WIDTH), torch.randn(ranks, WIDTH, WIDTH) / WIDTH**0.5
    chosen = torch.randint(ranks, (ranks, TOKENS, 1), dtype=torch.int32)
    places, counts = torch.zeros_like(chosen), torch.zeros(ranks, ranks, 1, dtype=torch.int32)
    y = torch.zeros_like(x)
    mixture(x, chosen, w, places, counts, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, (x[:, :, None] @ w[chosen[..., 0].long()])[:, :, 0]


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("expert parallelism: every token went to its expert and came back")
