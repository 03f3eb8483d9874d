"""Running programs: the names that callers use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.call.device_tensor import DeviceTensor as DeviceTensor
    from tilewright.programs.bench import benchmark as benchmark
    from tilewright.programs.benchmark_stats import BenchmarkStats as BenchmarkStats
    from tilewright.programs.chip_worker import ChipWorker as ChipWorker
    from tilewright.programs.compiler import compile as compile
    from tilewright.programs.compiler import compile_program as compile_program
    from tilewright.programs.config import RunConfig as RunConfig
    from tilewright.programs.distributed.config import DistributedConfig as DistributedConfig
    from tilewright.programs.distributed.handle import DistributedRunHandle as DistributedRunHandle
    from tilewright.programs.distributed.program import DistributedCompiledProgram as DistributedCompiledProgram
    from tilewright.programs.distributed.program import execute_distributed_compiled as execute_distributed_compiled
    from tilewright.programs.distributed.stacked import StackedDeviceTensor as StackedDeviceTensor
    from tilewright.programs.distributed.worker import DistributedWorker as DistributedWorker
    from tilewright.programs.execute import execute_compiled as execute_compiled
    from tilewright.programs.execute import run as run
    from tilewright.programs.golden import assert_golden as assert_golden
    from tilewright.programs.logs import configure_log as configure_log
    from tilewright.programs.logs import log_level as log_level
    from tilewright.programs.platforms import BackendType as BackendType
    from tilewright.programs.program import CompiledProgram as CompiledProgram
    from tilewright.programs.specs import RunResult as RunResult
    from tilewright.programs.specs import ScalarSpec as ScalarSpec
    from tilewright.programs.specs import TensorSpec as TensorSpec
    from tilewright.programs.trace import TraceInvocation as TraceInvocation
    from tilewright.programs.trace import TraceSpan as TraceSpan
    from tilewright.programs.validate import validate_ir as validate_ir
    from tilewright.programs.worker import RegistrationHandle as RegistrationHandle
    from tilewright.programs.worker import Worker as Worker

__all__ = [
    "BackendType",
    "BenchmarkStats",
    "ChipWorker",
    "CompiledProgram",
    "DeviceTensor",
    "DistributedCompiledProgram",
    "DistributedConfig",
    "DistributedRunHandle",
    "DistributedWorker",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "TraceInvocation",
    "TraceSpan",
    "Worker",
    "assert_golden",
    "benchmark",
    "compile",
    "compile_program",
    "configure_log",
    "execute_compiled",
    "execute_distributed_compiled",
    "log_level",
    "run",
    "validate_ir",
]

_HOMES = {
    "call.device_tensor": ("DeviceTensor",),
    "programs.bench": ("benchmark",),
    "programs.benchmark_stats": ("BenchmarkStats",),
    "programs.chip_worker": ("ChipWorker",),
    "programs.compiler": ("compile", "compile_program"),
    "programs.config": ("RunConfig",),
    "programs.distributed.config": ("DistributedConfig",),
    "programs.distributed.handle": ("DistributedRunHandle",),
    "programs.distributed.program": ("DistributedCompiledProgram", "execute_distributed_compiled"),
    "programs.distributed.stacked": ("StackedDeviceTensor",),
    "programs.distributed.worker": ("DistributedWorker",),
    "programs.execute": ("execute_compiled", "run"),
    "programs.golden": ("assert_golden",),
    "programs.logs": ("configure_log", "log_level"),
    "programs.platforms": ("BackendType",),
    "programs.program": ("CompiledProgram",),
    "programs.specs": ("RunResult", "ScalarSpec", "TensorSpec"),
    "programs.trace": ("TraceInvocation", "TraceSpan"),
    "programs.validate": ("validate_ir",),
    "programs.worker": ("RegistrationHandle", "Worker"),
}


def __getattr__(name: str) -> object:
    """Return a public name, loading its module: running a kept program takes no compiler."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"tilewright.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
