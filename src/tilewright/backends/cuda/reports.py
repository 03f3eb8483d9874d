"""Reports: what the kernels of a program are, read from its code: where they start, what they take, their machine code.

All of it is in the objects that are kept with a program, so that one that was loaded shows it, too.
"""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zlib import compress, decompress

from tilewright.backends.cuda.nvidia_tools import DISASSEMBLER, disassembler
from tilewright.backends.interface import Texts
from tilewright.native.elf import content_of
from tilewright.records import record

KERNELS = "kernels"
"""The object that says how each kernel is launched."""
TEXTS, KEPT = "texts", ("ttir", "ptx")
"""The object that has texts of the kernels, and which: a program that was loaded shows these."""

_REGISTERS, _FRAME = 0x2F, 0x11
"""Which attributes of a kernel's machine code say how many registers, and how many bytes of a stack, a thread has."""
WAITS = "the host waits"
"""What the table has in place of a kernel, where the host waits until all has ended that was launched before."""
_HEAD = ("kernel", "line", "grid", "threads", "registers", "spilled", "shared", "arguments")


def texts(objects: Mapping[str, bytes]) -> Texts:
    """Return what can be shown of the kernels of a program, by stage."""
    kept = {stage: partial(_kept, objects, stage) for stage in KEPT if TEXTS in objects}
    return {**kept, "sass": lambda: _sass(objects), "launches": lambda: _launches(objects)}


def packed(made: Texts) -> bytes:
    """Return the texts that are kept with a program."""
    return compress(json.dumps({stage: made[stage]() for stage in KEPT}).encode(), 1)


def _kept(objects: Mapping[str, bytes], stage: str) -> str:
    return json.loads(decompress(objects[TEXTS]))[stage]


@record
class Usage:
    """What a thread of a kernel takes: registers, and bytes of memory for what did not fit into them."""

    registers: int
    spilled: int

    @staticmethod
    def of(cubin: bytes) -> Usage:
        """Return what machine code says of itself."""
        most = {_REGISTERS: 0, _FRAME: 0}
        for _, kind, _, _, value in struct.iter_unpack("<BBHII", content_of(cubin, ".nv.info")):
            most[kind] = max(most.get(kind, 0), value)
        return Usage(most[_REGISTERS], most[_FRAME])


def _launches(objects: Mapping[str, bytes]) -> str:
    """Return a table of the launches of a program and of where its host waits, by the line that they are for."""
    rows = [_HEAD, *_rows(objects)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def kernels_said(objects: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what each kernel that is launched takes of a multiprocessor, and what the host waits for."""
    for name, line, grid, threads, registers, spilled, shared, last in _rows(objects):
        if name == WAITS:
            yield f"{WAITS} ({line}) {last}"
            continue
        takes = f"{threads} threads of {registers} registers a block, {shared} bytes of shared memory"
        lost = f"; {spilled} bytes a thread did not fit into registers" if spilled != "0" else ""
        yield f"`{name}` ({line}) over {grid or 'one block'}: {takes}{lost}"


def _rows(objects: Mapping[str, bytes]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: a launch, or where the host waits, and why instead of arguments."""
    about = json.loads(objects[KERNELS])
    for number, line, grid, arguments in about["launches"]:
        if number is None:
            yield (WAITS, line, *[""] * (len(_HEAD) - 3), grid)
        else:
            yield _row(about["kernels"][2 * number], objects, (line, grid, arguments))


def _row(kernel: Mapping[str, Any], objects: Mapping[str, bytes], launch: Sequence[Any]) -> tuple[str, ...]:
    line, grid, arguments = launch
    usage = Usage.of(objects[kernel["object"]])
    numbers = (kernel["threads"], usage.registers, usage.spilled, kernel["shared"])
    return (kernel["name"], line, grid, *map(str, numbers), ", ".join(arguments))


def _sass(objects: Mapping[str, bytes]) -> str:
    """Return the machine code of the kernels for aligned parameters, or that nobody here can read it."""
    tool = disassembler()
    if not tool:
        return f"// no {DISASSEMBLER} is here to disassemble kernels: install triton, or CUDA's toolkit\n"
    kernels = json.loads(objects[KERNELS])["kernels"][::2]
    return "\n".join(_disassembled(tool, objects[kernel["object"]]) for kernel in kernels)


def _disassembled(tool: str, cubin: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = subprocess.run([tool, "--dump-sass", str(file)], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"// {DISASSEMBLER}: {done.stderr.strip()}\n"
