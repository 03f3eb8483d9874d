"""The body: statements of a program as lines of PTO text, kernels written out where they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilewright import dtypes as dt
from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TileType, is_fully_valid
from tilewright.ops.convert import round_mode
from tilewright.programs.pto_text.ops import element_of, in_vec, written
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import NoPtoError, Number, Tensor, Tile, Value, element, located
from tilewright.programs.pto_text.writer import Writer
from tilewright.source import UNKNOWN


class Body:
    """The statements of one program on their way to text."""

    def __init__(self, program: Program, writer: Writer) -> None:
        self.program, self.w = program, writer
        self.values: dict[Var, Value] = {}
        """What the program's variables are in the text."""
        self.symbols: dict[str, Number] = {}
        """The extents that only a call knows."""
        self.yields: list[tuple[Value, ...]] = []
        """What values that are handed on go to, the innermost loop or branch last."""

    def write(self, body: SeqStmts) -> None:
        """Write statements; NoPtoError, with its line, for what PTO text cannot say."""
        for stmt in body:
            outer, self.w.span = self.w.span, getattr(stmt, "span", UNKNOWN)
            try:
                self._stmt(stmt)
            except NoPtoError as error:
                raise located(str(error), self.w.span) from None
            self.w.span = outer

    def _stmt(self, stmt: Stmt) -> None:
        match stmt:
            case AssignStmt():
                self.values[stmt.var] = self._value(stmt.value)
            case EvalStmt():
                self._value(stmt.expr)
            case ForStmt():
                self.loop(stmt, self.number(stmt.start), self.number(stmt.step))
            case IfStmt():
                self._branch(stmt)
            case YieldStmt():
                self._hand_on([self._value(value) for value in stmt.values])
            case ReturnStmt():
                pass
            case _:
                kind = type(stmt).__name__.removesuffix("Stmt").lower()
                raise NoPtoError(f"this export has no words for a {kind} statement")

    def loop(self, stmt: ForStmt, start: Number, step: Number) -> None:
        """Write a loop: tiles are carried in a buffer, numbers as the text's own values."""
        pace = bounds(stmt.step)
        if pace is None or pace[0] <= 0:
            raise NoPtoError("this export has no words for a loop that counts down, or may do so")
        inits: list[Any] = [self._value(arg.init) for arg in stmt.iter_args]
        carried = [self._carried(arg.var, init) for arg, init in zip(stmt.iter_args, inits, strict=True)]
        numbers = [(value, init) for value, init in zip(carried, inits, strict=True) if isinstance(value, Number)]
        stop, index = self.number(stmt.stop), Number(self.w.name(stmt.loop_var.name_hint), dt.INDEX)
        self.values[stmt.loop_var] = index
        self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
        results = [Number(self.w.name(value.name[1:]), value.dtype) for value, _ in numbers]
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in numbers)
        given = f" iter_args({pairs}) -> ({_types(results)})" if numbers else ""
        ends = f"{index.name} = {start.name} to {stop.name} step {step.name}"
        with self.w.block(f"{_given(results)}scf.for {ends}{given}"):
            self._region(stmt.body, carried)
        after = iter(results)
        outcome = [next(after) if isinstance(value, Number) else value for value in carried]
        self.values.update(zip(stmt.return_vars, outcome, strict=True))

    def _region(self, body: SeqStmts, targets: Sequence[Value]) -> None:
        self.yields.append(tuple(targets))
        self.write(body)
        self.yields.pop()

    def _carried(self, var: Var, start: Value | None) -> Value:
        """Return what stands for something carried inside a loop: a buffer, or a value of the loop."""
        if isinstance(start, Number):
            return Number(self.w.name(var.name_hint), start.dtype)
        if not isinstance(start, Tile | Tensor):
            raise NoPtoError(f"this export carries tiles, numbers and tensors, and `{var.name_hint}` is none")
        return start if isinstance(start, Tensor) else self._copy(start, var.name_hint)

    def _copy(self, tile: Tile, hint: str) -> Tile:
        """Write the copy of a tile; return it."""
        if tile.is_mask:
            raise NoPtoError("this export hands no masks on")
        source = in_vec(self.w, tile)
        return self.w.op("tmov", [source], self.w.tile(hint, source.dtype, source.shape, source.valid))

    def _hand_on(self, values: Sequence[Value]) -> None:
        """Write what a round or a side ends with: tiles into their buffers, and numbers."""
        targets = self.yields[-1] if self.yields else ()
        numbers: list[Number] = []
        for value, target in zip(self._apart(values, targets), targets, strict=True):
            if value is target and isinstance(value, Tile | Tensor):
                continue
            if isinstance(target, Tile) and isinstance(value, Tile) and not value.is_mask:
                self.w.op("tmov", [in_vec(self.w, value)], target)
            elif isinstance(target, Number) and isinstance(value, Number):
                numbers.append(converted(self.w, value, target.dtype))
            elif value != target:
                raise NoPtoError("this export hands on tiles and numbers, not another tensor, from branches and loops")
        if numbers:
            self.w.line(f"scf.yield {', '.join(n.name for n in numbers)} : {_types(numbers)}")

    def _apart(self, values: Sequence[Value], targets: Sequence[Value]) -> list[Value]:
        """Return values of which those that lie in another's buffer are copied before that is written."""
        pairs = zip(values, targets, strict=True)
        moves = [isinstance(value, Tile) and value in targets and value is not target for value, target in pairs]
        return [
            self._copy(value, "before") if isinstance(value, Tile) and is_moved else value
            for value, is_moved in zip(values, moves, strict=True)
        ]

    def _branch(self, stmt: IfStmt) -> None:
        results = [self._place(var) for var in stmt.return_vars]
        numbers = [result for result in results if isinstance(result, Number)]
        condition = self.number(stmt.condition)
        given = f" -> ({_types(numbers)})" if numbers else ""
        with self.w.branch(f"{_given(numbers)}scf.if {condition.name}{given}") as otherwise:
            self._region(stmt.then_body, results)
            if stmt.else_body is not None:
                otherwise()
                self._region(stmt.else_body, results)
        self.values.update(zip(stmt.return_vars, results, strict=True))

    def _place(self, var: Var) -> Value:
        """Return what stands for what both sides of a branch give: a buffer, or a value."""
        type_ = var.type
        if isinstance(type_, ScalarType):
            return Number(self.w.name(var.name_hint), type_.dtype)
        if not isinstance(type_, TileType) or len(type_.shape) != 2 or not is_fully_valid(type_):
            what = "which a branch gives and which is no tile of two axes, all of it valid"
            raise NoPtoError(f"this export has no words for `{var.name_hint}`, {what}")
        rows, cols = type_.shape
        return self.w.tile(var.name_hint, type_.dtype, (rows, cols), (self.w.constant(rows), self.w.constant(cols)))

    def _value(self, expr: Any) -> Any:
        """Return an operand as a value of the text; what is none, as it is."""
        match expr:
            case Var():
                return self.values[expr]
            case Symbol():
                return self.symbols[expr.name]
            case Const():
                return self.w.constant(expr.value, expr.dtype)
            case MakeTuple():
                return [self.number(each) for each in expr.elements]
            case Call() if isinstance(expr.type, ScalarType):
                if expr.op.name == "tensor.read":
                    return self._read(expr)
                if expr.op.kind is not Kind.SCALAR:
                    raise NoPtoError(f"this export has no words for a number from `pl.{expr.op.name}`")
                if expr.op.spec.name == "cast":
                    mode = cast("str | int", arguments(expr)["mode"])
                    return converted(self.w, self.number(expr.args[0]), expr.type.dtype, round_mode(mode).name)
                return computed(self.w, expr.op.spec.name, [self.number(arg) for arg in expr.args], expr.type.dtype)
            case Call():
                return written(self.w, expr, self._value)
            case Invoke():
                return self._inlined(self.program[expr.op.name], [self._value(arg) for arg in expr.args])
            case Submit() if expr.predicate is None and expr.core_num is None:
                return self._inlined(self.program[expr.op.name], [self._value(arg) for arg in expr.args])
            case Absent():
                return None
            case Expr():
                raise NoPtoError(f"this export has no words for a {type(expr).__name__.lower()} here")
            case _:
                return expr

    def _read(self, call: Call) -> Number:
        """Write the reading of one element of a tensor."""
        given = {key: self._value(each) for key, each in arguments(call).items()}
        tensor, kind = given["x"], element(given["x"].dtype)
        place = element_of(self.w, tensor, given["indices"])
        name = self.w.name("element")
        self.w.line(f"{name} = pto.load_scalar {place} : !pto.ptr<{kind}, gm> -> {kind}")
        return Number(name, tensor.dtype)

    def number(self, expr: Expr) -> Number:
        """Return an operand that is a number."""
        value = self._value(expr)
        if not isinstance(value, Number):
            raise NoPtoError("this export has no words for a number here")
        return value

    def _inlined(self, function: Function, values: Sequence[Value]) -> Value | None:
        """Write a kernel out where it is called; return what it returns, where that is one of its outputs."""
        self.values.update(zip(function.params, values, strict=True))
        self.write(function.body)
        returned = [stmt for stmt in function.body if isinstance(stmt, ReturnStmt) and stmt.values]
        return self._value(returned[-1].values[0]) if returned else None


def _types(numbers: Sequence[Number]) -> str:
    return ", ".join(element(number.dtype) for number in numbers)


def _given(numbers: Sequence[Number]) -> str:
    """Return the names that an op gives its results, before it."""
    return f"{', '.join(number.name for number in numbers)} = " if numbers else ""
