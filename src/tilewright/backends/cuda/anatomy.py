"""Anatomy: the texts of kernels for GPUs, line by line, with the lines they were made for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright.backends.interface import Anatomy, Code, Line
from tilewright.native.places import located

_PLACE = re.compile(r' loc\("([^"]*)":(\d+):\d+\)')
_ENCODING = re.compile(r"\s*/\* 0x[0-9a-f]+ \*/$")


def anatomy(code: Code) -> Anatomy:
    """Return what kernels were on their way: Triton's IR and PTX with their lines, and machine code."""
    texts = {"ttir": list(_ttir(code.texts["ttir"]()))}
    texts["ptx"] = [Line(*line) for line in located(code.texts["ptx"]().splitlines())]
    if "sass" in code.texts:
        instructions = (_ENCODING.sub("", text) for text in code.texts["sass"]().splitlines())
        texts["sass"] = [Line(text) for text in instructions if text]
    return Anatomy(texts)


def _ttir(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        found = _PLACE.search(line)
        number = int(found[2]) if found else 0
        yield Line(_PLACE.sub("", line), found[1] if found and number else "", number)
