"""Defined tiles: which tiles surely hold data in all of their valid part, and which may not.

Elements that nobody wrote are undefined, and so is what is computed from them. A tile that is loaded, folded or
multiplied holds data wherever it is valid. One that is computed from tiles of different valid parts, widened or merely
created may not: it holds data in a box at its origin. Extents that only the running program knows are compared by how
they came about: two loads from the same place of tensors of one extent find equally much.

What is not sure here is checked by the running program. What is surely wrong is an error of this pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.build import Argument, arguments
from tilewright.core.expr import Absent, Call, Expr, MakeTuple, Var
from tilewright.core.extents import as_extent
from tilewright.core.op import Undefined
from tilewright.core.program import Function, Program
from tilewright.core.region import PADDING, undefined_message
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import bodies, statements
from tilewright.errors import UndefinedElementError
from tilewright.records import record
from tilewright.source import UNKNOWN, Span

Extent: TypeAlias = Hashable
"""A number, or how an extent came about: equal ones are equal when the program runs."""

Box: TypeAlias = tuple[Extent, ...]


@record
class Facts:
    """What is known of a tile: how much of it is valid, and in how much of that it holds data."""

    valid: Box
    holds: Box | None = None
    """Where it holds data, None: just where it is valid. A tile that was narrowed holds more."""
    is_sure: bool = True
    """Whether that is surely all of the valid part."""
    origin: Span = UNKNOWN
    """Where elements that nobody wrote became part of it."""

    @property
    def box(self) -> Box:
        """Where it holds data."""
        return self.valid if self.holds is None else self.holds


@record
class Region:
    """A loop or branch around a statement: what it carries or yields."""

    targets: Sequence[Var]
    is_loop: bool = False


def run(program: Program) -> Program:
    """Return the program unchanged; UndefinedElementError where it surely looks at elements that nobody wrote."""
    for function in program.function_list:
        _check(function, Defined(function))
    return program


def _check(function: Function, defined: Defined) -> None:
    if not defined.facts:
        return
    for stmt in statements(function.body):
        call = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        if isinstance(call, Call) and not defined.facts.keys().isdisjoint(call.args):
            for name in looks_at(call):
                _check_operand(function, defined, call, name)


def _check_operand(function: Function, defined: Defined, call: Call, name: str) -> None:
    bound = arguments(call)
    facts, needed = defined.of(bound[name]), defined.needed(call, name)
    if (
        facts is None
        or needed is None
        or (name == "acc" and not isinstance(bound.get("init_cond"), (Absent, type(None))))
    ):
        return
    if _is_surely_outside(facts.box, needed):
        message = undefined_message(call.span if facts.is_sure else facts.origin)
        error = UndefinedElementError(message, spans=[call.span], blame=[name], help=PADDING)
        error.function = function.name
        raise error


def _is_surely_outside(box: Box, needed: Box) -> bool:
    """Return whether some of what is needed is certainly not in a box."""
    pairs = list(zip(box, needed, strict=True))
    known = [(have, want) for have, want in pairs if isinstance(have, int) and isinstance(want, int)]
    return len(known) == len(pairs) and all(want > 0 for _, want in known) and any(h < w for h, w in known)


def looks_at(call: Call) -> Iterator[str]:
    """Yield the tile operands whose elements an op looks at; it only computes with, or moves, those of others."""
    spec = call.op.spec
    for name, value in arguments(call).items():
        if not isinstance(value, Expr) or not isinstance(value.type, TileType) or name in spec.unread:
            continue
        if spec.undefined is Undefined.REFUSED or name == "mask" or (name == "source" and spec.name == "assemble"):
            yield name


class Defined:
    """What is known of the tiles of one function, which is in SSA form."""

    def __init__(self, function: Function) -> None:
        self.facts: dict[Var, Facts] = {}
        """What is known of tiles that are not, by their type and surely, valid and defined as a whole."""
        self.joined: set[Var] = set()
        """What loops carry and branches yield: one of several tiles."""
        self.changed = True
        while self.changed:  # a loop carries what it is first thought to, and less once its body says so
            self.changed = False
            self._body(function.body, [])

    @property
    def followed(self) -> set[Var]:
        """The tiles that may be valid where nobody wrote, or hold more than is valid."""
        return {var for var, facts in self.facts.items() if facts.holds is not None}

    def of(self, value: Argument) -> Facts | None:
        """Return what is known of an operand, None for anything but a tile."""
        if not isinstance(value, Expr) or not isinstance(value.type, TileType):
            return None
        if isinstance(value, Var) and value in self.facts:
            return self.facts[value]
        return Facts(_extents(value.type, value))

    def needed(self, call: Call, name: str) -> Box | None:
        """Return the part of an operand that an op looks at, None where only the running program knows."""
        bound = arguments(call)
        facts, product = self.of(bound[name]), self._folded(call, bound)
        if call.op.spec.name == "read" or facts is None:
            return None
        if name in ("acc", "bias"):
            return product if name == "acc" else (1, product[-1])
        if name == "mask":
            *rows, columns = self._met(call, bound)
            return (*rows, _packed(columns))
        if call.op.spec.name == "cmp":
            shape = _shape(bound[name])
            return tuple(1 if n == 1 else v for n, v in zip(shape, self._met(call, bound)[-len(shape) :], strict=True))
        return facts.valid

    def is_sure(self, call: Call, name: str) -> bool:
        """Return whether an operand surely holds data wherever an op looks at it."""
        value = arguments(call)[name]
        if value not in self.facts:
            return True
        facts, needed = self.of(value), self.needed(call, name)
        if facts is None or needed is None:
            return facts is None
        return all(_covers(*extents) for extents in zip(facts.box, needed, _shape(value), strict=True))

    # statements

    def _body(self, body: SeqStmts, regions: list[Region]) -> None:
        for stmt in body:
            self._stmt(stmt, regions)

    def _stmt(self, stmt: Stmt, regions: list[Region]) -> None:
        match stmt:
            case AssignStmt():
                self._assign(stmt.var, stmt.value)
            case ForStmt() | WhileStmt():
                carried = [arg.var for arg in stmt.iter_args]
                self._join(carried, [arg.init for arg in stmt.iter_args])
                self._body(stmt.body, [*regions, Region(carried, is_loop=True)])
                self._join(stmt.return_vars, carried)
            case IfStmt():
                for inner in bodies(stmt):
                    self._body(inner, [*regions, Region(stmt.return_vars)])
            case YieldStmt() if regions:
                self._join(regions[-1].targets, stmt.values)
            case BreakStmt() | ContinueStmt():
                self._join(next(r.targets for r in reversed(regions) if r.is_loop), stmt.values)
            case _ if isinstance(stmt, SCOPES):
                self._body(stmt.body, regions)
            case _:
                pass

    def _assign(self, var: Var, value: Expr) -> None:
        type_ = var.type
        if not isinstance(type_, TileType) or self._is_plain(type_, value):
            return
        facts = self._computed(value, type_) if isinstance(value, Call) else self.of(value)
        self._keep(var, facts or Facts(_extents(type_, var)))

    def _is_plain(self, type_: TileType, value: Expr) -> bool:
        """Return whether a tile is surely valid and defined as a whole: it is, and so is what it is made of."""
        if type_.valid != type_.shape or not isinstance(value, Call) or value.op.spec.name == "create":
            return False
        return not self.facts or self.facts.keys().isdisjoint(value.args)

    def _join(self, targets: Sequence[Var], values: Sequence[Expr]) -> None:
        for var, value in zip(targets, values, strict=False):
            given = self.of(value)
            if given is None or not isinstance(var.type, TileType):
                continue
            given = Facts(given.valid) if given.is_sure else given  # only the valid part is handed on
            old = self.of(var) if var in self.joined else None
            self.joined.add(var)
            merged = given if old is None else _merged(var, old, given)
            if merged != old:
                self.changed = self.changed or old is not None
                self._keep(var, merged)

    def _keep(self, var: Var, facts: Facts) -> None:
        if facts.holds is None and isinstance(var.type, TileType) and facts.valid == var.type.shape:
            self.facts.pop(var, None)
        else:
            self.facts[var] = facts

    # ops

    def _computed(self, call: Call, type_: TileType) -> Facts:
        bound, name = arguments(call), call.op.spec.name
        if name == "create":
            return Facts(_extents(type_, call), (0,) * len(type_.shape), False, call.span)
        if name == "load":
            return Facts(_loaded(call, bound, type_))
        if call.op.spec.undefined is Undefined.SPREADS:
            return self._spread(call, bound, type_)
        if call.op.spec.undefined is Undefined.MOVES:
            return self._moved(call, bound, type_)
        return Facts(self._folded(call, bound))

    def _folded(self, call: Call, bound: Mapping[str, Argument]) -> Box:
        """Return the valid part of a reduction or product, by its operands' where they decide it."""
        own = _extents(call.type, call) if isinstance(call.type, TileType) else ()
        if call.op.spec.family == "reduction" and (facts := self.of(bound["x"])) is not None:
            return tuple(o if isinstance(o, int) else f for o, f in zip(own, facts.valid, strict=True))
        lhs, rhs = self.of(bound.get("lhs")), self.of(bound.get("rhs"))
        if lhs is not None and rhs is not None and len(own) >= 2 and call.op.spec.name not in ("cmp", "sel"):
            rows, columns = lhs.valid[-2], rhs.valid[-1]
            ends = (own[-2] if isinstance(own[-2], int) else rows, own[-1] if isinstance(own[-1], int) else columns)
            return (*own[:-2], *ends)
        if call.op.spec.name == "cmp":
            *rows, columns = self._met(call, bound)
            return (*rows, _packed(columns))
        return own

    def _met(self, call: Call, bound: Mapping[str, Argument]) -> Box:
        """Return the valid part of a broadcast: the first operand that spans an axis decides."""
        shaped = [(v, f) for v in self._deciding(call, bound) if (f := self.of(v)) is not None]
        rank = max(len(f.valid) for _, f in shaped)
        met: list[Extent] = []
        for axis in range(-rank, 0):
            spanning = [(_shape(v)[axis], f.valid[axis]) for v, f in shaped if -axis <= len(f.valid)]
            met.append(next((valid for extent, valid in spanning if extent != 1), spanning[0][1]))
        return tuple(met)

    def _deciding(self, call: Call, bound: Mapping[str, Argument]) -> list[Argument]:
        """Return the operands that have a say in what is valid."""
        others = {"mask", "tmp", "tmp_tile"}
        return [v for name, v in bound.items() if name not in others and self.of(v) is not None]

    def _spread(self, call: Call, bound: Mapping[str, Argument], type_: TileType) -> Facts:
        met = self._met(call, bound)
        valid = tuple(o if isinstance(o, int) else m for o, m in zip(_extents(type_, call), met, strict=True))
        read = [v for name, v in bound.items() if name not in (*call.op.spec.unread, "mask")]
        facts = [(v, f) for v in read if (f := self.of(v)) is not None]
        if call.op.spec.family == "partial" and facts[-1][1].is_sure:
            facts = facts[:-1]  # where the second tile is not valid, the first one's elements stay
        return self._within(valid, [(_shape(v), f) for v, f in facts], type_, call.span)

    def _within(
        self, valid: Box, operands: Sequence[tuple[tuple[int, ...], Facts]], type_: TileType, span: Span
    ) -> Facts:
        """Return the facts of a result that holds data where all of its operands do."""
        box = list(valid)
        for shape, facts in operands:
            for axis in range(-len(shape), 0):
                if shape[axis] == 1 and type_.shape[axis] != 1:
                    box[axis] = box[axis] if facts.box[axis] == 1 else _least(box[axis], facts.box[axis])
                elif not _covers(facts.box[axis], box[axis], shape[axis]):
                    box[axis] = _least(box[axis], facts.box[axis])
        if tuple(box) == valid:
            return Facts(valid)
        origin = next((f.origin for _, f in operands if not f.is_sure), span)
        return Facts(valid, tuple(box), False, origin)

    def _moved(self, call: Call, bound: Mapping[str, Argument], type_: TileType) -> Facts:
        value = next(v for v in bound.values() if self.of(v) is not None)
        source, own = self.of(value), _extents(type_, call)
        assert source is not None
        match call.op.spec.name:
            case "move":
                return source
            case "transpose" | "transpose_view":
                return _turned(source, bound.get("axis1", -1), bound.get("axis2", -2))
            case "slice":
                return Facts(own) if source.is_sure else Facts(own, _unknown(call), False, source.origin)
            case "set_validshape":
                return _resized(call, bound, source, type_)
            case "concat":
                return self._concat(call, bound, source, own)
            case _:  # what is written into a tile is looked at, so that only the tile itself can be unsure
                valid = source.valid
                return Facts(valid) if source.is_sure else Facts(valid, _unknown(call), False, source.origin)

    def _concat(self, call: Call, bound: Mapping[str, Argument], first: Facts, own: Box) -> Facts:
        second = self.of(bound["b"])
        assert second is not None
        valid = (*first.valid[:-1], own[-1])
        rows = zip(second.valid[:-1], first.valid[:-1], _shape(bound["b"])[:-1], strict=True)
        if first.is_sure and second.is_sure and all(_covers(have, want, n) for have, want, n in rows):
            return Facts(valid)
        origin = next((f.origin for f in (first, second) if not f.is_sure), call.span)
        return Facts(valid, _unknown(call), False, origin)


def _extents(type_: TileType, at: Expr) -> Box:
    """Return the valid part a type states; what it does not is known by where it came about."""
    return tuple(v if isinstance(v, int) else ("at", id(at), axis) for axis, v in enumerate(type_.valid))


def _unknown(call: Call) -> Box:
    assert isinstance(call.type, TileType)
    return tuple(("held", id(call), axis) for axis in range(len(call.type.shape)))


def _shape(value: Argument) -> tuple[int, ...]:
    assert isinstance(value, Expr) and isinstance(value.type, TileType)
    return value.type.shape


def _packed(columns: Extent) -> Extent:
    """Return how many bytes hold a bit for each column."""
    return (columns + 7) // 8 if isinstance(columns, int) else ("packed", columns)


def _covers(have: Extent, want: Extent, most: int) -> bool:
    """Return whether an extent is surely as large as another, which is never more than `most`."""
    return have == want or (isinstance(have, int) and (have >= most or (isinstance(want, int) and have >= want)))


def _least(a: Extent, b: Extent) -> Extent:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ("least", a, b)


def _loaded(call: Call, bound: Mapping[str, Argument], type_: TileType) -> Box:
    """Return how much a load finds: as much as any other at the same place of tensors of one extent."""
    tensor, offsets = bound["tensor"], bound["offsets"]
    asked = bound["valid_shape"]
    assert isinstance(tensor, Expr) and isinstance(tensor.type, TensorType) and isinstance(offsets, MakeTuple)
    found: list[Extent] = []
    for axis, (known, start) in enumerate(zip(type_.valid, offsets.elements, strict=True)):
        there = tensor.type.valid[axis]
        extent = ("of", tensor, axis) if there is None else there
        want = asked.elements[axis] if isinstance(asked, MakeTuple) else type_.shape[axis]
        found.append(known if isinstance(known, int) else ("load", start, want, extent))
    return tuple(found)


def _turned(source: Facts, axis1: object, axis2: object) -> Facts:
    def swapped(box: Box) -> Box:
        turned = list(box)
        assert isinstance(axis1, int) and isinstance(axis2, int)
        turned[axis1], turned[axis2] = turned[axis2], turned[axis1]
        return tuple(turned)

    holds = None if source.holds is None else swapped(source.holds)
    return Facts(swapped(source.valid), holds, source.is_sure, source.origin)


def _resized(call: Call, bound: Mapping[str, Argument], source: Facts, type_: TileType) -> Facts:
    asked = [v for name in ("valid_rows", "valid_cols") if isinstance(v := bound[name], Expr)]
    last = [extent if isinstance(extent := as_extent(v), int) else ("asked", v) for v in asked]
    valid = (*source.valid[:-2], *last)
    fits = zip(source.box, valid, type_.shape, strict=True)
    is_sure = all(_covers(have, want, most) for have, want, most in fits)
    holds = None if valid == source.box else source.box
    return Facts(valid, holds, is_sure, call.span if source.is_sure else source.origin)


def _merged(var: Var, old: Facts, new: Facts) -> Facts:
    """Return what holds for a tile that is one or another."""
    valid = _either(var, "valid", old.valid, new.valid)
    if old.is_sure and new.is_sure:
        return Facts(valid)
    origin = new.origin if old.is_sure else old.origin
    return Facts(valid, _either(var, "held", old.box, new.box), False, origin)


def _either(var: Var, what: str, old: Box, new: Box) -> Box:
    pairs = enumerate(zip(old, new, strict=True))
    return tuple(a if a == b else (what, id(var), axis) for axis, (a, b) in pairs)
