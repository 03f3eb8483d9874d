"""Kernels: statements of a program written as one kernel of Triton IR, the functions they call in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.backends.cuda.prints import Print
from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.accesses import Accesses
from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.recipes import (
    CAST,
    SCALARS,
    STATEMENTS,
    TAKE_MASKS,
    Bound,
    declined,
    recipe_of,
    refused,
)
from tilewright.backends.cuda.ttir.text import I1, I64, Text, Value
from tilewright.backends.cuda.ttir.values import (
    Binding,
    Extent,
    Mask,
    Scalar,
    Tensor,
    Tile,
    computes,
    element_of,
    padded,
    working,
)
from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.solving import GIVEN
from tilewright.core.stmt import AssignStmt, EvalStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TileType, TupleType
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import InternalError
from tilewright.source import Span

LARGEST = 1 << 20
"""The most elements that a tensor of Triton's has."""

Note = Callable[[str, Span], int]
"""Gives the number under which an error is reported."""


def _tensor(binding: Binding) -> Tensor:
    assert isinstance(binding, Tensor)
    return binding


def _no_memory(k: Kernel, sizes: Sequence[Extent]) -> Value:
    raise refused("tensors made inside a kernel", k.t.span)


def _no_prints(own: Print) -> tuple[int, Value, Value]:
    raise InternalError("a print in a kernel that is not launched")


class Kernel(Accesses):
    """A kernel being written: what its variables stand for, and what it has done to memory."""

    def __init__(self, program: Program, note: Note, errors: Callable[[], Value], checked: bool) -> None:
        self.program = program
        self.checked = checked
        super().__init__(Text())
        self.bindings: dict[Var, Binding] = {}
        self.symbols: dict[str, Extent] = {}
        self.block_index: Extent = 0
        self.block_count: Extent = 1
        self.windows: dict[Extent, extents.Window] = {}
        """Where valid extents of loaded tiles come from."""
        self.missing: dict[Var, Value] = {}
        """Whether variables are there that loops bind, which may not run."""
        self.share: tuple[Extent, Extent] | None = None
        """Which of how many blocks this one is, where all of them share what is done."""
        self.returned: Callable[[ReturnStmt], list[Value]] = lambda stmt: []
        """Notes what the function that is being written returns; gives what of it is computed."""
        self.reserve: Callable[[Kernel, Sequence[Extent]], Value] = _no_memory
        """Gives the address of as many bytes as the product of some extents, which the running block has for itself."""
        self.is_given: Callable[[Extent], bool] = lambda extent: isinstance(extent, int)
        """Tells extents that the host knows before the kernel runs."""
        self.printed: Callable[[Print], tuple[int, Value, Value]] = _no_prints
        """Gives the number of a print, the buffer for what it writes, and how many words that holds."""
        self.turn: Callable[[], Extent] = lambda: 0
        """Gives the number of the running turn of the grid, as the program counts them."""
        self.lent: dict[Var, Tensor] = {}
        """Where the host has made room for tensors that the kernel makes and gives back, and that of this statement."""
        self.lent_now: Tensor | None = None
        self._note = note
        self.errors = errors
        """Gives the address of the word that errors are noted in."""

    # statements

    def body(self, body: SeqStmts) -> tuple[Binding, ...]:
        """Write statements; return what the last of them returns or yields."""
        given: tuple[Binding, ...] = ()
        for stmt in body:
            given = self._stmt(stmt)
        return given

    def _stmt(self, stmt: Stmt) -> tuple[Binding, ...]:
        self.t.span = stmt.span if stmt.span.is_known else self.t.span
        if isinstance(stmt, AssignStmt):
            self.lent_now = self.lent.get(stmt.var)
            self.bindings[stmt.var] = self.value(stmt.value)
        elif isinstance(stmt, EvalStmt):
            self.value(stmt.expr)
        elif type(stmt) in STATEMENTS:
            return STATEMENTS[type(stmt)](self, stmt)
        else:
            raise refused(f"`{type(stmt).__name__}` in a kernel", stmt.span)
        return ()

    def call(self, function: Function, args: Sequence[Binding]) -> tuple[Binding, ...]:
        """Write a function in place of a call of it; return its results."""
        self.facts.look(self.program, function.body)
        for param, arg in zip(function.params, args, strict=True):
            self.bindings[param] = arg
        outer, self.symbols = self.symbols, dict(self.symbols)
        for symbol, (position, axis) in function.symbols.items():
            self.symbols[symbol] = _tensor(args[position]).shape[axis]
        for symbol, told in function.solutions.items():
            self.symbols[GIVEN.name] = _tensor(args[told.position]).shape[told.axis]
            self.symbols[symbol] = self.index(self.scalar(told.value))
        given = STATEMENTS[Function](self, function)
        self.symbols = outer
        return given

    # values

    def value(self, expr: Expr) -> Binding:
        """Return what an expression stands for; tuples give tuples."""
        match expr:
            case Var():
                return self._variable(expr)
            case MakeTuple():
                return tuple(self.value(element) for element in expr.elements)
            case TupleGetItem():
                several = self.value(expr.value)
                assert isinstance(several, tuple)
                return several[expr.index]
            case Const():
                return self.number(expr.value, expr.dtype)
            case Symbol():
                return self.counted(self.symbols[expr.name])
            case Call():
                return self._scalar_op(expr) if expr.op.kind is Kind.SCALAR else self._op(expr)
            case Invoke() | Submit():
                return self._inlined(expr)
            case _:
                raise InternalError(f"no Triton IR for {type(expr).__name__}")

    def _variable(self, var: Var) -> Binding:
        if var in self.missing:
            absent = self.t.simple("arith.xori", self.missing[var], self.t.constant("true", I1))
            self.fail(absent, f"'{var.name_hint}' has no value here: the loop that binds it did not run", var.span)
        return self.bindings[var]

    def _inlined(self, expr: Invoke | Submit) -> Binding:
        if isinstance(expr, Submit) and (expr.core_num is not None or expr.predicate is not None):
            help = "call it without one, or submit it outside of the kernel"
            raise refused(f"a grid or a predicate of `{expr.op.name}` inside a kernel", expr.span, help)
        results = self.call(self.program[expr.op.name], [self.value(arg) for arg in expr.args])
        if isinstance(expr, Submit):
            return (*results, self.number(0, INDEX))
        return results[0] if len(results) == 1 and not isinstance(expr.type, TupleType) else results

    def _op(self, call: Call) -> Binding:
        write = recipe_of(call.op)
        if write is None:
            raise declined(call)
        return write(self, call, self._bound(call))

    def _bound(self, call: Call) -> Bound:
        given = {name: None if isinstance(v, Absent) else v for name, v in arguments(call).items()}
        bound: Bound = {name: self.value(v) if isinstance(v, Expr) else v for name, v in given.items()}
        takes_masks = call.op.name in TAKE_MASKS
        return {name: v.packed() if isinstance(v, Mask) and not takes_masks else v for name, v in bound.items()}

    def _scalar_op(self, call: Call) -> Scalar:
        assert isinstance(call.type, ScalarType)
        write = SCALARS.get(call.op.spec.name)
        if write is None or not (computes(call.type.dtype) or call.op.spec.name == "cast"):
            raise refused(f"`{call.op.name}` of {call.type.dtype}", call.span, CAST)
        return write(self, call, call.type.dtype, *map(self.scalar, call.args))

    def scalar(self, expr: Expr) -> Scalar:
        """Return the number that an expression stands for."""
        found = self.value(expr)
        assert isinstance(found, Scalar)
        return found

    def number(self, value: float, dtype: DataType) -> Scalar:
        """Return a number of the program."""
        held, known = working(dtype), None if dtype.is_float() else int(value)
        return Scalar(literal(self.t, value, Value("", element_of(held))), held, known)

    def counted(self, extent: Extent) -> Scalar:
        """Return an extent as a number."""
        return Scalar(extents.held(self.t, extent), INDEX, extent if isinstance(extent, int) else None)

    def index(self, scalar: Scalar) -> Extent:
        """Return an integer as an extent."""
        if scalar.known is not None:
            return scalar.known
        if scalar.value.element == I64:
            return scalar.value
        return self.t.convert("arith.extsi" if scalar.dtype.is_signed_int() else "arith.extui", scalar.value, I64)

    def indices(self, scalars: Sequence[Scalar]) -> list[Extent]:
        """Return integers as extents."""
        return [self.index(scalar) for scalar in scalars]

    def tile(self, value: Value, type_: TileType, valid: Sequence[Extent], is_zero_outside: bool = False) -> Tile:
        """Return a tile; where its type knows what is valid, that is it."""
        known = [have if isinstance(have, int) else found for have, found in zip(type_.valid, valid, strict=True)]
        count = 1
        for extent in value.shape:
            count *= extent
        if count > LARGEST:
            what = f"tiles of {count} elements, padded to powers of two: at most {LARGEST}"
            raise refused(what, self.t.span, "use smaller tiles: small ones are fast ones")
        self.facts.largest = max(self.facts.largest, count)
        return Tile(value, type_, tuple(known), is_zero_outside)

    def mask(self, tile: Tile, valid: Mapping[int, Extent] | None = None) -> Value | None:
        """Return which elements of a tile are valid, or would be with other extents; None where all are."""
        wanted = [(valid or {}).get(axis, extent) for axis, extent in enumerate(tile.valid)]
        return self.inside(padded(tile.type.shape), wanted)

    def inside(self, shape: Sequence[int], valid: Sequence[Extent]) -> Value | None:
        """Return which elements of a shape lie in its leading part; None where all of them do."""
        return extents.inside(self.t, shape, valid, self.windows)

    # errors

    def noted(self, message: str, span: Span) -> Value:
        """Return the number under which an error is reported."""
        return self.t.integer(self._note(message, span))

    def fail(self, condition: Value | bool, message: str, span: Span, index: Callable[[], Value] | None = None) -> None:
        """Write that an error is noted where a condition holds; a later call of the program raises it.

        Where the message names an index, `index` writes what that is.
        """
        if not self.checked or condition is False:
            return
        number = self.noted(message, span)
        value = self.t.constant("true", I1) if condition is True else condition
        errors = self.errors()
        with self.t.block(f"scf.if {value} {{"):
            if index is not None:
                high = self.t.simple("arith.shli", index(), self.t.integer(32))
                number = self.t.simple("arith.ori", high, number)
            self.t.do(f"tt.store {errors}, {number} : {errors.type}")
