"""Measure what a call costs once everything is compiled: a 16x16 add, three tensors, every guard on.

All contenders take turns in one process, and a figure is the median of its batches; the ratio to a Python function that
takes no arguments and does nothing is what carries over to other machines. Budgets are those of the project.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ["TILEWRIGHT_CACHE_DIR"] = "off"

import numpy as np
import torch
import torch._dynamo  # before anything is warm: when it comes, kernels start anew
from harness import Report, fresh_python, save

import tilewright.language as pl
from tilewright import pto
from tilewright.runtime import RunConfig

BATCH, SIZE, MANY = 300, 16, 8
VIEW, PART, TILE = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<16x16xf32>", "!pto.tile_buf<vec, 16x16xf32>"
BUDGETS = {
    "jit, 3 torch tensors": 14.0, "jit, 8 torch tensors": 32.0, "jit through Python, 3 torch tensors": 95.0,
}  # fmt: skip
RELATIVE = (
    ("jit, 3 torch tensors", "torch.add(out=)", 0.25),
    ("jit, 3 NumPy arrays", "numba.njit, 3 NumPy arrays", 1.0),
    ("jit, 3 NumPy arrays", "jit, 3 torch tensors", 1.0),
    ("jit, 3 torch tensors by name", "jit, 3 torch tensors", 2.0),
    ("jit, 2 torch tensors (returns)", "torch.add, allocating", 3.0),
    ("compiled program, 3 torch tensors", "jit, 3 torch tensors", 1.05),
    ("jit, 3 torch tensors, config=", "jit, 3 torch tensors", 2.0),
    ("compiled program, 3 torch tensors, config=", "compiled program, 3 torch tensors", 2.0),
    ("jit, 3 torch tensors, on a timeline", "jit, 3 torch tensors", 3.0),
    ("pto kernel, 3 torch tensors", "jit, 3 torch tensors", 1.2),
    ("pto kernel, one tensor twice", "jit, 3 torch tensors", 1.2),
    ("pto kernel, grid written out", "jit, 3 torch tensors", 1.2),
)
"""What a call may cost at most, in terms of another; a twentieth is noise."""


def noop() -> None:
    pass


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape), [0, 0], out)
    return out


@pl.jit
def add_in_python(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape), [0, 0], out)
    return out


@pl.jit
def add_many(
    a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, d: pl.Tensor, e: pl.Tensor, f: pl.Tensor, g: pl.Tensor,
    out: pl.Out[pl.Tensor],
):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(a, [0, 0], a.shape) + pl.load(g, [0, 0], g.shape), [0, 0], out)
    return out


PTO_ADD = f"""module {{
  func.func @add(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %out: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {SIZE} : index
    %vx = pto.make_tensor_view %x, shape = [%n, %n], strides = [%n, %c1] : {VIEW}
    %vy = pto.make_tensor_view %y, shape = [%n, %n], strides = [%n, %c1] : {VIEW}
    %vo = pto.make_tensor_view %out, shape = [%n, %n], strides = [%n, %c1] : {VIEW}
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%n, %n] : {VIEW} -> {PART}
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%n, %n] : {VIEW} -> {PART}
    %po = pto.partition_view %vo, offsets = [%c0, %c0], sizes = [%n, %n] : {VIEW} -> {PART}
    %a = pto.alloc_tile : {TILE}
    %b = pto.alloc_tile : {TILE}
    pto.tload ins(%px : {PART}) outs(%a : {TILE})
    pto.tload ins(%py : {PART}) outs(%b : {TILE})
    pto.tadd ins(%a, %b : {TILE}, {TILE}) outs(%a : {TILE})
    pto.tstore ins(%a : {TILE}) outs(%po : {PART})
    return
  }}
}}
"""


def pto_kernel() -> Any:
    """Return the same kernel as PTO text, compiled."""
    buffer: Any = pto.ptr(pto.f32, "gm")

    def add(x, y, out): ...  # pyright: ignore

    add.__annotations__ = {"x": buffer, "y": buffer, "out": buffer}
    return pto.jit(source=PTO_ADD)(add).compile()


@dataclass
class Written:
    """A kernel called in another way than by position, as the text says: `f` is the kernel, `a0` its first argument."""

    kernel: Any
    text: str
    config: RunConfig | None = None

    def __call__(self, *args: Any) -> Any:
        return eval(self.text, self.names(args))

    def names(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """Return what the text stands for."""
        return {"f": self.kernel, "c": self.config, **{f"a{k}": value for k, value in enumerate(args)}}


BY_NAME, CONFIGURED = "f(x=a0, y=a1, out=a2)", "f(a0, a1, a2, config=c)"


def warmed(kernel: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a kernel whose calls with these arguments take the way they will take from now on."""
    for _ in range(4):
        kernel(*args)
    return kernel


def contenders() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield every contender that is installed: a name, a function, its arguments."""
    x, y, out = (torch.randn(SIZE, SIZE) for _ in range(3))
    arrays = tuple(np.random.rand(SIZE, SIZE).astype(np.float32) for _ in range(3))
    many = tuple(torch.randn(SIZE, SIZE) for _ in range(MANY))
    yield "a Python function that does nothing", noop, ()
    yield "jit, 3 torch tensors", warmed(add, (x, y, out)), (x, y, out)
    yield "jit, 3 NumPy arrays", warmed(add, arrays), arrays
    yield "jit, 8 torch tensors", warmed(add_many, many), many
    yield "jit, 3 torch tensors by name", warmed(Written(add, BY_NAME), (x, y, out)), (x, y, out)
    config, timeline = RunConfig(), RunConfig(trace=os.path.join(tempfile.mkdtemp(), "timeline.json"))
    program = add.compile(x, y, out)
    for name, each in (("config=", config), ("on a timeline", timeline)):
        yield f"jit, 3 torch tensors, {name}", warmed(Written(add, CONFIGURED, each), (x, y, out)), (x, y, out)
        call = warmed(Written(program, CONFIGURED, each), (x, y, out))
        yield f"compiled program, 3 torch tensors, {name}", call, (x, y, out)
    yield "jit, 2 torch tensors (returns)", warmed(add, (x, y)), (x, y)
    yield "jit, 2 NumPy arrays (returns)", warmed(add, arrays[:2]), arrays[:2]
    yield "compiled program, 3 torch tensors", warmed(program, (x, y, out)), (x, y, out)
    yield "compiled program, 3 NumPy arrays", warmed(add.compile(*arrays), arrays), arrays
    compiled = pto_kernel()
    yield "pto kernel, 3 torch tensors", warmed(compiled[1, None], (x, y, out)), (x, y, out)
    yield "pto kernel, one tensor twice", warmed(compiled[1, None], (x, x, out)), (x, x, out)
    written = Written(compiled, "f[1, None](a0, a1, a2)")
    yield "pto kernel, grid written out", warmed(written, (x, y, out)), (x, y, out)
    os.environ["TILEWRIGHT_DISPATCH"] = "python"
    yield "jit through Python, 3 torch tensors", warmed(add_in_python, (x, y, out)), (x, y, out)
    del os.environ["TILEWRIGHT_DISPATCH"]
    yield "torch.add, allocating", torch.add, (x, y)
    yield "torch.add(out=)", lambda a, b, c: torch.add(a, b, out=c), (x, y, out)
    yield "np.add(out=)", lambda a, b, c: np.add(a, b, out=c), arrays
    yield from others(arrays, (x, y, out))


def others(
    arrays: tuple[Any, ...], tensors: tuple[Any, ...]
) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield the other compilers that are installed, each as its users call it."""
    try:
        import numba
    except ImportError:
        pass
    else:
        yield "numba.njit, 3 NumPy arrays", warmed(numba.njit(_elementwise), arrays), arrays
    try:
        import jax
    except ImportError:
        pass
    else:
        held = tuple(map(jax.numpy.asarray, arrays[:2]))
        yield "jax.jit, 2 jax arrays (returns)", warmed(jax.jit(lambda a, b: a + b), held), held
    try:
        import tvm_ffi
    except ImportError:
        pass
    else:
        yield "tvm-ffi, nothing done to 3 torch tensors", tvm_ffi.get_global_func("testing.nop"), tensors
    yield from triton_launch()
    compiled = torch.compile(lambda a, b, c: torch.add(a, b, out=c))
    try:
        yield "torch.compile, 3 torch tensors", warmed(compiled, tensors), tensors
    except Exception as error:  # no C++ compiler
        print(f"torch.compile is left out: {type(error).__name__}", file=sys.stderr)


def triton_launch() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield a launch of Triton's, where there is a GPU to launch on: its binder, and the queueing of the kernel."""
    if not torch.cuda.is_available():
        return
    from triton_add import launch

    tensors = tuple(torch.randn(SIZE, SIZE, device="cuda") for _ in range(3))
    yield "triton.jit, 3 CUDA tensors (queued)", warmed(launch, tensors), tensors


def _elementwise(x: Any, y: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + y[i, j]


def measured(rounds: int) -> dict[str, list[float]]:
    """Return nanoseconds per call of every contender, one figure a round."""
    timers = {name: timer(function, args) for name, function, args in contenders()}
    found: dict[str, list[float]] = {name: [] for name in timers}
    gc.disable()
    for _ in range(rounds):
        for name, clock in timers.items():
            found[name].append(clock.timeit(BATCH) / BATCH * 1e9)
    gc.enable()
    return found


def timer(function: Callable[..., Any], args: tuple[Any, ...]) -> timeit.Timer:
    if not isinstance(function, Written):
        function = Written(function, f"f({', '.join(f'a{k}' for k in range(len(args)))})")
    return timeit.Timer(function.text, globals=function.names(args))


def _mark(is_met: bool) -> str:
    return "✓" if is_met else "✗"


def table(found: dict[str, list[float]]) -> Report:
    nothing = found["a Python function that does nothing"]
    torch_add = found["torch.add(out=)"]
    rows: list[list[str]] = []
    for name, times in found.items():
        ratio = statistics.median(t / n for t, n in zip(times, nothing, strict=True))
        share = statistics.median(t / n for t, n in zip(times, torch_add, strict=True))
        verdicts = [f"{_mark(ratio <= BUDGETS[name])} {BUDGETS[name]:.0f}x"] if name in BUDGETS else []
        for _, other, budget in (row for row in RELATIVE if row[0] == name and row[1] in found):
            part = statistics.median(t / n for t, n in zip(times, found[other], strict=True))
            verdicts.append(f"{_mark(part <= budget)} {part:.2f} of {other}, at most {budget:g}")
        verdict = "; ".join(verdicts)
        rows.append([name, f"{statistics.median(times):.0f}", f"{ratio:.1f}x", f"{share:.2f}", verdict])
    return Report("A warm call", ["call", "ns", "against nothing", "of torch.add(out=)", "budget"], rows)


START = """
import time; start = time.perf_counter()
import numpy as np
import tilewright.language as pl
@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape), [0, 0], out)
    return out
x = np.ones((16, 16), np.float32)
add(x, x)
print((time.perf_counter() - start) * 1e3)
"""


def starts(rounds: int) -> Report:
    """Measure fresh processes from the first import to the first result, with nothing kept and with everything."""
    rows: list[list[str]] = []
    numpy = [
        float(
            fresh_python("import time; s = time.perf_counter(); import numpy; print((time.perf_counter() - s) * 1e3)")
        )
        for _ in range(rounds)
    ]
    rows.append(["import numpy, for comparison", f"{statistics.median(numpy):.0f}", ""])
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "start.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(START)
        cold = [_started(script, os.path.join(folder, f"empty{n}")) for n in range(max(3, rounds // 3))]
        kept = os.path.join(folder, "kept")
        _started(script, kept)
        warm = [_started(script, kept) for _ in range(rounds)]
    rows.append(["first result, nothing kept", f"{statistics.median(cold):.0f}", ""])
    best = statistics.median(warm)
    rows.append(["first result, kept by another process", f"{best:.0f}", f"{'✓' if best <= 120 else '✗'} 120 ms"])
    return Report("A fresh process, over NumPy arrays", ["from the first import on", "ms", "budget"], rows)


def _started(script: str, cache: str) -> float:
    return float(_printed(script, cache))


def _printed(script: str, cache: str, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "TILEWRIGHT_CACHE_DIR": cache
    }
    command = [sys.executable, script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


SOFTMAX = """
import sys, time
import numpy as np
import tilewright.language as pl
from tilewright.ir import CompiledProgram
ROWS = pl.dynamic("ROWS")
@pl.jit
def softmax(x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    for r in pl.parallel(0, ROWS, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            e = pl.exp(pl.load(x, [r, 0], [8, 64]))
            pl.store(pl.row_expand_div(e, pl.row_sum(e)), [r, 0], out)
    return out
program = softmax.compile()
start = time.process_time()
program.save(sys.argv[1])
saved = time.process_time()
CompiledProgram.load(sys.argv[1])
print((saved - start) * 1e3, (time.process_time() - saved) * 1e3, "llvmlite" in sys.modules)
"""


def saves(rounds: int) -> Report:
    """Measure the first `save` and `load` of a softmax in fresh processes: where it was compiled, and where kept."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "softmax.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SOFTMAX)
        for name, cache in (("compiled just before", "off"), ("kept by another process", os.path.join(folder, "kept"))):
            found = [_printed(script, cache, os.path.join(folder, "saved")).split() for _ in range(rounds + 1)][1:]
            save, load = (statistics.median(float(row[k]) for row in found) for k in (0, 1))
            llvm = "yes" if found[-1][2] == "True" else "no"
            verdict = f"{'✓' if save + load <= 20 else '✗'} 20 ms"
            rows.append([name, f"{save:.1f}", f"{load:.1f}", llvm, verdict])
    return Report("Taking a softmax elsewhere", ["program", "save, ms", "load, ms", "LLVM loaded", "budget"], rows)


def lookups() -> Report:
    """Measure a warm call of a kernel that has been compiled for few and for many shapes."""
    from tilewright.call.dispatcher import Dispatcher, Parameter
    from tilewright.call.targets import Callee, Learned, Slot
    from tilewright.dtypes import FP32
    from tilewright.frontend.signature import TensorMeta

    x, y, out = (torch.randn(SIZE, SIZE) for _ in range(3))
    (entry,) = add.compile(x, y, out).program.entries
    code = add.compile(x, y, out).native
    assert code is not None
    rows: list[list[str]] = []
    for count in (10, 1000, 100_000):
        dispatcher, callee = Dispatcher([Parameter()] * 3, noop), Callee(code, entry)
        for number in range(count):
            call = Learned(callee, [Slot(TensorMeta((SIZE, SIZE + number), FP32), None)] * 3, (), 0b100)
            target = call.target()
            assert target is not None
            dispatcher.put(call, target)
        clock = timer(dispatcher.entrance(), (x, y, out))
        times = [clock.timeit(BATCH) / BATCH * 1e9 for _ in range(50)]
        rows.append([f"{count:,} programs", f"{statistics.median(times):.0f}"])
    return Report("A warm call among many programs", ["kernel with", "ns"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101, metavar="N", help="batches of each contender (101)")
    parser.add_argument("--dry-run", action="store_true", help="print the results and write nothing")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    parts = [
        table(measured(chosen.rounds)),
        lookups(),
        starts(max(3, chosen.rounds // 10)),
        saves(max(3, chosen.rounds // 10)),
    ]
    guards = "types, shapes, strides, devices, overlap, globals, code and settings"
    remark = f"One thread; arguments of 16x16 fp32; guards for {guards} all on."
    for part in parts:
        part.show()
    if not chosen.dry_run:
        save("launch", remark, parts)


if __name__ == "__main__":
    main()
