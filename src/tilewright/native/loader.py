"""Loading: object code made callable in this process, without a linker or LLVM.

An object's sections are laid into one mapping: code, constants and what relocation adds first, then, from a page of
their own, the sections that are written to. Calls that leave the object go through a stub `jmp *[rip]` next to the
code, addresses of outside data through a slot, since the outside may be further away than 32 bits reach. The first part
ends readable and executable, the second readable and writable; nothing is ever both.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from tilewright.errors import ArtifactError
from tilewright.native.elf import (
    ABSOLUTE,
    NOBITS,
    R_32,
    R_32S,
    R_64,
    R_PC32,
    R_PC64,
    R_PLT32,
    R_SLOT,
    WRITE,
    X86_64,
    Object,
    Relocation,
    Symbol,
    read,
)
from tilewright.records import entity, mutable

PAGE = mmap.PAGESIZE
LIMIT = 1 << 30  # bytes an object may take; more says that its headers are broken
FORMS = {  # how each kind of relocation is written
    kind: struct.Struct(form)
    for form, kinds in {"<Q": (R_64,), "<q": (R_PC64,), "<I": (R_32,), "<i": (R_PC32, R_PLT32, R_32S, *R_SLOT)}.items()
    for kind in kinds
}
STUB = b"\xff\x25\x00\x00\x00\x00"  # jmp *[rip + 0], the address follows


@entity
class Loaded:
    """Code in memory; it is unmapped with this object, which must outlive every call into it."""

    memory: mmap.mmap
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
    """Map a relocatable x86-64 ELF object; undefined names are looked up in `symbols`, then in libc and libm.

    ArtifactError says what is wrong with the object, or which names nobody defines.
    """
    found = read(data)
    if found.machine != X86_64 or platform.machine() != "x86_64":
        raise ArtifactError(f"cannot load an object for machine {found.machine}: only x86-64 objects, on x86-64")
    try:
        return _Image(found, symbols or {}).load()
    except struct.error as error:
        raise ArtifactError(f"broken object: {error}") from error


@mutable
class _Image:
    """An object on its way into memory."""

    object: Object
    outside: Mapping[str, int]
    places: dict[int, int] = field(default_factory=dict[int, int])  # section number -> offset in memory
    stubs: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[Symbol, int] = field(default_factory=dict[Symbol, int])
    base: int = 0

    def load(self) -> Loaded:
        split, size = self._lay_out()
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in self.places.items():
            section = self.object.sections[number]
            if section.kind != NOBITS:
                memory[place : place + section.size] = self.object.content(section)
        for name, place in self.stubs.items():
            memory[place : place + 16] = STUB + struct.pack("<Qxx", self._external(name))
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
        for called in dict.fromkeys(r.symbol.name for r in self.object.relocations if r.is_call_outside):
            self.stubs[called], end = end, end + 16
        for symbol in dict.fromkeys(r.symbol for r in self.object.relocations if r.kind in R_SLOT):
            self.slots[symbol], end = end, end + 8
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

    def _apply(self, relocation: Relocation, memory: mmap.mmap) -> None:
        section, offset, kind, symbol, addend = relocation
        form = FORMS.get(kind)
        if form is None:
            raise ArtifactError(f"cannot load: relocation type {kind} of `{symbol.name}` is not supported")
        if offset + form.size > self.object.sections[section].size:
            raise ArtifactError(f"broken object: relocation of `{symbol.name}` outside section {section}")
        place = self.places[section] + offset
        if kind in R_SLOT:
            target = self.base + self.slots[symbol]
        elif relocation.is_call_outside:
            target = self.base + self.stubs[symbol.name]
        else:
            target = self._address(symbol)
        value = target + addend - (0 if kind in (R_64, R_32, R_32S) else self.base + place)
        try:
            form.pack_into(memory, place, value % (1 << 64) if kind == R_64 else value)
        except struct.error:
            raise ArtifactError(f"cannot load: `{symbol.name}` is out of reach of relocation type {kind}") from None

    def _address(self, symbol: Symbol) -> int:
        if symbol.section == ABSOLUTE:
            return symbol.value
        if symbol.section == 0:
            return self._external(symbol.name)
        if symbol.section not in self.places:
            raise ArtifactError(f"broken object: `{symbol.name}` lies in section {symbol.section}, which is not loaded")
        return self.base + self.places[symbol.section] + symbol.value

    def _external(self, name: str) -> int:
        found = self.outside.get(name) or library_symbol(name)
        if not found:
            raise ArtifactError(f"cannot load: nobody defines `{name}`")
        return found


@cache
def library_symbol(name: str) -> int:
    """Return the address of a function or variable of libc or libm, or 0."""
    for library in (None, "libm.so.6"):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(_library(library), name))
        except (ValueError, OSError):
            continue
    return 0


@cache
def _library(name: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(name, use_errno=True)


def _protect(address: int, size: int) -> None:
    mprotect = _library(None).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "cannot make kernel code executable: the system forbids new executable pages")
