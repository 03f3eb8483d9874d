"""Running programs: the names that callers use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.programs.bench import BenchmarkStats as BenchmarkStats
    from tilewright.programs.bench import benchmark as benchmark
    from tilewright.programs.compiler import compile as compile
    from tilewright.programs.config import RunConfig as RunConfig
    from tilewright.programs.execute import execute_compiled as execute_compiled
    from tilewright.programs.execute import run as run
    from tilewright.programs.golden import assert_golden as assert_golden
    from tilewright.programs.platforms import BackendType as BackendType
    from tilewright.programs.program import CompiledProgram as CompiledProgram
    from tilewright.programs.specs import RunResult as RunResult
    from tilewright.programs.specs import ScalarSpec as ScalarSpec
    from tilewright.programs.specs import TensorSpec as TensorSpec
    from tilewright.programs.validate import validate_ir as validate_ir

__all__ = [
    "BackendType",
    "BenchmarkStats",
    "CompiledProgram",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "TensorSpec",
    "assert_golden",
    "benchmark",
    "compile",
    "execute_compiled",
    "run",
    "validate_ir",
]

_HOMES = {
    **dict.fromkeys(("BenchmarkStats", "benchmark"), "bench"),
    **dict.fromkeys(("RunResult", "ScalarSpec", "TensorSpec"), "specs"),
    **dict.fromkeys(("execute_compiled", "run"), "execute"),
    **{"BackendType": "platforms", "CompiledProgram": "program", "RunConfig": "config", "compile": "compiler"},
    **{"assert_golden": "golden", "validate_ir": "validate"},
}


def __getattr__(name: str) -> object:
    """Return a public name, loading its module: running a kept program takes no compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tilewright.programs.{_HOMES[name]}"), name)
