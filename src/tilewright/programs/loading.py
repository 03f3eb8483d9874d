"""Loading: programs from the bytes of their artifacts, without the compiler, and those bytes."""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.interface import Code
from tilewright.core.program import Function, Program
from tilewright.core.types import ScalarType, TensorType
from tilewright.keep.relocate import Relocation
from tilewright.native.elf import Object, Section, Symbol
from tilewright.native.loader import Loaded
from tilewright.programs.artifact import Artifact
from tilewright.programs.program import CompiledProgram
from tilewright.records import prepare

prepare(Artifact, Code, Function, Loaded, Object, Program, ScalarType, Section, Symbol, TensorType)


def load(data: bytes, relocation: Relocation = list) -> CompiledProgram:
    """Return a program from the bytes of its artifact; ArtifactError when they are damaged or cannot run here."""
    return CompiledProgram.of(_relocated(Artifact.from_bytes(data), relocation))


def dump(program: CompiledProgram, relocation: Relocation) -> bytes | None:
    """Return the bytes of a program's artifact, None for one on the interpreter."""
    return None if program.artifact is None else _relocated(program.artifact, relocation).to_bytes()


def _relocated(artifact: Artifact, relocation: Relocation) -> Artifact:
    return replace(artifact, code=replace(artifact.code, errors=relocation(artifact.code.errors)))
