"""Loading: programs from the bytes of their artifacts, without the compiler."""

from __future__ import annotations

from tilewright.backends.cpu.elf import listing
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.program import CompiledProgram


def load(data: bytes, platform: str = "cpu") -> CompiledProgram:
    """Return a program from the bytes of its artifact; ArtifactError when they are damaged or cannot run here."""
    artifact = Artifact.from_bytes(data)
    native = artifact.load()
    stages = {"object": lambda: listing(artifact.code.object)}
    return CompiledProgram(artifact.program, platform, native.run, stages, artifact, native)
