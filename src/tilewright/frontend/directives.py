"""Directives: names of the language that shape a kernel rather than compute in it.

They are plain functions so that editors know their signatures; the front end recognizes them by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, TypeVar

from tilewright.core.annotations import Condition, Index, Scalar, T, outside_kernel
from tilewright.core.enums import Level, Role, ScopeMode, SplitMode
from tilewright.core.expr import Const, constant
from tilewright.dtypes import DataType

__all__ = ["at", "cluster", "cond", "const", "cross_core_slot", "dump_tag", "func_attr", "manual_scope"]
__all__ += ["no_dep", "parallel", "pipeline", "range", "scope", "split", "split_aiv", "spmd", "spmd_submit"]
__all__ += ["static_assert", "static_print", "submit", "unroll", "while_", "yield_"]

F = TypeVar("F", bound=Callable[..., Any])

LOOPS: dict[Callable[..., Any], str] = {}
SCOPES: dict[Callable[..., Any], str] = {}


def _loop(function: F) -> F:
    LOOPS[function] = function.__name__
    return function


def _scope(function: F) -> F:
    SCOPES[function] = function.__name__
    return function


class Hint(Enum):
    """An `optimizations=[...]` entry; hints never change a result."""

    SPLIT = "split"
    CROSS_CORE_SLOT = "cross_core_slot"


@_loop
def range(*bounds: Index, init_values: Sequence[Any] = ()) -> Iterator[Any]:
    """Count from start to stop by step, one iteration after the other."""
    outside_kernel("pl.range")


@_loop
def parallel(*bounds: Index, init_values: Sequence[Any] = ()) -> Iterator[Any]:
    """Count like `range`, promising that iterations do not depend on each other."""
    outside_kernel("pl.parallel")


@_loop
def unroll(*bounds: int, init_values: Sequence[Any] = ()) -> Iterator[Any]:
    """Count like `range` over constant bounds, the body written out once per iteration."""
    outside_kernel("pl.unroll")


@_loop
def pipeline(*bounds: Index, stage: int, init_values: Sequence[Any] = ()) -> Iterator[Any]:
    """Count like `range`, with loads of later iterations started up to `stage` ahead."""
    outside_kernel("pl.pipeline")


@_loop
def while_(*, init_values: Sequence[Any]) -> Iterator[Any]:
    """Loop while the `pl.cond(...)` that opens the body holds, carrying values."""
    outside_kernel("pl.while_")


@_loop
def split_aiv(count: int, *, mode: SplitMode = SplitMode.NONE) -> Iterator[Any]:
    """Run the body for the one vector lane there is."""
    outside_kernel("pl.split_aiv")


class SpmdScope(AbstractContextManager[Scalar]):
    """What `pl.spmd` gives: something to loop over or to enter."""

    def __iter__(self) -> Iterator[Any]:
        outside_kernel("pl.spmd")

    def __exit__(self, *_: object) -> None:
        outside_kernel("pl.spmd")


@_scope
def spmd(
    count: Index,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: Sequence[Any] = (),
    deps: Sequence[Any] = (),
    allow_early_resolve: bool = False,
    predicate: Condition | None = None,
) -> SpmdScope:
    """Run the body once per block, blocks numbered from 0; not at all where `predicate` does not hold."""
    outside_kernel("pl.spmd")


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
) -> AbstractContextManager[Scalar]:
    """Place the body at a level of the machine; `CORE_GROUP` makes it a kernel."""
    outside_kernel("pl.at")


@_scope
def cluster(*, name_hint: str = "") -> AbstractContextManager[None]:
    """Group kernels that share a core group."""
    outside_kernel("pl.cluster")


@_scope
def scope(*, mode: ScopeMode = ScopeMode.AUTO) -> AbstractContextManager[None]:
    """Say who orders the tasks dispatched inside."""
    outside_kernel("pl.scope")


@_scope
def manual_scope() -> AbstractContextManager[None]:
    """Order the tasks dispatched inside by `deps=` alone."""
    outside_kernel("pl.manual_scope")


def yield_(*values: Any) -> Any:
    """Hand values on from a loop body or a branch."""
    outside_kernel("pl.yield_")


def cond(condition: Condition) -> None:
    """Say when a `pl.while_` loop goes on."""
    outside_kernel("pl.cond")


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


def static_print(*values: Any) -> None:
    """Print what the compiler knows about values while it reads the kernel."""
    outside_kernel("pl.static_print")


def static_assert(condition: Any, message: str = "") -> None:
    """Stop the compiler unless a condition it can evaluate holds."""
    outside_kernel("pl.static_assert")


def const(value: int | float | bool, dtype: DataType) -> Const:
    """Return a number of a given type."""
    return constant(value, dtype)


def func_attr(attributes: dict[str, Any]) -> None:
    """Attach attributes to the function."""
    outside_kernel("pl.func_attr")


def no_dep(value: T) -> T:
    """Mark an argument that orders nothing; the value itself."""
    return value


def dump_tag(value: T) -> T:
    """Mark a value worth dumping; the value itself."""
    return value


def split(mode: SplitMode, *, slot_num: int = 0) -> Hint:
    """Hint how a kernel's work is split between vector lanes."""
    return Hint.SPLIT


def cross_core_slot(*, slot_num: int) -> Hint:
    """Hint how many buffers cross between cores."""
    return Hint.CROSS_CORE_SLOT
