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
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

RELOCATABLE, X86_64 = 1, 62
SYMBOLS, RELOCATIONS, NOBITS, UNWIND = 2, 4, 8, 0x70000001
WRITE, ALLOC = 1, 2
ABSOLUTE = 0xFFF1
PAGE = mmap.PAGESIZE
LIMIT = 1 << 30  # bytes an object may take; more says that its headers are broken

R_64, R_PC32, R_PLT32, R_32, R_32S, R_PC64 = 1, 2, 4, 10, 11, 24
R_SLOT = (9, 41, 42, 43)  # GOTPCREL and its relaxable kinds, which are right unrelaxed too
FORMS = {R_64: "<Q", R_PC64: "<q", R_PC32: "<i", R_PLT32: "<i", R_32: "<I", R_32S: "<i", **dict.fromkeys(R_SLOT, "<i")}
STUB = b"\xff\x25\x00\x00\x00\x00"  # jmp *[rip + 0], the address follows


class Section(NamedTuple):
    """A section header, in the order of the file."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int

    @property
    def is_loaded(self) -> bool:
        """Whether running code needs it; nobody unwinds through kernels."""
        return bool(self.flags & ALLOC) and self.kind != UNWIND


class Symbol(NamedTuple):
    """A symbol: an offset into a section, an address, or (section 0) something from outside."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """A place in a section that waits for an address."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int

    @property
    def is_call_outside(self) -> bool:
        """Whether it is a call of something this object does not define."""
        return self.kind == R_PLT32 and self.symbol.section == 0


@dataclass(frozen=True, eq=False)
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

    ValueError says what is wrong with the object, or which names nobody defines.
    """
    try:
        return _Image(data, symbols or {}).load()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"broken object: {error}") from error


@dataclass
class _Image:
    """An object on its way into memory."""

    data: bytes
    outside: Mapping[str, int]
    sections: list[Section] = field(default_factory=list[Section])
    symbols: list[Symbol] = field(default_factory=list[Symbol])
    relocations: list[Relocation] = field(default_factory=list[Relocation])
    places: dict[int, int] = field(default_factory=dict[int, int])  # section number -> offset in memory
    stubs: dict[str, int] = field(default_factory=dict[str, int])
    slots: dict[Symbol, int] = field(default_factory=dict[Symbol, int])
    base: int = 0

    def load(self) -> Loaded:
        self._read()
        split, size = self._lay_out()
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in self.places.items():
            section = self.sections[number]
            if section.kind != NOBITS:
                memory[place : place + section.size] = self._bytes(section)
        for name, place in self.stubs.items():
            memory[place : place + 16] = STUB + struct.pack("<Qxx", self._external(name))
        for symbol, place in self.slots.items():
            struct.pack_into("<Q", memory, place, self._address(symbol))
        for relocation in self.relocations:
            self._apply(relocation, memory)
        _protect(self.base, split)
        defined = (s for s in self.symbols if s.name and s.section in self.places)
        return Loaded(memory, {s.name: self._address(s) for s in defined})  # global symbols come last and win

    def _read(self) -> None:
        """Read the headers, the symbols and the relocations of the sections that are loaded."""
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("broken object: not a 64-bit little-endian ELF file")
        kind, machine = struct.unpack_from("<HH", self.data, 16)
        if kind != RELOCATABLE or machine != X86_64 or platform.machine() != "x86_64":
            raise ValueError(f"cannot load ELF type {kind} for machine {machine}: only x86-64 objects, on x86-64")
        (start,), (count,) = struct.unpack_from("<Q", self.data, 40), struct.unpack_from("<H", self.data, 60)
        headers = self._slice(start, 64 * count)
        self.sections = [Section(*fields) for fields in struct.iter_unpack("<IIQQQQIIQQ", headers)]
        for section in self.sections:
            if section.kind == SYMBOLS:
                self.symbols = self._read_symbols(section)
        for section in self.sections:
            if section.kind == RELOCATIONS and self.sections[section.info].is_loaded:
                for offset, info, addend in struct.iter_unpack("<QQq", self._bytes(section)):
                    symbol = self.symbols[info >> 32]
                    self.relocations.append(Relocation(section.info, offset, info & 0xFFFFFFFF, symbol, addend))

    def _read_symbols(self, section: Section) -> list[Symbol]:
        names = self._bytes(self.sections[section.link])
        return [
            Symbol(names[name:].partition(b"\0")[0].decode(), number, value)
            for name, _, _, number, value, _ in struct.iter_unpack("<IBBHQQ", self._bytes(section))
        ]

    def _lay_out(self) -> tuple[int, int]:
        """Give every loaded section, stub and slot its place; return where writable memory starts and all ends."""
        end = self._place(0, writable=False)
        end = -(-end // 16) * 16
        for called in dict.fromkeys(r.symbol.name for r in self.relocations if r.is_call_outside):
            self.stubs[called], end = end, end + 16
        for symbol in dict.fromkeys(r.symbol for r in self.relocations if r.kind in R_SLOT):
            self.slots[symbol], end = end, end + 8
        split = -(-max(end, 1) // PAGE) * PAGE
        return split, -(-self._place(split, writable=True) // PAGE) * PAGE

    def _place(self, end: int, *, writable: bool) -> int:
        for number, section in enumerate(self.sections):
            if not section.is_loaded or bool(section.flags & WRITE) != writable:
                continue
            align = max(section.align, 1)
            self.places[number] = place = -(-end // align) * align
            end = place + section.size
            if align & (align - 1) or align > PAGE or end > LIMIT:
                raise ValueError(f"broken object: section {number} has size {section.size} and alignment {align}")
        return end

    def _apply(self, relocation: Relocation, memory: mmap.mmap) -> None:
        section, offset, kind, symbol, addend = relocation
        form = FORMS.get(kind)
        if form is None:
            raise ValueError(f"cannot load: relocation type {kind} of `{symbol.name}` is not supported")
        if offset + struct.calcsize(form) > self.sections[section].size:
            raise ValueError(f"broken object: relocation of `{symbol.name}` outside section {section}")
        place = self.places[section] + offset
        if kind in R_SLOT:
            target = self.base + self.slots[symbol]
        elif relocation.is_call_outside:
            target = self.base + self.stubs[symbol.name]
        else:
            target = self._address(symbol)
        value = target + addend - (0 if kind in (R_64, R_32, R_32S) else self.base + place)
        try:
            struct.pack_into(form, memory, place, value % (1 << 64) if kind == R_64 else value)
        except struct.error:
            raise ValueError(f"cannot load: `{symbol.name}` is out of reach of relocation type {kind}") from None

    def _address(self, symbol: Symbol) -> int:
        if symbol.section == ABSOLUTE:
            return symbol.value
        if symbol.section == 0:
            return self._external(symbol.name)
        if symbol.section not in self.places:
            raise ValueError(f"broken object: `{symbol.name}` lies in section {symbol.section}, which is not loaded")
        return self.base + self.places[symbol.section] + symbol.value

    def _external(self, name: str) -> int:
        found = self.outside.get(name) or library_symbol(name)
        if not found:
            raise ValueError(f"cannot load: nobody defines `{name}`")
        return found

    def _bytes(self, section: Section) -> bytes:
        return self._slice(section.offset, section.size)

    def _slice(self, start: int, size: int) -> bytes:
        if start + size > len(self.data):
            raise ValueError(f"broken object: ends at byte {len(self.data)}, but is {start + size} long by its headers")
        return self.data[start : start + size]


@cache
def library_symbol(name: str) -> int:
    """Return the address of a function or variable of libc or libm, or 0."""
    for library in (None, "libm.so.6"):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(library), name))
        except (ValueError, OSError):
            continue
    return 0


def _protect(address: int, size: int) -> None:
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "cannot make kernel code executable: the system forbids new executable pages")
