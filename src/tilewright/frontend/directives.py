"""Directives: names of the language that shape a kernel rather than compute in it.

They are plain functions so that editors know their signatures; the front end recognizes them by identity.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tilewright.core.annotations import Condition, Index, T, outside_kernel
from tilewright.core.enums import Level, MemorySpace, Role, ScopeMode, SplitMode
from tilewright.core.expr import Const, constant
from tilewright.core.foreign_names import called
from tilewright.dtypes import DataType
from tilewright.frontend.directive_values import ScopeObject, counted
from tilewright.frontend.optimizations import cross_core_slot, split

__all__ = ["at", "cat", "cdiv", "cluster", "cond", "const", "cross_core_slot", "dump_tag", "func_attr", "manual_scope"]
__all__ += ["no_dep", "parallel", "pipeline", "print", "range", "scan", "scope", "split", "split_aiv", "spmd"]
__all__ += ["spmd_submit", "stack", "static_assert", "static_print", "submit", "unroll", "while_", "yield_"]

F = TypeVar("F", bound=Callable[..., Any])

LOOPS: dict[Callable[..., Any], str] = {}
SCOPES: dict[Callable[..., Any], str] = {}


def _loop(function: F) -> F:
    LOOPS[function] = function.__name__
    return function


def _scope(function: F) -> F:
    SCOPES[function] = function.__name__
    return function


@_loop
def range(*bounds: Index, init_values: Sequence[Any] | None = None) -> Iterable[Any]:
    """Count from start to stop by step, one iteration after the other."""
    return counted("range", bounds, init_values)


@called(numba="numba.prange")
@_loop
def parallel(*bounds: Index, init_values: Sequence[Any] | None = None) -> Iterable[Any]:
    """Count like `range`, promising that iterations do not depend on each other."""
    return counted("parallel", bounds, init_values)


@called(triton="static_range")
@_loop
def unroll(*bounds: int) -> Iterable[Any]:
    """Count like `range` over constant bounds, the body written out once per iteration."""
    return counted("unroll", bounds, None)


@_loop
def pipeline(*bounds: Index, stage: int, init_values: Sequence[Any] | None = None) -> Iterable[Any]:
    """Count like `range`, with loads of later iterations started up to `stage` ahead."""
    return counted("pipeline", bounds, init_values, stage)


@_loop
def while_(*, init_values: Sequence[Any] | None = None) -> Iterable[Any]:
    """Loop while the `pl.cond(...)` that opens the body holds, carrying values."""
    if init_values is None:
        raise ValueError("pl.while_() requires init_values=, what the loop carries")
    return iter(tuple(init_values))


@_loop
def split_aiv(n: int, *, mode: SplitMode | None = None) -> ScopeObject:
    """Run the body for each of the two vector lanes of a core group, one after the other."""
    if n != 2:
        raise ValueError(f"pl.split_aiv() requires n == 2: a core group has two vector lanes, got {n!r}")
    return ScopeObject("pl.split_aiv", {"n": n, "mode": mode})


@_scope
def spmd(
    core_num: Index,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: Sequence[Any] = (),
    deps: Sequence[Any] = (),
    allow_early_resolve: bool = False,
    predicate: Condition | None = None,
) -> ScopeObject:
    """Run the body once per block, blocks numbered from 0; not at all where `predicate` does not hold."""
    if isinstance(core_num, int) and core_num <= 0:
        raise ValueError(f"core_num of pl.spmd() must be a positive integer, got {core_num}")
    return ScopeObject("pl.spmd", dict(locals()))


@_scope
def at(
    level: Level,
    role: Role | None = None,
    *,
    optimizations: Sequence[Any] = (),
    deps: Sequence[Any] = (),
    no_dep_args: Sequence[Any] = (),
    dumps: Sequence[Any] = (),
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> ScopeObject:
    """Place the body at a level of the machine; `CORE_GROUP` makes it a kernel."""
    return ScopeObject("pl.at", dict(locals()))


@_scope
def cluster(*, name_hint: str = "") -> ScopeObject:
    """Group kernels that share a core group."""
    return ScopeObject("pl.cluster", {"name_hint": name_hint})


@_scope
def scope(*, mode: ScopeMode = ScopeMode.AUTO) -> ScopeObject:
    """Say who orders the tasks dispatched inside."""
    return ScopeObject("pl.scope", {"mode": mode})


@_scope
def manual_scope() -> ScopeObject:
    """Order the tasks dispatched inside by `deps=` alone."""
    return ScopeObject("pl.manual_scope", {"mode": ScopeMode.MANUAL})


def yield_(*values: Any) -> Any:
    """Hand values on from a loop body or a branch."""
    return values[0] if len(values) == 1 else values


def cond(condition: Condition) -> None:
    """Say when a `pl.while_` loop goes on."""


def submit(
    kernel: Any,
    *args: Any,
    deps: Sequence[Any] = (),
    dumps: Sequence[Any] = (),
    allow_early_resolve: bool = False,
    predicate: Condition | None = None,
) -> Any:
    """Dispatch a kernel; return its results and the id of the task.

    Where `predicate` does not hold nothing is dispatched: the results are the tensors passed in, as they are.
    """
    outside_kernel("pl.submit")


def spmd_submit(
    kernel: Any,
    *args: Any,
    core_num: Index,
    sync_start: bool = False,
    deps: Sequence[Any] = (),
    dumps: Sequence[Any] = (),
    allow_early_resolve: bool = False,
    predicate: Condition | None = None,
) -> Any:
    """Dispatch a kernel once per block; return its results and the id of the task.

    Where `predicate` does not hold nothing is dispatched: the results are the tensors passed in, as they are.
    """
    outside_kernel("pl.spmd_submit")


@called(triton="device_print")
def print(*values: Any) -> None:
    """Write values of the running program to standard output, with spaces between them, texts as they are.

    Of a tile or a tensor the valid part is shown, the first 16 elements of each axis. In plain Python it is Python's.
    """
    builtins.print(*values)


@called("triton")
def static_print(*values: Any) -> None:
    """Print what the compiler knows about values while it reads the kernel."""


@called("triton")
def static_assert(condition: Any, message: str = "") -> None:
    """Stop the compiler unless a condition it can evaluate holds."""


@called(triton="triton.cdiv")
def cdiv(a: Index, b: Index) -> Any:
    """Return how many times `b` it takes to reach `a`: their quotient, rounded up."""
    return -(-int(a) // int(b))


def const(value: int | float | bool, dtype: DataType) -> Const:
    """Return a number of a given type."""
    return constant(value, dtype)


def func_attr(attributes: dict[str, Any]) -> None:
    """Attach attributes to the function."""


@called("torch triton", numpy="concatenate hstack vstack", torch="concat hstack vstack", triton="join")
def cat(parts: Sequence[T], axis: int = -1) -> T:
    """Put tiles, or tensors, one after the other along an axis; `pl.concat(a, b)` is that of two along the last."""
    outside_kernel("pl.cat")


@called("numpy torch")
def stack(parts: Sequence[T], axis: int = 0) -> T:
    """Put tiles, or tensors, of one shape one after the other along a new axis."""
    outside_kernel("pl.stack")


@called(triton="associative_scan")
def scan(fn: Any, x: T, axis: int = -1, reverse: bool = False) -> T:
    """Fold each element with all before it along an axis, by an associative function of two.

    The function, a lambda, an op or an inline function, takes what comes before and what comes after. Of a tuple of
    tiles it takes and gives tuples. With `reverse` elements are folded from the end.
    """
    outside_kernel("pl.scan")


def no_dep(value: T) -> T:
    """Mark an argument that orders nothing; the value itself."""
    return value


def dump_tag(value: T) -> T:
    """Mark a value worth dumping; the value itself."""
    return value


def alloc(memory_space: MemorySpace, size: Index, *, pinned: bool = False) -> Any:
    """Name an allocation, in text that the compiler wrote; tiles have their own storage."""
    outside_kernel("alloc")
