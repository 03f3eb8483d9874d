"""Relocations: how each kind writes an address into code or data, processor by processor.

A kind says what it refers to (its symbol, or a stub or slot near the code that leads further than it can reach), and
how the bytes at its place become those that hold the address: https://gitlab.com/x86-psABIs/x86-64-ABI, and
https://github.com/ARM-software/abi-aa/blob/main/aaelf64/aaelf64.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TypeAlias

from tilewright.native.machines import Processor
from tilewright.records import record


class OutOfReach(ValueError):
    """An address that a relocation's bits cannot hold."""


class Refers(Enum):
    """What a relocation refers to."""

    SYMBOL = auto()
    CALL = auto()
    """A function, by a stub where it lies outside."""
    SLOT = auto()
    """A slot that holds the symbol's address."""


Write: TypeAlias = Callable[[int, int, int], int]
"""Returns the new bytes of a place as a number, of the old ones, the address to write and the place's own."""


@record
class Kind:
    """A kind of relocation: its name, its bytes, what it refers to and how it is written."""

    name: str
    size: int
    write: Write
    refers: Refers = Refers.SYMBOL


@record
class Rules:
    """What loading takes on a processor: ELF's number for it, its relocations, and how a stub jumps to an address."""

    machine: int
    name: str
    kinds: Mapping[int, Kind]
    stub: bytes
    """Eight bytes of instructions that jump to the address behind them."""

    def stub_to(self, address: int) -> bytes:
        """Return the 16 bytes of a stub."""
        return self.stub + struct.pack("<Q", address)


def _signed(value: int, bits: int) -> int:
    """Return a number in two's complement; OutOfReach where it takes more bits."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OutOfReach
    return value & (1 << bits) - 1


def _unsigned(value: int, bits: int) -> int:
    if not 0 <= value < 1 << bits:
        raise OutOfReach
    return value


def _absolute(old: int, address: int, place: int) -> int:
    return address % (1 << 64)


def _far(old: int, address: int, place: int) -> int:
    return _signed(address - place, 64)


def _near(old: int, address: int, place: int) -> int:
    return _signed(address - place, 32)


def _branch(bits: int, shift: int) -> Write:
    """Return how an instruction's distance in words is written: so many bits, from a bit on."""

    def write(old: int, address: int, place: int) -> int:
        distance = address - place
        if distance % 4:
            raise OutOfReach
        return old & ~((1 << bits) - 1 << shift) | _signed(distance >> 2, bits) << shift

    return write


def _adr(old: int, distance: int) -> int:
    """Return an instruction that adds a distance of 21 bits, of which the lowest two lie apart."""
    value = _signed(distance, 21)
    return old & ~(3 << 29 | 0x7FFFF << 5) | (value & 3) << 29 | (value >> 2) << 5


def _page(old: int, address: int, place: int) -> int:
    return _adr(old, (address >> 12) - (place >> 12))


def _low(scale: int) -> Write:
    """Return how the place within a page is written, in units of an access's size."""

    def write(old: int, address: int, place: int) -> int:
        offset = address & 0xFFF
        if offset % (1 << scale):
            raise OutOfReach
        return old & ~(0xFFF << 10) | offset >> scale << 10

    return write


_X86_64 = {
    1: Kind("64", 8, _absolute),
    2: Kind("PC32", 4, _near),
    4: Kind("PLT32", 4, _near, Refers.CALL),
    9: Kind("GOTPCREL", 4, _near, Refers.SLOT),
    10: Kind("32", 4, lambda old, address, place: _unsigned(address, 32)),
    11: Kind("32S", 4, lambda old, address, place: _signed(address, 32)),
    24: Kind("PC64", 8, _far),
    41: Kind("GOTPCRELX", 4, _near, Refers.SLOT),  # these may be relaxed, and are right unrelaxed too
    42: Kind("REX_GOTPCRELX", 4, _near, Refers.SLOT),
    43: Kind("CODE_4_GOTPCRELX", 4, _near, Refers.SLOT),
}
_AARCH64 = {
    257: Kind("ABS64", 8, _absolute),
    258: Kind("ABS32", 4, lambda old, address, place: _unsigned(address, 32)),
    260: Kind("PREL64", 8, _far),
    261: Kind("PREL32", 4, _near),
    273: Kind("LD_PREL_LO19", 4, _branch(19, 5)),
    274: Kind("ADR_PREL_LO21", 4, lambda old, address, place: _adr(old, address - place)),
    275: Kind("ADR_PREL_PG_HI21", 4, _page),
    277: Kind("ADD_ABS_LO12_NC", 4, _low(0)),
    278: Kind("LDST8_ABS_LO12_NC", 4, _low(0)),
    279: Kind("TSTBR14", 4, _branch(14, 5)),
    280: Kind("CONDBR19", 4, _branch(19, 5)),
    282: Kind("JUMP26", 4, _branch(26, 0), Refers.CALL),
    283: Kind("CALL26", 4, _branch(26, 0), Refers.CALL),
    284: Kind("LDST16_ABS_LO12_NC", 4, _low(1)),
    285: Kind("LDST32_ABS_LO12_NC", 4, _low(2)),
    286: Kind("LDST64_ABS_LO12_NC", 4, _low(3)),
    299: Kind("LDST128_ABS_LO12_NC", 4, _low(4)),
    311: Kind("ADR_GOT_PAGE", 4, _page, Refers.SLOT),
    312: Kind("LD64_GOT_LO12_NC", 4, _low(3), Refers.SLOT),
}

RULES = {
    Processor.X86_64: Rules(62, "x86-64", _X86_64, b"\xff\x25\x02\x00\x00\x00\xcc\xcc"),  # jmp *[rip + 2]
    Processor.AARCH64: Rules(183, "aarch64", _AARCH64, b"\x50\x00\x00\x58\x00\x02\x1f\xd6"),  # ldr x16, 8; br x16
}


def rules_of(machine: int) -> Rules | None:
    """Return what loading takes on a processor by ELF's number for it, None for one that nothing is loaded on."""
    return next((rules for rules in RULES.values() if rules.machine == machine), None)
