"""Sources: the files that hold a kernel written in C++."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
    home = os.path.dirname(function.__code__.co_filename)
    for name in wanted:
        if not any(map(os.path.isfile, (os.path.join(home, options[name]), options[name]))):
            raise ValueError(f"{name}= names a file that is not there: {options[name]}")
    for folder in folders:
        if not any(map(os.path.isdir, (os.path.join(home, folder), folder))):
            raise ValueError(f"include_dirs= names a folder that is not there: {folder}")
