"""The CPU as a back end: a whole program as one object of native code, through LLVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from tilewright.backends.cpu.host.options import Options
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import PROGRAM, Anatomy, Backend, Code, Errors, Exported, Peak, Texts, Timed
from tilewright.core.program import Program
from tilewright.dtypes import DataType
from tilewright.errors import ArtifactError
from tilewright.native import machines, matrix_units, support
from tilewright.native.assemble import assemble, assembly, llvm_version
from tilewright.native.elf import listing
from tilewright.native.regions import POOL, SERIAL
from tilewright.native.target import Target, host, llvm_files, missing_features


class CPU(Backend):
    """Programs as native code of this machine's processor."""

    name = "cpu"
    stages = ("tiles", "fusion", "llvm", "assembly", "object")
    is_kept = True

    def objection(self) -> str:
        """Return what this machine is, where native code does not run on it."""
        return machines.objection()

    def facts(self) -> dict[str, str]:
        """Return what LLVM calls this processor, and its version."""
        return {"processor": host().cpu, "LLVM": llvm_version()}

    def target(self) -> Target:
        """Return the processor this process runs on; loads LLVM."""
        return matrix_units.own_target()

    def fingerprint(self) -> str:
        """Return what this processor is called and can do."""
        return matrix_units.own_fingerprint()

    def toolchain(self) -> list[str]:
        """Return llvmlite's files, without importing it."""
        return llvm_files()

    def options(self, *, is_checked: bool = False) -> Options:
        """Return what the settings say now; of races native code knows nothing."""
        return Options.current()

    def begin(self) -> None:
        """Load LLVM."""
        support.begin()

    def compile(
        self,
        program: Program,
        entries: Sequence[str] | None = None,
        target: Target | None = None,
        options: Options | None = None,
        timed: Timed = nullcontext,
    ) -> Code:
        """Return a lowered program as native code with a host function for each entry.

        The steps are `loading the compiler`, which takes long only once in a process, `emission` and `LLVM`.
        """
        with timed("loading the compiler"):
            support.begin_code()  # first: a thread goes on with it while others are imported
            from tilewright.backends.cpu.emission import emitted  # 0.2 s that loading code does without

        with timed("emission"):
            made = emitted(program, entries, target or self.target(), options or Options.current())
            emitter, tiles = made.emitter, made.tiles
            plans, target, text = emitter.plans, made.target, emitter.module.text()
        with timed("LLVM"):
            binary = assemble(text, target).object
        code = {"llvm": lambda: text, "assembly": lambda: assembly(text, target), **_texts(binary)}
        texts = {"tiles": lambda: str(tiles), "fusion": lambda: "\n\n".join(map(str, plans)) + "\n", **code}
        return Code(self, target, {PROGRAM: binary}, made.symbols, emitter.errors, texts)

    def anatomy(self, program: Program, entries: Sequence[str] | None = None, target: Target | None = None) -> Anatomy:
        """Return LLVM's text and the instructions with their lines, and who holds which tile's memory."""
        from tilewright.backends.cpu.emission import anatomy

        return anatomy(program, entries, target or self.target())

    def peaks(self, threads: int, product: DataType | None) -> Sequence[Peak]:
        """Return what the processor does at most, measured: memory, multiply-adds, and AMX for what it takes."""
        from tilewright.native.peaks import matrix_flops, peaks

        most, units = peaks(threads), 0.0 if product is None else matrix_flops(threads, str(product))
        found = [Peak("memory", "B/s", most.bytes), Peak("FMA", "FLOP/s", most.flops)]
        return [*found, Peak("AMX", "FLOP/s", units)] if units else found

    def load(self, program: Program, code: Code) -> HostProgram:
        """Return code mapped into this process; ArtifactError names what this processor lacks for it."""
        missing = missing_features(code.target)
        if missing:
            raise ArtifactError(f"code for {code.target.cpu} cannot run here: it needs {', '.join(missing)}")
        if code.target.has_amx and (refusal := matrix_units.objection() or matrix_units.refusal()):
            raise ArtifactError(f"code for {code.target.cpu} with AMX cannot run here: {refusal}")
        return HostProgram(program, code)

    def companions(self, code: Code) -> dict[str, bytes]:
        """Return the code that runs chunks in parallel and looks for signals."""
        return support.objects(code.objects)

    def restored(
        self, target: Mapping[str, Any], objects: Mapping[str, bytes], symbols: Mapping[str, str], errors: Errors
    ) -> Code:
        """Return code that was kept."""
        return Code(self, Target(**target), objects, symbols, errors, _texts(objects[PROGRAM]))

    def exported(self, code: Code) -> Exported:
        """Return the program's object and the one that runs chunks on threads of its own."""
        features = [each[1:] for each in code.target.features.split(",") if each.startswith("+")]
        return Exported([code.object, support.carried(code.objects)(SERIAL + POOL)], features)


def _texts(made: bytes) -> Texts:
    return {"object": lambda: listing(made)}


BACKEND = CPU()
