"""Declarations: the decorators that turn a signature and a few facts into an op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright import dtypes as dt
from tilewright.core.annotations import outside_kernel
from tilewright.core.op import (
    EAGER,
    SCRATCH,
    Effect,
    ElementTypes,
    Interval,
    Kind,
    OpSpec,
    Parameter,
    Undefined,
    parameters_of,
    register,
    spec_of,
)
from tilewright.core.types import TileType
from tilewright.dtypes import DataType

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Facts(TypedDict, total=False):
        """What a declaration may say of an op besides, as `OpSpec` keeps it."""

        family: str
        reference: Callable[..., Any] | None
        elements: ElementTypes | None
        combine: str
        start: Callable[[DataType], Any] | None
        chained: bool
        effect: Effect
        alias: str | None
        writes: str | None
        turns: bool
        takes_permuted: bool
        is_barrier: bool
        is_fence: bool
        undefined: Undefined
        scratch: Callable[..., TileType | None] | None
        takes_numbers: bool
        updates: str | None
        orders: tuple[tuple[str, ...], ...]
        forms: tuple[tuple[str, ...], ...]
        listed: Callable[..., Any] | None
        annotated: bool
        control_plane: bool
        symbol: str
        neutral: int | None
        commutative: bool
        fold: Callable[..., Any] | None
        interval: Callable[[Interval, Interval], Interval | None] | None
        ulp: float
        domain: tuple[float, float]
        example: str
        expand: Callable[..., Any] | None


F = TypeVar("F", bound=Callable[..., Any])

FLOATS = frozenset((dt.FP16, dt.BF16, dt.FP32, dt.FP64))
INTEGERS = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.INT64, dt.UINT8, dt.UINT16, dt.UINT32, dt.UINT64))
NUMBERS = FLOATS | INTEGERS
ANY = frozenset(dt.STORABLE)

TILE = (Kind.TILE,)
TENSOR = (Kind.TENSOR,)
UNIFIED = (Kind.TILE, Kind.TENSOR)

_NAMESPACES = {kind: f"{kind.value}." for kind in (Kind.ARRAY, Kind.SYSTEM, Kind.PREFETCH, Kind.DISTRIBUTED)}
"""The kinds whose ops are not also names of `pl` itself."""


def op(
    *,
    kinds: tuple[Kind, ...],
    infer: Callable[..., Any],
    evaluate: Callable[..., Any],
    name: str = "",
    stepwise: Collection[DataType] = (),
    unread: Collection[str] = (),
    touches: Collection[str] = (),
    accepts: Collection[DataType] = NUMBERS,
    also: Mapping[str, tuple[str, ...]] | None = None,
    keeps_bits: Collection[str] = (),
    unheld: Collection[str] = (),
    codes: Mapping[str, tuple[str, ...]] | None = None,
    hints: Mapping[str, str] | None = None,
    follows: Collection[str] = (),
    **facts: Unpack[Facts],
) -> Callable[[F], F]:
    """Declare an op from its type rule `infer` and its meaning `evaluate`.

    Both take the op's own parameters by name; `evaluate` takes the result type first. `infer` sees operands as
    expressions, `evaluate` as regions and numbers; lists of scalars arrive as tuples, missing operands as None.
    """

    def changed(p: Parameter) -> Parameter:
        if p.name not in (*(also or ()), *keeps_bits, *unheld, *(codes or ()), *(hints or ()), *follows):
            return p
        return replace(
            p,
            also=(also or {}).get(p.name, ()),
            keeps_bits=p.name in keeps_bits,
            unheld=p.name in unheld,
            codes=(codes or {}).get(p.name, ()),
            help=(hints or {}).get(p.name, ""),
            follows=p.name in follows,
        )

    def declare(function: F) -> F:
        @functools.wraps(function)
        def public(*args: object, **kwargs: object) -> object:
            eager, spec = EAGER.get(), spec_of(public)
            if eager is not None and spec is not None:
                return eager(spec, args, kwargs)
            outside_kernel(f"pl.{_NAMESPACES.get(kinds[0], '')}{function.__name__}")

        register(
            OpSpec(
                name=name or function.__name__,
                kinds=kinds,
                function=public,
                parameters=tuple(changed(p) for p in parameters_of(function)),
                infer=infer,
                evaluate=evaluate,
                stepwise=frozenset(stepwise),
                unread=frozenset((*unread, *SCRATCH)),
                touches=frozenset(touches),
                accepts=frozenset(accepts),
                **facts,
            )
        )
        return public  # pyright: ignore[reportReturnType]

    return declare
