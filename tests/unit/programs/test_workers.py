"""Workers: programs run on them, and their memory is an argument as it is."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.runtime import ChipWorker, CompiledProgram, DeviceTensor, RunConfig, Worker, run


@pl.program
class Doubles:
    @pl.function
    def double(
        self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)


LINE: Any = np.arange(64, dtype=np.float32)
X = LINE[:32].reshape(4, 8)


@pytest.fixture(params=["cpu", "interpret"])
def platform(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def compiled(platform: str) -> CompiledProgram:
    return ir.compile(Doubles, platform=platform)


@pytest.fixture
def worker(platform: str) -> Iterator[ChipWorker]:
    made = ChipWorker(RunConfig(platform))
    yield made
    made.close()


def read(worker: Worker, tensor: DeviceTensor) -> Any:
    found: Any = np.empty(tensor.shape, np.float32)
    worker.copy_from(found.ctypes.data, tensor.data_ptr, tensor.nbytes)
    return found


def owned(worker: ChipWorker) -> Any:
    return getattr(worker, "_owned_tensors")  # noqa: B009 - which the PTO family's tests look at


def test_a_worker_runs_programs_on_its_own_memory_in_place(worker: ChipWorker, compiled: CompiledProgram) -> None:
    x = worker.alloc_tensor((4, 8), np.float32, init=X)
    out = worker.alloc_tensor([4, 8], pl.FP32)
    assert compiled(x, out) is None
    np.testing.assert_array_equal(read(worker, out), 2 * X)
    worker.run(compiled, out, x)
    np.testing.assert_array_equal(read(worker, x), 4 * X)
    assert (x.nbytes, x.shape, len(owned(worker))) == (128, (4, 8), 2)


def test_outputs_left_out_are_arrays_of_the_host(worker: ChipWorker, compiled: CompiledProgram) -> None:
    result = compiled(worker.alloc_tensor((4, 8), np.float32, init=X))
    np.testing.assert_array_equal(np.asarray(result), 2 * X)


def test_host_and_device_tensors_go_together(worker: ChipWorker, compiled: CompiledProgram) -> None:
    out = np.zeros((4, 8), np.float32)
    for _ in range(8):  # and stay together where machine code takes calls like it
        compiled(worker.alloc_tensor((4, 8), np.float32, init=X), out)
        np.testing.assert_array_equal(out, 2 * X)
        compiled(X, out)


def test_views_of_the_host_are_copied_element_by_element(worker: ChipWorker) -> None:
    wide = LINE.reshape(8, 8)
    tensor = worker.alloc_tensor((4, 8), np.float32, init=wide[::2])
    np.testing.assert_array_equal(read(worker, tensor), wide[::2])


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ((4, 4), np.float32, ValueError, r"`x` expects shape \[4, 8\], got \[4, 4\]"),
        ((32,), np.float32, ValueError, "`x` expects rank 2, got 1"),
        ((4, 8), np.int32, TypeError, "`x` expects dtype fp32, got int32"),
    ],
)
def test_a_device_tensor_is_checked_as_arrays_are(
    worker: ChipWorker, compiled: CompiledProgram, shape: Any, dtype: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        compiled(worker.alloc_tensor(shape, dtype))


def test_freed_memory_is_not_read(worker: ChipWorker, compiled: CompiledProgram) -> None:
    x = worker.alloc_tensor((4, 8), np.float32)
    worker.free_tensor(x)
    worker.free_tensor(x)
    with pytest.raises(ValueError, match="`x` is a DeviceTensor whose memory was freed"):
        compiled(x)


def test_memory_that_belongs_to_a_newer_tensor_is_not_freed(worker: ChipWorker) -> None:
    old = worker.alloc_tensor((4, 8), np.float32)
    newer = DeviceTensor(old.data_ptr, (4, 8), np.float32)
    assert newer == old and hash(newer) == hash(old)
    with pytest.raises(ValueError, match="belongs to a newer tensor"):
        worker.free_tensor(newer)
    with pytest.raises(ValueError, match="whose worker_id is 0, got 1"):
        worker.free_tensor(old, worker_id=1)
    assert len(owned(worker)) == 1


def test_what_a_tensor_cannot_start_as_leaves_nothing_allocated(worker: ChipWorker) -> None:
    with pytest.raises(ValueError, match=r"of shape \[2, 2\] cannot start as one of \[4, 8\]"):
        worker.alloc_tensor((2, 2), np.float32, init=X)
    with pytest.raises(ValueError, match="of int32 cannot start as one of fp32"):
        worker.alloc_tensor((4, 8), np.int32, init=X)
    assert not owned(worker)


def test_raw_memory_is_copied_within_its_bounds(worker: ChipWorker) -> None:
    address = worker.malloc(16)
    given, found = (ctypes.c_uint8 * 16)(*range(16)), (ctypes.c_uint8 * 16)()
    worker.copy_to(address, ctypes.addressof(given), 16)
    worker.copy_from(ctypes.addressof(found), address + 4, 12)
    assert list(found)[:12] == list(range(4, 16))
    for at, count in ((address, 17), (address + 8, 9), (address - 1, 1), (address, -1)):
        with pytest.raises(ValueError, match="are not within one allocation of this worker"):
            worker.copy_to(at, ctypes.addressof(given), count)
    worker.free(address)
    with pytest.raises(ValueError, match="nothing is allocated at"):
        worker.free(address)
    with pytest.raises(ValueError, match="nbytes must be an integer above 0"):
        worker.malloc(0)


def test_a_tensor_over_a_workers_memory_fits_it_and_is_gone_with_it(
    worker: ChipWorker, compiled: CompiledProgram
) -> None:
    address = worker.malloc(192)
    with pytest.raises(ValueError, match="of 128 bytes does not fit the 64 allocated at this address"):
        DeviceTensor(address + 128, (4, 8), np.float32)
    x = DeviceTensor(address + 64, (4, 8), np.float32)
    compiled(x)
    worker.free(address)
    with pytest.raises(ValueError, match="whose memory was freed"):
        compiled(x)


@pytest.mark.parametrize("shape", [(0, 8), (4, -1)])
def test_extents_are_positive(shape: Any) -> None:
    with pytest.raises(ValueError, match="has extents above 0"):
        DeviceTensor(0, shape, np.float32)


def test_a_tensor_lies_somewhere() -> None:
    with pytest.raises(ValueError, match="lies in memory, got the address 0"):
        DeviceTensor(0, (4, 8), np.float32)


def test_a_closed_worker_runs_nothing(worker: ChipWorker, compiled: CompiledProgram) -> None:
    handle, tensor = worker.register(compiled), worker.alloc_tensor((4, 8), np.float32)
    worker.close()
    worker.close()
    assert not worker.initialized and not owned(worker) and not tensor.is_live
    for use in (lambda: worker.run(compiled, X), lambda: handle(X), lambda: worker.malloc(4)):
        with pytest.raises(RuntimeError, match="this worker is closed"):
            use()
    worker.init()
    np.testing.assert_array_equal(handle(X), 2 * X)


def test_a_worker_can_wait_to_be_initialized() -> None:
    worker = ChipWorker(auto_init=False)
    assert not worker.initialized
    with worker:
        assert worker.initialized and worker.level == 2
    assert not worker.initialized


def test_handles_close_one_by_one(worker: ChipWorker, compiled: CompiledProgram) -> None:
    with worker.register(compiled) as first:
        second = worker.register(compiled)
        assert first.cid != second.cid and first.compiled is compiled
        np.testing.assert_array_equal(first(X), 2 * X)
    assert first.closed and not second.closed
    first.unregister()
    with pytest.raises(RuntimeError, match="was unregistered: register the program again"):
        first(X)
    np.testing.assert_array_equal(second(X), 2 * X)


def test_distinct_programs_are_counted_at_their_first_dispatch(worker: ChipWorker, compiled: CompiledProgram) -> None:
    handle = worker.register(compiled)
    assert worker.aicpu_dlopen_count == 0
    handle(X)
    worker.run(compiled, X)
    assert worker.aicpu_dlopen_count == 1
    worker.run(ir.compile(Doubles, platform=compiled.platform), X)
    assert (worker.aicpu_dlopen_count, worker.host_dlopen_count) == (2, 0)


def test_programs_run_on_the_worker_around_them(platform: str, compiled: CompiledProgram) -> None:
    config = RunConfig(platform)
    with ChipWorker(config) as worker:
        compiled(X)
        compiled(X)
        assert worker.aicpu_dlopen_count == 1
        run(Doubles, X, config=config)
        assert worker.aicpu_dlopen_count == 2
        run(Doubles, X, platform="interpret" if platform == "cpu" else "cpu")
        assert worker.aicpu_dlopen_count == 2
    compiled(X)
    assert worker.aicpu_dlopen_count == 2


def test_platform_and_runtime_must_match() -> None:
    worker = ChipWorker(RunConfig("a2a3sim", device_id=3))
    assert (worker.platform, worker.device_id, worker.runtime) == ("a2a3sim", 3, "tensormap_and_ringbuffer")
    worker.run(ir.compile(Doubles), X)
    with pytest.raises(ValueError, match="Doubles is for platform 'a5sim', and this worker for 'a2a3sim'"):
        worker.run(ir.compile(Doubles, platform="a5sim"), X)
    with pytest.raises(ValueError, match="Doubles is for runtime 'host_build_graph', and this worker for 'tensormap"):
        worker.register(ir.compile(Doubles, runtime="host_build_graph"))
    with pytest.raises(ValueError, match="runtime must be one of TENSORMAP_AND_RINGBUFFER, HOST_BUILD_GRAPH"):
        ChipWorker(runtime="none")


def test_kernels_refuse_device_tensors_by_name() -> None:
    @pl.jit
    def double(x: pl.Tensor, out: pl.Out[pl.Tensor]) -> Any:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
        return out

    tensor = ChipWorker().alloc_tensor((4, 8), np.float32, init=X)
    with pytest.raises(TypeError, match="`x` is a DeviceTensor, which compiled programs take and kernels do not"):
        double(tensor, X.copy())
    np.testing.assert_array_equal(np.asarray(double.compile(X)(tensor)), 2 * X)


def test_a_program_is_handed_to_a_chip(compiled: CompiledProgram, worker: ChipWorker) -> None:
    assert compiled.chip_callable is compiled.chip_callable
    assert compiled.runtime_name == "tensormap_and_ringbuffer" == compiled.runtime_config["runtime"]
    assert compiled.build_call_config(RunConfig(device_id=2, enable_pmu=1)).device_id == 2


def test_arguments_are_packed_for_a_worker(compiled: CompiledProgram, worker: ChipWorker) -> None:
    out = np.zeros((4, 8), np.float32)
    pack, coerced, returns = compiled.build_orch_args(X, out, worker=worker)
    assert list(pack.words) == [X.ctypes.data, 4, 8, 8, 1, out.ctypes.data, 4, 8, 8, 1]
    assert coerced[1] is out and not returns
    _, coerced, returns = compiled.build_orch_args(X, worker=worker)
    assert returns and np.asarray(coerced[1]).shape == (4, 8)
    with pytest.raises(TypeError, match="pass worker="):
        compiled.build_orch_args(X, out)
