"""Entries: one payload as the bytes of one file.

    entry := "TWCE" format:u8 size of label:u16 size of payload:u64 sha256:32 bytes  label  payload      little-endian
    label := key:32 bytes created:u64 kind name version             created is in seconds since 1970
    text  := length:u16 UTF-8                                       so are kind, name and version written

The checksum covers every other byte: a torn or damaged file is never taken for an entry. It finds accidents, not
intent; whoever can write to the cache can run code, so files are only read where nobody else can write. The label
repeats kind and key, which lets a reader refuse an entry under another's name, and tells people what they look at.
"""

from __future__ import annotations

import struct

from tilewright.digests import sha256
from tilewright.keep.miss import Miss
from tilewright.named_tuples import NamedTuple

MAGIC = b"TWCE"
FORMAT = 1
"""Of this layout; part of file names too, so that two versions share a directory without undoing each other's work."""

MAX_TEXT = 100
"""Characters of a name that are kept."""

_HEAD = struct.Struct("<4sBHQ32s")
_SUM = _HEAD.size - 32
"""Where the checksum starts, right before the label."""

_KEY = struct.Struct("<32sQ")
_LENGTH = struct.Struct("<H")

LABEL_BYTES = _HEAD.size + _KEY.size + 3 * (_LENGTH.size + 4 * MAX_TEXT)
"""The first bytes of a file that are sure to hold its label."""


class Label(NamedTuple):
    """What an entry says about itself."""

    kind: str
    digest: bytes
    name: str = ""
    version: str = ""
    created: int = 0


class Entry(NamedTuple):
    """A label and what it is on."""

    label: Label
    payload: bytes


def file_name(kind: str, digest: bytes) -> str:
    """Return the name of an entry's file; ValueError unless `kind` is a small word and `digest` has 256 bits."""
    if len(digest) != 32 or not (kind.isascii() and kind.isalpha() and kind.islower() and len(kind) <= MAX_TEXT):
        raise ValueError(f"an entry needs a lower-case word and 32 bytes, got {kind!r} and {len(digest)} bytes")
    return f"{digest.hex()}.{kind}.{FORMAT}"


def encode(label: Label, payload: bytes) -> bytes:
    """Return the bytes of an entry's file; a long name is cut."""
    texts = b"".join(map(_text, (label.kind, label.name, label.version)))
    tail = _KEY.pack(label.digest, label.created) + texts
    head = _HEAD.pack(MAGIC, FORMAT, len(tail), len(payload), b"")[:_SUM]
    checksum = sha256(head + tail)
    checksum.update(payload)
    return b"".join((head, checksum.digest(), tail, payload))


def decode(data: bytes) -> Entry | Miss:
    """Return the entry that `encode` wrote, or what is wrong with the bytes."""
    sizes = _sizes(data)
    if isinstance(sizes, Miss):
        return sizes
    start = _HEAD.size + sizes[0]
    if len(data) != start + sizes[1]:
        return Miss.LENGTH
    checksum = sha256(data[:_SUM])
    checksum.update(memoryview(data)[_HEAD.size :])
    if checksum.digest() != data[_SUM : _HEAD.size]:
        return Miss.CHECKSUM
    label = _label(data[_HEAD.size : start])
    return label if isinstance(label, Miss) else Entry(label, data[start:])


def peek(data: bytes) -> Label | Miss:
    """Return the label of a file that starts with `data`, unchecked: good enough to list, not to use."""
    sizes = _sizes(data)
    return sizes if isinstance(sizes, Miss) else _label(data[_HEAD.size : _HEAD.size + sizes[0]])


def _sizes(data: bytes) -> tuple[int, int] | Miss:
    """Return the sizes of the label and of the payload."""
    if len(data) <= len(MAGIC):
        return Miss.LENGTH
    if not data.startswith(MAGIC):
        return Miss.MAGIC
    if data[len(MAGIC)] != FORMAT:
        return Miss.FORMAT
    if len(data) < _HEAD.size:
        return Miss.LENGTH
    _, _, label, payload, _ = _HEAD.unpack_from(data)
    return label, payload


def _label(data: bytes) -> Label | Miss:
    try:
        digest, created = _KEY.unpack_from(data)
        kind, name, version = _texts(data, _KEY.size, 3)
        return Label(kind, digest, name, version, created)
    except (struct.error, UnicodeDecodeError):
        return Miss.LABEL


def _text(text: str) -> bytes:
    data = text[:MAX_TEXT].encode(errors="surrogatepass")  # Python's strings hold more than Unicode does
    return _LENGTH.pack(len(data)) + data


def _texts(data: bytes, start: int, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(data, start)
        start += _LENGTH.size + size
        found.append(data[start - size : start].decode(errors="surrogatepass"))
    return found
