"""Findings: what the doctor sees of a machine, what follows from it, and what to do."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryDirectory

from tilewright import settings
from tilewright.backends.interface import Backend, backend_names, find
from tilewright.named_tuples import NamedTuple
from tilewright.native.machines import here
from tilewright.native.matrix_units import amx, is_permitted, objection
from tilewright.native.target import cpu_name, host
from tilewright.tools.cache import health

LEAST = {"python": (3, 10), "numpy": (1, 26), "torch": (2, 4), "llvmlite": (0, 44)}
"""The oldest versions that are known to work."""


OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Finding(NamedTuple):
    """Something about a machine: under which heading, what it is called, what it is, and what follows from that."""

    group: str
    name: str
    value: str
    follows: str
    help: str = ""
    """What to do, where something can be done."""


def findings() -> Iterator[Finding]:
    """Yield what there is, in the order in which people ask."""
    yield from _packages()
    yield from _processor()
    yield from _threads()
    for backend in map(find, backend_names()):
        yield from _backend(backend)
    yield from _cache()
    yield from _tools()
    yield from _variables()


def _packages() -> Iterator[Finding]:
    group, found = "packages", platform.python_version()
    yield _aged(Finding(group, "Python", found, "kernels are its functions"), found, "python")
    yield _package(group, "NumPy", "numpy", "arrays are taken as they are", "nothing runs")
    yield _package(group, "torch", "torch", "tensors are taken as they are", "kernels take NumPy arrays, no tensors")
    instead = "kernels run on the interpreter, which is right and slow"
    yield _package(group, "llvmlite", "llvmlite", "kernels become native code", instead)


def _package(group: str, name: str, package: str, there: str, missing: str) -> Finding:
    try:
        found = version(package)
    except PackageNotFoundError:
        return Finding(group, name, "none", missing, f"pip install {package}")
    if broken := _broken(package):
        return Finding(group, name, found, f"it cannot be imported ({broken}): {missing}", "install it again")
    return _aged(Finding(group, name, found, there), found, package)


def _broken(package: str) -> str:
    """Return what is wrong with a package, by the last line of a process of its own that imports it."""
    if package in sys.modules:
        return ""
    done = subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1] if done.returncode else ""


def _aged(finding: Finding, found: str, package: str) -> Finding:
    """Return a finding; one about something too old says so."""
    least = LEAST[package]
    numbers = tuple(int(part) for part in found.split(".")[: len(least)] if part.isdigit())
    if numbers >= least:
        return finding
    wanted = ".".join(map(str, least))
    return finding._replace(
        follows=f"older than {wanted}, which is the oldest known to work", help="install a newer one"
    )


def _processor() -> Iterator[Finding]:
    group, machine = "processor", here()
    name = cpu_name() or platform.processor() or platform.machine()
    if machine is None:
        yield Finding(group, "model", name, "there is no native code for it", "kernels run on the interpreter")
        return
    if _broken("llvmlite"):
        yield Finding(group, "model", name, "without LLVM there is no native code for it", "install llvmlite again")
        return
    target = host()
    yield Finding(group, "model", name, f"LLVM makes code for {target.cpu}")
    bits = target.vector_bits
    multiplies = "multiply and add in one instruction" if target.has_fma else "multiply, then add"
    yield Finding(group, "vectors", f"{bits} bits", f"{bits // 32} floats at a time, which {multiplies}")
    halves = "in hardware" if target.has_f16c else "by a library, which is slow"
    rounds = "in hardware" if target.has_avx512bf16 else "by shifts"
    yield Finding(group, "halves", "FP16, BF16", f"FP16 converts {halves}, FP32 rounds to BF16 {rounds}")
    yield Finding(group, "L2 cache", f"{target.l2_bytes >> 10} KiB", "products are cut into tiles that fit it")
    yield _amx(group)


def _amx(group: str) -> Finding:
    if not amx():
        return Finding(group, "AMX", "none", "products run on vectors")
    permitted = "permitted" if is_permitted() else "not asked for by this process"
    why = objection()
    follows = f"products run on vectors: {why}" if why else "products of BF16 and INT8 run on its tiles"
    return Finding(group, "AMX", f"{', '.join(amx())}, {permitted}", follows)


def _threads() -> Iterator[Finding]:
    group = "threads"
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding(group, "processors", str(there), f"this process may use them, of {os.cpu_count()} there are")
    if wrong := settings.objection("NUM_THREADS"):
        yield Finding(group, "threads", "none", wrong, "unset it, and all processors are used")
        return
    count = settings.num_threads()
    who = "torch says so" if settings.follows_torch() else "TILEWRIGHT_NUM_THREADS, torch and then processors say so"
    help = "" if count <= there else f"set TILEWRIGHT_NUM_THREADS={there}: more threads than processors wait for them"
    yield Finding(group, "threads", str(count), f"parallel loops and grids run on them: {who}", help)


def _backend(backend: Backend) -> Iterator[Finding]:
    objection = backend.objection()
    help = "the other back ends do" if objection else ""
    said = f"it does not make code here: {objection}" if objection else "programs are compiled here"
    yield Finding(backend.name, "state", "no" if objection else "yes", said, help)
    for name, value in backend.facts().items():
        there, missing = _FOLLOWS.get(name, ("programs run there", "programs do not run there"))
        is_missing = value.startswith(("none", "no:"))
        yield Finding(
            backend.name, name, value, missing if is_missing else there, _HELP.get(name, "") if is_missing else ""
        )


_FOLLOWS = {
    "processor": ("code is made for it", ""),
    "LLVM": ("it makes the code", ""),
    "Triton": ("it makes code for GPUs", "no code for GPUs is made"),
    "assembler": ("it makes machine code for GPUs", "kernels for GPUs cannot be compiled, those that are kept run"),
    "disassembler": ("machine code of GPUs is shown", "machine code of GPUs is not shown"),
    "GPU": ("tensors there are taken as they are", "kernels for GPUs do not run here"),
    "driver": ("it loads and starts kernels", "nothing loads kernels"),
}
"""What follows from there being something for a back end, and from there being nothing."""
_HELP = {"assembler": "pip install --force-reinstall triton, or set TRITON_PTXAS_PATH to the ptxas of CUDA's toolkit"}
"""What to do where something is missing."""


def _cache() -> Iterator[Finding]:
    group, path = "cache", settings.cache_dir()
    if path is None:
        help = "unset TILEWRIGHT_CACHE_DIR to keep it"
        yield Finding(group, "directory", "off", "every process compiles its kernels anew", help)
        return
    wrong = _unwritable(path)
    help = "set TILEWRIGHT_CACHE_DIR to a folder of your own" if wrong else ""
    yield Finding(group, "directory", path, wrong or "compiled code is kept there", help)
    if wrong and not os.path.isdir(path):
        return
    found = health(path)
    yield _size(group, found.size)
    help = "`tilewright cache verify --delete` removes them" if found.damaged else ""
    said = f"{found.checked} looked at, {found.damaged} damaged"
    yield Finding(group, "entries", str(found.entries), f"{said}: a damaged one is never used", help)


def _size(group: str, size: int) -> Finding:
    if wrong := settings.objection("CACHE_LIMIT"):
        return Finding(group, "size", f"{size >> 20} MiB", wrong, "unset it, and it is 2G")
    limit = settings.cache_limit()
    return Finding(group, "size", f"{size >> 20} MiB of {limit >> 20} MiB", "what was used longest ago goes first")


def _unwritable(path: str) -> str:
    """Return why nothing can be kept in a directory, or nobody should; nothing where it can."""
    above = path
    while not os.path.lexists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        return f"{above} is no directory"
    try:
        with TemporaryDirectory(dir=above):
            pass
    except OSError as error:
        return f"it cannot be written: {error.strerror}"
    is_open = above == path and os.stat(path).st_mode & OTHERS_WRITE
    return "others can write there, whose code would run in your name" if is_open else ""


def _tools() -> Iterator[Finding]:
    group = "tools"
    for name, there in _TOOLS.items():
        found = shutil.which(name)
        yield Finding(group, name, found or "none", there if found else "not needed", "" if found else _INSTALL[name])


_TOOLS = {
    "perf": "TILEWRIGHT_PERF=jitdump shows it kernels by name and line",
    "gdb": "TILEWRIGHT_PERF=gdb lets it stop at lines of kernels",
    "cc": "export_c links with it",
}
_INSTALL = {
    "perf": "install it to profile kernels by line",
    "gdb": "install it to look at native code",
    "cc": "install a C compiler to export programs as libraries",
}


def _variables() -> Iterator[Finding]:
    for name in sorted(name for name in os.environ if name.startswith(settings.PREFIX)):
        yield _variable(name, name.removeprefix(settings.PREFIX))


def _variable(name: str, short: str) -> Finding:
    value = os.environ[name]
    if short not in settings.KNOWN:
        help = f"there are {', '.join(settings.PREFIX + each for each in settings.KNOWN)}"
        return Finding("settings", name, value, "nobody reads it", help)
    if wrong := settings.objection(short):
        return Finding("settings", name, value, f"whoever reads it fails: {wrong}", "unset it, or say what it takes")
    return Finding("settings", name, value, "it is read")
