"""Anatomy: the texts of kernels for GPUs, line by line, with the lines they were made for, and what these tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tilewright.backends.cuda.reports import kernels_said
from tilewright.backends.interface import Anatomy, Code, Line, Note
from tilewright.native.assembly_lines import located

_PLACE = re.compile(r' loc\("([^"]*)":(\d+):\d+\)')
_MULTIPLIED = re.compile(r"\b(wgmma|mma)\.(?:mma_async|sync)\.\S*?\.[fs]32\.(\w+)\.(\w+)|(tcgen05).mma\S*kind::(\w+)")
_COPIED = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\b[^,]*\], \[[^]]*\], (\w+)")
_MOVED = re.compile(r"\b(ld|st)\.global\S*?(?:\.v(\d))?\.[busf](\d+)\s")
_ENCODING = re.compile(r"\s*/\* 0x[0-9a-f]+ \*/$")


def anatomy(code: Code) -> Anatomy:
    """Return what kernels were on their way: Triton's IR and PTX with their lines, and machine code."""
    texts = {"ttir": list(_ttir(code.texts["ttir"]()))}
    texts["ptx"] = [Line(*line) for line in located(code.texts["ptx"]().splitlines())]
    if "sass" in code.texts:
        instructions = (_ENCODING.sub("", text) for text in code.texts["sass"]().splitlines())
        texts["sass"] = [Line(text) for text in instructions if text]
    kernels = [Note("kernel", said) for said in kernels_said(code.objects)]
    return Anatomy(texts, notes=[*notes_of(texts["ptx"]), *kernels])


def notes_of(ptx: Iterable[Line]) -> list[Note]:
    """Return what the instructions of each line tell, once."""
    found = (Note(*said, line.file, line.number) for line in ptx if line.number for said in _said(line.text))
    return [*dict.fromkeys(found)]


def _said(text: str) -> Iterator[tuple[str, str]]:
    """Yield what one instruction tells: who multiplies, how memory is moved, and how much of it at a time."""
    if found := _MULTIPLIED.search(text):
        name, *factors = (each for each in found.groups() if each)
        yield "tensor cores", f"{name} of {' and '.join(dict.fromkeys(factors))}"
    elif "cp.async.bulk.tensor" in text:
        yield "streamed", "whole boxes by the copy engine, beside what computes"
    elif found := _COPIED.search(text):
        yield "streamed", f"{int(found[1], 0)} bytes a thread into shared memory, beside what computes"
    elif found := _MOVED.search(text):
        count, bits = int(found[2] or 1), int(found[3])
        kind = "vectorized" if count > 1 else "scalar moves"
        yield kind, f"{'loads' if found[1] == 'ld' else 'stores'} of {count * bits // 8} bytes a thread"


def _ttir(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        found = _PLACE.search(line)
        number = int(found[2]) if found else 0
        yield Line(_PLACE.sub("", line), found[1] if found and number else "", number)
