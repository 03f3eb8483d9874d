"""Recipes: the text that ops, scalar arithmetic and statements are written as, found by what they are.

Files sign in what they write; a kernel being written looks it up and knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from tilewright.backends.cuda.ttir.values import Binding, Scalar
from tilewright.core.expr import Call
from tilewright.core.op import Op
from tilewright.errors import UnsupportedFeatureError
from tilewright.source import Span

Bound: TypeAlias = "dict[str, Any]"
"""The arguments of an op by name: what was written for operands, and attributes as they are."""

Recipe: TypeAlias = Callable[[Any, Call, Bound], Binding]
Written: TypeAlias = "Callable[[Any, Any], tuple[Binding, ...]]"
"""Writes a statement of a kernel; gives what it returns or yields."""

RECIPES: dict[str, Recipe] = {}
TAKE_MASKS = {"tile.sel", "tile.sels"}
"""The ops that take conditions as they are; all others see the bits that they are packed to."""
SCALARS: dict[str, Callable[..., Scalar]] = {}
"""What scalar ops are written as, by name."""
STATEMENTS: dict[type, Written] = {}


HELP = "pass tensors of the processor, where every op has code"
CAST = "pl.cast it to an element type that has arithmetic first, as in pl.cast(x, pl.FP32)"

REASONS: dict[str, tuple[str, ...]] = {
    "a pipe joins two kinds of cores, and a GPU has one kind": (
        "system.tpush_to_aiv", "system.tpush_to_aic", "system.tpop_from_aic", "system.tpop_from_aiv",
        "system.tfree_to_aic", "system.tfree_to_aiv", "system.aic_initialize_pipe", "system.aiv_initialize_pipe",
        "system.reserve_buffer", "system.import_peer_buffer",
    ),
    "messages between machines are the host's: ranks on GPUs reach into each other's memory": (
        "distributed.fetch", "distributed.send",
    ),
    "arrays of numbers are the host function's; a tile holds numbers inside a kernel": (
        "array.create", "array.get_element", "array.update_element",
    ),
}  # fmt: skip
"""Why kernels have no recipe for some ops; docs/cuda.md and the tests read it here."""


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    """Sign in the text of ops, by full name, or by kind and family as in `tile:elementwise`."""

    def sign(function: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, function))
        return function

    return sign


def statement(kind: type) -> Callable[[Written], Written]:
    """Sign in the text of a kind of statement."""

    def sign(function: Written) -> Written:
        STATEMENTS[kind] = function
        return function

    return sign


def recipe_of(op: Op) -> Recipe | None:
    """Return what writes an op, None where nobody has signed in for it."""
    found = _signed_in(op)
    for module in () if found is not None else RARE:
        import_module(module)
        found = _signed_in(op)
        if found is not None:
            break
    return found


def _signed_in(op: Op) -> Recipe | None:
    return RECIPES.get(op.name) or RECIPES.get(f"{op.kind.value}:{op.spec.family}")


_MODULES = """
    reduce products parts shape masks positions blends counting scans order gathers scatters indexed flips runs
    whole_tensors reinterpreted byte_views singles atomics draws scaled printing system ranks cells
"""

RARE = tuple(f"{__name__.rpartition('.')[0]}.{name}" for name in _MODULES.split())
"""The modules with recipes that few kernels have, loaded as far as the first that has an op's."""


def reason_for(op: Op) -> str:
    """Return why an op is none that a kernel of a GPU has, or nothing."""
    return next((why for why, names in REASONS.items() if op.name in names), "")


def declined(call: Call) -> UnsupportedFeatureError:
    """Return the error for an op without a recipe: with the reason, where there is one."""
    why = reason_for(call.op)
    if not why:
        return refused(f"`{call.op.name}`", call.span)
    message = f"no CUDA recipe for `{call.op.name}`: {why}"
    return UnsupportedFeatureError(message, spans=[call.span], help=HELP)


def refused(what: str, span: Span, help: str = HELP) -> UnsupportedFeatureError:
    """Return the error for something that the GPU could do, and that nobody has written down yet."""
    return UnsupportedFeatureError(f"no CUDA recipe for {what} yet", spans=[span], help=help)
