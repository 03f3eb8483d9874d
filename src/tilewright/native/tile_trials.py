"""Trials: whether matrix tiles work here, tried in a process of their own.

Flags and permission are not enough: under some hypervisors the first instruction ends the process. The trial takes
thirty milliseconds, and what came of it is remembered in the cache's directory until the machine or its kernel starts
anew. The child needs no LLVM: what it runs is spelled in bytes.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress

from tilewright import settings
from tilewright.digests import sha256
from tilewright.native.target import fingerprint

FILE = "matrix-tiles"
BOOT = "/proc/sys/kernel/random/boot_id"
PATIENCE = 20
"""Seconds after which a trial has failed."""

TEXT = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8)
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8)
declare void @llvm.x86.tdpbssd(i8, i8, i8)

define void @try(ptr %configuration, ptr %ones, ptr %floats, ptr %integers) nounwind {
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilezero(i8 1)
  call void @llvm.x86.tileloadd64(i8 2, ptr %ones, i64 64)
  call void @llvm.x86.tileloadd64(i8 3, ptr %ones, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 2, i8 3)
  call void @llvm.x86.tdpbssd(i8 1, i8 2, i8 3)
  call void @llvm.x86.tilestored64(i8 0, ptr %floats, i64 64)
  call void @llvm.x86.tilestored64(i8 1, ptr %integers, i64 64)
  call void @llvm.x86.tilerelease()
  ret void
}
"""
CODE = bytes.fromhex(
    "c4e2784907c4e27b49c0c4e27b49c8b840000000c4e27b4b1406c4e27b4b1c06c4e2625cc2"
    "c4e2635ecac4e27a4b0402c4e27a4b0c01c4e27849c0c3"
)
"""The text above as LLVM assembles it, which a test holds it to."""

CHILD = """
import ctypes, mmap, struct, sys
library = ctypes.CDLL(None)
if library.syscall(158, 0x1023, 18):
    sys.exit(1)
page = mmap.mmap(-1, mmap.PAGESIZE)
page.write(bytes.fromhex(sys.argv[1]))
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
if library.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
    sys.exit(1)
configuration = struct.pack("<16B8H16B8B8B", 1, *[0] * 15, *[64] * 4, *[0] * 20, *[16] * 4, *[0] * 12)
ones, floats, integers = struct.pack("<512H", *[0x3F80] * 512), bytes(1024), bytes(1024)
ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 4)(address)(configuration, ones, floats, integers)
sum_of_bytes = 32 * (128 * 128 + 63 * 63)
sys.exit(floats != struct.pack("<256f", *[32.0] * 256) or integers != struct.pack("<256i", *[sum_of_bytes] * 256))
"""
"""Ones of bfloat16 times ones, and the bytes of those, -128 and 63, times themselves."""


def passed() -> bool:
    """Return whether matrix tiles work, as remembered or as tried now."""
    place, when = _place(), _when()
    remembered = _remembered(place)
    if remembered is not None and remembered.partition(" ")[0] == when:
        return remembered.endswith(" works")
    works = tried()
    _remember(place, f"{when} {'works' if works else 'fails'}")
    return works


def tried() -> bool:
    """Return whether a child multiplies on matrix tiles and is right."""
    import subprocess  # which takes longer to load than what was remembered

    try:
        command = [sys.executable, "-I", "-S", "-c", CHILD, CODE.hex()]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _when() -> str:
    """Return what changes whenever the outcome may: the processor, its kernel, and when that started."""
    try:
        with open(BOOT, encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return sha256(f"{fingerprint()} {platform.release()} {platform.version()} {boot}".encode()).hexdigest()[:16]


def _place() -> str | None:
    folder = settings.cache_dir()
    return None if folder is None else os.path.join(folder, FILE)


def _remembered(place: str | None) -> str | None:
    try:
        with open(place or os.devnull, encoding="ascii") as file:
            return file.read(64)
    except (OSError, UnicodeDecodeError):
        return None


def _remember(place: str | None, text: str) -> None:
    """Keep the outcome where it can be kept: whoever does not find it tries again."""
    if place is None:
        return
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        beside = f"{place}.{os.getpid()}"
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        os.replace(beside, place)
