"""Objects: relocatable ELF files, by what their headers say.

An object is a row of sections: code, constants, data, the symbols that lie in them, and the places that wait for an
address (relocations). Whoever runs one lays the loaded sections into memory and fills in the addresses; whoever looks
at one reads the listing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tilewright.errors import ArtifactError
from tilewright.named_tuples import NamedTuple
from tilewright.native.relocations import Rules, rules_of
from tilewright.records import record

RELOCATABLE = 1
SYMBOLS, RELOCATIONS, NOBITS, UNWIND = 2, 4, 8, 0x70000001
WRITE, ALLOC, EXECUTE = 1, 2, 4
ABSOLUTE = 0xFFF1
LISTED_SYMBOLS = (0, 1, 2)  # names, data and functions; the others stand for sections and files


@record
class Section:
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


@record
class Symbol:
    """A symbol: an offset into a section, an address, or (section 0) something from outside."""

    name: str
    section: int
    value: int
    size: int
    kind: int


class Relocation(NamedTuple):
    """A place in a section that waits for an address."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@record
class Object:
    """An object's headers, its symbols, and the relocations of the sections that are loaded."""

    data: bytes
    machine: int
    names: int
    """The number of the section that holds the names of sections."""
    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[Relocation]

    @property
    def rules(self) -> Rules | None:
        """What loading it takes, None for a machine that nothing is loaded on."""
        return rules_of(self.machine)

    @property
    def undefined(self) -> list[Symbol]:
        """The symbols that come from outside."""
        return [symbol for symbol in self.symbols if symbol.section == 0 and symbol.name]

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section."""
        return _slice(self.data, section.offset, section.size)

    def section_name(self, number: int) -> str:
        """Return the name of a section, or what its number stands for."""
        if number >= len(self.sections):
            return "absolute" if number == ABSOLUTE else f"section {number}"
        return _text(self.content(self.sections[self.names]), self.sections[number].name)


def read(data: bytes) -> Object:
    """Return what the headers of a 64-bit relocatable object say; ArtifactError for anything else."""
    try:
        return _read(data)
    except ArtifactError:
        raise
    except (struct.error, IndexError, ValueError) as error:
        raise ArtifactError(f"broken object: {error}") from error


def content_of(data: bytes, name: str) -> bytes:
    """Return the bytes of a section by its name, of any 64-bit ELF file; nothing where there is none."""
    sections, names = _sections(data)
    texts = _slice(data, sections[names].offset, sections[names].size)
    found = next((each for each in sections if _text(texts, each.name) == name), None)
    return b"" if found is None else _slice(data, found.offset, found.size)


def _sections(data: bytes) -> tuple[list[Section], int]:
    """Return the headers of all sections, and which of them holds their names."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ArtifactError("broken object: not a 64-bit little-endian ELF file")
    (start,), (count, names) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 60)
    headers = _slice(data, start, 64 * count)
    return [Section(*fields) for fields in struct.iter_unpack("<IIQQQQIIQQ", headers)], names


def _read(data: bytes) -> Object:
    sections, names = _sections(data)
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != RELOCATABLE:
        raise ArtifactError(f"cannot load ELF type {kind}: only relocatable objects")
    symbols = [symbol for each in sections if each.kind == SYMBOLS for symbol in _symbols(data, sections, each)]
    return Object(data, machine, names, sections, symbols, list(_relocations(data, sections, symbols)))


def _symbols(data: bytes, sections: list[Section], section: Section) -> Iterator[Symbol]:
    table, names = (_slice(data, each.offset, each.size) for each in (section, sections[section.link]))
    for name, info, _, number, value, size in struct.iter_unpack("<IBBHQQ", table):
        yield Symbol(_text(names, name), number, value, size, info & 15)


def _relocations(data: bytes, sections: list[Section], symbols: list[Symbol]) -> Iterator[Relocation]:
    for section in sections:
        if section.kind == RELOCATIONS and sections[section.info].is_loaded:
            for offset, info, addend in struct.iter_unpack("<QQq", _slice(data, section.offset, section.size)):
                yield Relocation(section.info, offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)


def _text(table: bytes, start: int) -> str:
    """Return the text that starts in a table of texts, each of which ends in a zero byte."""
    return table[start : table.index(b"\0", start)].decode()


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise ArtifactError(f"broken object: ends at byte {len(data)}, but is {start + size} long by its headers")
    return data[start : start + size]


def listing(data: bytes) -> str:
    """Return an object's loaded sections, its symbols and its relocations as a text."""
    found = read(data)
    machine = found.rules.name if found.rules else f"machine {found.machine}"
    return "\n".join(
        [
            f"relocatable object for {machine}, {len(data)} bytes",
            *_titled("sections", (_section(found, number) for number in range(len(found.sections)))),
            *_titled("symbols", (_symbol(found, symbol) for symbol in found.symbols)),
            *_titled("relocations", (_relocation(found, relocation) for relocation in found.relocations)),
        ]
    )


def _titled(title: str, lines: Iterator[str]) -> Iterator[str]:
    shown = [f"  {line}" for line in lines if line]
    if shown:
        yield from ("", title, *shown)


def _section(found: Object, number: int) -> str:
    section = found.sections[number]
    if not section.is_loaded:
        return ""
    use = "code" if section.flags & EXECUTE else "data" if section.flags & WRITE else "constants"
    return f"{found.section_name(number):<20} {section.size:>8} bytes  align {section.align:<4}  {use}"


def _symbol(found: Object, symbol: Symbol) -> str:
    if not symbol.name or symbol.kind not in LISTED_SYMBOLS:
        return ""
    if symbol.section == 0:
        return f"{'outside':<28} {'':8} {symbol.name}"
    place = f"{found.section_name(symbol.section)}+{symbol.value:#x}"
    return f"{place:<28} {symbol.size:>8} {symbol.name}"


def _relocation(found: Object, relocation: Relocation) -> str:
    place = f"{found.section_name(relocation.section)}+{relocation.offset:#x}"
    kind = found.rules.kinds.get(relocation.kind) if found.rules else None
    target = relocation.symbol.name or found.section_name(relocation.symbol.section)
    return f"{place:<28} {kind.name if kind else relocation.kind:<20} {target}{relocation.addend:+#x}"
