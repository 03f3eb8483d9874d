"""The walk over a function that decides on fusion: what each statement does to what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, TupleGetItem, Var
from tilewright.core.op import Effect, Kind, OpSpec
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import bodies, statements, used, variables
from tilewright.passes.fusion import Extent, Recorder, Waiting

if TYPE_CHECKING:
    from tilewright.passes.store_targets import Target

Given: TypeAlias = "Mapping[str, Argument]"
Value: TypeAlias = "Waiting | tuple[Value, ...] | None"
Rule: TypeAlias = "Callable[[Walk, Call, Given], Waiting | None]"

_NEW = frozenset(("dim", "create", "full"))
"""Ops on tensors that are no views and read and write no elements, unless they fill what they make."""

_NEAR = 8
"""How many statements may stand between a load and the product that reads it in place."""


class Walk:
    """One walk over a function's statements."""

    def __init__(
        self, function: Function, roots: Mapping[Var, Var], turned: set[Var], rule_of: Callable[[OpSpec], Rule]
    ) -> None:
        self.rule_of = rule_of
        """What waits for a tile op and what it needs."""
        self.recorder = Recorder(function, roots)
        self.here = function.body
        """The statements among which the current one stands."""
        self.place = 0
        """How many of them come before it."""
        self.values: dict[Var, Value] = {}
        self.on_their_side: frozenset[Var] = frozenset()
        """The tiles that lie on their side."""
        self.turned = turned
        """The tensors whose neighbours along the last axis may lie apart."""
        every = list(statements(function.body))
        self.made = {s.var: s.value for s in every if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
        self.copied = {number for number, count in Counter(map(id, every)).items() if count > 1}
        """Statements that stand in several places, where other things may wait for them."""
        self.readers: dict[Var, list[Stmt]] = {}
        self.reads = self.recorder.plan.reads
        for stmt in every:
            self.reads[id(stmt)] = variables(used(stmt))
            for var in self.reads[id(stmt)]:
                self.readers.setdefault(var, []).append(stmt)
        self.uses = {var: len(stmts) for var, stmts in self.readers.items()}
        self.recorder.plan.uses = self.uses.copy()

    def is_copied(self, stmt: Stmt | None) -> bool:
        """Return whether a statement stands in several places."""
        return id(stmt) in self.copied

    def is_multiplied(self, stmt: Stmt) -> bool:
        """Return whether a product alone reads what a statement loads, as its rows, before anything can be written."""
        if not isinstance(stmt, AssignStmt) or self.is_copied(stmt) or self.uses.get(stmt.var) != 1:
            return False
        (reader,) = self.readers[stmt.var]
        for each in self.here.stmts[self.place + 1 : self.place + 1 + _NEAR]:
            if not isinstance(each, AssignStmt) or not isinstance(each.value, Call):
                return False
            if each is reader:
                return "matmul" in each.value.op.name and arguments(each.value)["lhs"] is stmt.var
            if each.value.op.spec.effect not in (Effect.PURE, Effect.READ):
                return False
        return False

    def body(self, body: SeqStmts) -> None:
        """Walk over statements, at whose end nothing waits."""
        for place, stmt in enumerate(body):
            self.recorder.stmt, self.here, self.place, is_copy = stmt, body, place, self.is_copied(stmt)
            if is_copy:
                self.recorder.end("the next statement stands in several places")
            self._stmt(stmt)
            if is_copy:
                self.recorder.end("the statement stands in several places")
            for var in self.reads[id(stmt)]:
                self.uses[var] -= 1
        self.recorder.stmt = None
        self.recorder.end("nothing follows")

    def _stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, AssignStmt):
            self.values[stmt.var] = value = self._action(stmt.value, stmt.var)
            if isinstance(value, Waiting):
                value.turned = True if stmt.var in self.on_their_side else value.turned
                value.owners.append(stmt.var)
        elif isinstance(stmt, EvalStmt):
            self._action(stmt.expr, None)
        else:
            self.recorder.end("control flow follows")
            for inner in bodies(stmt):
                self.body(inner)

    def _action(self, expr: Expr, var: Var | None) -> Value:
        if isinstance(expr, (Invoke, Submit)):
            self.recorder.end(f"`{expr.op.name}` is called")
        if not isinstance(expr, Call):
            return self._value(expr)
        self.recorder.meet(expr.op)
        if self.recorder.stmt is not None and self.recorder.plan.at(self.recorder.stmt).is_done:
            return None
        if expr.op.kind is Kind.TENSOR:
            self._tensor_op(expr, var)
        if expr.op.kind not in (Kind.TILE, Kind.SYSTEM):
            return None
        return self.rule_of(expr.op.spec)(self, expr, arguments(expr))

    def _value(self, expr: Expr) -> Value:
        if isinstance(expr, MakeTuple):
            return tuple(self._value(element) for element in expr.elements)
        if isinstance(expr, TupleGetItem):
            held = self._value(expr.value)
            return held[expr.index] if isinstance(held, tuple) else self.in_memory(expr)
        if isinstance(expr, Var) and expr not in self.values:
            self.values[expr] = self.in_memory(expr)
        return self.values[expr] if isinstance(expr, Var) else self.in_memory(expr)

    def in_memory(self, expr: Expr, unknown: Sequence[Extent] = ()) -> Waiting | None:
        """Return a tile that waits for nothing; how far it is valid is said here where its type does not know."""
        if not isinstance(expr.type, TileType):
            return None
        maker = id(self.recorder.stmt if isinstance(expr, Call) else expr)
        new = [(maker, axis) for axis in range(len(expr.type.valid))]
        turned = None if 1 in expr.type.shape[-2:] or len(expr.type.shape) == 1 else False
        return Waiting(expr.type.shape, known(expr.type, unknown or new), turned=turned)

    def tiles(self, given: Given, *names: str) -> list[Waiting]:
        """Return the operands that are tiles."""
        exprs = [given.get(name) for name in names or given]
        values = [self._value(expr) for expr in exprs if isinstance(expr, Expr)]
        return [value for value in values if isinstance(value, Waiting)]

    def _tensor_op(self, call: Call, var: Var | None) -> None:
        name, given = call.op.spec.name, arguments(call)
        source, fills = self.tiles(given, "source"), any(is_there(given.get(n)) for n in ("value", "init_value"))
        if name == "assemble" and source:
            self.write(source[0], given["target"], given["offset"])
        elif name == "read" and isinstance(given["x"], Var):
            self.recorder.after_stores(given["x"])
        elif fills or not (call.op.spec.is_view or name in _NEW):
            self.recorder.end(f"`{name}` works on whole tensors")
        if name == "paged_gather" and not given["is_trans"] and _fills(given["indices"], given["max_indices"]):
            self.straighten((given["max_indices"],))
        if name in ("gather", "scatter") and is_there(given["mask_pattern"]) and isinstance(call.type, TensorType):
            self.straighten(call.type.shape[:1])
        if name == "gather_row" and isinstance(given["dst"], Var) and isinstance(given["shapes"], MakeTuple):
            self.recorder.note_rows((number(given["shapes"].elements[0]),), given["dst"])
        if var is not None and self._turns(call.op.spec, given):
            self.turned.add(var)
        if name == "slice" and var is not None:
            self._slice(var, given)

    def _slice(self, var: Var, given: Given) -> None:
        """Remember where a slice begins, if that is where it was asked for and its axes are those of its source."""
        source, offset = given["x"], given["offset"]
        changes = any(is_there(given[name]) for name in ("drop_dims", "pad_value")) or given["clamp"]
        if isinstance(source, Var) and isinstance(offset, MakeTuple) and not changes:
            self.recorder.corners[var] = self.recorder.corner(source, [number(start) for start in offset.elements])

    def _turns(self, spec: OpSpec, given: Given) -> bool:
        """Return whether neighbours along the last axis of a tensor that an op gives may lie apart."""
        strides = given.get("strides")
        if isinstance(strides, MakeTuple):
            return number(strides.elements[-1]) != 1
        turns = spec.turns and ("layout" not in given or is_there(given["layout"]))
        return turns or _drops_last(given) or given.get(spec.alias or "") in self.turned

    def straighten(self, rows: tuple[Extent, ...], loads: Sequence[Call] = (), read: Sequence[Var] = ()) -> None:
        """Let rows gathered for a store alone, some from loads read in place, be written there, not to any `read`."""
        if (found := self.store_of(loads, read)) is not None:
            self.recorder.straighten(*found, rows)

    def store_of(self, loads: Sequence[Call] = (), read: Sequence[Var] = ()) -> tuple[Stmt, Target] | None:
        """Return the store, and its target, that rows gathered here may be written for; None where they may not."""
        from tilewright.passes.store_targets import straight  # few programs gather

        gather, found = self.recorder.stmt, None
        if isinstance(gather, AssignStmt) and not self.is_copied(gather) and self.uses.get(gather.var) == 1:
            found = straight(gather, self.here, self.recorder.may_meet, self.turned, loads, read)
        return None if found is None or self.is_copied(found[0]) else found

    def write(self, tile: Waiting, tensor: Argument, offsets: Argument) -> None:
        """Let a tile be stored to a tensor."""
        if tile.is_column and tile.valid[-1] != 1:
            self.recorder.need(tile)
            rest = slice(len(tile.shape) > 1, None)
            tile = Waiting((1, *tile.shape[rest]), (id(self.recorder.stmt), *tile.valid[rest]))
        assert isinstance(offsets, MakeTuple)
        sizes = [*[1] * len(offsets.elements), *tile.valid][-len(offsets.elements) :]
        window = list(zip(map(number, offsets.elements), sizes, strict=True))
        if isinstance(tensor, Var):
            self.recorder.store(tile, tensor, window)

    def map(
        self, shape: tuple[int, ...], valid: Sequence[Extent], operands: Sequence[Waiting], *, alone: bool = True
    ) -> Waiting:
        """Let a function of the same element of each operand wait; one of several in a statement never floats."""
        r, tile = self.recorder, Waiting(shape, tuple(valid), depth=1)
        wide = [o for o in operands if r.waits(o) and not o.is_column and o.valid[-1] != o.shape[-1]]
        if any(o.valid[-1] != tile.valid[-1] for o in wide):
            r.end("columns of another extent are read")
        return r.record(tile, operands, may_float=alone and not self.is_copied(r.stmt))

    def needing(self, call: Call, given: Given) -> Waiting | None:
        """Let an op read its operands from memory, and leave its result there."""
        self.recorder.need(*self.tiles(given))
        if call.op.spec.family == "update" or any(isinstance(arg.type, TensorType) for arg in call.args):
            self.recorder.end(f"`{call.op.spec.name}` works on what is in memory")
        return self.in_memory(call)

    def withdraw(self, tile: Waiting) -> bool:
        """Take a load out of its group if nobody else reads it; return whether that is so."""
        is_sole = not self.is_copied(tile.loaded) and sum(self.uses.get(var, 0) for var in set(tile.owners)) == 1
        if is_sole:
            self.recorder.withdraw(tile)
        return is_sole


def _drops_last(given: Given) -> bool:
    """Return whether the last axis of a tensor may be among those that are left out."""
    dropped, sizes = given.get("drop_dims"), given.get("shape")
    if not is_there(dropped):
        return False
    if not isinstance(dropped, tuple) or not isinstance(sizes, MakeTuple):
        return True
    return any(axis in (-1, len(sizes.elements) - 1) for axis in dropped)


def _fills(indices: Argument, most: Argument) -> bool:
    """Return whether there are as many indices as there may be at most."""
    return isinstance(indices, Expr) and isinstance(indices.type, TensorType) and indices.type.shape[-1] == most


def known(type_: TileType, unknown: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return valid extents, as numbers where the type knows them."""
    return tuple(k if isinstance(k, int) else v for k, v in zip(type_.valid, unknown, strict=True))


def along_rows(shape: Sequence[int]) -> bool | None:
    """Return False for a tile whose neighbours in memory are elements of a row, None for one row or column."""
    return None if 1 in shape[-2:] or len(shape) == 1 else False


def strays(w: Walk, type_: TileType, starts: MakeTuple) -> bool:
    """Return whether a single row lies where a number says that was read: no other follows it."""
    pending = list(variables(starts.elements)) if all(extent == 1 for extent in type_.shape[:-1]) else []
    for var in pending:
        made = w.made.get(var)
        if made is not None and made.op.spec.name == "read":
            return True
        pending += [each for each in variables(made.args if made is not None else ()) if each not in pending]
    return False


def is_there(given: Argument) -> bool:
    """Return whether an argument was given."""
    return given is not None and not isinstance(given, Absent)


def number(expr: Expr) -> Extent:
    """Return a scalar as an extent, as a number where it is one."""
    return int(expr.value) if isinstance(expr, Const) else expr
