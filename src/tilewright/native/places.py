"""Places: which line of the author's text each instruction was made for, as LLVM's debug locations.

A module that was given places writes `!dbg` behind every instruction, and LLVM carries it through to the assembly and
into the object's line table. Nobody pays for it otherwise: an instruction's tag is then empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tilewright.records import mutable
from tilewright.source import Span

FIRST = 1000
"""The number of the first piece of metadata: those before it are for other uses."""


Line = tuple[str, str, int]
"""A line of code, and the file and line of the author's that it was made for; nowhere is line 0."""


@mutable
class Places:
    """The metadata of one module: files, functions and locations, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.locations: dict[int, tuple[str, int]] = {}
        self.unit = self._number(
            f"distinct !DICompileUnit(language: DW_LANG_C99, file: !{self._file('tilewright')}, "
            'producer: "tilewright", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)'
        )
        self.flags = self._number('!{i32 2, !"Debug Info Version", i32 3}')
        self.version = self._number('!{i32 7, !"Dwarf Version", i32 4}')

    def function(self, name: str) -> int:
        """Return the scope of a function."""
        file, kind = self._file("tilewright"), self._number("!DISubroutineType(types: !{null})")
        return self._number(
            f'distinct !DISubprogram(name: "{name}", scope: !{file}, file: !{file}, line: 0, type: !{kind}, '
            f"scopeLine: 0, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self.unit})"
        )

    def tag(self, scope: int, span: Span) -> str:
        """Return what stands behind an instruction of a function that was made for a place; nowhere is line 0."""
        inside = scope
        if span.is_known:
            file = self._file(span.filename)
            inside = self._number(f"!DILexicalBlockFile(scope: !{scope}, file: !{file}, discriminator: 0)")
        column = span.column + 1 if span.is_known else 0
        number = self._number(f"!DILocation(line: {span.line}, column: {column}, scope: !{inside})")
        self.locations[number] = (span.filename, span.line) if span.is_known else ("", 0)
        return f", !dbg !{number}"

    def text(self) -> list[str]:
        """Return the metadata as lines of the module."""
        named = [f"!llvm.dbg.cu = !{{!{self.unit}}}", f"!llvm.module.flags = !{{!{self.flags}, !{self.version}}}"]
        return named + [f"!{number} = {what}" for what, number in self.numbers.items()]

    def lines(self, module: str) -> list[Line]:
        """Return a module's text without its places, and the place of each line."""
        return list(self._lines(module))

    def _lines(self, module: str) -> Iterator[Line]:
        for line in module.splitlines():
            if re.match(r"!(\d{4,} =|llvm\.)", line):
                continue
            text, _, number = line.partition(", !dbg !")
            place = self.locations.get(int(number), ("", 0)) if number else ("", 0)
            yield re.sub(r" !dbg !\d+ \{$", " {", text), place[0], place[1]

    def _file(self, path: str) -> int:
        folder, name = os.path.split(path)
        return self._number(f'!DIFile(filename: "{_escaped(name)}", directory: "{_escaped(folder)}")')

    def _number(self, what: str) -> int:
        return self.numbers.setdefault(what, FIRST + len(self.numbers))


def _escaped(text: str) -> str:
    """Return text as LLVM quotes it."""
    return re.sub(r"[^ !#-\[\]-~]", lambda found: "".join(f"\\{byte:02x}" for byte in found[0].encode()), text)
