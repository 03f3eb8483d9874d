"""NVIDIA GPUs as a back end: kernels through Triton IR, host functions through LLVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cuda import target as targets
from tilewright.backends.cuda.driver import current_stream, driver, is_there, number_of
from tilewright.backends.cuda.loaded import LaunchedProgram
from tilewright.backends.cuda.nvidia_tools import assembler, disassembler
from tilewright.backends.cuda.reports import KERNELS, TEXTS, packed, texts
from tilewright.backends.cuda.target import Target, shared_memory
from tilewright.backends.interface import PROGRAM, Anatomy, Backend, Code, Errors, Peak, Reach, Texts, Timed
from tilewright.core.program import Program
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError
from tilewright.native import support
from tilewright.native.assemble import assemble
from tilewright.native.target import llvm_files

if TYPE_CHECKING:
    from tilewright.backends.cuda.engine import Binary
    from tilewright.backends.cuda.host.kernels import KernelText
    from tilewright.backends.cuda.host.program import LaunchingProgram
    from tilewright.backends.devices import Devices


class CUDA(Backend):
    """Programs as kernels of a GPU, with host functions that start them."""

    name = "cuda"
    stages = ("ttir", "ttgir", "llir", "ptx", "llvm", "sass", "launches")
    devices = ("cuda",)
    is_kept = True
    compiles_beside = True

    def objection(self) -> str:
        """Return what is missing for compiling; running takes a GPU too, and says so itself."""
        return targets.triton_objection()

    def facts(self) -> dict[str, str]:
        """Return which GPUs, driver and Triton there are."""
        found = {"Triton": targets.triton_version() or "none", "assembler": assembler()}
        found["disassembler"] = disassembler() or "none"
        try:
            gpus = [f"{driver().device_name(n)}, sm_{driver().capability(n)}" for n in range(driver().count)]
        except ExecutionError as error:
            return {**found, "GPU": f"none: {error}", "running": "no: programs are compiled, saved and shown here"}
        return {
            **found,
            "driver": f"CUDA {driver().version // 1000}.{driver().version % 1000 // 10}",
            "GPU": "; ".join(gpus),
            "running": "yes: tensors of torch, arrays of CuPy and of anybody who hands them over by DLPack",
        }

    def target(self) -> Target:
        """Return the first GPU of this machine, and where there is none the one that is usual."""
        return targets.target_for(driver().capability(0) if is_there() else targets.DEFAULT)

    def named(self, target: str) -> Target:
        """Return a GPU by its name, as in `sm_90`; ValueError lists them."""
        return targets.named(target)

    def fingerprint(self) -> str:
        """Return which GPU, driver and Triton there are, and what that is told by the environment."""
        gpu = f"{driver().capability(0)} {driver().version}" if is_there() else "none"
        return f"{gpu} triton {targets.triton_version()} {targets.triton_settings()}"

    def toolchain(self) -> list[str]:
        """Return llvmlite's files; Triton's are told by its version."""
        return llvm_files()

    def options(self, *, is_checked: bool = False) -> Options:
        """Return what the settings say now."""
        return Options.current()

    def begin(self) -> None:
        """Load LLVM, which host functions take."""
        support.begin()

    def compile(
        self,
        program: Program,
        entries: Sequence[str] | None = None,
        target: Target | None = None,
        options: Options | None = None,
        timed: Timed = nullcontext,
    ) -> Code:
        """Return a lowered program as kernels, and a host function for each entry.

        The steps are `loading the compiler`, `emission`, `Triton` and what is left of `LLVM`, which runs beside it.
        """
        with timed("loading the compiler"):
            from tilewright.backends.cuda.engine import Job, compiled
            from tilewright.backends.cuda.host.program import LaunchingProgram

            target = target or self.target()
            emitter = LaunchingProgram(
                program, target.processor, options or Options.current(), shared_memory(target.capability)
            )
        with timed("emission"):
            functions = program.entries if entries is None else [program[name] for name in entries]
            symbols = {function.name: emitter.entry(function) for function in functions}
            text = emitter.module.text()
        with timed("Triton"), ThreadPoolExecutor(1) as beside:
            host = beside.submit(assemble, text, target.processor)
            binaries = compiled(
                [
                    Job(target.capability, kernel.tries(target.capability, is_aligned=is_aligned), kernel.widest)
                    for kernel in emitter.kernels
                    for is_aligned in (True, False)
                ]
            )
        with timed("LLVM"):
            made = host.result().object
        shown = _texts(emitter.kernels, binaries)
        objects = {PROGRAM: made, **_objects(emitter, binaries), TEXTS: packed(shown)}
        shown = {**shown, "llvm": lambda: text, **texts(objects)}
        return Code(self, target, objects, symbols, emitter.errors, shown)

    def anatomy(self, program: Program, entries: Sequence[str] | None = None, target: Target | None = None) -> Anatomy:
        """Return Triton's IR, PTX and machine code with their lines."""
        from tilewright.backends.cuda.anatomy import anatomy

        return anatomy(self.compile(program, entries, target))

    def load(self, program: Program, code: Code) -> LaunchedProgram:
        """Return code that is loaded on a GPU when it is first called there."""
        return LaunchedProgram(program, code)

    def elapsed(self, run: Callable[[], object]) -> float:
        """Return how many seconds a run takes the GPU, which has nothing else to do when it starts."""
        return driver().elapsed(run, current_stream())

    def peaks(self, threads: int, product: DataType | None) -> Sequence[Peak]:
        """Return what this machine's first GPU does at most, by its clocks and what its multiprocessors have."""
        from tilewright.backends.cuda.peaks import peaks

        return peaks(driver(), 0, product) if is_there() else ()

    def reach(self, threads: int) -> Reach:
        """Return the multiprocessors of this machine's first GPU."""
        return Reach(driver().multiprocessors(0) if is_there() else 1, "multiprocessors")

    def stream(self, device: str) -> int | None:
        """Return the current stream of a GPU, torch's where torch is loaded."""
        return current_stream(number_of(device))

    def release(self, device: str, stream: int | None) -> None:
        """Let a stream, or this thread, wait for the current stream of a GPU."""
        own = self.stream(device)
        if stream is None or (own or 0) != stream:
            driver().join(number_of(device), own, stream)

    def rank_devices(self) -> Devices:
        """Return the GPUs of this machine."""
        from tilewright.backends.cuda.ranks import GPUS

        return GPUS

    def companions(self, code: Code) -> dict[str, bytes]:
        """Return the code that looks for signals, as the processor's programs bring it along."""
        return support.objects(code.objects)

    def restored(
        self, target: Mapping[str, Any], objects: Mapping[str, bytes], symbols: Mapping[str, str], errors: Errors
    ) -> Code:
        """Return code that was kept."""
        return Code(self, Target(**target), objects, symbols, errors, texts(objects))


def _objects(emitter: LaunchingProgram, binaries: Sequence[Binary]) -> dict[str, bytes]:
    """Return the kernels as files, and what says how each is launched: aligned and other, in turn."""
    named = enumerate(emitter.kernels)
    names = [f"{kernel.name}.{number}.{kind}" for number, kernel in named for kind in ("aligned", "other")]
    listed = [
        {
            "object": name,
            "name": binary.name,
            "threads": binary.threads,
            "shared": binary.shared,
            "takes_turns": binary.takes_turns,
            "waits": binary.waits,
            "boxes": [word for box in binary.boxes for word in (box.rows, box.columns, box.swizzle)],
        }  # fmt: skip
        for name, binary in zip(names, binaries, strict=True)
    ]
    cubins = {name: binary.cubin for name, binary in zip(names, binaries, strict=True)}
    launches = [each.kept for each in emitter.launches]
    prints = [[each.text, each.end, each.kind, each.box] for each in emitter.prints]
    about = {"kernels": listed, "launches": launches, "prints": prints}
    return {KERNELS: json.dumps(about).encode(), **cubins}


def _texts(kernels: Sequence[KernelText], binaries: Sequence[Binary]) -> Texts:
    """Return what the kernels for aligned parameters were on their way, stage by stage."""

    def joined(stage: str) -> str:
        return "\n".join(binary.texts.get(stage, "") for binary in binaries[::2])

    written = {"ttir": lambda: "\n".join(kernel.described or kernel.aligned for kernel in kernels)}
    return {**written, **{stage: partial(joined, stage) for stage in ("ttgir", "llir", "ptx")}}


BACKEND = CUDA()
