"""Artifacts: a compiled program as one file of bytes.

    artifact := "TWAR" version:byte size:u64 sha256(body):32 bytes  body       size is the body's; little-endian
    body     := length:u32 header  object*
    header   := JSON: back end, target, entries and their symbols, the outputs that they fill, what errors mean, each
                object's name and size

Running one takes neither the program's IR nor a compiler. The header declares the entries; beside the program's object
lie those that its back end runs beside every program. Nothing depends on the process that made it: equal programs give
equal bytes. The checksum finds accidents. Whoever plants an artifact plants code, so they belong where nobody else can
write.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tilewright.backends.interface import Code, Entries, backend_names, find
from tilewright.core.program import Program
from tilewright.digests import sha256
from tilewright.errors import ArtifactError
from tilewright.programs.declarations import plain_entries, read_entries
from tilewright.programs.error_table import plain_errors, read_errors
from tilewright.records import record

MAGIC = b"TWAR"
VERSION = 4
"""Of this layout and of how entries are called; it goes up when either changes."""

_HEAD = struct.Struct("<4sBQ32s")
_LENGTH = struct.Struct("<I")


@record
class Artifact:
    """A program and its code for one target; of a program that was read, only the declarations are left."""

    program: Program
    code: Code
    origins: Sequence[tuple[str, int]] = ()
    """The file and the first line of each function that its errors may point into."""

    def to_bytes(self) -> bytes:
        """Return everything but the LLVM IR, as `from_bytes` reads it in any process."""
        objects = {**self.code.backend.companions(self.code), **self.code.objects}
        header = json.dumps(self._header(objects), sort_keys=True, separators=(",", ":")).encode()
        body = b"".join([_LENGTH.pack(len(header)), header, *objects.values()])
        return _HEAD.pack(MAGIC, VERSION, len(body), sha256(body).digest()) + body

    @staticmethod
    def from_bytes(data: bytes) -> Artifact:
        """Return what `to_bytes` wrote; ArtifactError for anything else. Nothing of it is loaded yet."""
        body = _checked_body(data)
        try:
            return _read(body)
        except (LookupError, TypeError, ValueError, AttributeError, struct.error, RecursionError) as error:
            raise ArtifactError(f"this artifact is malformed: {error!r}") from error

    def load(self) -> Entries:
        """Return the program ready to run; ArtifactError names what this machine lacks for it."""
        return self.code.backend.load(self.program, self.code)

    def _header(self, objects: Mapping[str, bytes]) -> dict[str, Any]:
        return {
            "name": self.program.name,
            "backend": self.code.backend.name,
            "target": asdict(self.code.target),
            "entries": plain_entries(self.program),
            "symbols": dict(self.code.symbols),
            "filled": {name: list(positions) for name, positions in self.code.filled.items()},
            "errors": plain_errors(self.code.errors),
            "origins": [list(origin) for origin in self.origins],
            "objects": [[name, len(each)] for name, each in objects.items()],
        }


def _checked_body(data: bytes) -> bytes:
    """Return the part behind the head, whole and undamaged."""
    if data[: len(MAGIC)] != MAGIC:
        raise ArtifactError(f"this is not an artifact: it does not start with {MAGIC.decode()}")
    if len(data) > len(MAGIC) and data[len(MAGIC)] != VERSION:
        raise ArtifactError(f"this artifact has format {data[len(MAGIC)]}; this version of tilewright reads {VERSION}")
    if len(data) < _HEAD.size:
        raise ArtifactError(f"this artifact is cut off inside its head, at byte {len(data)}")
    _, _, size, digest = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if len(body) != size:
        raise ArtifactError(f"this artifact is cut off or damaged: {len(body)} bytes follow its head, not {size}")
    if sha256(body).digest() != digest:
        raise ArtifactError("this artifact is damaged: its checksum does not match")
    return body


def _read(body: bytes) -> Artifact:
    (length,) = _LENGTH.unpack_from(body)
    start = _LENGTH.size + length
    header: dict[str, Any] = json.loads(body[_LENGTH.size : start])
    objects: dict[str, bytes] = {}
    for name, size in header["objects"]:
        objects[name], start = body[start : start + size], start + size
    if header["backend"] not in backend_names():
        there = ", ".join(backend_names())
        raise ArtifactError(f"this artifact is for back end {header['backend']!r}, and there are {there}")
    errors = read_errors(header["errors"])
    code = find(header["backend"]).restored(header["target"], objects, header["symbols"], errors)
    origins = [(str(file), int(line)) for file, line in header["origins"]]
    filled = {str(name): tuple(map(int, positions)) for name, positions in header["filled"].items()}
    return Artifact(read_entries(header["name"], header["entries"]), replace(code, filled=filled), origins)
