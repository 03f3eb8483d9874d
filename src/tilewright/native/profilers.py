"""Profilers: what `perf` is told of code that is mapped, where TILEWRIGHT_PERF asks for it.

A perf map is a line per function, in the file that `perf report` looks for. A jitdump has the code itself and its
lines, which `perf inject --jit` makes into objects: https://github.com/torvalds/linux/blob/master/tools/perf/
Documentation/jitdump-specification.txt. Debuggers learn of code through LLVM's own loader.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
import threading
import time
import warnings
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from tilewright import settings
from tilewright.forks import Lock
from tilewright.named_tuples import NamedTuple
from tilewright.native.elf import Object

if TYPE_CHECKING:  # which only a jitdump needs
    from tilewright.native.line_tables import Row

FUNCTION = 2
_MAGIC, _VERSION, _HEADER = 0x4A695444, 1, 40
_LOAD, _LINES = 0, 2

_lock = Lock()
_dumps: dict[int, tuple[int, mmap.mmap]] = {}
"""The jitdump of each process: a child of a fork begins its own."""
_maps: dict[int, int] = {}
"""The perf map of each process, likewise."""


class Place(NamedTuple):
    """A function in memory."""

    name: str
    address: int
    size: int
    offset: int
    """Where it begins in its object's code."""


def announce(found: Object, addresses: Mapping[str, int], wanted: Container[str]) -> None:
    """Tell the profilers that are wanted which functions of an object lie where."""
    functions = [each for each in found.symbols if each.kind == FUNCTION and each.size and each.name in addresses]
    with _lock:
        if "map" in wanted:
            lines = [f"{addresses[each.name]:x} {each.size:x} {shown(each.name)}\n" for each in functions]
            os.write(_map(), "".join(lines).encode())
        if "jitdump" in wanted:
            _dump(found, [Place(shown(f.name), addresses[f.name], f.size, f.value) for f in functions])


def begin() -> None:
    """Make the files that settings ask for, which takes several times as long as to write a kernel into them.

    An empty line, which perf passes over, has the file system find room for the first kernel's.
    """
    if "map" in settings.perf():
        with _lock:
            os.write(_map(), b"\n")


def shown(symbol: str) -> str:
    """Return a function's name as profilers show it: the kernel's, and which part of its code it is."""
    part, _, kernel = symbol.partition("_")
    is_part = kernel and part.startswith(("task", "fn")) and part.removeprefix("task").removeprefix("fn").isdecimal()
    return f"tilewright.{kernel}.{part}" if is_part else f"tilewright.{symbol}"


def map_path() -> str:
    """Return the file in which perf looks for this process's functions."""
    return f"/tmp/perf-{os.getpid()}.map"  # noqa: S108 - where perf looks


def dump_path() -> str:
    """Return this process's jitdump: in JITDUMPDIR, as others have it, or where it was started."""
    return os.path.join(os.environ.get("JITDUMPDIR", "") or os.getcwd(), f"jit-{os.getpid()}.dump")


def _map() -> int:
    """Return this process's perf map, open: a new one where somebody has removed it."""
    process = os.getpid()
    file = _maps.get(process)
    if file is None or not os.fstat(file).st_nlink:
        file = _maps[process] = os.open(map_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    return file


def _dump(found: Object, places: list[Place]) -> None:
    """Write functions to the jitdump; where that cannot be written, a RuntimeWarning says so, and programs run on."""
    try:
        _add_to_dump(found, places)
    except OSError as error:
        text = f"no jitdump is written in {os.path.dirname(dump_path())}: {error.strerror}\n    help: {_FOLDER}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


_FOLDER = "let JITDUMPDIR name a folder of your own"


def _add_to_dump(found: Object, places: list[Place]) -> None:
    from tilewright.native.line_tables import rows

    file, _ = _dumps.get(os.getpid()) or _dumps.setdefault(os.getpid(), _begun(found.machine))
    lines = rows(found.data)
    for place in places:
        os.write(file, _lines(place, lines) + _loaded(place))


def _begun(machine: int) -> tuple[int, mmap.mmap]:
    """Return a new jitdump, mapped as code: that is how perf notices it."""
    file = os.open(dump_path(), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    head = struct.pack("<IIIIIIQQ", _MAGIC, _VERSION, _HEADER, machine, 0, os.getpid(), time.monotonic_ns(), 0)
    os.write(file, head)
    return file, mmap.mmap(file, _HEADER, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def _lines(place: Place, lines: Sequence[Row]) -> bytes:
    own = [row for row in lines if place.offset <= row[0] < place.offset + place.size and row[2]]
    if not own:
        return b""
    entries = b"".join(
        struct.pack("<Qii", place.address + offset - place.offset, line, 0) + os.fsencode(file) + b"\0"
        for offset, file, line in own
    )
    return _record(_LINES, struct.pack("<QQ", place.address, len(own)) + entries)


def _loaded(place: Place) -> bytes:
    code = ctypes.string_at(place.address, place.size)
    pid, thread = os.getpid(), threading.get_native_id()
    index = next(_indices)
    head = struct.pack("<IIQQQQ", pid, thread, place.address, place.address, place.size, index)
    return _record(_LOAD, head + place.name.encode() + b"\0" + code)


_indices = itertools.count()


def _record(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IIQ", kind, 16 + len(payload), time.monotonic_ns()) + payload
