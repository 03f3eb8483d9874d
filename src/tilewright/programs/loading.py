"""Loading: programs from the bytes of their artifacts, without the compiler."""

from __future__ import annotations

from tilewright.programs.artifact import Artifact
from tilewright.programs.program import CompiledProgram


def load(data: bytes, platform: str = "cpu") -> CompiledProgram:
    """Return a program from the bytes of its artifact; ArtifactError when they are damaged or cannot run here."""
    return CompiledProgram.of(Artifact.from_bytes(data), platform)
