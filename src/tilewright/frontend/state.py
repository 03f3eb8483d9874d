"""The state of a translation: where it is, what names mean there, and what it has written so far."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, Protocol, cast

from tilewright.core.annotations import DynExpr, DynVar
from tilewright.core.build import scalar
from tilewright.core.enums import FunctionType, Level, MemorySpace, ScopeMode, SplitMode
from tilewright.core.expr import Call, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var, constant
from tilewright.core.numbers import TypedNumber
from tilewright.core.op import Effect, Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import Type
from tilewright.errors import KernelError, OperandError
from tilewright.frontend.frames import Frame
from tilewright.frontend.launchable import Launchable
from tilewright.frontend.scope import Scope, shared_names
from tilewright.frontend.value_keys import is_data
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Listed, Value, Walker
from tilewright.frontend.windows import Windows
from tilewright.records import mutable, record
from tilewright.source import Span


class Callees(Protocol):
    """The functions a kernel can call: those of its program, and free ones it brings along."""

    def method(self, name: str, span: Span) -> Function:
        """Return the program's function `name`; KernelError when there is none or it is calling us."""
        ...

    def free(self, function: Function, span: Span) -> Function:
        """Take a free function into the program."""
        ...

    @property
    def kernels(self) -> Any:
        """What specializes the kernels that are called."""
        ...

    @property
    def launched(self) -> dict[tuple[Launchable, bool], Function]:
        """The functions that kernels of other languages are, on tensors that are apart, or may share memory."""
        ...

    def names(self) -> set[str]:
        """Return what the functions of the program are called."""
        ...


class Widened(Exception):
    """A variable met a value its type does not cover: translation starts again with the wider type.

    One that a literal began takes the type of the first running number that it is given. What `pl.full` makes becomes
    a tile where a tensor is the `mistake`.
    """

    def __init__(
        self, key: tuple[str, Span], type_: Type, *, is_literal: bool = False, mistake: KernelError | None = None
    ) -> None:
        self.key = key
        self.type = type_
        self.is_literal = is_literal
        self.mistake = mistake


@mutable
class YieldFrame:
    """What the innermost loop or branch hands on: the names it goes by afterwards, and the types."""

    names: tuple[str, ...] | None = None
    types: tuple[Type, ...] = ()
    span: Span | None = None
    is_loop: bool = False
    carried: tuple[str, ...] = ()
    """The names of what a loop carries."""
    yields: bool = True
    """Whether a turn ends in a yield; else it hands on what the carried names stand for."""


@record
class Kept:
    """A part of a tile that an integer index took, with the axes that it would have dropped elsewhere."""

    value: Expr
    axes: frozenset[int]
    text: str


@mutable
class Lane:
    """A lane whose turn is being written out."""

    mode: SplitMode
    block: int
    number: int = 0
    gathered: dict[int, Var] = field(default_factory=dict[int, Var])
    """What lane 0 gave to each gather, by the identity of the call."""
    pending: set[int] = field(default_factory=set[int])
    """The identities of variables that stand for what is only gathered in lane 1."""


@mutable
class Translation(Walker):
    """One function on its way from syntax to IR."""

    _: KW_ONLY
    callees: Callees
    strict_ssa: bool = False
    widened: Mapping[tuple[str, Span], Type] = field(default_factory=dict[tuple[str, Span], Type])
    stmts: list[Stmt] = field(default_factory=list[Stmt])
    yields: list[YieldFrame] = field(default_factory=list[YieldFrame])
    loops: list[str] = field(default_factory=list[str])
    kernels: list[int] = field(default_factory=list[int])
    """For each kernel scope being translated, how many blocks were open around it."""
    runtime_scopes: list[ScopeMode] = field(default_factory=list[ScopeMode])
    clusters: int = 0
    """How many `pl.cluster()` scopes are open."""
    func_type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    auto_scope: bool = True
    """Whether the function's tasks are ordered without it saying so."""
    assigned: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    """What each variable was given last."""
    places: dict[str, tuple[MemorySpace | None, int | None]] = field(
        default_factory=dict[str, "tuple[MemorySpace | None, int | None]"]
    )
    """The memory and the number of slots of each place that annotations name."""
    stages: list[int] = field(default_factory=list[int])
    """How many turns each open loop has under way at once."""
    tagged: set[int] = field(default_factory=set[int])
    """The identities of tensors that `pl.dump_tag` marks."""
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    returned: list[tuple[tuple[Type, ...], Span]] = field(default_factory=list[tuple[tuple[Type, ...], Span]])
    outputs: set[int] = field(default_factory=set[int])
    """The identities of the Out and InOut parameters."""
    variables: set[int] = field(default_factory=set[int])
    """The identities of variables that are assigned more than once."""
    given: set[int] = field(default_factory=set[int])
    """The identities of variables that loops, branches and scopes define."""
    unset: set[int] = field(default_factory=set[int])
    """The identities of carried variables that start as nothing."""
    literals: set[int] = field(default_factory=set[int])
    """The identities of variables that began as a literal, in the type that literals have by themselves."""
    fixed: set[int] = field(default_factory=set[int])
    """The identities of variables whose type is stated and cannot widen."""
    dims: dict[str, Value] = field(default_factory=dict[str, Value])
    """What `pl.dynamic` names stand for inside an inlined kernel that binds them."""
    symbols: dict[str, Span] = field(default_factory=dict[str, Span])
    """The `pl.dynamic` names whose values were read, with where."""
    windows: Windows = field(default_factory=Windows)
    """The variables that are slices of tiles."""
    kept: dict[int, Kept] = field(default_factory=dict[int, Kept])
    """The parts of tiles that integer indices took, by their identities."""
    declared: Type | None = None
    """What the annotation of the name that is being assigned says."""
    written: list[list[Stmt]] = field(default_factory=list[list[Stmt]])
    """Into which statements each loop that is being written out goes."""
    lane: Lane | None = None
    """The vector lane whose turn is being written out."""
    deferred: dict[int, list[Stmt]] = field(default_factory=dict[int, "list[Stmt]"])
    """The waits of tasks that nothing has depended on yet, by the identity of the task."""
    home: list[Stmt] | None = None
    """The statements that a helper which is written out goes into, outside of its blocks; None for other functions."""
    frame: Frame | None = None
    """The specialization this is part of, None for a function whose types are written out."""

    runtime: ClassVar[type] = Expr
    short_circuits: ClassVar[bool] = False  # the IR has `True and x`, and reads it back
    targets: ClassVar[tuple[type[ast.expr], ...]] = (ast.Name, ast.Subscript)

    def __post_init__(self) -> None:
        """Work out which names are variables of the IR before the first statement."""
        self.scope = Scope(*shared_names(self.captured.node))

    def emit(self, stmt: Stmt) -> None:
        """Write the next statement."""
        self.windows.note(stmt, self.scope.blocks)
        if isinstance(stmt, AssignStmt):
            self.assigned[stmt.var] = stmt.value
        self.stmts.append(stmt)

    def tell(self, message: Callable[[], None]) -> None:
        """Let the author know something once this is the translation that counts."""
        self.callees.kernels.messages.tell(message)

    def operand(self, node: ast.expr) -> Value:
        """Return what an expression gives, placed in the program where it is an op."""
        return self.placed(self.evaluate(node), node)

    def handed_back(self, node: ast.Return) -> Value:
        """Return what a helper that is written out gives at its end."""
        return None if node.value is None else self.operand(node.value)

    def placed(self, value: Value, node: ast.AST) -> Value:
        """Return `value` as something an op can take: calls that are no scalar arithmetic get a variable."""
        if isinstance(value, (list, tuple)):
            return alike(value, [self.placed(element, node) for element in sequence(value)])  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            held = cast("dict[Any, Value]", value)
            return {key: self.placed(each, node) for key, each in held.items()} if _holds_action(held) else held
        if isinstance(value, DynExpr):
            return self.extent(value, node)
        if not is_action(value):
            return value
        span = self.span(node)
        var = Var(_hint(value), value.type, span)
        self.emit(AssignStmt(var, value, span))
        return var

    def computes(self, value: Value) -> bool:
        """Return whether operators on a value are ops between scalars, tiles and tensors."""
        return isinstance(value, (Expr, TypedNumber))

    def check_no_data(self, value: Value, node: ast.AST) -> None:
        """Raise OperandError for an array or tensor from outside: its elements are no part of the code."""
        if is_data(value):
            text = ast.unparse(node)
            name = text if text.isidentifier() else "data"
            kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
            message = f"`{text}` is a {kind} from outside the kernel, which takes data as arguments"
            help = f"add a parameter `{name}: pl.Tensor` and pass it; a number can be read out of it before the call"
            raise self.error(OperandError, node, message, help=help)

    def extent(self, formula: DynExpr | int, node: ast.AST) -> Value:
        """Return what a `pl.dynamic` name, or a formula of such names, stands for here; names are noted."""
        if isinstance(formula, int):
            return formula
        if not isinstance(formula, DynVar):
            operands = [self.expr(self.extent(operand, node), node) for operand in formula.operands]
            return scalar(formula.operation, *operands)
        if formula.name in self.dims:
            return self.dims[formula.name]
        self.symbols.setdefault(formula.name, self.span(node))
        return Symbol(formula.name)

    def expr(self, value: Value, node: ast.AST, what: str = "this") -> Expr:
        """Return `value` as an expression of the IR; OperandError for Python values that have none."""
        value = self.placed(value, node)
        if isinstance(value, Expr):
            return value
        if isinstance(value, (bool, int, float)):
            return constant(value, span=self.span(node))
        if isinstance(value, tuple):
            return MakeTuple(tuple(self.expr(v, node) for v in value), self.span(node))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise self.error(OperandError, node, f"{what} must be a value of the kernel, got {value!r}")


def alike(value: Value, elements: Sequence[Value]) -> tuple[Value, ...]:
    """Return elements as what `value` is, a list or a tuple; itself where they are its own."""
    if isinstance(value, tuple) and all(map(operator.is_, value, elements)):  # pyright: ignore[reportUnknownArgumentType]
        return value  # pyright: ignore[reportUnknownVariableType]
    return Listed(elements) if isinstance(value, (list, Listed)) else tuple(elements)


def is_action(value: Value) -> bool:
    """Return whether a value is a call that must stand in a statement of its own."""
    if isinstance(value, Call):
        return value.op.kind is not Kind.SCALAR or value.op.spec.effect is not Effect.PURE
    return isinstance(value, (Invoke, Submit, TupleGetItem))


def _holds_action(held: Mapping[Any, Value]) -> bool:
    return any(map(is_action, held.values()))


def _hint(value: Expr) -> str:
    if isinstance(value, Call):
        return value.op.spec.name.rstrip("_")
    return value.op.name if isinstance(value, (Invoke, Submit)) else "item"
