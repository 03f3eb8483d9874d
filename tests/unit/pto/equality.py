"""Equality: when two modules say the same.

Values are matched by where they are defined; their names, and the places of everything, do not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.pto.module import Attribute, Attributes, Func, Module, Op, Region, Value


def same(a: Module, b: Module) -> bool:
    """Tell whether `a` and `b` differ in nothing but names of values and places."""
    if (a.name, len(a.items)) != (b.name, len(b.items)) or not _alike_all(a.attributes, b.attributes):
        return False
    return all(_same_item(x, y) for x, y in zip(a.items, b.items, strict=True))


def _same_item(a: Func | Module, b: Func | Module) -> bool:
    if isinstance(a, Module) or isinstance(b, Module):
        return isinstance(a, Module) and isinstance(b, Module) and same(a, b)
    if (a.name, a.results, a.private) != (b.name, b.results, b.private) or not _alike_all(a.attributes, b.attributes):
        return False
    if (a.body is None) != (b.body is None):
        return False
    partners: dict[Value, Value] = {}
    if not _define(a.arguments, b.arguments, partners):
        return False
    return a.body is None or b.body is None or _same_ops(a.body, b.body, partners)


def _define(a: tuple[Value, ...], b: tuple[Value, ...], partners: dict[Value, Value]) -> bool:
    """Note that the values of `a` are those of `b`, if they have the same types."""
    if [value.type for value in a] != [value.type for value in b]:
        return False
    partners.update(zip(a, b, strict=True))
    return True


def _same_ops(a: Region, b: Region, partners: dict[Value, Value]) -> bool:
    if len(a.ops) != len(b.ops) or not _define(a.arguments, b.arguments, partners):
        return False
    return all(_same_op(x, y, partners) for x, y in zip(a.ops, b.ops, strict=True))


def _same_op(a: Op, b: Op, partners: dict[Value, Value]) -> bool:
    if a.name != b.name or len(a.regions) != len(b.regions) or not _alike_all(a.attributes, b.attributes):
        return False
    if [(c.name, len(c.values)) for c in a.clauses] != [(c.name, len(c.values)) for c in b.clauses]:
        return False
    if not _are_partners(a.uses, b.uses, partners):
        return False
    if not all(_same_ops(x, y, partners) for x, y in zip(a.regions, b.regions, strict=True)):
        return False
    return _define(a.results, b.results, partners)


def _are_partners(a: Iterable[Value], b: Iterable[Value], partners: dict[Value, Value]) -> bool:
    return [partners.get(value) for value in a] == list(b)


def _alike_all(a: Attributes, b: Attributes) -> bool:
    return a.keys() == b.keys() and all(_alike(value, b[name]) for name, value in a.items())


def _alike(a: Attribute, b: Attribute) -> bool:
    """Tell whether two attributes are the same: `1`, `1.0` and `true` are not, two NaNs are."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a == b or (a != a and b != b)
