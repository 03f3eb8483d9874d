"""The decorator: `@pl.autotune`, above `@pl.jit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.frontend.kernels import KernelKind
from tilewright.jit.function import JITFunction
from tilewright.tune.config import Config
from tilewright.tune.function import TunedFunction
from tilewright.tune.plan import Prune, plan


def autotune(
    configs: Sequence[Config | Mapping[str, Any]], key: Sequence[str] | None = None, *, prune: Prune | None = None
) -> Callable[[JITFunction], TunedFunction]:
    """Let a kernel find out by measuring which of some configurations is fastest for its arguments.

    `key` names what of the arguments decides that, as in `["n", "x.shape[0]", "x.dtype"]`: for the first call with
    another key they are measured, and the winner is kept in the cache on disk. Without it, that is the shapes and
    element types of all tensors. `prune(configs, arguments)` returns those worth measuring.
    """

    def tuned(kernel: Any) -> TunedFunction:
        if not isinstance(kernel, JITFunction):
            raise TypeError(f"@pl.autotune decorates a kernel, got {type(kernel).__name__}: put it above @pl.jit")
        if kernel.kind is not KernelKind.ENTRY:
            raise TypeError(f"@pl.autotune decorates a @pl.jit kernel, got {kernel!r}, which others call")
        if isinstance(kernel, TunedFunction):
            raise TypeError(f"kernel `{kernel.name}` is tuned already: give one @pl.autotune all configurations")
        return TunedFunction(kernel, plan(kernel, configs, key, prune))

    return tuned
