"""Targets: which processor code is made for, and whether this one can run it.

LLVM knows the processor's name and its features; the kernel's own list in /proc/cpuinfo says which of them may be used
here. A host target switches on what both name and switches off the rest, so that asking later whether an object can run
takes /proc/cpuinfo alone, without LLVM.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any

from tilewright.digests import sha256
from tilewright.forks import Lock, held_over_forks
from tilewright.native.machines import Machine, Processor, System, here, processor_called
from tilewright.records import record

CPUINFO = "/proc/cpuinfo"
CACHE_SIZE = "/sys/devices/system/cpu/cpu0/cache/index{}/size"
L2_DEFAULT = 1 << 20

ALIASES = {  # what LLVM calls a feature, where /proc/cpuinfo differs by more than dots, dashes and underscores
    **{
        "64bit": "lm",
        "bmi": "bmi1",
        "crc32": "sse42",
        "lzcnt": "abm",
        "pclmul": "pclmulqdq",
        "prfchw": "3dnowprefetch",
    },
    **{"rdrnd": "rdrand", "sahf": "lahflm", "sha": "shani", "sse3": "pni"},
    **{
        "crc": "crc32",
        "dotprod": "asimddp",
        "fp-armv8": "fp",
        "fullfp16": "asimdhp",
        "lse": "atomics",
        "neon": "asimd",
        "rand": "rng",
    },
}
MARKS = str.maketrans("", "", "._-")
_SLOW_IN_PAIRS = ("rapids", "rapids-d", "cooperlake")
"""How the names of processors end that multiply pairs of bfloat16 numbers at half the speed of floats."""
LEAST_WITH_TILES = "sapphirerapids"
"""The oldest processor that has matrix tiles."""
_QUICK_GATHERS = ("rapids", "rapids-d")
"""How the names of processors end whose instructions gather quickly."""
_INTEL = ("lake", "rapids", "well")
"""What the names of Intel's processors have in them."""
V2 = ("cmov", "cx16", "cx8", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3")
V3 = (*V2, "avx", "avx2", "bmi", "bmi2", "crc32", "f16c", "fma", "lzcnt", "movbe", "xsave")
V4 = (*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")


@record
class Target:
    """A processor to make code for; `features` are LLVM's, sorted, each with its sign."""

    triple: str
    cpu: str
    features: str
    l2_bytes: int = L2_DEFAULT
    l3_bytes: int = 0
    """How many bytes the last cache holds; 0: nobody knows."""
    emulates_tiles: bool = False
    """Whether functions stand for AMX's instructions, as tests have it."""

    def has(self, feature: str) -> bool:
        """Tell whether code for this target may use a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def machine(self) -> str:
        """The architecture, as in `x86_64` or `aarch64`."""
        return _architecture(self.triple.partition("-")[0])

    @property
    def vector_bits(self) -> int:
        """The width of the widest vector register worth using."""
        return 512 if self.has("avx512f") else 256 if self.has("avx2") else 128

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.vector_bits == 512 or self.machine == "aarch64" else 16

    @property
    def has_fma(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return self.has("fma") or self.machine == "aarch64"

    @property
    def has_f16c(self) -> bool:
        """Whether half precision converts to single in hardware."""
        return self.has("f16c") or self.machine == "aarch64"

    @property
    def has_avx512bf16(self) -> bool:
        """Whether single precision rounds to bfloat16 in hardware."""
        return self.has("avx512bf16")

    @property
    def is_quick_in_pairs(self) -> bool:
        """Whether products of pairs of bfloat16 numbers beat those of floats: on Intel's they take twice as long."""
        return self.has_avx512bf16 and not self.cpu.endswith(_SLOW_IN_PAIRS)

    @property
    def fetches_along_rows(self) -> bool:
        """Whether the processor fetches along several rows of a matrix by itself, as far as nobody asks further."""
        return any(part in self.cpu for part in _INTEL)

    @property
    def kept_bytes(self) -> int:
        """How many bytes, read and written, the last cache keeps so well that plain stores beat those past the caches.

        A Zen 5 of 32 MB writes the products of a column by a row in 0.034 ms where they take 4 MB, and in 0.100 past
        the caches; where they take 24 in 0.39 and 0.59, where it is 64 in 2.0 and 1.7. An Emerald Rapids gains by
        stores past its caches from 2 MB on.
        """
        return 0 if self.fetches_along_rows else self.l3_bytes

    @property
    def gathers_quickly(self) -> bool:
        """Whether an instruction that gathers floats beats loads of each.

        Sixteen floats in the caches take an Emerald Rapids 6.2 ns, and 10 one by one; those before it are mended
        against a leak at many times that, and on a Zen 5 it is 4.4 against 2.4.
        """
        return self.cpu.endswith(_QUICK_GATHERS)

    @property
    def has_amx(self) -> bool:
        """Whether code may use matrix tiles, which a process has to ask for."""
        return self.has("amx-tile")

    @property
    def without_amx(self) -> Target:
        """The same processor, its matrix tiles left alone."""
        signed = [each for each in self.features.split(",") if not each.startswith(("+amx-", "-amx-"))]
        return replace(self, features=",".join(signed)) if len(signed) < self.features.count(",") + 1 else self


def _architecture(name: str) -> str:
    """Return what LLVM calls a processor, by any of its names."""
    found = processor_called(name)
    return found.value[0] if found else name


def normalized(features: dict[str, bool]) -> str:
    """Return features as LLVM reads them, in an order that equal sets share."""
    return ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))


def _preset(machine: str, cpu: str, *features: str) -> Target:
    return Target(f"{machine}-unknown-linux-gnu", cpu, normalized(dict.fromkeys(features, True)))


PRESETS = {
    "x86-64": _preset("x86_64", "x86-64", "sse", "sse2"),
    "x86-64-v3": _preset("x86_64", "x86-64-v3", *V3),
    "x86-64-v4": _preset("x86_64", "x86-64-v4", *V4),
    "aarch64": _preset("aarch64", "generic", "neon"),
}
_BASELINES = {Processor.X86_64: PRESETS["x86-64"], Processor.AARCH64: PRESETS["aarch64"]}


def baseline(machine: Machine) -> Target:
    """Return the least processor of a machine's kind under its system: what runs on it runs on all others."""
    target = _BASELINES[machine.processor]
    return replace(target, triple=f"{target.machine}-{_rest_of_triple(machine)}")


def _rest_of_triple(machine: Machine) -> str:
    """Return what a triple says of a system: all code is made as ELF objects, which every loader of LLVM's reads."""
    if machine == Machine(System.WINDOWS, Processor.AARCH64):
        return "unknown-linux-android"  # called alike, and x18 is left alone, too; LLVM 22 aborts at frames of Windows'
    return _SYSTEMS[machine.system]


def own_baseline() -> Target:
    """Return the least processor of this machine's kind."""
    machine = here()
    assert machine is not None, "whoever makes native code has asked whether there is any"
    return baseline(machine)


_SYSTEMS = {
    System.LINUX: "unknown-linux-gnu",
    System.MACOS: "apple-macosx11.0.0-elf",
    System.WINDOWS: "pc-windows-msvc-elf",
}


def llvm() -> Any:
    """Return llvmlite's binding, loaded and ready for this machine's processors; it has no types of its own."""
    with _loading:
        return _llvm()


_loading = Lock()


@cache
def _llvm() -> Any:
    import llvmlite.binding as binding  # pyright: ignore[reportMissingTypeStubs]

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    held_over_forks(lambda: binding.ffi.lib._lock)  # pyright: ignore[reportPrivateUsage] - no other way to it
    return binding


def llvm_target(triple: str) -> Any:
    """Return what LLVM knows of the processors that a triple names, whatever this machine is."""
    binding = llvm()
    if _architecture(triple.partition("-")[0]) != _architecture(platform.machine()):
        with _loading:
            _make_all_ready()
    return binding.Target.from_triple(triple)


@cache
def _make_all_ready() -> None:
    binding = _llvm()
    binding.initialize_all_targets()  # which takes five times as long as that of one processor
    binding.initialize_all_asmprinters()


def llvm_files() -> list[str]:
    """Return what llvmlite consists of that changes code, without importing it: its version, and its libraries."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return []
    root = spec.submodule_search_locations[0]
    libraries = sorted(name for name in os.listdir(f"{root}/binding") if name.startswith("libllvmlite"))
    return [f"{root}/_version.py", *(f"{root}/binding/{name}" for name in libraries)]


@cache
def host() -> Target:
    """Return the processor this process runs on; loads LLVM."""
    features: dict[str, bool] = llvm().get_host_cpu_features()
    flags = cpu_flags()
    usable = {name: on and (not flags or _flag(name) in flags) for name, on in features.items()}
    name = processor_of(llvm().get_host_cpu_name(), usable)
    made = Target(_host_triple(), name, normalized(usable), _l2_bytes(), _cache_bytes(3))
    return made.without_amx  # which `matrix_units` adds where it may be used


def processor_of(name: str, usable: Mapping[str, bool]) -> str:
    """Return what a processor is, told by what it has where a virtual machine gives it an older one's name."""
    return LEAST_WITH_TILES if usable.get("amx-tile") and not name.endswith(_SLOW_IN_PAIRS) else name


def _host_triple() -> str:
    machine = here()
    is_foreign = machine is not None and not machine.is_linux
    return baseline(machine).triple if machine and is_foreign else llvm().get_process_triple()


def by_name(name: str) -> Target:
    """Return the preset called `name`, or the host for `host`; ValueError for anything else."""
    if name == "host":
        return host()
    if name not in PRESETS:
        raise ValueError(f"no CPU target is called {name!r}: there are host, {', '.join(PRESETS)}")
    return PRESETS[name]


def missing_features(target: Target) -> list[str]:
    """Return why code for `target` cannot run here: another architecture, or the features this processor lacks."""
    own = _architecture(platform.machine())
    if target.machine != own:
        return [f"{target.machine} (this processor is {own})"]
    flags = cpu_flags()
    wanted = [feature[1:] for feature in target.features.split(",") if feature.startswith("+")]
    return [name for name in wanted if flags and _flag(name) not in flags]


@cache
def fingerprint() -> str:
    """Return a text that changes whenever `host()` may, without loading LLVM: a key for what was made for the host."""
    keys = ("vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU part")
    named = "" if _cpuinfo() else f"{sys.platform} {platform.processor()}"
    facts = [platform.machine(), *(_cpuinfo().get(key, "") for key in keys), *sorted(cpu_flags()), *named.split()]
    return sha256(" ".join(facts).encode()).hexdigest()[:16]


def _flag(feature: str) -> str:
    return ALIASES.get(feature) or _plain(feature)


def _plain(name: str) -> str:
    return name.translate(MARKS)


@cache
def cpu_flags() -> frozenset[str]:
    """Return what the kernel says may be used, or nothing where it does not say."""
    key = "flags" if _architecture(platform.machine()) == "x86_64" else "Features"
    return frozenset(_plain(_cpuinfo().get(key, "")).split())


@cache
def _cpuinfo() -> dict[str, str]:
    """Return the first processor of /proc/cpuinfo."""
    try:
        with open(CPUINFO, "rb", buffering=0) as file:  # one read: the kernel takes its time over each processor
            first = file.read(1 << 14).decode().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _l2_bytes() -> int:
    return _cache_bytes(2) or L2_DEFAULT


def largest_cache() -> int:
    """Return how many bytes the largest cache of this processor holds, as far as the system says."""
    return _cache_bytes(3) or _l2_bytes()


def _cache_bytes(level: int) -> int:
    try:
        with open(CACHE_SIZE.format(level), encoding="utf-8") as file:
            text = file.read().strip()
        return int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0)
    except (OSError, ValueError):
        return 0


def cpu_name() -> str:
    """Return what the maker calls this processor, nothing where the system does not say."""
    return _cpuinfo().get("model name", "")
