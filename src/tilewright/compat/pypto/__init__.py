"""`pypto`, answered by Tilewright: import this first, and scripts and tests written for PyPTO run as they are.

`python -m tilewright.compat.pypto script.py` runs a script, `pytest -p tilewright.compat.pypto` runs tests. PyPTO's
platforms (`a2a3sim`, `a2a3`, `a5sim`, `a5`) all stand for this machine's processor. What is missing says so by name.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module

from tilewright.compat.aliases import Package, install

_FACES = ("language", "ir", "runtime", "backend", "debug")
_RUNTIME = ("bench", "device_runner", "device_tensor", "log_config", "runner", "tensor_spec", "worker")
_INNER = "pypto_core"
"""Where PyPTO's own modules take their names from; those of its users do, too."""

_MODULES = {
    "pypto": __name__,
    f"pypto.{_INNER}": __name__,
    "pypto.passes": "tilewright.ir.passes",
    "pypto.ir.instruments": "tilewright.ir.passes",
    "pypto.jit": f"{__name__}.jit",
    "pypto.jit.decorator": f"{__name__}.jit",
    "pypto.backend.pto_backend": "tilewright.backend",
    "pypto.compile_profiling": "tilewright.programs.profiler",
    **{f"pypto.runtime.{name}": "tilewright.runtime" for name in _RUNTIME},
    **{f"pypto.{_INNER}.{name}": f"tilewright.{name}" for name in ("ir", "backend")},
    f"pypto.{_INNER}.passes": "tilewright.ir.passes",
}

_LOGS = ("log_debug", "log_error", "log_event", "log_fatal", "log_info", "log_warn")
_SETTINGS = {"PYPTO_PROG_BUILD_DIR": "TILEWRIGHT_BUILD_DIR", "PYPTO_VERIFY_LEVEL": "TILEWRIGHT_VERIFY_LEVEL"}
"""Environment variables that mean the same as ours, which win where both are set."""

_NAMES = {
    "DataType": "tilewright.dtypes.DataType",
    "Error": "tilewright.errors.TilewrightError",
    "InternalError": "tilewright.errors.InternalError",
    "LogLevel": "tilewright.programs.logs.LogLevel",
    "set_log_level": "tilewright.programs.logs.set_log_level",
    "__version__": "tilewright.version.__version__",
}


def __getattr__(name: str) -> object:
    """Return a name of the package, loading what it takes."""
    if name in _NAMES:
        home, _, last = _NAMES[name].rpartition(".")
        return getattr(import_module(home), last)
    if name in _LOGS:
        logs = import_module("tilewright.programs.logs")
        return partial(logs.note, "compiler", logs.LogLevel[name.removeprefix("log_").upper()])
    if name.startswith("DT_") and hasattr(dtypes := import_module("tilewright.dtypes"), name[3:]):
        return getattr(dtypes, name[3:])
    if name in _FACES or f"pypto.{name}" in _MODULES:
        return import_module(f"pypto.{name}")
    raise AttributeError(_PACKAGE.missing(f"pypto.{name}"))


for _theirs, _ours in _SETTINGS.items():
    if _theirs in os.environ:
        os.environ.setdefault(_ours, os.environ[_theirs])
_PACKAGE = Package("pypto", _MODULES, _FACES)
install(_PACKAGE)
