"""Kept programs: one process compiles, every other finds.

There are two levels. An artifact is kept by the program itself: its IR, what its source says, the options, the target
and the compiler. A manifest is kept by what is known before anything is read, such as a kernel's code and its
arguments, or a module's text; it leads to an artifact without the front end. Who asks supplies what both go by, and a
table of spans, by which the errors of kept code point to where its source stands in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from tilewright import settings
from tilewright.backends.interface import Backend
from tilewright.errors import ArtifactError, RunOnlyError
from tilewright.frontend.kernels import Kernel
from tilewright.keep import manifest
from tilewright.keep.digest import NotEncodable, digest
from tilewright.keep.fingerprint import toolchain
from tilewright.keep.reads import ReadSet
from tilewright.keep.relocate import Here, Relocation, SpanTable, freed
from tilewright.keep.store import configured
from tilewright.records import record

ARTIFACT, MANIFEST = "artifact", "manifest"
FORMAT = 2
PATIENCE = 10.0
"""Seconds to wait for another process that compiles the same: several times what that takes."""

P = TypeVar("P")


class Form(Protocol[P]):
    """How programs become bytes that outlive them."""

    def load(self, data: bytes, relocation: Relocation) -> P:
        """Return a program from its bytes, its errors relocated; ArtifactError where it cannot run here."""
        ...

    def dump(self, program: P, relocation: Relocation) -> bytes | None:
        """Return a program's bytes, its errors relocated; None for one that has no code."""
        ...


@record
class Found(Generic[P]):
    """A program that was kept, and what it was compiled from, as it is in this process."""

    program: P
    listed: manifest.Listed
    reads: ReadSet


class KeptPrograms(Generic[P]):
    """The programs of one kernel between processes, compiled with some options."""

    def __init__(
        self, name: str, backend: Backend, options: Sequence[object], form: Form[P], kind: str = ARTIFACT
    ) -> None:
        self.name = name
        self.backend = backend
        self.options = list(options)
        self.form = form
        self.kind = kind
        self.store = configured()

    def key(self, facts: Callable[[], Sequence[object]]) -> bytes:
        """Return the key of what follows from some facts, nothing where nobody could find it by them."""
        if not self.store.is_on:
            return b""
        try:
            made_by = toolchain(*self.backend.toolchain()), self.backend.fingerprint()
            return digest(FORMAT, *made_by, self.options, *facts())
        except NotEncodable:
            return b""

    def listed(self, key: bytes) -> list[manifest.Listed]:
        """Return the programs that the manifest of a key lists."""
        data = self.store.get(MANIFEST, key) if key else None
        return manifest.read(data) if data is not None else []

    def find(self, key: bytes, spans: Callable[[ReadSet], SpanTable], kernel: Kernel | None = None) -> Found[P] | None:
        """Return the first program that a manifest lists whose reads, done again, find what they found, or None."""
        for entry in self.listed(key):
            reads = entry.replayed(kernel)
            program = None if reads is None else self.loaded(entry.artifact, spans(reads))
            if reads is not None and program is not None:
                return Found(program, entry, reads)
        return None

    def list(self, key: bytes, entry: manifest.Listed | None) -> None:
        """Let others find a program by the key of a manifest, where what was read means something to them."""
        if key and entry is not None:
            others = [other for other in self.listed(key) if other.reads != entry.reads]
            self.store.put(MANIFEST, key, manifest.written([*others, entry]), self.name)

    def made(self, key: bytes, spans: SpanTable, compile: Callable[[], P], what: str = "") -> P:
        """Return a program that was kept, else compile it while other processes that want the same wait, and keep it.

        `what` says for which arguments it is; RunOnlyError where nothing may be compiled.
        """
        program = self.loaded(key, spans)
        if program is None and settings.run_only():
            raise RunOnlyError(self._not_kept(key, what))
        if program is not None or not key:
            return compile() if program is None else program
        with self.store.lock(key, timeout=PATIENCE):
            program = self.loaded(key, spans)  # it may have come while we waited
            return self._kept(key, spans, compile()) if program is None else program

    def _kept(self, key: bytes, spans: SpanTable, program: P) -> P:
        data = self.form.dump(program, partial(freed, table=spans))
        if data is not None:
            self.store.put(self.kind, key, data, self.name)
        return program

    def loaded(self, key: bytes, spans: SpanTable) -> P | None:
        """Return the program that is kept under a key, None where there is none."""
        data = self.store.get(self.kind, key) if key else None
        try:
            return self.form.load(data, partial(Here, table=spans)) if data is not None else None
        except ArtifactError:  # of another version, or for another processor: as good as none
            return None

    def _not_kept(self, key: bytes, what: str) -> str:
        """Return what run-only mode has to say about a program that nobody has compiled."""
        places = [str(d) for d in (settings.cache_dir(), *settings.shared_cache_dirs()) if d is not None]
        return (
            f"kernel `{self.name}` is not compiled{what}, and TILEWRIGHT_RUN_ONLY is set: "
            f"no artifact {key.hex()[:16] or 'at all'} in {', '.join(places) or 'no cache'}\n"
            "    help: run it once without TILEWRIGHT_RUN_ONLY, with TILEWRIGHT_CACHE_DIR set to a place both can reach"
        )
