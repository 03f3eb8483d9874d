"""Folds: an axis of one or several tensors reduced, or scanned, by a function of two of their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cuda.ttir.text import Text, Value

Combine = Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]]
"""Writes what becomes of two elements of each tensor, which are scalars."""


def reduced(t: Text, values: Sequence[Value], axis: int, combine: Combine) -> list[Value]:
    """Return an axis folded in any order, and gone."""
    shape = values[0].shape
    rest = (*shape[:axis], *shape[axis + 1 :])
    return _written(t, "reduce", f"axis = {axis} : i32", values, rest, combine)


def scanned(t: Text, values: Sequence[Value], axis: int, is_reverse: bool, combine: Combine) -> list[Value]:
    """Return what all elements up to each one along an axis fold to; or from each one on."""
    said = f"axis = {axis} : i32, reverse = {'true' if is_reverse else 'false'}"
    return _written(t, "scan", said, values, values[0].shape, combine)


def _written(
    t: Text, name: str, said: str, values: Sequence[Value], shape: Sequence[int], combine: Combine
) -> list[Value]:
    t.is_folded = True
    made = t.several([value.element for value in values], shape)
    firsts, seconds = ([t.fresh(value.element) for value in values] for _ in range(2))
    given = ", ".join(value.type for value in values)
    results = ", ".join(value.type for value in made)
    head = f'{t.bound(made)} = "tt.{name}"({", ".join(map(str, values))}) <{{{said}}}> ({{'
    with t.block(head, f"}}) : ({given}) -> {results if len(made) == 1 else f'({results})'}"):
        t.between(f"^bb0({', '.join(f'{value}: {value.element}' for value in (*firsts, *seconds))}):")
        found = combine(firsts, seconds)
        types = ", ".join(value.element for value in found)
        t.do(f"tt.{name}.return {', '.join(map(str, found))} : {types}")
    return made


def flat(t: Text, value: Value) -> Value:
    """Return all elements in a row, as they are counted along rows."""
    count = 1
    for extent in value.shape:
        count *= extent
    return value if value.shape == (count,) else t.shaped("tt.reshape", value, (count,))


def whole(t: Text, value: Value, name: str) -> Value:
    """Return all elements folded to a scalar by an operation of two, in any order."""
    return reduced(t, [flat(t, value)], 0, lambda a, b: [t.simple(name, a[0], b[0])])[0]


def some(t: Text, condition: Value) -> Value:
    """Return whether a condition holds of any element."""
    return whole(t, condition, "arith.ori") if condition.shape else condition
