"""Ranks: what the interpreter finds wrong with programs of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError, RaceError
from tilewright.interpret.rows import IdleRankWarning
from tilewright.runtime import RunConfig

S = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]
W = pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]


def ranks(count: int) -> RunConfig:
    return RunConfig(platform="interpret", device_ids=range(count))


@pl.jit
def waits(signal: S):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, [0, 0], 2, cmp=pld.WaitCmp.Ge)


@pl.jit.host
def nobody_tells(x: pl.Tensor[[1], pl.FP32]):
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        waits(pld.window(cells, [1, 1], dtype=pl.INT32), device=r)


def test_a_wait_for_what_nobody_sends_names_the_cell_and_what_the_others_do() -> None:
    with pytest.raises(ExecutionError) as caught:
        nobody_tells(np.zeros(1, np.float32), config=ranks(2))
    assert "rank 0 waits for cell [0, 0] >= 2, which is 0, and all ranks wait" in str(caught.value)
    assert "pld.system.wait(signal" in str(caught.value) and "rank 1 waits for cell [0, 0] >= 2" in str(caught.value)


def test_a_rank_that_waits_alone_is_told_that_the_others_have_ended() -> None:
    with pytest.raises(ExecutionError, match="nobody is left to change that"):
        nobody_tells(np.zeros(1, np.float32), config=ranks(1))


@pl.jit
def puts(x: pl.Tensor[[1, 8], pl.FP32], window: W, signal: S, is_ordered: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(window)
        if me < 1:
            pld.tensor.put(window, 1, x)
            pld.system.notify(signal, 1, [0, 0], 1, op=pld.NotifyOp.Set)
        if me > 0:
            if is_ordered:
                pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Eq)
            pl.store(pl.add(pl.load(window, [0, 0], [1, 8]), 1.0), [0, 0], window)


@pl.jit.host
def puts_and_adds(x: pl.Tensor[[1, 8], pl.FP32], is_ordered: pl.Scalar[pl.INT32]):
    rows = pld.alloc_window_buffer(32)
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        window = pld.window(rows, [1, 8], dtype=pl.FP32)
        puts(x, window, pld.window(cells, [1, 1], dtype=pl.INT32), is_ordered, device=r)


def test_two_ranks_that_touch_a_place_need_a_signal_between_them() -> None:
    x = np.ones((1, 8), np.float32)
    puts_and_adds(x, 1, config=ranks(2))
    with pytest.raises(RaceError) as caught:
        puts_and_adds(x, 0, config=ranks(2))
    assert "rank 1 reads element [0, 0] of what this touches, which rank 0 writes" in str(caught.value)
    assert "pld.tensor.put" not in caught.value.message and "no signal orders them" in str(caught.value)


X = pl.Tensor[[1, 8], pl.FP32]
Rows = pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]


@pl.jit
def puts_from_its_part(x: X, window: Rows):
    with pl.at(level=pl.Level.CORE_GROUP):
        if pld.rank(window) < 1:
            pld.tensor.put(window, 1, window, [0, 0], [2, 0], [1, 8])
        else:
            pld.tensor.put(window, 0, x, [2, 0], [0, 0], [1, 8])


@pl.jit
def puts_from_what_was_put(x: X, window: Rows):
    with pl.at(level=pl.Level.CORE_GROUP):
        if pld.rank(window) > 0:
            pld.tensor.put(window, 0, window, [0, 0], [2, 0], [1, 8])
        else:
            pld.tensor.put(window, 1, x, [2, 0], [0, 0], [1, 8])


@pl.jit
def gets_what_is_stored(x: X, window: Rows):
    with pl.at(level=pl.Level.CORE_GROUP):
        if pld.rank(window) < 1:
            pld.tensor.get(window, 1, window, [0, 0], [2, 0], [1, 8])
        else:
            pl.store(pl.load(x, [0, 0], [1, 8]), [2, 0], window)


@pytest.mark.parametrize(
    "chip", [puts_from_its_part, puts_from_what_was_put, gets_what_is_stored], ids=lambda f: f.name
)
def test_what_a_transfer_reads_needs_a_signal_too(chip: Any) -> None:
    @pl.jit.host
    def transfers(x: X):
        buffer = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            chip(x, pld.window(buffer, [4, 8], dtype=pl.FP32), device=r)

    with pytest.raises(RaceError, match=r"reads.*no signal orders them|which rank \d reads: no signal orders them"):
        transfers(np.ones((1, 8), np.float32), config=ranks(2))


@pl.jit
def streams(
    x: pl.Tensor[[2, 8], pl.FP32],
    y: pl.InOut[pl.Tensor[[2, 8], pl.FP32]],
    slot: W,
    cells: S,
    is_acknowledged: pl.Scalar[pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        if pld.rank(slot) < 1:
            for i in pl.range(2):
                if is_acknowledged:
                    pld.system.wait(cells, [0, 0], i, cmp=pld.WaitCmp.Ge)
                pld.tensor.put(slot, 1, x, [0, 0], [i, 0], [1, 8])
                pld.system.notify(cells, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        else:
            for i in pl.range(2):
                pld.system.wait(cells, [0, 0], i + 1, cmp=pld.WaitCmp.Ge)
                pl.store(pl.load(slot, [0, 0], [1, 8]), [i, 0], y)
                pld.system.notify(cells, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.host
def stream(
    x: pl.Tensor[[2, 8], pl.FP32], y: pl.InOut[pl.Tensor[[2, 8], pl.FP32]], is_acknowledged: pl.Scalar[pl.INT32]
):
    slots = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        slot, cell = pld.window(slots, [1, 8], dtype=pl.FP32), pld.window(cells, [1, 1], dtype=pl.INT32)
        streams(x, y, slot, cell, is_acknowledged, device=r)


def test_a_wait_comes_after_what_it_had_to_wait_for_and_not_after_all_that_came() -> None:
    x, y = np.eye(2, 8, dtype=np.float32), np.zeros((2, 8), np.float32)
    stream(x, y, 1, config=ranks(2))
    assert (x == y).all()
    with pytest.raises(RaceError, match="rank 1 reads element .* which rank 0 writes: no signal orders them"):
        stream(x, y, 0, config=ranks(2))


@pl.jit
def counts(x: X, window: Rows, signal: S, wanted: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(window)
        pld.tensor.put(window, 2, x, [me, 0], [0, 0], [1, 8])
        pld.system.notify(signal, 2, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me > 1:
            pld.system.wait(signal, [0, 0], wanted, cmp=pld.WaitCmp.Ge)
            pl.store(pl.add(pl.load(window, [0, 0], [1, 8]), pl.load(window, [1, 0], [1, 8])), [3, 0], window)


@pl.jit.host
def counted(x: X, wanted: pl.Scalar[pl.INT32]):
    buffer = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        window, signal = pld.window(buffer, [4, 8], dtype=pl.FP32), pld.window(cells, [1, 1], dtype=pl.INT32)
        counts(x, window, signal, wanted, device=r)


def test_a_count_orders_its_wait_after_all_ranks_only_if_none_of_them_may_be_missing() -> None:
    x = np.ones((1, 8), np.float32)
    counted(x, 3, config=ranks(3))
    with pytest.raises(RaceError, match="rank 2 reads element .* which rank 0 writes: no signal orders them"):
        counted(x, 2, config=ranks(3))


def refused(host: Any, *args: Any, count: int = 2) -> str:
    with pytest.raises(ExecutionError) as caught:
        host(*args, config=ranks(count))
    return str(caught.value)


@pl.jit
def tells(signal: S, peer: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.notify(signal, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.host
def tells_a_peer(x: pl.Tensor[[1], pl.FP32], peer: pl.Scalar[pl.INT32], device: pl.Scalar[pl.INT32]):
    cells = pld.alloc_window_buffer(4)
    tells(pld.window(cells, [1, 1], dtype=pl.INT32), peer, device=device)


def test_peers_and_devices_outside_are_named() -> None:
    x = np.zeros(1, np.float32)
    assert "peer 3 is no rank of the domain, which has 1" in refused(tells_a_peer, x, 3, 0)
    assert "device=2, and there are 2 rank(s)" in refused(tells_a_peer, x, 0, 2)


@pl.jit
def doubles(x: pl.Tensor[[1], pl.FP32], y: pl.Out[pl.Tensor[[1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(y, [0], pl.read(x, [0]) * 2.0)
    return y


ROWS = pl.Tensor[[pl.dynamic("N"), 1], pl.FP32]


@pl.jit.host
def nowhere(x: ROWS, y: pl.Out[ROWS]):
    for r in pl.range(pld.world_size()):
        doubles(x[r], y[r])
    return y


@pl.jit.host
def up_to(x: ROWS, y: pl.Out[ROWS], end: pl.Scalar[pl.INT32]):
    for r in pl.range(end):
        doubles(x[r], y[r], device=r)
    return y


def rows(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.ones((count, 1), np.float32), np.zeros((count, 1), np.float32)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_dispatch_says_its_rank_where_there_are_several(platform: str) -> None:
    x, y = rows(2)
    with pytest.raises(ExecutionError) as caught:
        nowhere(x, y, config=RunConfig(platform=platform, device_ids=[0, 1]))
    assert "`doubles` is dispatched without device=, and there are 2 rank(s)" in str(caught.value)
    assert "doubles(x[r], y[r])" in str(caught.value) and "doubles(..., device=r)" in str(caught.value)
    assert not y.any()
    nowhere(x[:1], y[:1], config=RunConfig(platform=platform))
    assert y.ravel().tolist() == [2, 0]


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_rows_that_no_rank_is_given_do_not_stay_as_they_were_in_silence(platform: str) -> None:
    x, y = rows(3)
    with pytest.raises(ExecutionError) as caught:
        up_to(x, y, 1, config=RunConfig(platform=platform))
    assert "each rank is given its row of `x`, which has 3, and there are 1 rank(s)" in str(caught.value)
    assert "--ranks 3" in str(caught.value), "as a command line says it"
    assert "doubles(x[r], y[r], device=r)" in str(caught.value) and "device_ids=range(3)" in str(caught.value)
    with pytest.warns(IdleRankWarning, match="rank 2 is dispatched nothing, and nobody is given the same rows of `x`"):
        up_to(x, y, 2, config=RunConfig(platform=platform, device_ids=range(3)))
    assert y.ravel().tolist() == [2, 2, 0]
    y[:] = 0
    up_to(x[:2], y[:2], 2, config=RunConfig(platform=platform, device_ids=range(3)))  # all rows there are
    assert y.ravel().tolist() == [2, 2, 0]
    up_to(x, y, 3, config=RunConfig(platform=platform, device_ids=range(3)))
    assert y.ravel().tolist() == [2, 2, 2]


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_ranks_that_there_are_no_rows_for_are_told_how_many_there_are(platform: str) -> None:
    x, y = rows(2)
    with pytest.raises(ExecutionError) as caught:
        up_to(x, y, 3, config=RunConfig(platform=platform, device_ids=range(3)))
    assert "each rank is given its row of `x`, which has 2, and there are 3 rank(s)" in str(caught.value)
    assert "device_ids=range(2)" in str(caught.value) and "pass a tensor with 3" in str(caught.value)
    assert not y.any()
    with pytest.raises(ExecutionError, match="a slice of 1 element"):  # of a row that is no rank's
        up_to(x, y, 3, config=RunConfig(platform=platform, device_ids=range(2)))


@pl.jit
def meets_but_the_first(w: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        if pld.rank(w) > 0:
            pld.tensor.barrier(w)


@pl.jit.host
def without_the_first(x: pl.Tensor[[1], pl.FP32]):
    cells = pld.alloc_window_buffer([3, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        meets_but_the_first(pld.window(cells, [3, 1], dtype=pl.INT32), device=r)


@pl.jit.host
def sums(x: pl.Tensor[[1], pl.FP32]):
    data = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([2], dtype=pl.INT32)
    pld.tensor.allreduce(pld.window(data, [1, 8], dtype=pl.FP32), pld.window(cells, [2], dtype=pl.INT32))


@pl.jit.host
def scatters(x: pl.Tensor[[1], pl.FP32]):
    data = pld.alloc_window_buffer([2, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([3], dtype=pl.INT32)
    pld.tensor.reduce_scatter(pld.window(data, [2, 8], dtype=pl.FP32), pld.window(cells, [3], dtype=pl.INT32))


@pl.jit.host
def broadcasts(x: pl.Tensor[[1], pl.FP32]):
    data = pld.alloc_window_buffer([2, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([3], dtype=pl.INT32)
    pld.tensor.broadcast(pld.window(data, [2, 8], dtype=pl.FP32), pld.window(cells, [3], dtype=pl.INT32), root=3)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (without_the_first, "pld.tensor.barrier(w)", "it waits for >= 1|rank 1 waits for cell [0, 0] >= 1"),
        (sums, "pld.tensor.allreduce(", "`signal` is a window of [2], and the domain has 3 ranks"),
        (scatters, "pld.tensor.reduce_scatter(", "`target` is a window of [2, 8], and the domain has 3 ranks"),
        (broadcasts, "pld.tensor.broadcast(", "root is rank 3, and the domain has 3"),
    ],
    ids=["barrier", "allreduce", "reduce_scatter", "broadcast"],
)
def test_what_goes_wrong_in_a_collective_is_shown_where_it_is_called(
    platform: str, function: Any, line: str, words: str
) -> None:
    with pytest.raises(ExecutionError) as caught:
        function(np.zeros(1, np.float32), config=RunConfig(platform=platform, device_ids=range(3)))
    assert any(word in str(caught.value) for word in words.split("|")), caught.value
    assert line in str(caught.value) and "collectives.py" not in str(caught.value)


@pl.jit.host
def hands_over(x: pl.Tensor[[1], pl.FP32], is_buffer: bool):
    cells = pld.alloc_window_buffer(4)
    window = pld.window(cells, [1, 1], dtype=pl.FP32)
    waits(cells if is_buffer else window, device=0)


def test_a_buffer_is_no_window_and_a_window_of_other_elements_is_laid_out_anew() -> None:
    for is_buffer, got in ((True, "a window buffer, or one of bytes"), (False, "fp32")):
        with pytest.raises(TypeError) as caught:
            hands_over(np.zeros(1, np.float32), is_buffer, config=ranks(1))
        assert f"`signal` is a window of int32, got {got}" in str(caught.value)
        assert "help: pld.window(buffer, [1, 1], dtype=pl.INT32) is one" in str(caught.value)
