"""Line tables: which line of whose file the instructions of an object were made for, as its DWARF says.

Version 4 of the format, which our modules ask LLVM for: https://dwarfstd.org/doc/DWARF4.pdf, section 6.2.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import field

from tilewright.named_tuples import NamedTuple
from tilewright.native.elf import content_of
from tilewright.records import mutable

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD, _FIXED_ADVANCE = 1, 2, 3, 4, 8, 9
_END, _SET_ADDRESS = 1, 2


class Row(NamedTuple):
    """From an offset into the code on, the instructions of a line."""

    offset: int
    file: str
    line: int


def rows(data: bytes) -> list[Row]:
    """Return the lines of an object's code in order; none where it has no table."""
    table = content_of(data, ".debug_line")
    starts = {offset: addend for offset, _, addend in struct.iter_unpack("<QQq", content_of(data, ".rela.debug_line"))}
    return sorted(_Program(table, starts).rows()) if table else []


@mutable
class _Program:
    """A table being read."""

    table: bytes
    starts: dict[int, int]
    """Where the addresses that wait for the code's place are, and what is added to it there."""
    at: int = 0
    files: list[str] = field(default_factory=list[str])

    def rows(self) -> Iterator[Row]:
        """Yield every row that stands for a line of an author's."""
        while self.at < len(self.table):
            length, version, _ = self._unpack("<IHI")
            end = self.at - 6 + length
            if version != 4:
                return
            self.step, _, _, self.base, self.range, self.first = self._unpack("<BBBbBB")
            self.lengths = [0, *self._unpack(f"<{self.first - 1}B")]
            folders = ["", *self._texts()]
            self.files = ["", *(os.path.join(folders[folder], name) for name, folder in self._named())]
            yield from self._sequences(end)
            self.at = end

    def _sequences(self, end: int) -> Iterator[Row]:
        offset, file, line = 0, 1, 1
        while self.at < end:
            code = self._byte()
            if code >= self.first:
                offset += (code - self.first) // self.range * self.step
                line += self.base + (code - self.first) % self.range
                yield Row(offset, self.files[file], line)
            elif code == 0:
                offset, is_end = self._extended(offset)
                if is_end:
                    yield Row(offset, "", 0)
                    offset, file, line = 0, 1, 1
            elif code == _COPY:
                yield Row(offset, self.files[file], line)
            elif code == _ADVANCE_PC:
                offset += self._number() * self.step
            elif code == _ADVANCE_LINE:
                line += self._number(is_signed=True)
            elif code == _SET_FILE:
                file = self._number()
            elif code == _CONST_ADD:
                offset += (255 - self.first) // self.range * self.step
            elif code == _FIXED_ADVANCE:
                offset += self._unpack("<H")[0]
            else:
                for _ in range(self.lengths[code]):
                    self._number()

    def _extended(self, offset: int) -> tuple[int, bool]:
        """Read an operation with a length of its own; return where the code is then, and whether it ends there."""
        length = self._number()
        end = self.at + length
        kind = self._byte()
        if kind == _SET_ADDRESS:
            offset = self.starts.get(self.at, 0)
        self.at = end
        return offset, kind == _END

    def _unpack(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self.table, self.at)
        self.at += struct.calcsize(layout)
        return found

    def _byte(self) -> int:
        self.at += 1
        return self.table[self.at - 1]

    def _number(self, *, is_signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if is_signed and byte & 64 else value

    def _texts(self) -> Iterator[str]:
        while text := self._text():
            yield text

    def _text(self) -> str:
        end = self.table.index(b"\0", self.at)
        text, self.at = self.table[self.at : end].decode(), end + 1
        return text

    def _named(self) -> Iterator[tuple[str, int]]:
        while name := self._text():
            folder, _, _ = self._number(), self._number(), self._number()
            yield name, folder
