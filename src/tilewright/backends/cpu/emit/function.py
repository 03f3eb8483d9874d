"""Emission: one function of the IR as one function of LLVM.

Tile ops that work row by row are only recorded, and emitted together when something needs their results. Everything
else first has what it reads brought into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilewright.backends.cpu.emit.groups import Group
from tilewright.backends.cpu.emit.handlers import Bound, Handlers
from tilewright.backends.cpu.emit.llvm_types import literal
from tilewright.backends.cpu.emit.memory import Block
from tilewright.backends.cpu.emit.recording import Recording
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import Array, Binding, Scalar, Tensor, Tile
from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.region import PADDING, undefined_message
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX
from tilewright.errors import InternalError
from tilewright.native.llvm import I64, TRUE, Builder, Value, i64
from tilewright.passes.accumulators import accumulators
from tilewright.passes.defined import Defined, looks_at
from tilewright.passes.fusion import Fusion
from tilewright.passes.last_use import LastUse
from tilewright.passes.outline import author_of
from tilewright.passes.product_sums import summed_later


class Region:
    """A loop or branch around what is being emitted."""

    def lend(self, e: FunctionEmitter, value: Binding) -> None:
        """Let a tile that waits be computed where what it is made of is carried, if it may."""


class FunctionEmitter(Recording):
    """A function being emitted: where its variables are, and what has been recorded but not emitted yet."""

    def __init__(self, program: Unit, function: Function, b: Builder, *, has_turned_views: bool) -> None:
        super().__init__(program, b, function)
        self.function = function
        self.name = author_of(function.name, program.program.function_names)
        self.handlers: Handlers[FunctionEmitter] = program.handlers or HANDLERS
        self.block_index = Value(I64, "%block_index")
        self.block_count = Value(I64, "%block_count")
        self.bindings: dict[Var, Binding] = {}
        self.bound: dict[Var, Value] = {}
        """For variables that a loop without turns leaves unset: whether they hold a value."""
        self.symbols: dict[str, Value] = {}
        self.roots: Mapping[Var, Var] = {}
        """For each tensor, the one that stands for all that may share memory with it."""
        self.fusion = Fusion(function)
        """Which ops are emitted together."""
        self.has_turned_views = has_turned_views
        """Whether the last axis of a tensor may not be the one whose elements are adjacent."""
        self.regions: list[Region] = []
        """The loops and branches around what is being emitted, outermost first."""
        self.rooms: list[Value] = []
        """Where the results go that the function makes, and whether their last stride may be other than one."""
        self.turned_results: list[bool] = []
        self.beside: dict[int, Binding] = {}
        """What calls give that ran where the first of their group stands, by identity."""
        self.is_task = False
        self.in_rounds = False
        """Whether the blocks of a launch wait for each other in it."""
        self.is_concurrent = False
        """Whether others may be adding to the same memory: threads, in a task and what it calls, or ranks."""
        self.in_shares = False
        """Whether each block makes all turns, and of each what falls to its own rows of what it changes."""
        self.in_rows = False
        """Whether each block makes all turns, and of each the rows of its tiles that fall to it."""
        self.defined = Defined(function)
        self.followed = self.defined.followed if self.checked else set[Var]()
        """The tiles of which it is followed where they hold data."""
        self.accumulators = accumulators(function) if self.checked else {}
        self.last_use = LastUse(function.body)
        self.summed_later = summed_later(function)
        """The products that the next one adds together with its own, by identity."""

    @property
    def lanes(self) -> int:
        """How many fp32 elements a vector has."""
        return self.program.target.vector_bits // 32

    # statements

    def body(self, body: SeqStmts) -> None:
        """Emit statements in a block of their own, leaving nothing recorded."""
        self.blocks.append(Block())
        for stmt in body:
            self._stmt(stmt)
        self.flush()
        for _, part in self.blocks.pop().owned:
            self.arena.give_back(part)

    def _stmt(self, stmt: Stmt) -> None:
        """Emit or record one statement."""
        self.at = stmt
        step = self.step = self.fusion.at(stmt)
        if self.arena.plan is not None:
            self.arena.plan.advance(stmt.span)
        if step.ends and self.group is not None and any(sink.updates for sink in self.group.stores):
            self.flush()  # what it loaded is not where it was any more
        if isinstance(stmt, AssignStmt):
            self.bind(stmt.var, self._followed(stmt.var, stmt.value))
        elif isinstance(stmt, EvalStmt):
            self._action(stmt.expr)
        else:
            if not isinstance(stmt, YieldStmt):  # what it hands on may be computed where it goes
                self.flush()
            self.handlers.emit(self, stmt)
        for var in self.fusion.reads[id(stmt)]:
            self.uses[var] -= 1
        if step.stays and isinstance(stmt, AssignStmt):
            self.regions[-1].lend(self, self.bindings[stmt.var])

    def emit_group(self, group: Group) -> None:
        """Emit one loop over rows."""
        self.handlers.emit(self, group)

    def _followed(self, var: Var, value: Expr) -> Binding:
        """Emit what a variable stands for; a tile of which that is not sure gets the box in which it holds data."""
        result = self._action(value)
        if isinstance(result, Tile) and isinstance(value, Call):
            if var in self.followed:
                _follow(self.b, self.index, value, self._bound(value), result)
            if self.accumulators and value.op.spec.name in ("full", "create"):
                result.is_made = TRUE
        return result

    def bind(self, var: Var, binding: Binding) -> None:
        """Let a variable stand for what was emitted."""
        if isinstance(binding, (Tile, Array)):
            self.belong(binding, var)
        elif isinstance(binding, tuple):
            for element in binding:
                self.bind(var, element)
        elif isinstance(binding, Tensor):
            binding = replace(binding, root=self.roots.get(var, var))
        self.bindings[var] = binding

    def _action(self, expr: Expr) -> Binding:
        """Emit an expression that stands on its own."""
        if isinstance(expr, Call) and expr.op.kind is not Kind.SCALAR:
            return self.op(expr)
        if isinstance(expr, (Invoke, Submit)):
            self.flush()
            return self.handlers.emit(self, expr)
        return self.value(expr)

    def op(self, call: Call) -> Binding:
        """Emit an op of tiles or tensors."""
        self.at, bound = call, self._bound(call)
        if self.followed:
            self._look(call, bound)
        if self.step.is_done:
            return bound[call.op.spec.writes or ""]
        return self.handlers.lower(self, call, bound)

    def _bound(self, call: Call) -> Bound:
        """Return the arguments of a call, with what was emitted for operands; those that are not there are None."""
        given = {name: None if isinstance(v, Absent) else v for name, v in arguments(call).items()}
        return {name: self.value(v) if isinstance(v, Expr) else v for name, v in given.items()}

    # undefined elements

    def _look(self, call: Call, bound: Bound) -> None:
        """Check that what an op looks at holds data; what it looks at in a special way it checks itself."""
        for name in looks_at(call):
            if name not in ("acc", "bias", "mask") and call.op.spec.name not in ("cmp", "read"):
                self.look(call, name, bound[name], bound[name].valid)

    def look(self, call: Call, name: str, tile: Tile, needed: Sequence[Value], unless: Value | None = None) -> None:
        """Emit the end of the function where a part of an operand that is looked at was written by nobody."""
        if not self.checked or self.defined.is_sure(call, name):
            return
        missing, facts = _lacks(self.b, tile, needed), self.defined.of(arguments(call)[name])
        if missing is not None and facts is not None:
            missing = missing if unless is None else self.b.op("and", missing, self.negated(unless))
            origin = call.span if facts.is_sure else facts.origin
            self.stop(missing, f"{undefined_message(origin)}\n{PADDING}", call)

    # values

    def value(self, expr: Expr) -> Binding:
        """Return what an expression stands for; tuples give tuples."""
        match expr:
            case Var():
                return self._variable(expr)
            case MakeTuple():
                return tuple(self.value(e) for e in expr.elements)
            case TupleGetItem():
                held = self.value(expr.value)
                assert isinstance(held, tuple)
                return held[expr.index]
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
        result = self.handlers.scalars[call.op.spec.name](self, call, call.type.dtype, *map(self.scalar, call.args))
        reach = bounds(call)
        return replace(result, reach=reach) if reach else result

    def scalar(self, expr: Expr) -> Scalar:
        """Return the number that an expression stands for."""
        value = self.value(expr)
        assert isinstance(value, Scalar)
        return value

    def index(self, scalar: Scalar) -> Value:
        """Return an integer scalar as a 64-bit number."""
        if scalar.value.type == I64:
            return scalar.value
        if (known := scalar.value.ref).lstrip("-").isdigit():
            return i64(int(known))
        return self.b.convert("zext" if scalar.dtype.is_unsigned_int() else "sext", scalar.value, I64)

    def indices(self, scalars: Sequence[Scalar]) -> tuple[Value, ...]:
        """Return integer scalars as 64-bit numbers."""
        return tuple(self.index(s) for s in scalars)


HANDLERS: Handlers[FunctionEmitter] = Handlers()
lowers, emits = HANDLERS.lowers, HANDLERS.emits


# few tiles are partly undefined


def _follow(b: Builder, index: Callable[[Scalar], Value], call: Call, bound: Bound, tile: Tile) -> None:
    from tilewright.backends.cpu.emit.undefined import follow

    follow(b, index, call, bound, tile)


def _lacks(b: Builder, tile: Tile, needed: Sequence[Value]) -> Value | None:
    from tilewright.backends.cpu.emit.undefined import lacks

    return lacks(b, tile, needed)
