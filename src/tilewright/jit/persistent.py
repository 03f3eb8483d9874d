"""The persistent cache: programs that other processes have compiled.

There are two levels. An artifact is kept by the program itself: its IR, the syntax of its kernels, the options, the
target and the compiler. A manifest is kept by what a call knows before anything is read: the kernel's code and its
arguments; it leads to an artifact without the front end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.backends.cpu.host.options import Options
from tilewright.errors import ArtifactError
from tilewright.frontend.kernels import Kernel
from tilewright.jit.calls import Call
from tilewright.keep import manifest
from tilewright.keep.digest import NotEncodable, digest, encoded, function_bytes
from tilewright.keep.fingerprint import python, toolchain
from tilewright.keep.reads import ReadSet
from tilewright.keep.relocate import Here, freed
from tilewright.keep.store import Store, configured
from tilewright.native.target import fingerprint
from tilewright.programs.config import RunConfig, code_options
from tilewright.programs.loading import load
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization
    from tilewright.programs.program import CompiledProgram

ARTIFACT, MANIFEST = "artifact", "manifest"
FORMAT = 1
PATIENCE = 10.0
"""Seconds to wait for another process that compiles the same: several times what that takes."""


@record
class Found:
    """A program that was kept, and what it was compiled from, as it is in this process."""

    program: CompiledProgram
    listed: manifest.Listed
    reads: ReadSet


class Persistent:
    """One kernel's programs between processes."""

    def __init__(self, kernel: Kernel, store: Store) -> None:
        self.kernel = kernel
        self.store = store

    def find(self, call: Call, options: Sequence[object]) -> Found | None:
        """Return a program for a call's arguments whose reads all still hold, or None."""
        key = self._manifest_key(call, options)
        data = self.store.get(MANIFEST, key) if key is not None else None
        for entry in manifest.read(data) if data is not None else ():
            reads = entry.replayed(self.kernel)
            program = self.loaded(bytes.fromhex(entry.artifact), reads) if reads is not None else None
            if reads is not None and program is not None:
                return Found(program, entry, reads)
        return None

    def artifact(
        self, made: Specialization, options: Sequence[object], reads: ReadSet
    ) -> tuple[bytes, CompiledProgram | None]:
        """Return the key of a specialized program, and the program where it has been kept."""
        key = _artifact_key(made, options)
        return key, self.loaded(key, reads)

    def lock(self, key: bytes) -> AbstractContextManager[bool]:
        """Return a context in which other processes wait for the program that is made in it."""
        return self.store.lock(key, timeout=PATIENCE)

    def loaded(self, key: bytes, reads: ReadSet) -> CompiledProgram | None:
        """Return a kept program, its errors pointing to where its kernels stand in this process."""
        data = self.store.get(ARTIFACT, key)
        try:
            program = load(data) if data is not None else None
        except ArtifactError:  # of another version, or for another processor: as good as none
            return None
        if program is not None:
            _point_here(program, reads)
        return program

    def keep(self, key: bytes, program: CompiledProgram, reads: ReadSet) -> None:
        """Keep a program for other processes."""
        if program.artifact is not None:
            code = replace(program.artifact.code, errors=freed(program.artifact.code.errors, reads.resolvers))
            kept = replace(program.artifact, code=code)
            self.store.put(ARTIFACT, key, kept.to_bytes(), self.kernel.name)

    def list(
        self, call: Call, options: Sequence[object], made: Specialization, dynamic: Sequence[int], key: bytes,
        returns: tuple[str, ...] | None, reads: ReadSet,
    ) -> None:  # fmt: skip
        """Let other processes find a program by what a call knows, where what was read means something to them."""
        place = self._manifest_key(call, options)
        entry = manifest.listed(self.kernel, key, made.parameters, made.metas, dynamic, returns, reads)
        if place is None or entry is None:
            return
        known = self.store.get(MANIFEST, place)
        others = [e for e in manifest.read(known) if e.reads != entry.reads] if known is not None else []
        self.store.put(MANIFEST, place, manifest.written([*others, entry]), self.kernel.name)

    def _manifest_key(self, call: Call, options: Sequence[object]) -> bytes | None:
        """Return the key of what is known before anything is read, None where that means nothing elsewhere."""
        try:
            own = function_bytes(self.kernel.function)
            arguments = [(name, d.kind, d.extents) for name, d in call.described.items()]
            return digest(FORMAT, toolchain(), python(), fingerprint(), own, _arguments(arguments), list(options))
        except NotEncodable:
            return None


def _point_here(program: CompiledProgram, reads: ReadSet) -> None:
    """Let a kept program's errors point to where its kernels stand in this process."""
    if program.native is not None and program.artifact is not None:
        code = program.native.code
        program.native.code = replace(code, errors=Here(code.errors, reads.resolvers))


def _arguments(arguments: Sequence[tuple[str, Any, Any]]) -> bytes:
    return encoded([(name, _plain(kind), list(extents)) for name, kind, extents in arguments])


def _plain(kind: object) -> object:
    """Return a kind with types by name, as another process spells them."""
    if isinstance(kind, type):
        return kind.__qualname__
    return tuple(map(_plain, kind)) if isinstance(kind, tuple) else kind  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _artifact_key(made: Specialization, options: Sequence[object]) -> bytes:
    from tilewright.core.serialize import serialize

    return digest(FORMAT, toolchain(), fingerprint(), list(options), serialize(made.program), list(made.syntax))


def persistent(kernel: Kernel) -> Persistent | None:
    """Return the kept programs of a kernel, None where the settings ask for none."""
    store = configured()
    return Persistent(kernel, store) if store.directory is not None or store.shared else None


def options_of(config: RunConfig | None) -> list[object]:
    """Return what changes a program's code besides its arguments."""
    return [Options.current().checked, *code_options(config)]
