"""Sub-kernels: functions that bodies call by name and that are written out where they are called.

`@pto.simd` functions run in a vector scope of their own, `@pto.cube` ones on the cube, `@pto.tileop` ones on whichever
of them its ops need, and `@pto.func` ones are helpers, which may return values. `@pto.simt` functions are launched, by
as many work items as `body[x, y, z](...)` says. Each is a decorator, bare or with parentheses; all but `@pto.func` are
also scopes inside a body: `with pto.simd():`, `with pto.simt(32, 1, 1):`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any

from tilewright.errors import OutsideKernelError
from tilewright.source import calling_line


@dataclass(frozen=True)
class SubKernel:
    """A function that a body calls."""

    kind: SubKernelKind
    body: tuple[FunctionType]
    """The function, which a field of its own would make a method."""
    max_threads: int | None = None
    """The most work items it is launched over, where it says so."""

    @property
    def function(self) -> FunctionType:
        """What it was written as."""
        return self.body[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Sub-kernels only run inside a kernel."""
        message = f"`{self.function.__name__}` is a pto.{self.kind.name} function and cannot run as plain Python"
        raise OutsideKernelError(
            message, spans=[calling_line()], help="call it inside a function decorated with @pto.jit"
        )


@dataclass(frozen=True)
class SubKernelKind:
    """A decorator of sub-kernels, and a scope."""

    name: str
    scope: str = ""
    """The op that the scope is; "" where there is none."""
    returns: object = None
    """The type that a helper says it returns, besides what its annotation says."""

    @property
    def is_helper(self) -> bool:
        """Whether such functions may return something."""
        return self.name == "func"

    def __call__(
        self,
        fn: Callable[..., Any] | int | None = None,
        *extents: int,
        name: str | None = None,
        target: str = "a5",
        ast_rewrite: bool = True,
        returns: object = None,
        max_threads: int | None = None,
    ) -> Any:
        """Return the sub-kernel that a function is, or the decorator that makes one.

        `name`, `target` and `ast_rewrite` speak to other compilers of the family and change nothing here. `returns` is
        the type of what a helper gives, as its annotation may say, too; `max_threads` says how many work items run a
        `@pto.simt` function at most; `extents`, with the number before them, are those of a scope inside a body.
        """
        if returns is not None:
            return replace(self, returns=returns)(fn, *extents, max_threads=max_threads)
        if fn is None:
            return partial(self, max_threads=max_threads) if max_threads else self
        if not isinstance(fn, FunctionType):
            raise TypeError(f"@pto.{self.name} decorates a Python function, got {type(fn).__name__}")
        return SubKernel(self, (fn,), max_threads)


CUBE_OPS = ("pto.mad", "pto.mte_l", "pto.tmatmul", "pto.tgemv")
"""What the names of ops begin with that the cube runs."""
SIMT_OPS = (
    "pto.get_tid", "pto.get_laneid", "pto.get_lanemask", "pto.vote_", "pto.shuffle_", "pto.redux_", "pto.ldg",
    "pto.stg", "pto.atomic_", "pto.syncthreads", "pto.threadfence", "pto.keep", "pto.resume",
)  # fmt: skip
"""What the names of ops begin with that each work item of a launch runs."""
simd, cube = SubKernelKind("simd", "pto.vecscope"), SubKernelKind("cube", "pto.section.cube")
tileop, func, simt = SubKernelKind("tileop", "pto.vecscope"), SubKernelKind("func"), SubKernelKind("simt")
