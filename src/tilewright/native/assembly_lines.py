"""Assembly lines: those that are code, with the places that a module's debug locations have given them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from tilewright.native.places import Line

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_DEBUG = re.compile(r"\s*\.section\s+\.debug")
_NO_CODE = re.compile(r"\s*(\.cfi_|\.loc\b|\.file\b|\.Ltmp|\.Lfunc_(begin|end)|\.size\b|#|//)")


def located(assembly: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of an assembly, or of PTX, that are code, each at the place of the last `.loc` before it."""
    named = [found for line in assembly if (found := _FILE.match(line))]
    files = {found[1]: os.path.join(found[2], found[3]) if found[3] else found[2] for found in named}
    place = ("", 0)
    for line in assembly:
        if _DEBUG.match(line):
            return
        if found := _LOCATION.match(line):
            place = (files.get(found[1], ""), int(found[2])) if found[2] != "0" else ("", 0)
        elif not _NO_CODE.match(line):
            is_code = line.startswith(("\t", " ")) and not line.lstrip().startswith(".")
            file, number = place if is_code else ("", 0)
            yield line, file, number
