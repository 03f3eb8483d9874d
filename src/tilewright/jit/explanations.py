"""Explanations: why no program is found for a call, in words."""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.jit.arguments import Described
from tilewright.jit.variants import Store
from tilewright.keep.reads import ReadSet
from tilewright.programs.code_options import CodeOptions

Condition: TypeAlias = tuple[str, str, str]
KEY, GUARD = "found by", "looked at before each call"


SETTINGS = (
    "TILEWRIGHT_CHECKED", "TILEWRIGHT_PERF for debuggers", "TILEWRIGHT_TILES=chosen", "TILEWRIGHT_SMALL_WORK=alone",
    "TILEWRIGHT_CUDA_SCHEDULE", "TILEWRIGHT_AMX", "TILEWRIGHT_CORES",
)  # fmt: skip
"""What people call the settings that code depends on."""


def explained(kernel: str, described: Sequence[tuple[str, Described]], kinds: Sequence[Any], store: Store[Any]) -> str:
    """Return how a call differs from the program nearest to it."""
    programs = [(known, extents) for known, variants in list(store.variants.items()) for extents in variants.extents()]
    if not programs:
        return f"`{kernel}` has not been compiled yet"
    mine = tuple(extent for _, one in described for extent in one.extents)
    differences = [_differences(described, kinds, mine, known, extents) for known, extents in programs]
    return "; ".join(min(differences, key=_distance))


def conditions(described: Mapping[str, Described], kinds: Sequence[Any], reads: ReadSet) -> Iterator[Condition]:
    """Yield what calls find a program by, and what is looked at before each: groups, names and values."""
    yield from ((KEY, name, shown(one)) for name, one in described.items())
    _, options, said, device, _ = kinds
    yield KEY, "configuration", _configuration(options)
    yield from ((KEY, name, _said(value)) for name, value in zip(SETTINGS, said, strict=True))
    yield KEY, "device", str(device)
    for leaf in reads.leaves:
        where = f"{leaf.read.access.value} that {leaf.resolver.function.__qualname__} reads"
        yield GUARD, leaf.read.name, f"{reprlib.repr(leaf.read.given)}, {where}"
    for resolver in reads.resolvers:
        yield GUARD, f"{resolver.function.__qualname__}.__code__", "the code that it was read with"


def _distance(differences: list[str]) -> tuple[bool, int]:
    """Return how far a program is: one that differs in extents alone is nearest."""
    return not all(difference.startswith("axis") for difference in differences), len(differences)


def _differences(
    described: Sequence[tuple[str, Described]],
    kinds: Sequence[Any],
    mine: Sequence[int | None],
    known: Any,
    extents: Any,
) -> list[str]:
    """Return each part in which a call differs from one program."""
    found = [
        f"`{name}` is {_shown(one.kind)}, and was {_shown(theirs)}{_remedy(one.kind, theirs)}"
        for (name, one), theirs in zip(described, known[0], strict=True)
        if one.kind != theirs
    ]
    if kinds[1] != known[1]:
        found.append(f"the configuration is {_configuration(kinds[1])}, and was {_configuration(known[1])}")
    for name, now, before in zip(SETTINGS, kinds[2], known[2], strict=True):
        if now != before:
            found.append(f"{name} is {_said(now)}, and was {_said(before)}")
    if kinds[3] != known[3]:
        found.append(f"the tensors are on {kinds[3]}, and were on {known[3]}")
    if not found and len(mine) == len(extents):
        found += _extent_differences(described, mine, extents)
    return found or ["the ranks differ"]


def _extent_differences(
    described: Sequence[tuple[str, Described]], mine: Sequence[int | None], theirs: Sequence[int | None]
) -> list[str]:
    axes = [(name, axis) for name, one in described for axis in range(len(one.extents))]
    return [
        f"axis {axis} of `{name}` is {have}, and was {want}"
        for (name, axis), have, want in zip(axes, mine, theirs, strict=True)
        if want is not None and have != want
    ]


def shown(described: Described) -> str:
    """Return an argument as people say it."""
    extents = f" of {list(described.extents)}" if described.extents else ""
    return _shown(described.kind) + extents


def _shown(kind: Any) -> str:
    """Return the kind of an argument as people say it."""
    first, second = kind
    if first == "runtime":
        return f"a running {second}"
    if isinstance(first, type):
        return f"the {first.__name__} {_value(kind)!r}"
    return f"a tensor of {first} with {second} axes" if first != "like" else f"like `{second}`"


def _remedy(mine: Any, theirs: Any) -> str:
    """Return how a number that differs need not: where it is no part of the code."""
    if mine[0] is not theirs[0] or mine[0] not in (int, float):
        return ""
    return f" (pl.Scalar[pl.{'INT64' if mine[0] is int else 'FP32'}, pl.RUNTIME] is one that each call brings)"


def _value(key: Any) -> Any:
    """Return what an exact key stands for."""
    kind, inner = key
    if kind is float:
        return struct.unpack("<d", inner)[0]
    if kind is dict:
        return {_value(name): _value(item) for name, item in inner}
    if kind in (tuple, list):
        parts = list(map(_value, inner))
        return tuple(parts) if kind is tuple else parts
    is_signature = hasattr(kind, "__cache_signature__")
    return _value(inner) if is_signature else inner


def _configuration(options: CodeOptions) -> str:
    """Return what code is made for, as a configuration says it."""
    platform, strategy, is_checked, target = options
    return f"platform {platform}{f', target {target}' if target else ''}, strategy {strategy}{', checked' * is_checked}"


def _said(value: bool | str) -> str:
    return value or "nothing" if isinstance(value, str) else "on" if value else "off"
