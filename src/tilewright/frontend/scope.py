"""Scopes: what the names of a kernel stand for, line by line.

A name that is assigned in one block only is bound anew by each assignment, as cheaply as in straight-line code, and may
stand for a number the compiler knows. A name assigned in several blocks (before a loop and in it, in both branches) is
one variable of the IR, assigned many times; conversion to SSA sorts that out later. While a kernel is specialized, such
a variable stands for a number, too, where every path has given it that one: a branch that is not taken assigns nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from tilewright.core.types import ScalarType, TensorType, TileType, Type
from tilewright.frontend.capture import bodies
from tilewright.frontend.signature import exact
from tilewright.frontend.walk.bindings import Binding, ended, one_sided
from tilewright.ops.registry import specs
from tilewright.records import mutable
from tilewright.source import Span

UNKNOWN: Any = object()
"""Stands for a value that only the running program has."""


@mutable
class ScopedBinding(Binding):
    """What a name stands for from some line of a block on."""

    block: int = 0
    leaked: bool = False
    """Whether the block that bound it has ended."""
    known: Any = UNKNOWN
    """The number that a variable is at this point, where the compiler knows it."""


Bindings: TypeAlias = dict[str, ScopedBinding]


@mutable
class Scope:
    """The names visible at one point, innermost block last."""

    shared: frozenset[str]
    """Names assigned in more than one block."""
    sliced: frozenset[str] = frozenset()
    """Those of them that one block assigns, and that may be slices of what others change in place."""
    frames: list[Bindings] = field(default_factory=lambda: [{}])
    blocks: list[int] = field(default_factory=lambda: [0])
    siblings: list[Bindings] = field(default_factory=lambda: [{}])
    """What the other branch bound, while one branch is translated."""
    count: int = 1

    @property
    def block(self) -> int:
        """The block being translated."""
        return self.blocks[-1]

    def find(self, name: str) -> ScopedBinding | None:
        """Return what a name stands for here, or None."""
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return None

    def bind(self, name: str, value: Any, span: Span) -> None:
        """Let `name` stand for `value` from here to the end of the block."""
        self.frames[-1][name] = ScopedBinding(value, span, block=self.block)

    def know(self, name: str, value: Any) -> None:
        """Note which number the variable that `name` has just been bound to is."""
        self.frames[-1][name].known = value

    def forget(self, body: Sequence[ast.stmt]) -> None:
        """Drop what is known of the variables that a body, which may run any number of times, assigns."""
        for name in assigned_names(body):
            for frame in self.frames:
                if name in frame:
                    frame[name].known = UNKNOWN

    def variable(self, name: str) -> ScopedBinding | None:
        """Return what an assignment to `name` would rebind: a visible name, or one the other branch bound."""
        for frame, sibling in zip(reversed(self.frames), reversed(self.siblings), strict=True):
            if name in frame or name in sibling:
                return frame.get(name) or sibling[name]
        return None

    def is_variable(self, name: str, value: Any) -> bool:
        """Return whether a name that is given a value stands for a variable; numbers are slices of nothing."""
        is_number = isinstance(value, (bool, int, float)) or isinstance(getattr(value, "type", None), ScalarType)
        return name in self.shared and not (is_number and name in self.sliced)

    def is_outer(self, name: str) -> bool:
        """Return whether a name stands for a variable that blocks around this one see, too."""
        found = [frame[name].value for frame in self.frames if name in frame]
        return any(value is found[-1] for value in found[:-1])

    def is_around(self, name: str) -> bool:
        """Return whether blocks around this one have a name that this one assigns, too."""
        known = self.variable(name)
        if known is None or name not in self.shared:
            return False
        is_here = name in self.frames[-1] or name in self.siblings[-1]
        return self.is_outer(name) or (known.block != self.block and not (known.leaked and is_here))

    def enter(self, sibling: Bindings | None = None) -> None:
        """Begin a block; `sibling` is what the other branch bound."""
        self.frames.append({})
        self.siblings.append(sibling or {})
        self.blocks.append(self.count)
        self.count += 1

    def leave(self) -> Bindings:
        """End a block and return what it bound."""
        self.blocks.pop()
        self.siblings.pop()
        return self.frames.pop()

    def leak(self, bound: Bindings, loop_names: Sequence[str] = (), is_sure: bool = True) -> None:
        """Make a finished block's names visible outside it; those of its loop, and unsure ones, must not be used."""
        for name, binding in bound.items():
            before = self.find(name)
            binding.leaked, binding.known = True, UNKNOWN
            if before is not None and before.value is binding.value and not before.leaked:
                binding.leaked, binding.block = False, before.block  # blocks around this one had it before
            if name in loop_names:
                binding.problem, binding.help = ended(name)
            elif not is_sure and not binding.problem:
                binding.problem, binding.help = one_sided(name, binding.span.line)
            self.frames[-1][name] = binding

    def merge(self, then: Bindings, other: Bindings, then_ends: bool, other_ends: bool) -> None:
        """Make the names of two branches visible: bound where each branch that goes on bound them alike."""
        for name in {**then, **other}:
            before = self.find(name)
            reached = [
                found.get(name) or before
                for found, has_ended in ((then, then_ends), (other, other_ends))
                if not has_ended
            ]
            known = [binding for binding in reached if binding is not None and not binding.problem]
            sure = len(known) == len(reached) and all(binding.value == known[0].value for binding in known)
            binding = known[0] if known else then.get(name) or other[name]
            number = _agreed(reached)
            if binding is not before:
                self.leak({name: binding}, is_sure=sure)
            elif not sure:
                self.leak({name: replace(binding)}, is_sure=False)
            if (merged := self.find(name)) is not None:
                merged.known = number


def _agreed(reached: Sequence[ScopedBinding | None]) -> Any:
    """Return the number that a variable is on every path that goes on, or `UNKNOWN`."""
    numbers = [UNKNOWN if binding is None else binding.known for binding in reached]
    first = numbers[0] if numbers else UNKNOWN
    return first if all(exact(number) == exact(first) for number in numbers) else UNKNOWN


def assigned_names(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that are assigned below some statements."""
    return {name for _, name in _assigned(body, [0], 0)}


def shared_names(node: ast.FunctionDef) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names a function assigns in more than one block, and those of them that only slices make so.

    Parameters count as assigned at its top.
    """
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    blocks: dict[str, set[int]] = {arg.arg: {0} for arg in parameters}
    in_place: list[tuple[int, str]] = []
    for block, name in _assigned(node.body, [0], 0, in_place):
        blocks.setdefault(name, set()).add(block)
    assigned = _in_several(blocks)
    for block, name in _with_slices(node, in_place):
        blocks.setdefault(name, set()).add(block)
    shared = _in_several(blocks)
    return shared, shared - assigned


def _in_several(blocks: Mapping[str, set[int]]) -> frozenset[str]:
    return frozenset(name for name, where in blocks.items() if len(where) > 1)


def _with_slices(node: ast.FunctionDef, in_place: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield what else an op that changes a tile in place may change: what it is a slice of, and slices of that."""
    related: dict[str, set[str]] = {}
    for stmt in chain.from_iterable(bodies(node.body)) if in_place else ():
        if isinstance(stmt, (ast.Assign, ast.AnnAssign)) and isinstance(stmt.value, (ast.Call, ast.Subscript)):
            for name in _targets(stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target):
                for base in _root(stmt.value):
                    related.setdefault(name, set()).add(base)
                    related.setdefault(base, set()).add(name)
    for block, name in in_place:
        found, pending = {name}, [name]
        while pending:
            new = related.get(pending.pop(), set[str]()) - found
            found |= new
            pending += new
        yield from ((block, other) for other in found)


def _root(value: ast.expr | None) -> Iterator[str]:
    """Yield the name of what an expression may be a slice of, or the same as after a change in place."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(attr="slice"), args=[inner, *_]):
            yield from _root(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="slice")):
            yield name
        case ast.Call():
            yield from _root(_changed(value, (TileType, TensorType)))
        case _:
            pass


@cache
def _in_place(kinds: tuple[type[Type], ...]) -> Mapping[str, tuple[int, str]]:
    """Return the ops that change something of these kinds in place, each with the position and name of that operand."""
    found: dict[str, tuple[int, str]] = {}
    for spec in specs():
        for position, p in enumerate(spec.parameters):
            if p.name in (spec.updates, spec.writes) and not {*kinds}.isdisjoint(p.types):
                found[spec.name] = (position, p.name)
    return found


def _changed(call: ast.Call, kinds: tuple[type[Type], ...] = (TileType,)) -> ast.expr | None:
    """Return the tile, or what else of some kinds, that a call changes in place; None for one that changes none."""
    if not isinstance(call.func, (ast.Attribute, ast.Name)):
        return None
    operand = _in_place(kinds).get(call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id)
    if operand is None:
        return None
    position, name = operand
    by_name = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return call.args[position] if position < len(call.args) else by_name


def _assigned(
    body: Sequence[ast.stmt],
    counter: list[int],
    block: int,
    in_place: list[tuple[int, str]] | None = None,
    around: int = 0,
) -> Iterator[tuple[int, str]]:
    """Yield each assignment below `body` as (block, name); `with` opens no block, nor does a loop over lanes.

    What a block yields has its names in the one around it. What statements change in place goes into a list of its
    own, where there is one.
    """
    for node in body:
        value = node.value if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
        if in_place is not None and isinstance(value, ast.Call):
            in_place += ((block, name) for name in _root(_changed(value)))
        match node:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) if _is_yield(value):
                yield from ((around, name) for name in _targets(target))
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from ((block, name) for name in _targets(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                yield from ((block, name) for name in _targets(target))
            case ast.With(body=inner):
                yield from _assigned(inner, counter, block, in_place, around)
            case ast.For(iter=ast.Call(func=ast.Attribute(attr="split_aiv") | ast.Name(id="split_aiv"))):
                yield from _assigned(node.body, counter, block, in_place, around)
            case ast.For(target=target, iter=ast.Tuple() | ast.List() | ast.Name() | ast.Call(func=ast.Name(id="zip"))):
                yield from ((block, name) for name in _targets(target))  # written out in place
                yield from _assigned(node.body, counter, block, in_place, around)
            case ast.For(target=target):
                counter[0] += 1
                own, before = counter[0], len(in_place or ())
                below = list(_assigned(node.body, counter, own, in_place, block))
                again = {name for where, name in (*below, *(in_place or ())[before:]) if where != block}
                yield from ((own, name) for name in _targets(target) if name in again)
                yield from below
            case ast.While() | ast.If():
                for inner in (node.body, node.orelse):
                    counter[0] += 1
                    yield from _assigned(inner, counter, counter[0], in_place, block)
            case _:
                pass


def _is_yield(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr="yield_") | ast.Name(id="yield_")):
            return True
        case _:
            return False


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _targets(element)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _targets(target.value)
