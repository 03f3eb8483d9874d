"""Saved programs: a folder that another process, or another machine of the same kind, runs without the compiler.

    compiled_meta.json := {"schema": 1, "tilewright": "0.1.0", "name": ..., "platform": "cpu", "target": {...},
                           "artifact": {"file": "program.twar", "sha256": ...}, "specialized": {"n": 3},
                           "entries": [{"name": ..., "params": [...], "output_indices": [...], "returns": [...]}]}

The metadata is for people and tools, and says which version wrote it; everything that running takes is the artifact's.
"""

from __future__ import annotations

import errno
import json
from dataclasses import asdict
from os.path import basename
from typing import TYPE_CHECKING, Any

from tilewright.backends.abi import Number
from tilewright.core.program import Function, Program
from tilewright.core.types import TensorType, Type
from tilewright.digests import sha256
from tilewright.errors import ArtifactError
from tilewright.programs.artifact import Artifact
from tilewright.programs.folder import ARTIFACT, META, publish
from tilewright.programs.metadata import ParamInfo, dims, output_indices, param_infos
from tilewright.records import record
from tilewright.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 1
"""Of the folder and its metadata; the artifact has a version of its own."""


@record
class Saved:
    """What a folder says of a program: its code, the platform it was compiled for, the numbers it was made for."""

    artifact: Artifact
    platform: str
    specialized: dict[str, Number]


def describe(
    program: Program, platform: str, artifact: Artifact | None, data: bytes, specialized: dict[str, Number]
) -> str:
    """Return the metadata of a program as JSON; `data` are the bytes of its artifact."""
    target = None if artifact is None else asdict(artifact.code.target)
    file = None if artifact is None else {"file": ARTIFACT, "sha256": sha256(data).hexdigest()}
    plain = {
        "schema": SCHEMA, "tilewright": __version__, "name": program.name, "platform": platform, "target": target,
        "artifact": file, "specialized": specialized, "entries": [_entry(entry) for entry in program.entries],
    }  # fmt: skip
    return json.dumps(plain, indent=1) + "\n"


def write(directory: Path, metadata: str, data: bytes) -> None:
    """Write a program's metadata and its artifact, both or neither."""
    publish(directory, {ARTIFACT: data, META: metadata.encode()})


def read(directory: Path) -> Saved:
    """Return what `write` wrote; FileNotFoundError where nothing was, ArtifactError where it is something else."""
    if not (directory / META).is_file():
        raise FileNotFoundError(errno.ENOENT, f"no program was saved here: there is no {META}", str(directory))
    try:
        plain: dict[str, Any] = json.loads((directory / META).read_bytes())
        schema = plain["schema"]
    except (ValueError, LookupError, TypeError) as error:
        raise ArtifactError(f"{str(directory / META)!r} does not describe a program: {error}") from error
    if schema != SCHEMA:
        raise ArtifactError(f"{str(directory)!r} was saved with schema {schema}; this version reads {SCHEMA}")
    try:
        return _read(directory, plain)
    except (LookupError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{str(directory / META)!r} does not describe a program: {error!r}") from error


def _read(directory: Path, plain: dict[str, Any]) -> Saved:
    if plain["artifact"] is None:
        raise ArtifactError(f"{str(directory)!r} holds a program for the interpreter, which has no code")
    path = directory / basename(plain["artifact"]["file"])  # of this folder, whatever somebody has written there
    if not path.is_file():
        raise ArtifactError(f"{str(directory)!r} is incomplete: {path.name} is missing")
    data = path.read_bytes()
    artifact = Artifact.from_bytes(data)
    if sha256(data).hexdigest() != plain["artifact"]["sha256"]:
        raise ArtifactError(f"{str(path)!r} is not the artifact that {META} beside it describes")
    return Saved(artifact, str(plain["platform"]), dict(plain["specialized"]))


def _entry(entry: Function) -> dict[str, Any]:
    return {
        "name": entry.name,
        "params": [_param(info) for info in param_infos(entry)],
        "output_indices": output_indices(entry),
        "returns": [_type(type_) for type_ in entry.return_types],
    }


def _param(info: ParamInfo) -> dict[str, Any]:
    return {"name": info.name, "direction": info.direction.name, "shape": info.dims, "dtype": info.dtype.name}


def _type(type_: Type) -> dict[str, Any]:
    shape = dims(type_.shape) if isinstance(type_, TensorType) else None
    return {"shape": shape, "dtype": str(getattr(type_, "dtype", type_))}
