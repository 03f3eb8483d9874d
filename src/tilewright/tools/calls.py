"""Calls that commands make: a compiled program, and random arguments in the memory that it takes."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from tilewright.arrays import np
from tilewright.core.program import Program
from tilewright.dtypes import from_numpy, to_torch
from tilewright.named_tuples import NamedTuple
from tilewright.programs.program import CompiledProgram
from tilewright.tools import arguments, screen
from tilewright.tools.files import compiled_in, named
from tilewright.tools.naming import CommandError

HOST = "cpu"


class Asked(NamedTuple):
    """The kernel that a command is about, and the arguments that it is given."""

    file: str
    kernel: str | None
    said: dict[str, str]

    @property
    def is_pto(self) -> bool:
        """Whether it is a function of PTO text, whose pointers know no shapes."""
        return self.file.endswith(".pto")


def asked(options: argparse.Namespace) -> Asked:
    """Return what a command line names; arguments of PTO text have one axis."""
    found = Asked(*named(options.file), arguments.given(options.arguments))
    return found._replace(said=arguments.flat(found.said)) if found.is_pto else found


def compiled(options: argparse.Namespace, about: Asked, platform: str | None) -> CompiledProgram:
    """Return what a command is about, compiled for a platform."""
    with screen.working(f"compiling {about.file}"):
        return compiled_in(*about, platform, checked_ranks(options.ranks))


def compiled_call(options: argparse.Namespace) -> tuple[CompiledProgram, dict[str, Any]]:
    """Return what a command's arguments name, compiled, and what to call it with."""
    about = asked(options)
    made = compiled(options, about, options.platform)
    return made, inputs_of(made, about, options.ranks)


def checked_ranks(count: int) -> int:
    """Return a number of ranks; CommandError for none."""
    if count < 1:
        raise CommandError(f"--ranks takes 1 or more, got {count}")
    return count


def inputs_of(compiled: CompiledProgram, about: Asked, ranks: int) -> dict[str, Any]:
    """Return random arguments; axes of a host function that nobody names have a row for each rank.

    CommandError for a pointer of PTO text that nobody says the elements of.
    """
    entry = compiled.entry.function
    usual = ranks if entry in compiled.declared.hosts else arguments.USUAL
    found = arguments.inputs(entry, about.said, usual=usual, numbers=compiled.specialized)
    if about.is_pto and (open_ := [name for name, value in found.items() if name not in about.said and np.ndim(value)]):
        help = f"say {open_[0]}=16x128 behind the file, with as many elements as the function touches"
        raise CommandError(f"only a call tells how far `{open_[0]}` reaches\n    help: {help}")
    devices = compiled.loaded.code.backend.devices
    return found if HOST in devices else {name: _on(devices[0], value) for name, value in found.items()}


def _on(device: str, value: Any) -> Any:
    """Return an array as a tensor of torch on a device; a number as it is."""
    if not hasattr(value, "dtype"):
        return value
    try:
        torch: Any = import_module("torch")
        data = torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8).to(device)
    except (ImportError, RuntimeError, AssertionError) as error:
        raise CommandError(f"arguments on {device} are tensors of torch: {error}") from None
    return data.view(to_torch(from_numpy(value.dtype))).reshape(value.shape)


def refuse_hosts(program: Program, command: str, does: str) -> None:
    """Raise CommandError for a host function, where a command is of one kernel."""
    if hosts := program.hosts:
        name = hosts[0].name
        help = f"FILE:KERNEL names one that takes no windows; `tilewright explore FILE:{name}` shows the host function"
        raise CommandError(
            f"host function `{name}` runs on many ranks, and `tilewright {command}` {does}\n    help: {help}"
        )
