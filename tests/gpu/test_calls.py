"""Calls on the GPU: graphs of launches, streams, threads, captures, outputs, torch's compiler and autograd, CuPy."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError
from tilewright.programs.bench import benchmark
from tilewright.programs.program import CompiledProgram
from tilewright.runtime import RunConfig

torch: Any = pytest.importorskip("torch")


@pl.jit
def chain(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    """So many launches that each need the one before, through memory that only the device sees."""
    held = pl.create_tensor(x.shape, dtype=pl.FP32)
    for row in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, 64]), [row, 0], held)
    for _ in pl.range(n):
        for row in pl.parallel(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(held, [row, 0], [16, 64]) * 2.0 + 1.0, [row, 0], held)
    for row in pl.parallel(0, 64, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(held, [row, 0], [32, 64]), [row, 0], out)
    return out


def chained(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 2 + 1
    return x


@pl.jit
def corner(x: pl.Tensor, out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [32, 32]), [16, 16], out)
    return out


@pl.jit
def swish(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [8, 64])
            pl.store(t / (pl.exp(t * -1.0) + 1.0), [row, 0], y)
    return y


@swish.backward
def swish_backward(x: pl.Tensor, dy: pl.Tensor, dx: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [8, 64])
            s = 1.0 / (pl.exp(t * -1.0) + 1.0)
            pl.store(pl.load(dy, [row, 0], [8, 64]) * (s + t * s * (1.0 - s)), [row, 0], dx)
    return dx


def uniform(*shape: int) -> Any:
    return torch.rand(*shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1))


def compiled_chain() -> CompiledProgram:
    x = uniform(64, 64)
    return chain.compile(x, torch.empty_like(x), pl.RUNTIME)


def test_a_program_of_many_launches_is_right_however_often_and_however_long() -> None:
    program = compiled_chain()
    for count in (6, 6, 6, 2, 9, 0, 6, 70, 6):
        x, out = uniform(64, 64) + count, torch.full((64, 64), -1.0, device="cuda")
        program(x, out, count)
        assert torch.equal(out, chained(x, count)), count


def test_graphs_are_not_mixed_up_by_streams_and_threads() -> None:
    program = compiled_chain()
    wrong: list[int] = []

    def work(seed: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(50):
                x = torch.full((64, 64), float(seed + turn), device="cuda")
                out = torch.empty_like(x)
                program(x, out, 5)
                if not torch.equal(out, chained(x, 5)):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(7)
    assert not wrong


def test_a_program_of_many_launches_can_be_captured() -> None:
    program, x = compiled_chain(), uniform(64, 64)
    out = torch.zeros_like(x)
    for _ in range(3):
        program(x, out, 6)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        program(x, out, 6)
        made = swish(x)
    for value in (3.0, 4.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, chained(x, 6))
        torch.testing.assert_close(made, torch.nn.functional.silu(x))


def test_what_a_kernel_leaves_of_a_returned_output_is_zeros() -> None:
    x = uniform(32, 32)
    want = torch.zeros(64, 64, device="cuda")
    want[16:48, 16:48] = x
    for _ in range(40):
        torch.full((64, 64), 7.0, device="cuda")  # what the next output may be made of
        assert torch.equal(corner(x), want)


def test_a_returned_output_is_new_each_time_and_on_its_stream() -> None:
    x = uniform(64, 64)
    held = [swish(x + n) for n in range(40)]
    assert len({each.data_ptr() for each in held}) == 40
    for n, each in enumerate(held):
        torch.testing.assert_close(each, torch.nn.functional.silu(x + n))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        y = x * 2
        made = swish(y)
    side.synchronize()
    torch.testing.assert_close(made, torch.nn.functional.silu(y))


INDUCTOR = pytest.param(
    "inductor",  # which torch 2.11 cannot import without warning of itself
    marks=pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script_method` is deprecated:DeprecationWarning"),
)


@pytest.mark.parametrize("backend", ["aot_eager", INDUCTOR])
def test_torchs_compiler_keeps_kernels_whole(backend: str) -> None:
    compiled = torch.compile(lambda x: swish(x + 1) * 2, fullgraph=True, backend=backend)
    for _ in range(3):
        x = uniform(64, 64)
        try:
            found = compiled(x)
        except Exception as error:
            if backend == "inductor" and "compiler" in str(error).lower():
                pytest.skip("Inductor finds no C compiler here")
            raise
        torch.testing.assert_close(found, torch.nn.functional.silu(x + 1) * 2)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients_flow_through_pairs_of_kernels(is_compiled: bool) -> None:
    ours, theirs = (uniform(64, 64).requires_grad_() for _ in range(2))
    run = torch.compile(lambda x: swish(x), fullgraph=True, backend="aot_eager") if is_compiled else swish
    for _ in range(3):
        ours.grad = theirs.grad = None
        (run(ours) * 3).sum().backward()
        (torch.nn.functional.silu(theirs) * 3).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=2e-5, atol=2e-6)


def test_code_for_another_gpu_is_refused_by_its_name() -> None:
    x, have = uniform(64, 64), torch.cuda.get_device_capability()[0]
    other = "sm_80" if have != 8 else "sm_90"
    with pytest.raises(ExecutionError, match=f"kernels for {other} cannot run on this GPU, which is sm_{have}"):
        swish(x, config=RunConfig(platform="cuda", target=other))
    torch.testing.assert_close(swish(x), torch.nn.functional.silu(x))


def test_a_program_is_an_operator_of_torch() -> None:
    x = uniform(64, 64)
    op = swish.compile(x).as_torch_op("tilewright_gpu::swish")
    torch.testing.assert_close(op(x), torch.nn.functional.silu(x))
    torch.library.opcheck(op, (x,))


def test_arrays_of_cupy_are_taken_as_they_are() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.random.rand(64, 64, dtype=cupy.float32)
    for given in (x, x.T, cupy.asfortranarray(x)):
        made = swish(given)
        assert isinstance(made, cupy.ndarray)
        cupy.testing.assert_allclose(made, given / (1 + cupy.exp(-given)), rtol=1e-5)
    out = cupy.zeros((64, 64), cupy.float32, order="F")
    swish(x, out)
    cupy.testing.assert_allclose(out, x / (1 + cupy.exp(-x)), rtol=1e-5)
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(20):
            busy = cupy.ones((2048, 2048), cupy.float32)
            for _ in range(10):
                busy = busy @ busy * 0
            y = x + busy[:64, :64]
            cupy.testing.assert_allclose(swish(y) + 1, y / (1 + cupy.exp(-y)) + 1, rtol=1e-5)
    with pytest.raises(ValueError, match="`x` is on cuda:0 and `y` on cpu"):
        swish(x, cupy.asnumpy(x))
    mixed = torch.zeros(64, 64, device="cuda")
    swish(x, mixed)
    torch.testing.assert_close(mixed, torch.nn.functional.silu(torch.from_dlpack(x)))


def test_a_benchmark_times_the_device_by_events() -> None:
    x = uniform(8192, 64)
    stats = benchmark(swish.compile(x), (x, torch.empty_like(x)), rounds=20)
    assert 0.5 < stats.device.median < 1000 and stats.samples == 20


AGAIN = """
import sys
sys.modules["triton"] = sys.modules["llvmlite"] = None
import torch
from tilewright.programs.program import CompiledProgram
x = torch.rand(64, 64, device="cuda")
y = CompiledProgram.load(sys.argv[1])(x)
torch.testing.assert_close(y, torch.nn.functional.silu(x))
print("ran")
"""


def test_a_saved_program_runs_where_there_is_neither_triton_nor_llvm(tmp_path: Path) -> None:
    swish.compile(uniform(64, 64)).save(tmp_path)
    found = subprocess.run(
        [sys.executable, "-c", AGAIN, str(tmp_path)], capture_output=True, text=True, env=os.environ, check=False
    )
    assert found.stdout.strip().endswith("ran"), found.stderr


WARM = """
import sys
import torch
import tilewright.language as pl

@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [16, 64]) * 2.0, [0, 0], out)
    return out

x = torch.rand(16, 64, device="cuda")
assert torch.equal(twice(x), x * 2)
print(*sorted({"triton", "llvmlite"} & {*sys.modules}))
"""


def test_a_process_that_finds_a_program_kept_imports_neither_triton_nor_llvm(tmp_path: Path) -> None:
    script, there = tmp_path / "warm.py", {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "kept")}
    script.write_text(WARM)
    said: list[str] = []
    for _ in range(2):
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=there, check=True)
        said.append(done.stdout.strip())
    assert said == ["llvmlite triton", ""]
