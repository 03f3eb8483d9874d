"""The engine: Triton's compiler driven stage by stage, from a kernel's text to machine code of a GPU.

Neither a GPU nor torch is needed for that, and nothing of Triton's own cache and launcher is used.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.backends.cuda.maps import Box, boxes
from tilewright.backends.cuda.nvidia_tools import assembler
from tilewright.backends.cuda.reports import Usage
from tilewright.backends.cuda.schedule import SPECIALIZED, Schedule
from tilewright.backends.cuda.target import shared_memory, triton_release, triton_version
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.forks import Lock
from tilewright.records import record

STAGES = ("ttir", "ttgir", "llir", "ptx")
"""The texts that Triton makes on its way, by its own names."""

WAITING = 90
"""The compute capability, times ten, from which on kernels wait for each other by themselves."""

SPILLED = 256
"""Bytes that a thread has no registers for, from which on a block of more threads is tried."""
LEFT = 0.6
"""How much of those there may be where a block of twice the threads is worth it: about half."""

_OBJECTIONS = (RuntimeError, ValueError, TypeError, IndexError)
"""What Triton raises for kernels that it does not take."""

_lock = Lock()


class _TooLarge(ValueError):
    """Raised for a kernel that does not fit a block."""

    def __init__(self, shared: int, most: int) -> None:
        super().__init__(f"{shared} bytes of shared memory, and a block has at most {most}")
        self.shared, self.most = shared, most


@record
class Binary:
    """A kernel as machine code, and how it is launched."""

    cubin: bytes
    name: str
    threads: int
    shared: int
    texts: Mapping[str, str]
    boxes: tuple[Box, ...] = ()
    takes_turns: bool = False
    """Whether its blocks take turns at those of its grid, so that there need not be more than run at a time."""
    waits: bool = False
    """Whether it waits for the kernel before it by itself, and so can be started while that runs."""


@record
class Job:
    """The compute capability a kernel is for, times ten, and its texts with a schedule each, the best first.

    Where threads have no registers for what they hold, a block has more of them, up to `most` warps.
    """

    capability: int
    tries: tuple[tuple[str, Schedule], ...]
    most: int = 0


def compiled(jobs: Sequence[Job]) -> list[Binary]:
    """Return kernels compiled for a GPU, side by side and equal ones once.

    UnsupportedFeatureError for tiles that do not fit a block; InternalError shows what else Triton objects to.
    """
    with _quiet() as said:
        triton = _triton()
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # most of the time is spent outside of Python
            for capability in {job.capability for job in jobs}:
                pool.submit(triton.assembler, capability)  # which Triton asks for its version before it writes PTX
            found = {job: pool.submit(_fitting, triton, job) for job in dict.fromkeys(jobs)}
        for job, future in found.items():
            try:
                future.result()
            except _TooLarge as error:
                raise _refused(job.tries[-1][0], error) from None
            except _OBJECTIONS as error:
                _check_assembler(error)
                complaint = _complaint(said()) or f"{type(error).__name__}: {error}"
                raise InternalError(f"Triton refuses the generated kernel: {complaint}\n{job.tries[-1][0]}") from None
    return [found[job].result() for job in jobs]


def _check_assembler(error: Exception) -> None:
    """Raise ImportError where no assembler runs, which is no mistake in a kernel."""
    found = assembler()
    if found.startswith("none"):
        message = (
            f"Triton {triton_version()} compiles kernels for GPUs with NVIDIA's assembler, of which there is {found}"
        )
        raise ImportError(f"{message} (pip install --force-reinstall triton)") from error


def _refused(text: str, error: _TooLarge) -> UnsupportedFeatureError:
    """Return what is said of a kernel whose tiles do not fit a block, by its name and first line."""
    name, place = re.search(r"@(\w+)\(", text), re.search(r'loc\("([^"]+)":([1-9]\d*):', text)
    kernel = f"kernel `{name[1]}`" if name else "a kernel"
    where = f" ({Path(place[1]).name}, line {place[2]})" if place else ""
    help = "use smaller tiles, or fewer of them at a time: what is turned, sorted or multiplied lies in shared memory"
    return UnsupportedFeatureError(f"{kernel}{where} takes {error}", help=help)


def _fitting(triton: _Triton, job: Job) -> Binary:
    """Return a kernel by the first of its schedules that Triton can follow and that fits a block, and registers."""
    text, schedule, found = _first(triton, job)
    spilled = Usage.of(found.cubin).spilled
    while spilled > SPILLED and schedule.warps < job.most and not schedule.is_specialized:
        schedule = replace(schedule, warps=2 * schedule.warps)
        try:
            wider = _compiled(triton, job.capability, text, schedule)
        except _OBJECTIONS:
            break
        if Usage.of(wider.cubin).spilled > LEFT * spilled:
            break
        found, spilled = wider, Usage.of(wider.cubin).spilled
    return found


def _first(triton: _Triton, job: Job) -> tuple[str, Schedule, Binary]:
    """Return the first text and schedule that Triton can follow and that fit a block, and the kernel.

    What loads ahead grows with its stages: schedules that are hopeless by what another one took are not tried.
    """
    *first, last = job.tries
    most: dict[str, int] = {}
    for text, schedule in first:
        try:
            if schedule.stages <= most.get(text, schedule.stages):
                return text, schedule, _compiled(triton, job.capability, text, schedule)
        except _TooLarge as error:
            most[text] = schedule.stages * error.most // error.shared
        except _OBJECTIONS:
            continue
    return *last, _compiled(triton, job.capability, *last)


def _compiled(triton: _Triton, capability: int, text: str, schedule: Schedule) -> Binary:
    target = triton.target("cuda", capability, 32)
    backend = triton.make_backend(target)
    options = backend.parse_options(
        {
            "num_warps": schedule.warps,
            "num_stages": schedule.stages,
            "enable_fp_fusion": False,
            "enable_reflect_ftz": False,
        }
    )
    context = triton.ir.context()
    triton.ir.load_dialects(context)
    backend.load_dialects(context)
    waits = capability >= WAITING and not schedule.has_roles
    text = _waiting(text) if waits else text
    module: Any = _parsed(triton, context, text if schedule.is_specialized else text.replace(SPECIALIZED, "}"))
    makers: dict[str, Any] = {}
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    texts: dict[str, str] = {}
    if schedule.has_roles:
        backend.add_stages(makers, options, triton.with_layouts)
        del makers["ttgir"]
        makers["cubin"] = lambda ptx, _: _assembled(triton, capability, ptx)  # pyright: ignore
        texts["ttgir"], metadata["tensordesc_meta"] = text, module.get_tensordesc_metadata()
    else:
        backend.add_stages(makers, options, triton.language)
    for name, make in makers.items():
        try:
            module = make(module, metadata)
        except triton.assembler_error as error:
            raise ValueError(str(error)) from None
        if name in STAGES:
            texts[name] = str(module)
        most = shared_memory(capability)
        if metadata.get("shared", 0) > most:  # which is found long before there is machine code
            raise _TooLarge(metadata["shared"], most)
    if metadata.get("global_scratch_size"):
        raise InternalError("a kernel that needs scratch memory of the device")
    made = boxes(texts["ttgir"], metadata.get("tensordesc_meta") or ())
    name, threads, shared = metadata["name"], 32 * metadata["num_warps"], metadata["shared"]
    return Binary(bytes(module), name, threads, shared, texts, made, schedule.has_roles, waits)


def _waiting(text: str) -> str:
    """Return a kernel that waits for the one before it before all else, and then lets the one behind it be started."""
    said = '{constraints = "=r", packed_element = 1 : i32, pure = false} -> i32 loc("kernel":0:0)'
    lines = (
        f'    %{step} = tt.elementwise_inline_asm "griddepcontrol.{step}; // $0" {said}\n'
        for step in ("wait", "launch_dependents")
    )
    return _HEAD.sub(lambda head: head[0] + "".join(lines), text, count=1)


_HEAD = re.compile(r"^  tt\.func [^\n]*\{\n", re.MULTILINE)


def _assembled(triton: _Triton, capability: int, ptx: str) -> bytes:
    """Return machine code; ValueError where it would wait for each product, or has no registers for what it holds."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        tool, options = (
            triton.assembler(capability),
            ("-lineinfo", "--fmad=false", "-v", f"--gpu-name=sm_{capability}a"),
        )
        done = subprocess.run(
            [tool, *options, str(source), "-o", str(made)], capture_output=True, text=True, check=False
        )
        if done.returncode or _SERIALIZED.search(done.stderr):
            raise ValueError(done.stderr)
        cubin = made.read_bytes()
    if Usage.of(cubin).spilled:
        raise ValueError("registers that are spilled")
    return cubin


_SERIALIZED = re.compile(r"\(C75\d\d\)")
"""What the assembler says where it does not let products run side by side with anything."""


def _parsed(triton: Any, context: Any, text: str) -> Any:
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", delete=False) as file:
        file.write(triton.spelled(text))
    try:
        module = triton.ir.parse_mlir_module(file.name, context)
    finally:
        os.unlink(file.name)
    module.context = context
    return module


_SPELLINGS = (
    ((3, 8), re.compile(r"!tt\.tensordesc<tensor<([^<>]*)>>"), r"!tt.tensordesc<\1>"),
    (
        (3, 9),
        re.compile(r"evictionPolicy = (\w+)"),
        r"{cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = \1>}",
    ),
)
"""From which release on Triton spells something otherwise."""


class _Triton:
    """What is used of Triton, loaded."""

    def __init__(self) -> None:
        from triton._C.libtriton import ir  # pyright: ignore
        from triton.backends.compiler import GPUTarget, Language  # pyright: ignore
        from triton.compiler.compiler import make_backend  # pyright: ignore
        from triton.runtime.errors import PTXASError  # pyright: ignore

        self.ir: Any = ir
        self.target: Any = GPUTarget
        self.make_backend: Any = make_backend
        self.assembler_error: Any = PTXASError
        self.language: Any = Language.TRITON  # pyright: ignore
        self.with_layouts: Any = Language.GLUON  # pyright: ignore

    def spelled(self, text: str) -> str:
        """Return a text as this Triton reads it."""
        for since, known, new in _SPELLINGS:
            text = known.sub(new, text) if triton_release() >= since else text
        return text

    def assembler(self, capability: int) -> str:
        """Return where the assembler is that Triton would take."""
        find: Any = vars(import_module("triton.backends.nvidia.compiler"))["get_ptxas"]
        return find(capability).path if find.__code__.co_argcount else find().path


_loaded: list[_Triton] = []


def _triton() -> _Triton:
    with _lock:
        if not _loaded:
            try:
                _loaded.append(_Triton())
            except ImportError as error:
                message = f"Triton {triton_version()} compiles kernels for GPUs, and cannot be loaded here: {error}"
                raise ImportError(f"{message} (pip install --force-reinstall triton)") from error
        return _loaded[0]


class _Output:
    """The process's own output, led into a file: compilers say what is wrong nowhere else."""

    def __init__(self) -> None:
        self.users = 0
        self._file = tempfile.TemporaryFile()
        self._kept = [(number, os.dup(number)) for number in (1, 2)]
        for number, _ in self._kept:
            os.dup2(self._file.fileno(), number)

    @property
    def size(self) -> int:
        """How much has been written."""
        return os.fstat(self._file.fileno()).st_size

    def since(self, begin: int) -> str:
        """Return what has been written from some place on."""
        return os.pread(self._file.fileno(), self.size - begin, begin).decode(errors="replace")

    def restore(self) -> None:
        """Let the process have its output again."""
        for number, copy in self._kept:
            os.dup2(copy, number)
            os.close(copy)
        self._file.close()


_outputs: list[_Output] = []


@contextmanager
def _quiet() -> Generator[Callable[[], str], None, None]:
    """Keep what compilers write to the process's own output; those that run side by side keep it together."""
    with _lock:
        if not _outputs:
            _outputs.append(_Output())
        output, begin = _outputs[0], _outputs[0].size
        output.users += 1
    try:
        yield lambda: output.since(begin)
    finally:
        with _lock:
            output.users -= 1
            if not output.users:
                _outputs.remove(output)
                output.restore()


def _complaint(said: str) -> str:
    found = re.search(r"error: (.*)", said)
    return found[1] if found else ""
