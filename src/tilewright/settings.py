"""Settings: every environment variable the package reads, read live and typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache

from tilewright.imported import imported
from tilewright.named_tuples import NamedTuple

PREFIX = "TILEWRIGHT_"
_CHANGING = (
    "CHECKED",
    "NUM_THREADS",
    "AUTOTUNE",
    "TILES",
    "CORES",
    "SMALL_WORK",
    "CUDA_SCHEDULE",
    "AMX",
    "DEBUG",
    "PERF",
)
NAMES = tuple(PREFIX + name for name in _CHANGING)
"""The variables that change compiled code or how it runs: a call that finds one changed looks at all of them anew."""


class CodeSettings(NamedTuple):
    """What settings say that a program's code depends on: part of whatever it is found by."""

    is_checked: bool
    is_located: bool
    chooses_tiles: bool
    keeps_small_work: bool
    cuda_schedule: str
    amx: str
    cores: int


def code_settings() -> CodeSettings:
    """Return what the settings that change code say now."""
    return CodeSettings(checked(), located(), chooses_tiles(), keeps_small_work(), cuda_schedule(), amx(), cores())


def verify_level() -> str:
    """Return `none`, `basic` or `roundtrip` from TILEWRIGHT_VERIFY_LEVEL; ValueError for anything else."""
    return _choice("VERIFY_LEVEL", "basic", ("none", "basic", "roundtrip"))


def checked() -> bool:
    """Return whether native code checks what only the running program knows, from TILEWRIGHT_CHECKED: on unless off."""
    return _switch("CHECKED", "on")


def debug() -> bool:
    """Return whether kernels run line by line, for a debugger to follow, from TILEWRIGHT_DEBUG: off unless on."""
    return _switch("DEBUG", "off")


def perf() -> frozenset[str]:
    """Return who is told of code and calls, from TILEWRIGHT_PERF, as in `map,nvtx`: nobody unless it is set."""
    text = os.environ.get(PREFIX + "PERF")
    return _listeners(text) if text else frozenset()


@cache
def _listeners(text: str) -> frozenset[str]:
    names = frozenset(text.replace(",", " ").lower().split()) - {"off", "0"}
    if unknown := names - {*PERF}:
        raise ValueError(f"{PREFIX}PERF takes {', '.join(PERF)}, got {min(unknown)!r}")
    return names


PERF = ("map", "jitdump", "gdb", "nvtx", "torch")
"""A perf map, a jitdump with lines, GDB, and ranges around calls for NVIDIA's tools and for torch's profiler."""


def located() -> bool:
    """Return whether code says which line of its author's each instruction was made for."""
    return bool(perf() & {"jitdump", "gdb"})


def ranges() -> frozenset[str]:
    """Return whose ranges are opened around every call."""
    return perf() & {"nvtx", "torch"}


def num_threads() -> int:
    """Return TILEWRIGHT_NUM_THREADS, or torch's thread count once torch is imported, or the processors we may use."""
    if found := _positive("NUM_THREADS", 0):
        return found
    count = getattr(imported("torch"), "get_num_threads", None)
    return int(count()) if count is not None else _processors()


def cores() -> int:
    """Return how many cores products are cut for, a power of two, from TILEWRIGHT_CORES or what we may use."""
    return 1 << (_positive("CORES", _cores()) - 1).bit_length()


def drift() -> str:
    """Return what a kernel does about a changed global, `raise` or `recompile`, from TILEWRIGHT_DRIFT."""
    return _choice("DRIFT", "raise", ("raise", "recompile"))


def autotune() -> bool:
    """Return whether kernels measure their configurations, from TILEWRIGHT_AUTOTUNE: on unless off."""
    return _switch("AUTOTUNE", "on")


def chooses_tiles() -> bool:
    """Return whether processors work in tiles of their choice, from TILEWRIGHT_TILES: chosen unless written."""
    return _choice("TILES", "chosen", ("chosen", "written")) == "chosen"


def keeps_small_work() -> bool:
    """Return whether work not worth a second thread stays on one, from TILEWRIGHT_SMALL_WORK: alone unless shared."""
    return _choice("SMALL_WORK", "alone", ("alone", "shared")) == "alone"


def cuda_schedule() -> str:
    """Return how kernels on GPUs are scheduled, from TILEWRIGHT_CUDA_SCHEDULE, as in `warps=8 stages=4`: by rules."""
    return " ".join(os.environ.get(PREFIX + "CUDA_SCHEDULE", "").replace(",", " ").lower().split())


def amx() -> str:
    """Return whether products run on matrix tiles, from TILEWRIGHT_AMX: `on` where they work, `off`, or `emulated`."""
    return _choice("AMX", "on", ("on", "off", "emulated"))


def native_dispatch() -> bool:
    """Return whether calls go through emitted machine code, from TILEWRIGHT_DISPATCH: native unless python."""
    return _choice("DISPATCH", "native", ("native", "python")) == "native"


def transport() -> str:
    """Return how processes reach windows, from TILEWRIGHT_TRANSPORT: `memory`, where all share it, or `messages`."""
    return _choice("TRANSPORT", "memory", ("memory", "messages"))


def own_loader() -> bool:
    """Return whether objects are mapped by our loader, where it can, from TILEWRIGHT_LOADER: own unless llvm."""
    return _choice("LOADER", "own", ("own", "llvm")) == "own"


def follows_torch() -> bool:
    """Return whether torch decides the number of threads."""
    return not os.environ.get(PREFIX + "NUM_THREADS", "").strip() and imported("torch") is not None


def cache_dir() -> str | None:
    """Return where compiled code is kept: TILEWRIGHT_CACHE_DIR, or None where it is `off` or `0`.

    Without it that is `tilewright` below XDG_CACHE_HOME or ~/.cache. Whoever has no home lives in `/`.
    """
    path = os.environ.get(PREFIX + "CACHE_DIR", "").strip()
    if path.lower() in ("off", "0"):
        return None
    if path:
        return os.path.abspath(os.path.expanduser(path))
    home = os.path.expanduser("~")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # to be ignored, says the XDG standard
        base = os.path.join(home if os.path.isabs(home) else "/", ".cache")
    return os.path.join(base, "tilewright")


def shared_cache_dirs() -> tuple[str, ...]:
    """Return the directories of TILEWRIGHT_SHARED_CACHE_DIRS, which are read and never written; `:` separates them."""
    paths = os.environ.get(PREFIX + "SHARED_CACHE_DIRS", "").split(os.pathsep)
    return tuple(os.path.abspath(os.path.expanduser(path.strip())) for path in paths if path.strip())


def cache_limit() -> int:
    """Return how many bytes the cache may take, from TILEWRIGHT_CACHE_LIMIT, as in 500M: 2G unless it is set."""
    text = os.environ.get(PREFIX + "CACHE_LIMIT", "").strip() or "2G"
    last = text[-1].upper()
    digits, shift = (text[:-1], _SHIFTS[last]) if last in _SHIFTS else (text, 0)
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(
            f"{PREFIX}CACHE_LIMIT must be a number of bytes, or one with K, M or G behind it, got {text!r}"
        )
    return int(digits) << shift


_SHIFTS = {"K": 10, "M": 20, "G": 30}


def build_dir() -> str:
    """Return where programs without a directory of their own are written: TILEWRIGHT_BUILD_DIR, or `build_output`."""
    path = os.environ.get(PREFIX + "BUILD_DIR", "").strip()
    return os.path.expanduser(path) or "build_output"


def c_compiler() -> str:
    """Return the C compiler that CC names, or nothing: the one variable here that belongs to everybody."""
    return os.environ.get("CC", "").strip()


def run_only() -> bool:
    """Return whether code may only come from the cache, from TILEWRIGHT_RUN_ONLY: off unless on."""
    return _switch("RUN_ONLY", "off")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _cores() -> int:
    """Return how many processors the process could use when it first asked: code does not change with affinities."""
    return _processors()


def _positive(name: str, default: int) -> int:
    text = os.environ.get(PREFIX + name, "").strip()
    if text and (not text.isdecimal() or int(text) < 1):
        raise ValueError(f"{PREFIX}{name} must be a positive number, got {text!r}")
    return int(text) if text else default


def _choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(PREFIX + name, "").strip().lower() or default
    if value not in allowed:
        raise ValueError(f"{PREFIX}{name} must be one of {', '.join(allowed)}, got {os.environ[PREFIX + name]!r}")
    return value


def _switch(name: str, default: str) -> bool:
    return _choice(name, default, (*_ON, *_OFF)) in _ON


_ON, _OFF = ("on", "1", "true", "yes"), ("off", "0", "false", "no")


KNOWN: Mapping[str, Callable[[], object]] = {
    "CHECKED": checked, "NUM_THREADS": num_threads, "AUTOTUNE": autotune, "TILES": chooses_tiles, "CORES": cores,
    "SMALL_WORK": keeps_small_work, "CUDA_SCHEDULE": cuda_schedule, "AMX": amx, "DEBUG": debug, "PERF": perf,
    "BUILD_DIR": build_dir, "CACHE_DIR": cache_dir, "CACHE_LIMIT": cache_limit, "DISPATCH": native_dispatch,
    "DRIFT": drift, "LOADER": own_loader, "RUN_ONLY": run_only, "SHARED_CACHE_DIRS": shared_cache_dirs,
    "TRANSPORT": transport, "VERIFY_LEVEL": verify_level,
}  # fmt: skip
"""Every variable that is read, without what all of them begin with, and what reads it."""


def objection(name: str) -> str:
    """Return what is wrong with the value of a variable, nothing where that can be read."""
    try:
        KNOWN[name]()
    except ValueError as error:
        return str(error)
    return ""
