"""Placing: which argument of a call is whose, by position or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function


class _Missing:
    """Stands for an output that the caller leaves to us."""


MISSING = _Missing()


def placed(entry: Function, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Return one argument per parameter, `MISSING` for outputs where only the inputs are given.

    TypeError for a number of arguments that is neither, for a name that no parameter has, and for two values of one.
    """
    names = [param.name_hint for param in entry.params]
    inputs = [i for i, direction in enumerate(entry.param_directions) if direction is not ParamDirection.Out]
    _check_names(entry, names, named)
    count = len(args) + len(named)
    if count not in (len(names), len(inputs)):
        raise TypeError(_other_count(names, [names[i] for i in inputs], count))
    slots = list(range(len(names))) if count == len(names) else inputs
    given = dict(zip(slots, args, strict=False))
    for name, value in named.items():
        position = names.index(name)
        if position in given:
            raise TypeError(f"CompiledProgram got two values for `{name}`, by position and by name")
        if position not in slots:
            left = next(names[i] for i in inputs if i not in given and names[i] not in named)
            raise TypeError(f"CompiledProgram got the output `{name}`, but not the input `{left}`")
        given[position] = value
    return [given.get(position, MISSING) for position in range(len(names))]


def _check_names(entry: Function, names: Sequence[str], named: Mapping[str, Any]) -> None:
    for name in named:
        if name not in names:
            raise TypeError(f"`{entry.name}` has no parameter `{name}`; it has {', '.join(names) or 'none'}")


def _other_count(names: Sequence[str], inputs: Sequence[str], got: int) -> str:
    if len(names) == len(inputs):
        return f"CompiledProgram expects {len(names)} arguments, got {got}: ({', '.join(names)})"
    ways = f"({', '.join(names)}) or ({', '.join(inputs)})"
    return f"CompiledProgram expects {len(names)} (in-place) or {len(inputs)} (return) arguments, got {got}: {ways}"
