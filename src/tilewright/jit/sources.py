"""Sources: the files that hold a kernel written in C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

_CORES = ("aic", "aiv", "mixed")


def check_sources(function: FunctionType, options: Mapping[str, Any]) -> None:
    """Raise ValueError where a kernel's sources are not all there, TypeError for folders that are no list."""
    core = options.get("core_type", "aiv")
    if core not in _CORES:
        raise ValueError(f"core_type= takes one of {', '.join(_CORES)}, got {core!r}")
    if options.get("dual_aiv_dispatch") and core != "mixed":
        raise ValueError(f"dual_aiv_dispatch= is for core_type='mixed', got {core!r}")
    wanted = ("aic_source", "aiv_source") if core == "mixed" else ("source",)
    if missing := [name for name in wanted if not options.get(name)]:
        raise ValueError(f"a kernel of core_type={core!r} needs {' and '.join(missing)}=")
    folders: Sequence[Any] = options.get("include_dirs") or ()
    if isinstance(folders, (str, bytes)):
        raise TypeError(f"include_dirs= takes a list of folders, got {folders!r}")
    home = Path(function.__code__.co_filename).parent
    for name in wanted:
        if not (home / options[name]).is_file() and not Path(options[name]).is_file():
            raise ValueError(f"{name}= names a file that is not there: {options[name]}")
    for folder in folders:
        if not (home / folder).is_dir() and not Path(folder).is_dir():
            raise ValueError(f"include_dirs= names a folder that is not there: {folder}")
