"""Inputs: the arguments of a call, kept beside a program for its `run.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.types import TensorType
from tilewright.programs.entry import Entry

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = "inputs.npz"


def write(folder: Path, entry: Entry, args: Sequence[Any], named: Mapping[str, Any]) -> Path:
    """Keep what a call of an entry reads, checked as the call checks it; return the file."""
    values = entry.bound(args, named).values
    given = zip(entry.param_names, entry.function.param_directions, values, strict=True)
    kept = {name: getattr(v, "array", v) for name, direction, v in given if direction is not ParamDirection.Out}
    np.savez(folder / INPUTS, **kept)
    return folder / INPUTS


def read(path: Path, entry: Entry) -> dict[str, Any]:
    """Return the arguments in a file, by parameter; ValueError for one that the entry does not have."""
    with np.load(path) as kept:
        unknown = set(kept.files) - set(entry.param_names)
        if unknown:
            raise ValueError(f"{path} holds {', '.join(sorted(unknown))}, which `{entry.name}` does not take")
        return {name: _typed(entry, name, kept[name]) for name in kept.files}


def _typed(entry: Entry, name: str, value: Any) -> Any:
    """Return an array with its element type: NumPy forgets the names of types that are not its own."""
    type_ = entry.function.params[entry.param_names.index(name)].type
    return value.view(type_.dtype.numpy) if isinstance(type_, TensorType) and value.dtype.kind == "V" else value
