"""The engine: Triton's compiler driven stage by stage, from a kernel's text to machine code of a GPU.

Neither a GPU nor torch is needed for that, and nothing of Triton's own cache and launcher is used.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tilewright.errors import InternalError
from tilewright.forks import Lock
from tilewright.records import record

STAGES = ("ttir", "ttgir", "llir", "ptx")
"""The texts that Triton makes on its way, by its own names."""

MOST_SHARED = 232448
"""Bytes of shared memory that a block can have."""

_lock = Lock()


@record
class Binary:
    """A kernel as machine code, and how it is launched."""

    cubin: bytes
    name: str
    threads: int
    shared: int
    texts: Mapping[str, str]


@record
class Job:
    """A kernel's text, the compute capability it is for times ten, and what Triton is told about it."""

    text: str
    capability: int
    warps: int
    stages: int


def compiled(jobs: Sequence[Job]) -> list[Binary]:
    """Return kernels compiled for a GPU, side by side and equal ones once.

    InternalError shows what Triton objects to, and the text.
    """
    with _lock, _quiet() as said:
        triton = _triton()
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # most of the time is spent outside of Python
            found = {job: pool.submit(_compiled, triton, job) for job in dict.fromkeys(jobs)}
        for job, future in found.items():
            try:
                future.result()
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                complaint = _complaint(said()) or f"{type(error).__name__}: {error}"
                raise InternalError(f"Triton refuses the generated kernel: {complaint}\n{job.text}") from None
    return [found[job].result() for job in jobs]


def _compiled(triton: _Triton, job: Job) -> Binary:
    target = triton.target("cuda", job.capability, 32)
    backend = triton.make_backend(target)
    options = backend.parse_options(
        {"num_warps": job.warps, "num_stages": job.stages, "enable_fp_fusion": False, "enable_reflect_ftz": False}
    )
    context = triton.ir.context()
    triton.ir.load_dialects(context)
    backend.load_dialects(context)
    module: Any = _parsed(triton, context, job.text)
    makers: dict[str, Any] = {}
    backend.add_stages(makers, options, *triton.language)
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    texts: dict[str, str] = {}
    for name, make in makers.items():
        module = make(module, metadata)
        if name in STAGES:
            texts[name] = str(module)
    if metadata.get("global_scratch_size"):
        raise InternalError("a kernel that needs scratch memory of the device")
    return Binary(bytes(module), metadata["name"], 32 * metadata["num_warps"], metadata["shared"], texts)


def _parsed(triton: Any, context: Any, text: str) -> Any:
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", delete=False) as file:
        file.write(text)
    try:
        module = triton.ir.parse_mlir_module(file.name, context)
    finally:
        os.unlink(file.name)
    module.context = context
    return module


class _Triton:
    """What is used of Triton, loaded."""

    def __init__(self) -> None:
        from triton._C.libtriton import ir  # pyright: ignore
        from triton.backends.compiler import GPUTarget  # pyright: ignore
        from triton.compiler.compiler import make_backend  # pyright: ignore

        self.ir: Any = ir
        self.target: Any = GPUTarget
        self.make_backend: Any = make_backend
        self.language: tuple[Any, ...] = ()
        try:
            from triton.backends.compiler import Language  # pyright: ignore
        except ImportError:
            return
        self.language = (Language.TRITON,)  # pyright: ignore


_loaded: list[_Triton] = []


def _triton() -> _Triton:
    if not _loaded:
        _loaded.append(_Triton())
    return _loaded[0]


@contextmanager
def _quiet() -> Generator[Any, None, None]:
    """Keep what compilers write to the process's own output, which is the only place where they say what is wrong."""
    with tempfile.TemporaryFile() as file:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        for number, _ in kept:
            os.dup2(file.fileno(), number)

        def said() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield said
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def _complaint(said: str) -> str:
    found = re.search(r"error: (.*)", said)
    return found[1] if found else ""
