"""Loading: object code made callable in this process, without a linker or LLVM.

An object's sections are laid into one mapping: code, constants and what relocation adds first, then, from a page of
their own, the sections that are written to. Calls that leave the object go through a stub next to the code, addresses
of outside data through a slot, since the outside may be further away than an instruction reaches. The first part ends
readable and executable, the second readable and writable; nothing is ever both. (Where a page becomes executable,
Linux sees to it that no processor has older instructions of it.)

Where the system is not Linux, or the settings say so, LLVM does all that.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tilewright import settings
from tilewright.errors import ArtifactError
from tilewright.forks import Lock
from tilewright.native.elf import ABSOLUTE, ALLOC, LISTED_SYMBOLS, NOBITS, WRITE, Object, Relocation, Symbol, read
from tilewright.native.libraries import library, library_symbol
from tilewright.native.machines import Machine, here
from tilewright.native.relocations import RULES, OutOfReach, Refers, Rules
from tilewright.native.target import host, llvm, llvm_target
from tilewright.records import entity, mutable

_lock = Lock()


def linked(found: Object, outside: Mapping[str, int]) -> tuple[object, dict[str, int]]:
    """Return what keeps an object's code mapped by LLVM's loader, where ours does not apply, and where its symbols lie.

    LLVM ends the process over a name that it cannot find, so whoever calls has looked them all up before.
    """
    with _lock:
        for name, address in outside.items():
            llvm().add_symbol(name, address)
        engine = llvm().create_mcjit_compiler(llvm().parse_assembly(f'target triple = "{host().triple}"'), _machine())
        try:
            engine.add_object_file(llvm().ObjectFileRef.from_data(found.data))
            engine.finalize_object()
        except RuntimeError as error:
            raise ArtifactError(f"broken object: {error}") from error
        names = {symbol.name: engine.get_global_value_address(symbol.name) for symbol in _defined(found)}
        return engine, names


def _defined(found: Object) -> list[Any]:
    loaded = {number for number, section in enumerate(found.sections) if section.flags & ALLOC}
    return [each for each in found.symbols if each.name and each.section in loaded and each.kind in LISTED_SYMBOLS]


def _machine() -> Any:
    """Return a machine of LLVM's, which the engine that it is given to owns."""
    target = host()
    return llvm_target(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, reloc="pic", codemodel="default", jit=True
    )


PAGE = mmap.PAGESIZE
LIMIT = 1 << 30  # bytes an object may take; more says that its headers are broken


@entity
class Loaded:
    """Code in memory; it is unmapped with this object, which must outlive every call into it."""

    memory: object
    addresses: Mapping[str, int]

    def address(self, name: str) -> int:
        """Return where a symbol lies; KeyError for one that the object does not define."""
        return self.addresses[name]

    def function(self, name: str, restype: Any, *argtypes: Any) -> Callable[..., Any]:
        """Return a symbol as a ctypes function, which keeps this object alive."""
        found = ctypes.CFUNCTYPE(restype, *argtypes)(self.address(name))
        found.loaded = self  # pyright: ignore[reportAttributeAccessIssue]
        return found

    def pin(self) -> Loaded:
        """Keep the mapping until the process ends, for code that threads of its own run, and return self."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        return self


def load(data: bytes, symbols: Mapping[str, int] | None = None) -> Loaded:
    """Map a relocatable ELF object; undefined names are looked up in `symbols`, then in the system's C library.

    ArtifactError says what is wrong with the object, or which names nobody defines.
    """
    found, machine = read(data), here()
    rules = found.rules if machine is not None else None
    if machine is None or rules is None or rules is not RULES[machine.processor]:
        raise ArtifactError(f"cannot load an object for {_called(found)} on {_own(machine)}")
    for relocation in found.relocations:
        if relocation.kind not in rules.kinds:
            name = relocation.symbol.name
            raise ArtifactError(f"cannot load: relocation type {relocation.kind} of `{name}` is not supported")
    loaded = _loaded(found, rules, machine, symbols or {})
    if wanted := settings.perf():
        from tilewright.native.profilers import announce  # which only profiled processes need

        announce(found, loaded.addresses, wanted)
    return loaded


def _loaded(found: Object, rules: Rules, machine: Machine, symbols: Mapping[str, int]) -> Loaded:
    if settings.own_loader() and machine.is_linux and "gdb" not in settings.perf():
        try:
            return Image(found, rules, symbols).load()
        except struct.error as error:
            raise ArtifactError(f"broken object: {error}") from error

    outside = {symbol.name: external(symbol.name, symbols) for symbol in found.undefined}
    return Loaded(*linked(found, outside))


def external(name: str, symbols: Mapping[str, int]) -> int:
    """Return where a name lies that an object does not define; ArtifactError where nobody does."""
    address = symbols.get(name) or library_symbol(name)
    if not address:
        raise ArtifactError(f"cannot load: nobody defines `{name}`")
    return address


def _called(found: Object) -> str:
    return found.rules.name if found.rules else f"machine {found.machine}"


def _own(machine: Machine | None) -> str:
    return RULES[machine.processor].name if machine else "a machine without native code"


@mutable
class Image:
    """An object on its way into memory."""

    object: Object
    rules: Rules
    outside: Mapping[str, int]
    places: dict[int, int] = field(default_factory=dict[int, int])  # section number -> offset in memory
    stubs: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[Symbol, int] = field(default_factory=dict[Symbol, int])
    base: int = 0

    def load(self) -> Loaded:
        """Lay it into memory and fill in its addresses."""
        split, size = self._lay_out()
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in self.places.items():
            section = self.object.sections[number]
            if section.kind != NOBITS:
                memory[place : place + section.size] = self.object.content(section)
        for name, place in self.stubs.items():
            memory[place : place + 16] = self.rules.stub_to(external(name, self.outside))
        for symbol, place in self.slots.items():
            struct.pack_into("<Q", memory, place, self._address(symbol))
        for relocation in self.object.relocations:
            self._apply(relocation, memory)
        _protect(self.base, split)
        defined = (s for s in self.object.symbols if s.name and s.section in self.places)
        return Loaded(memory, {s.name: self._address(s) for s in defined})  # global symbols come last and win

    def _lay_out(self) -> tuple[int, int]:
        """Give every loaded section, stub and slot its place; return where writable memory starts and all ends."""
        end = self._place(0, writable=False)
        end = -(-end // 16) * 16
        for relocation in self.object.relocations:
            if self._needs_stub(relocation) and relocation.symbol.name not in self.stubs:
                self.stubs[relocation.symbol.name], end = end, end + 16
        for relocation in self.object.relocations:
            if self._refers(relocation) is Refers.SLOT and relocation.symbol not in self.slots:
                self.slots[relocation.symbol], end = end, end + 8
        split = -(-max(end, 1) // PAGE) * PAGE
        return split, -(-self._place(split, writable=True) // PAGE) * PAGE

    def _place(self, end: int, *, writable: bool) -> int:
        for number, section in enumerate(self.object.sections):
            if not section.is_loaded or bool(section.flags & WRITE) != writable:
                continue
            align = max(section.align, 1)
            self.places[number] = place = -(-end // align) * align
            end = place + section.size
            if align & (align - 1) or align > PAGE or end > LIMIT:
                raise ArtifactError(f"broken object: section {number} has size {section.size} and alignment {align}")
        return end

    def _refers(self, relocation: Relocation) -> Refers:
        return self.rules.kinds[relocation.kind].refers

    def _needs_stub(self, relocation: Relocation) -> bool:
        return self._refers(relocation) is Refers.CALL and relocation.symbol.section == 0

    def _apply(self, relocation: Relocation, memory: mmap.mmap) -> None:
        section, offset, number, symbol, addend = relocation
        kind = self.rules.kinds[number]
        if offset + kind.size > self.object.sections[section].size:
            raise ArtifactError(f"broken object: relocation of `{symbol.name}` outside section {section}")
        place = self.places[section] + offset
        if kind.refers is Refers.SLOT:
            target = self.base + self.slots[symbol]
        elif self._needs_stub(relocation):
            target = self.base + self.stubs[symbol.name]
        else:
            target = self._address(symbol)
        span = slice(place, place + kind.size)
        try:
            written = kind.write(int.from_bytes(memory[span], "little"), target + addend, self.base + place)
        except OutOfReach:
            raise ArtifactError(f"cannot load: `{symbol.name}` is out of reach of relocation type {number}") from None
        memory[span] = written.to_bytes(kind.size, "little")

    def _address(self, symbol: Symbol) -> int:
        if symbol.section == ABSOLUTE:
            return symbol.value
        if symbol.section == 0:
            return external(symbol.name, self.outside)
        if symbol.section not in self.places:
            raise ArtifactError(f"broken object: `{symbol.name}` lies in section {symbol.section}, which is not loaded")
        return self.base + self.places[symbol.section] + symbol.value


def _protect(address: int, size: int) -> None:
    mprotect = library(None).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "cannot make kernel code executable: the system forbids new executable pages")
