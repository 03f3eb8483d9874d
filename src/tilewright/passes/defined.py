"""Defined tiles: which tiles surely hold data in all of their valid part, and which may not.

Elements that nobody wrote are undefined, and so is what is computed from them. A tile that is loaded, folded or
multiplied holds data wherever it is valid. One that is computed from tiles of different valid parts, widened or merely
created may not: it holds data in a box at its origin.

What is not sure here is checked by the running program. What is surely wrong is an error of this pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Expr, Var
from tilewright.core.op import Undefined
from tilewright.core.operands import Argument
from tilewright.core.program import Function, Program
from tilewright.core.region import PADDING, undefined_message
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, evaluated, statements
from tilewright.dtypes import BOOL
from tilewright.errors import UndefinedElementError
from tilewright.passes.boxes import (
    Box,
    Extent,
    Facts,
    covered,
    covers,
    extents_of,
    least,
    loaded,
    merged,
    numbers,
    packed,
    resized,
    shape_of,
    turned,
    unknown,
)
from tilewright.records import record
from tilewright.source import Span


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
        call = evaluated(stmt)
        if isinstance(call, Call) and not defined.facts.keys().isdisjoint(call.args):
            for name in looks_at(call):
                _check_operand(function, defined, call, name)


def _check_operand(function: Function, defined: Defined, call: Call, name: str) -> None:
    bound = arguments(call)
    facts, needed = defined.of(bound[name]), defined.needed(call, name)
    starts_anew = name == "acc" and not isinstance(bound.get("init_cond"), (Absent, type(None)))
    if facts is not None and needed is not None and not starts_anew and _is_surely_outside(facts.box, needed):
        message = undefined_message(call.span if facts.is_sure else facts.origin)
        error = UndefinedElementError(message, spans=[call.span], blame=[name], help=PADDING)
        error.function = function.name
        raise error


def _is_surely_outside(box: Box, needed: Box) -> bool:
    """Return whether some of what is needed is certainly not in a box."""
    pairs = [numbers(have, want) for have, want in zip(box, needed, strict=True)]
    known = [pair for pair in pairs if pair is not None]
    return len(known) == len(pairs) and all(want > 0 for _, want in known) and any(h < w for h, w in known)


def looks_at(call: Call) -> Iterator[str]:
    """Yield the tile operands whose elements an op looks at; it only computes with, or moves, those of others."""
    spec = call.op.spec
    for name, value in arguments(call).items():
        if not isinstance(value, Expr) or not isinstance(value.type, TileType) or name in spec.unread:
            continue
        if spec.undefined is Undefined.REFUSED or name == "mask" or (spec.writes is not None and name != spec.writes):
            yield name


def _packed_bits(mask: Argument) -> int | None:
    """Return how many bits an element of a packed mask has; None for a mask of bools, an element for each."""
    assert isinstance(mask, Expr) and isinstance(mask.type, TileType)
    return None if mask.type.dtype == BOOL else mask.type.dtype.bits


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
        return Facts(extents_of(value.type, value))

    def needed(self, call: Call, name: str) -> Box | None:
        """Return the part of an operand that an op looks at, None where only the running program knows."""
        bound = arguments(call)
        facts, product = self.of(bound[name]), self._folded(call, bound)
        if call.op.spec.name == "read" or facts is None:
            return None
        if name in ("acc", "bias"):
            return product if name == "acc" else (1, product[-1])
        if name == "mask" and (bits := _packed_bits(bound[name])) is not None:
            *rows, columns = self._met(call, bound)
            return (*rows, packed(columns, bits))
        if name == "mask" and call.op.spec.name in ("sel", "sels"):
            return self._met(call, bound)
        if call.op.spec.name == "cmp" or (name == "mask" and call.op.spec.name == "store"):
            shape = shape_of(bound[name])
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
        return covered(facts.box, needed, shape_of(value))

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
        self._keep(var, facts or Facts(extents_of(type_, var)))

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
            both = given if old is None else merged(var, old, given)
            if both != old:
                self.changed = self.changed or old is not None
                self._keep(var, both)

    def _keep(self, var: Var, facts: Facts) -> None:
        if facts.holds is None and isinstance(var.type, TileType) and facts.valid == var.type.shape:
            self.facts.pop(var, None)
        else:
            self.facts[var] = facts

    # ops

    def _computed(self, call: Call, type_: TileType) -> Facts:
        bound, name = arguments(call), call.op.spec.name
        if name == "create":
            return Facts(extents_of(type_, call), (0,) * len(type_.shape), False, call.span)
        if name == "load":
            return Facts(loaded(call, bound, type_))
        if call.op.spec.undefined is Undefined.SPREADS:
            return self._spread(call, bound, type_)
        if call.op.spec.undefined is Undefined.MOVES:
            return self._moved(call, bound, type_)
        return Facts(self._folded(call, bound))

    def _folded(self, call: Call, bound: Mapping[str, Argument]) -> Box:
        """Return the valid part of a reduction or product, by its operands' where they decide it."""
        own = extents_of(call.type, call) if isinstance(call.type, TileType) else ()
        if call.op.spec.family == "reduction" and (facts := self.of(bound["x"])) is not None:
            return tuple(o if isinstance(o, int) else f for o, f in zip(own, facts.valid, strict=True))
        lhs, rhs = self.of(bound.get("lhs")), self.of(bound.get("rhs"))
        if lhs is not None and rhs is not None and len(own) >= 2 and call.op.spec.name not in ("cmp", "sel"):
            acc, ends = self.of(bound.get("acc")), (lhs.valid[-2], rhs.valid[-1])
            most = shape_of(bound["acc"])[-2:] if acc is not None else ends
            held = acc.valid[-2:] if acc is not None else ends
            axes = zip(own[-2:], ends, held, most, strict=True)
            return (*own[:-2], *(o if isinstance(o, int) or h not in (v, m) else v for o, v, h, m in axes))
        if call.op.spec.name == "cmp":
            *rows, columns = self._met(call, bound)
            return (*rows, packed(columns))
        return own

    def _met(self, call: Call, bound: Mapping[str, Argument]) -> Box:
        """Return the valid part of a broadcast: the first operand that spans an axis decides."""
        names = dict.fromkeys((*call.op.spec.data, *bound))
        read = [bound[name] for name in names if name not in ("mask", "tmp", "tmp_tile")]
        shaped = [(v, f) for v in read if (f := self.of(v)) is not None]
        rank = max(len(f.valid) for _, f in shaped)
        met: list[Extent] = []
        for axis in range(-rank, 0):
            spanning = [(shape_of(v)[axis], f.valid[axis]) for v, f in shaped if -axis <= len(f.valid)]
            met.append(next((valid for extent, valid in spanning if extent != 1), spanning[0][1]))
        return tuple(met)

    def _spread(self, call: Call, bound: Mapping[str, Argument], type_: TileType) -> Facts:
        met = self._met(call, bound)
        valid = tuple(o if isinstance(o, int) else m for o, m in zip(extents_of(type_, call), met, strict=True))
        read = [v for name, v in bound.items() if name not in (*call.op.spec.unread, "mask")]
        facts = [(v, f) for v in read if (f := self.of(v)) is not None]
        if call.op.spec.family == "partial" and facts[-1][1].is_sure:
            facts = facts[:-1]  # where the second tile is not valid, the first one's elements stay
        operands = [_as_column(shape_of(v), f) if v is repeated(call) else (shape_of(v), f) for v, f in facts]
        return _within(valid, operands, type_, call.span)

    def _moved(self, call: Call, bound: Mapping[str, Argument], type_: TileType) -> Facts:
        value = next(v for v in bound.values() if self.of(v) is not None)
        source, own = self.of(value), extents_of(type_, call)
        assert source is not None
        origin = call.span if source.is_sure else source.origin
        match call.op.spec.name:
            case "move":
                return source
            case "transpose" | "transpose_view":
                return turned(source, bound.get("axis1", -1), bound.get("axis2", -2))
            case "slice" | "extract":
                return Facts(own) if source.is_sure else Facts(own, unknown(call), False, source.origin)
            case "set_validshape":
                return resized(call, bound, source, type_)
            case "concat":
                return self._concat(call, bound, source, own)
            case "assemble":  # what is written into a tile is looked at: only the tile itself can be unsure
                is_whole = source.is_sure and covered(source.box, own, type_.shape)
                return Facts(own, source.holds) if is_whole else Facts(own, unknown(call), False, origin)
            case _:  # single elements or rows are written into it
                return source if source.is_sure else Facts(source.valid, unknown(call), False, source.origin)

    def _concat(self, call: Call, bound: Mapping[str, Argument], first: Facts, own: Box) -> Facts:
        second, width = self.of(bound["src1"]), shape_of(bound["src0"])[-1]
        assert second is not None
        valid = (*first.valid[:-1], own[-1])
        rows = zip(second.valid[:-1], first.valid[:-1], shape_of(bound["src1"])[:-1], strict=True)
        is_whole = covers(first.valid[-1], width, width) and all(covers(have, want, n) for have, want, n in rows)
        if first.is_sure and second.is_sure and is_whole:
            return Facts(valid)
        origin = next((f.origin for f in (first, second) if not f.is_sure), call.span)
        return Facts(valid, unknown(call), False, origin)


def repeated(call: Call) -> Expr | None:
    """Return the operand of an op whose rows are repeated as if each were one element."""
    vec = arguments(call).get("vec") if call.op.spec.name.startswith("row_expand") else None
    if not isinstance(vec, Expr) or not isinstance(vec.type, TileType):
        return None
    return vec if vec.type.shape[-1] != 1 else None


def _as_column(shape: tuple[int, ...], facts: Facts) -> tuple[tuple[int, ...], Facts]:
    """Return rows that are repeated as elements of a column: each is defined where all of its row is."""
    there = 1 if covers(facts.box[-1], facts.valid[-1], shape[-1]) else 0
    box = None if facts.holds is None else (*facts.box[:-1], there)
    return (*shape[:-1], 1), Facts((*facts.valid[:-1], 1), box, facts.is_sure, facts.origin)


def _within(valid: Box, operands: Sequence[tuple[tuple[int, ...], Facts]], type_: TileType, span: Span) -> Facts:
    """Return the facts of a result that holds data where all of its operands do."""
    box = list(valid)
    for shape, facts in operands:
        for axis in range(-len(shape), 0):
            if shape[axis] == 1 and type_.shape[axis] != 1:
                box[axis] = box[axis] if facts.box[axis] == 1 else least(box[axis], facts.box[axis])
            elif not covers(facts.box[axis], box[axis], shape[axis]):
                box[axis] = least(box[axis], facts.box[axis])
    if tuple(box) == valid:
        return Facts(valid)
    origin = next((f.origin for _, f in operands if not f.is_sure), span)
    return Facts(valid, tuple(box), False, origin)
