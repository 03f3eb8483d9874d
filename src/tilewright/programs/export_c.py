"""Exports to C: a program as a header and a shared library that need neither Python nor tilewright.

The library is the program's object code, the object code that runs chunks on threads, and a few lines of C between them
and the caller. The system's C compiler makes it, since whoever exports to C has one; only the functions that the header
declares are visible outside.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tilewright import settings
from tilewright.backends.abi import Number
from tilewright.core.enums import ParamDirection
from tilewright.core.types import TensorType
from tilewright.errors import ExecutionError, ExportError
from tilewright.native.context import INDEX
from tilewright.native.elf import read
from tilewright.native.libraries import library_symbol
from tilewright.passes.aliases import actual_directions
from tilewright.programs.artifact import Artifact
from tilewright.programs.c_function import CFunction
from tilewright.programs.c_names import function_name
from tilewright.programs.c_source import header, source
from tilewright.programs.folder import publish

COMPILERS = ("cc", "gcc", "clang")


def export(artifact: Artifact, directory: Path, name: str | None, specialized: Mapping[str, Number]) -> None:
    """Write `<name>.h`, `<name>.c` and `lib<name>.so`; ExportError says why a program has none."""
    chosen = function_name(name or artifact.program.name)
    functions = list(_functions(artifact, chosen, specialized))
    messages = [(error.message.replace(f"index {INDEX}", "an index"), error.span) for error in artifact.code.errors]
    errors = [str(ExecutionError(message, spans=[span])) for message, span in messages]
    exported = artifact.code.backend.exported(artifact.code)
    texts = {
        f"{chosen}.h": header(chosen, functions),
        f"{chosen}.c": source(chosen, functions, errors, exported.features),
    }
    files = {name: text.encode() for name, text in texts.items()}
    _check_free([chosen, *(function.name for function in functions)], exported.objects)
    files[f"lib{chosen}.so"] = _linked(chosen, files, exported.objects, [function.name for function in functions])
    publish(directory, files)


def _functions(artifact: Artifact, name: str, specialized: Mapping[str, Number]) -> Iterator[CFunction]:
    entries = artifact.program.entries
    for entry in entries:
        directions = actual_directions(artifact.program, entry)
        returns = any(isinstance(type_, TensorType) for type_ in entry.return_types)
        if returns and all(direction is ParamDirection.In for direction in directions):
            raise ExportError(f"`{entry.name}` returns a tensor of its own: declare it as pl.Out, for C to say where")
        if entry.stepped:
            raise ExportError(f"`{entry.name}` is made for tensors with gaps: compile it for tensors without any")
        own = name if len(entries) == 1 else function_name(f"{name}_{entry.name}", f"rename `{entry.name}`")
        yield CFunction(own, entry, artifact.code.symbols[entry.name], directions, specialized)


def _check_free(names: Sequence[str], objects: Sequence[bytes]) -> None:
    """Raise for a name that the code or the system's libraries have: they would call the exported function."""
    taken = {symbol.name for data in objects for symbol in read(data).symbols}
    for name in names:
        if name in taken or library_symbol(name):
            raise ExportError(f"there is another `{name}` in C: pass name= with another name for the function")


def _linked(name: str, texts: dict[str, bytes], objects: Sequence[bytes], exported: Sequence[str]) -> bytes:
    """Return the shared library of a source and objects, made by the system's C compiler."""
    visible = "".join(f"{each}; " for each in (*exported, f"{name}_error"))
    inputs = {**texts, **{f"{n}.o": data for n, data in enumerate(objects)}}
    inputs["exports.map"] = f"{{ global: {visible}local: *; }};".encode()
    command = [_compiler(), "-shared", "-fPIC", "-O2", "-o", "library.so", f"{name}.c"]
    command += [f"{n}.o" for n in range(len(objects))]
    # its threads stay, so its code has to
    command += ["-Wl,--version-script=exports.map", "-Wl,--no-undefined", "-Wl,-z,nodelete", "-lm", "-lpthread"]
    with tempfile.TemporaryDirectory() as folder:
        for file, data in inputs.items():
            (Path(folder) / file).write_bytes(data)
        run = subprocess.run(command, cwd=folder, text=True, capture_output=True)
        if run.returncode:
            raise ExportError(f"{command[0]} cannot make a library of `{name}`:\n{run.stderr.strip()}")
        return (Path(folder) / "library.so").read_bytes()


def _compiler() -> str:
    chosen = settings.c_compiler()
    for name in (chosen,) if chosen else COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return found
    tried = chosen or " nor ".join(COMPILERS)
    raise ExportError(f"exporting to C takes a C compiler, and there is no {tried}: install one, or name it with CC")
