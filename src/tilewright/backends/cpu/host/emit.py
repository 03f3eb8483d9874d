"""Emission: one function of the IR as one function of LLVM.

Tile ops that work row by row are only recorded, and emitted together when something needs their results (`groups`).
Everything else first has what it reads brought into memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tilewright.backends.cpu.compute.groups import GroupEmitter
from tilewright.backends.cpu.compute.nodes import Group, LoadNode, MapNode, depth_of, level_of, operands_of
from tilewright.backends.cpu.compute.traced import Lanes, literal
from tilewright.backends.cpu.compute.undefined import follow, lacks
from tilewright.backends.cpu.host.arena import Arena
from tilewright.backends.cpu.host.polls import Polls, is_over
from tilewright.backends.cpu.host.values import Array, Binding, Place, Scalar, Tensor, Tile, contiguous, static
from tilewright.backends.cpu.host.work import ELEMENTS, LONG, PIECE
from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.region import PADDING, undefined_message
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TileType
from tilewright.core.visitor import used, variables
from tilewright.dtypes import INDEX
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.forks import computed_once
from tilewright.native.context import Context
from tilewright.native.llvm import I1, I64, PTR, TRUE, Builder, Value, i64
from tilewright.passes.accumulators import accumulators
from tilewright.passes.defined import Defined, looks_at
from tilewright.passes.last_use import LastUse, reads
from tilewright.source import Span

Lowering = Callable[["FunctionEmitter", Call, dict[str, Any]], Any]
LOWERINGS: dict[str, Lowering] = {}
STATEMENTS: dict[type, Callable[[FunctionEmitter, Any], None]] = {}
SCALARS: dict[str, Callable[..., Scalar]] = {}
"""The code for scalar ops, by name."""

DEEPEST = 64
"""How many functions may be applied to each other before what they compute is kept: emitting them goes as deep."""


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Sign in the code for ops, by full name."""

    def sign(function: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = function
        return function

    return sign


def emits(*kinds: type) -> Callable[[Any], Any]:
    """Sign in the code for statements."""

    def sign(function: Any) -> Any:
        for kind in kinds:
            STATEMENTS[kind] = function
        return function

    return sign


class Spanned(Protocol):
    """Something with a place in the source."""

    @property
    def span(self) -> Span:
        """Where it was written."""
        ...


Part = tuple[int, int]
"""Offset and size of a part of the arena."""


@dataclass
class Block:
    """Statements being emitted in order: the values they own, with the parts of the arena that hold them."""

    owned: list[tuple[Tile | Array, Part]] = field(default_factory=list[tuple["Tile | Array", Part]])
    known: dict[tuple[Value, ...], Value] = field(default_factory=dict[tuple[Value, ...], Value])
    """Valid extents that have been checked and cut: tiles of the same ones are known to be alike."""


class FunctionEmitter:
    """A function being emitted: where its variables are, and what has been recorded but not emitted yet."""

    def __init__(self, program: Any, function: Function, b: Builder) -> None:
        self.program = program
        self.function = function
        self.b = b
        self.context = Value(PTR, "%context")
        self.arena_base = Value(PTR, "%arena")
        self.block_index = Value(I64, "%block_index")
        self.block_count = Value(I64, "%block_count")
        self.bindings: dict[Var, Binding] = {}
        self.bound: dict[Var, Value] = {}
        """For variables that a loop without turns leaves unset: whether they hold a value."""
        self.roots: Mapping[Var, Var] = {}
        """For each tensor, the one that stands for all that may share memory with it."""
        self.has_turned_views: bool = program.turns(function)
        """Whether the last axis of a tensor may not be the one whose elements are adjacent."""
        self.regions: list[Any] = []
        """The loops and branches around what is being emitted, outermost first."""
        self.rooms: list[Value] = []
        """Where the results go that the function makes, and whether their last stride may be other than one."""
        self.turned_results: list[bool] = []
        self.exit = ""
        """The block a return goes to."""
        self.symbols: dict[str, Value] = {}
        self.at: Spanned = function
        """What is being emitted."""
        self.arena = Arena()
        self.is_task = False
        self.is_concurrent = False
        """Whether other threads may be adding to the same memory: in a task, and in what a task calls."""
        self.callee_arena = 0
        self.group: Group | None = None
        self.floating: list[Tile] = []
        """Tiles of one row that are recorded in no group: every group may read them."""
        self.deepest = 0
        """How many functions are applied to each other, at most, in what is recorded."""
        self.blocks: list[Block] = [Block()]
        self.defined = Defined(function)
        self.followed = self.defined.followed if self.checked else set[Var]()
        """The tiles of which it is followed where they hold data."""
        self.accumulators = accumulators(function) if self.checked else {}
        self.uses = reads(function.body)
        self.last_use = LastUse(function.body)

    @property
    def lanes(self) -> int:
        """How many fp32 elements a vector has."""
        return self.program.target.vector_bits // 32

    def body(self, body: SeqStmts) -> None:
        """Emit statements in a block of their own, leaving nothing recorded."""
        self.blocks.append(Block())
        for stmt in body:
            self.stmt(stmt)
        self.flush()
        for _, part in self.blocks.pop().owned:
            self.arena.give_back(part)

    def stmt(self, stmt: Stmt) -> None:
        """Emit or record one statement."""
        self.at = stmt
        if self.deepest > DEEPEST:
            self.flush()
        if isinstance(stmt, AssignStmt):
            self.bind(stmt.var, self._followed(stmt.var, stmt.value))
        elif isinstance(stmt, EvalStmt):
            self.action(stmt.expr)
        else:
            self.flush()
            STATEMENTS[type(stmt)](self, stmt)
        for var in variables(used(stmt)):
            self.uses[var] -= 1

    def _followed(self, var: Var, value: Expr) -> Any:
        """Emit what a variable stands for; a tile of which that is not sure gets the box in which it holds data."""
        result = self.action(value)
        if isinstance(result, Tile) and isinstance(value, Call):
            if var in self.followed:
                bound = {name: self.value(v) if isinstance(v, Expr) else v for name, v in arguments(value).items()}
                follow(self.b, self.index, value, bound, result)
            if self.accumulators and value.op.spec.name in ("full", "create"):
                result.is_made = TRUE
        return result

    def bind(self, var: Var, binding: Any) -> None:
        """Let a variable stand for what was emitted."""
        if isinstance(binding, (Tile, Array)):
            binding.owners.append(var)
        elif isinstance(binding, Tensor):
            binding = replace(binding, root=self.roots.get(var, var))
        self.bindings[var] = binding

    def action(self, expr: Expr) -> Any:
        """Emit an expression that stands on its own."""
        if isinstance(expr, Call) and expr.op.kind is not Kind.SCALAR:
            return self._op(expr)
        if isinstance(expr, (Invoke, Submit)):
            self.flush()
            return self.program.call(self, expr)
        return self.value(expr)

    def _op(self, call: Call) -> Any:
        spec, self.at = call.op.spec, call
        bound = {name: self.value(v) if isinstance(v, Expr) else v for name, v in arguments(call).items()}
        if self.followed:
            self._look(call, bound)
        lowering = LOWERINGS.get(call.op.name) or LOWERINGS.get(f"{call.op.kind.value}:{spec.family}")
        if lowering is None:
            raise UnsupportedFeatureError(f"`{call.op.name}` has no native code yet", spans=[call.span])
        return lowering(self, call, bound)

    def _look(self, call: Call, bound: dict[str, Any]) -> None:
        """Check that what an op looks at holds data; what it looks at in a special way it checks itself."""
        for name in looks_at(call):
            if name not in ("acc", "bias", "mask") and call.op.spec.name not in ("cmp", "read"):
                self.look(call, name, bound[name], bound[name].valid)

    def look(self, call: Call, name: str, tile: Tile, needed: Sequence[Value], unless: Value | None = None) -> None:
        """Emit the end of the function where a part of an operand that is looked at was written by nobody."""
        if not self.checked or self.defined.is_sure(call, name):
            return
        missing, facts = lacks(self.b, tile, needed), self.defined.of(arguments(call)[name])
        if missing is not None and facts is not None:
            missing = missing if unless is None else self.b.op("and", missing, self.negated(unless))
            origin = call.span if facts.is_sure else facts.origin
            self.stop(missing, f"{undefined_message(origin)}\n{PADDING}", call)

    def value(self, expr: Expr) -> Any:
        """Return what an expression stands for; tuples give tuples."""
        match expr:
            case Var():
                return self._variable(expr)
            case MakeTuple():
                return tuple(self.value(e) for e in expr.elements)
            case TupleGetItem():
                return self.value(expr.value)[expr.index]
            case Absent():
                return None
            case Const():
                return Scalar(literal(expr.dtype, expr.value, 1), expr.dtype)
            case Symbol():
                return Scalar(self.symbols[expr.name], INDEX)
            case Call():
                return self._scalar_call(expr)
            case _:
                raise InternalError(f"no code for {type(expr).__name__}")

    def _variable(self, var: Var) -> Binding:
        is_bound = self.bound.get(var)
        if is_bound is not None:
            message = f"'{var.name_hint}' has no value here: the loop that binds it did not run"
            self.fail(self.negated(is_bound), message, var)
        binding = self.bindings[var]
        return replace(binding, reach=var.bounds) if isinstance(binding, Scalar) and var.bounds else binding

    def _scalar_call(self, call: Call) -> Scalar:
        assert isinstance(call.type, ScalarType)
        operands = [self.value(a) for a in call.args]
        result: Scalar = SCALARS[call.op.spec.name](self, call, call.type.dtype, *operands)
        reach = bounds(call)
        return replace(result, reach=reach) if reach else result

    def index(self, scalar: Scalar) -> Value:
        """Return an integer scalar as a 64-bit number."""
        if scalar.value.type == I64:
            return scalar.value
        known = scalar.value.ref
        if known.lstrip("-").isdigit():
            return i64(int(known))
        return self.b.convert("zext" if scalar.dtype.is_unsigned_int() else "sext", scalar.value, I64)

    def indices(self, scalars: Sequence[Scalar]) -> tuple[Value, ...]:
        """Return integer scalars as 64-bit numbers."""
        return tuple(self.index(s) for s in scalars)

    # recorded tiles

    @property
    def recorded(self) -> list[Tile]:
        """What has been recorded and not emitted yet."""
        return [*self.floating, *(self.group.tiles if self.group is not None else ())]

    def record(self, tile: Tile) -> Tile:
        """Add a tile to the group of its rows, starting another group where the rows differ; one row may float."""
        if self._floats(tile):
            self.floating.append(tile)
            return tile
        if self.group is not None and self.group.rows != tile.rows:
            self.flush()
        if self.group is None:
            self.group = Group(tile.rows)
        self.group.tiles.append(tile)
        return tile

    def map(
        self,
        type_: TileType,
        valid: tuple[Value, ...],
        function: Callable[..., Lanes],
        operands: Sequence[Tile | Scalar],
        dear: bool,
    ) -> Tile:
        """Record a function of the same element of each operand."""
        node = MapNode(0, function=function, operands=tuple(operands), dear=dear)
        node.depth = 1 + max(map(depth_of, operands), default=0)
        self.deepest = max(self.deepest, node.depth)
        tile = Tile(type_, valid, node=node)
        if self._floats(tile):
            return self.record(tile)
        waiting = [o for o in operands if isinstance(o, Tile) and o.node is not None and o not in self.floating]
        if any(o.rows != tile.rows for o in waiting) or (self.group is not None and self.group.rows != tile.rows):
            self.flush()
        node.level = max([level_of(o) for o in operands] or [0])
        return self.record(tile)

    def _floats(self, tile: Tile) -> bool:
        """Return whether a tile joins no group: one row that is loaded, or made of such rows beside another group."""
        if tile.is_column or not tile.rows or any(static(extent) != 1 for extent in tile.rows):
            return False
        if isinstance(tile.node, LoadNode):
            return tile.node.tensor.strides[-1] == i64(1)
        beside = self.group is not None and self.group.rows != tile.rows
        return beside and all(o.node is None or o in self.floating for o in operands_of(tile))

    def flush(self) -> None:
        """Emit what has been recorded; results that are read later get a place in the arena."""
        group, self.group = self.group, None
        floating, self.floating = self.floating, []
        self.deepest = 0
        read = {operand for tile in group.tiles for operand in operands_of(tile)} if group is not None else set[Tile]()
        for apart in _grouped(tile for tile in floating if group is None or tile.rows != group.rows):
            self._emit(apart, read)
        if group is not None:
            group.tiles[:0] = floating
            self._emit(group)
        self._release()

    def _emit(self, group: Group, read: Collection[Tile] = ()) -> None:
        """Emit a group; what another group reads of it is stored too, but for what is in memory anyway."""
        computed = [t for t in group.tiles if isinstance(t.node, MapNode) and t in read]
        wanted = [t for t in group.tiles if t.place is None and (t in computed or self._is_read_later(t))]
        if not wanted and not group.stores:
            return
        places = {t: self.take(t) for t in wanted}
        rows: list[tuple[int, int]] = []

        def row_place(tile: Tile) -> Place:
            part = self.arena.take(tile.type.shape[-1] * tile.type.dtype.get_byte())
            rows.append(part)
            strides = (*(0 for _ in tile.type.shape[:-1]), 1)
            return Place(self.address(part[0]), strides)

        GroupEmitter(self.b, self.lanes, group, places, row_place, self._after_row(group)).emit()
        for part in rows:
            self.arena.give_back(part)

    def _after_row(self, group: Group) -> Callable[[], None]:
        """Return what emits the count of a row's work, where all the rows are much."""
        row = 1 + sum(tile.type.shape[-1] for tile in group.tiles) // ELEMENTS
        rows = max((math.prod(tile.type.shape[:-1]) for tile in group.tiles), default=0)
        return lambda: self.worked(min(row, PIECE)) if row * rows >= LONG else None

    def withdraw(self, tile: Tile) -> bool:
        """Take back what was recorded but not emitted yet; return whether it was."""
        if tile in self.floating:
            self.floating.remove(tile)
            return True
        if self.group is None or tile not in self.group.tiles:
            return False
        self.group.tiles.remove(tile)
        if not self.group.tiles and not self.group.stores:
            self.group = None
        return True

    def _is_read_later(self, tile: Tile | Array) -> bool:
        return any(self.uses.get(var, 0) > 0 for var in tile.owners)

    def _release(self) -> None:
        """Give back what the current block's tiles no longer need."""
        block = self.blocks[-1]
        for entry in list(block.owned):
            if not self._is_read_later(entry[0]):
                block.owned.remove(entry)
                self.arena.give_back(entry[1])

    def take(self, tile: Tile) -> Place:
        """Return a packed place for a tile, which the current block owns."""
        place, part = self.reserve(tile.type)
        self.own(tile, part)
        return place

    def reserve(self, type_: TileType) -> tuple[Place, Part]:
        """Return a packed place that nobody owns yet."""
        part = self.arena.take(room_of(type_))
        return Place(self.address(part[0]), contiguous(type_.shape)), part

    def own(self, value: Tile | Array, part: Part) -> None:
        """Let the current block give a part back once its value is no longer read."""
        self.blocks[-1].owned.append((value, part))

    def address(self, offset: int) -> Value:
        """Return an address in the arena."""
        return self.b.offset(self.arena_base, i64(offset), "i8")

    def stored(self, tile: Tile) -> Place:
        """Return where a tile lies, after emitting what computes it."""
        if tile.place is None:
            self.flush()
        if tile.place is None:
            raise InternalError("a tile that is read has no place")
        return tile.place

    def fresh(self, type_: TileType, valid: tuple[Value, ...]) -> Tile:
        """Return a tile with a place of its own and nothing in it."""
        tile = Tile(type_, valid)
        tile.place = self.take(tile)
        return tile

    def once(self, key: tuple[Value, ...], make: Callable[[], Value]) -> Value:
        """Return what was made for a key in this block or around it, made here where there is nothing yet."""
        for block in reversed(self.blocks):
            if key in block.known:
                return block.known[key]
        self.blocks[-1].known[key] = value = make()
        return value

    def negated(self, condition: Value) -> Value:
        """Return the opposite of a condition."""
        return self.b.op("xor", condition, Value(I1, "true"))

    @property
    def checked(self) -> bool:
        """Whether the running program checks itself; where it does not, what would fail has no meaning."""
        return self.program.options.checked

    def fail(self, condition: Value, message: str, at: Spanned) -> None:
        """Note an error where a condition holds; the first one noted is reported when the program ends."""
        if not self.checked:
            return
        number = self.program.note(message, at.span)
        with self.b.when(condition):
            cell = self.b.offset(self.context, i64(Context.ERROR), I64)
            self.b.do(f"cmpxchg {cell}, i64 0, i64 {number} monotonic monotonic")

    def stop(self, condition: Value, message: str, at: Spanned) -> None:
        """Note an error where a condition holds, and leave the function: what follows must not happen."""
        with self.b.when(condition):
            self.fail(TRUE, message, at)
            self.b.do(f"br label %{self.exit}")
            self.b.begin(self.b.label("unreached"))

    @property
    def has_failed(self) -> Value:
        """Whether an error has been noted."""
        return is_over(self.b, self.context)

    def worked(self, units: int) -> None:
        """Count work; now and then that leaves a program that failed or was interrupted."""
        if self.program.options.polled:
            self._polls.count(units)

    @computed_once
    def _polls(self) -> Polls:
        return Polls(self.b, self.context, self.exit)


def _grouped(tiles: Iterable[Tile]) -> list[Group]:
    """Return tiles in groups of the same rows."""
    groups: dict[tuple[Value, ...], Group] = {}
    for tile in tiles:
        groups.setdefault(tile.rows, Group(tile.rows)).tiles.append(tile)
    return list(groups.values())


def room_of(type_: TileType) -> int:
    """Return how many bytes a tile takes in memory, where every element is at least one."""
    return type_.nbytes * max(1, 8 // type_.dtype.bits)
