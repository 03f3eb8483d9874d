"""The state of a translation: where it is, what names mean there, and what it has written so far.

Handlers for each kind of syntax live in their own files and sign in here, so that they can call each other without
importing each other.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from tilewright.core.annotations import DynExpr, DynVar
from tilewright.core.build import call, scalar
from tilewright.core.enums import ScopeMode
from tilewright.core.expr import Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var, constant
from tilewright.core.extents import bounds
from tilewright.core.op import Effect, Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType, Type, join
from tilewright.core.visitor import variables
from tilewright.errors import (
    DroppedWriteWarning,
    KernelError,
    OperandError,
    ReassignmentError,
    SSAViolationError,
    UnsupportedFeatureError,
)
from tilewright.frontend.capture import Captured
from tilewright.frontend.frames import BecomesDynamic, Frame
from tilewright.frontend.names import Resolver
from tilewright.frontend.scope import Binding, Scope, shared_names
from tilewright.frontend.value_keys import is_data
from tilewright.frontend.windows import Windows
from tilewright.ops.registry import OPS
from tilewright.source import Span

Value: TypeAlias = Any
"""What an expression of a kernel gives: an `Expr`, or a Python value the compiler knows."""


class Listed(tuple[Any, ...]):
    """A list as kernels have it: what it holds is fixed, as in a tuple, yet Python would not take one for the other."""


H = TypeVar("H", bound=Callable[..., Any])
EXPRESSIONS: dict[type[ast.expr], Callable[[Translator, Any], Value]] = {}
STATEMENTS: dict[type[ast.stmt], Callable[[Translator, Any], None]] = {}


def expression(kind: type[ast.expr]) -> Callable[[H], H]:
    """Sign a handler in for one kind of expression."""

    def sign(handler: H) -> H:
        EXPRESSIONS[kind] = handler
        return handler

    return sign


def statement(kind: type[ast.stmt]) -> Callable[[H], H]:
    """Sign a handler in for one kind of statement."""

    def sign(handler: H) -> H:
        STATEMENTS[kind] = handler
        return handler

    return sign


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


class Widened(Exception):
    """A variable met a value its type does not cover: translation starts again with the wider type."""

    def __init__(self, key: tuple[str, Span], type_: Type) -> None:
        self.key = key
        self.type = type_


@dataclass
class YieldFrame:
    """What the innermost loop or branch hands on: the names it goes by afterwards, and the types."""

    names: tuple[str, ...] | None = None
    types: tuple[Type, ...] = ()
    span: Span | None = None
    is_loop: bool = False
    carries: int = 0


@dataclass
class Translator:
    """One function on its way from syntax to IR."""

    captured: Captured
    resolver: Resolver
    callees: Callees
    strict_ssa: bool = False
    caller: Span | None = None
    widened: Mapping[tuple[str, Span], Type] = field(default_factory=dict[tuple[str, Span], Type])
    inlining: tuple[str, ...] = ()
    stmts: list[Stmt] = field(default_factory=list[Stmt])
    yields: list[YieldFrame] = field(default_factory=list[YieldFrame])
    loops: list[str] = field(default_factory=list[str])
    kernels: list[int] = field(default_factory=list[int])
    """For each kernel scope being translated, how many blocks were open around it."""
    runtime_scopes: list[ScopeMode] = field(default_factory=list[ScopeMode])
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
    fixed: set[int] = field(default_factory=set[int])
    """The identities of variables whose type is stated and cannot widen."""
    dims: dict[str, Value] = field(default_factory=dict[str, Value])
    """What `pl.dynamic` names stand for inside an inlined kernel that binds them."""
    symbols: dict[str, Span] = field(default_factory=dict[str, Span])
    """The `pl.dynamic` names whose values were read, with where."""
    windows: Windows = field(default_factory=Windows)
    """The variables that are slices of tiles."""
    frame: Frame | None = None
    """The specialization this is part of, None for a function whose types are written out."""

    def __post_init__(self) -> None:
        """Work out which names are variables of the IR before the first statement."""
        self.scope = Scope(shared_names(self.captured.node))

    def span(self, node: ast.AST) -> Span:
        """Return where a piece of syntax was written, seen through the inlined call it came from."""
        span = self.captured.span(node)
        return span.called_from(self.caller) if self.caller else span

    def evaluate(self, node: ast.expr) -> Value:
        """Return what an expression gives; ops on tensors and tiles are not placed in the program yet."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise _unsupported("expression", node, self.span(node))
        return handler(self, node)

    def execute(self, body: Sequence[ast.stmt]) -> None:
        """Translate statements in order."""
        for node in body:
            handler = STATEMENTS.get(type(node))
            if handler is None:
                raise _unsupported("statement", node, self.span(node))
            handler(self, node)

    def block(self, body: Sequence[ast.stmt], defined: Sequence[tuple[str, Var]] = ()) -> SeqStmts:
        """Return statements translated into a body of their own, in which `defined` names have values."""
        outer, self.stmts = self.stmts, []
        try:
            for name, var in defined:
                self.define(name, var)
            self.execute(body)
            return SeqStmts(tuple(self.stmts))
        finally:
            self.stmts = outer

    def emit(self, stmt: Stmt) -> None:
        """Write the next statement."""
        self.windows.note(stmt, self.scope.blocks)
        self.stmts.append(stmt)

    def operand(self, node: ast.expr) -> Value:
        """Return what an expression gives, placed in the program where it is an op."""
        return self.placed(self.evaluate(node), node)

    def placed(self, value: Value, node: ast.AST, hint: str = "") -> Value:
        """Return `value` as something an op can take: calls that are no scalar arithmetic get a variable."""
        if isinstance(value, (list, tuple)):
            return alike(value, [self.placed(element, node) for element in sequence(value)])  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, DynExpr):
            return self.extent(value, node)
        if not is_action(value):
            return value
        var = Var(hint or _hint(value), value.type, self.span(node))
        self.emit(AssignStmt(var, value, self.span(node)))
        return var

    def check_no_data(self, value: Value, node: ast.AST) -> None:
        """Raise OperandError for an array or tensor from outside: its elements are no part of the code."""
        if is_data(value):
            text = ast.unparse(node)
            name = text if text.isidentifier() else "data"
            kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
            raise OperandError(
                f"`{text}` is a {kind} from outside the kernel, which takes data as arguments",
                spans=[self.span(node)],
                help=f"add a parameter `{name}: pl.Tensor` and pass it; a number can be read out of it before the call",
            )

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
        raise OperandError(f"{what} must be a value of the kernel, got {value!r}", spans=[self.span(node)])

    def assign(self, name: str, value: Value, node: ast.AST) -> None:
        """Bind `name` to what an expression gave."""
        span = self.span(node)
        if self.strict_ssa and (first := self.scope.find(name)) is not None:
            message, note = f"'{name}' is bound twice in a strict_ssa=True function", f"first at line {first.span.line}"
            raise SSAViolationError(message, spans=[span], notes=[note])
        self._warn_dropped_write(name, value, span)
        if name in self.scope.shared:
            self._assign_shared(name, value, node)
        elif is_action(value) or isinstance(value, Call):
            var = Var(name, value.type, span, bounds(value) if isinstance(value.type, ScalarType) else None)
            self._assign_to(name, var, value, span)
        else:
            self.scope.bind(name, self._settled(value, name, node), span)

    def assign_known(self, name: str, value: Value, node: ast.AST) -> None:
        """Let a name stand for a value the compiler knows; where blocks assign it, for a variable that starts so."""
        if name in self.scope.shared and isinstance(value, (bool, int, float)):
            self._assign_shared(name, value, node)
        else:
            self.scope.bind(name, value, self.span(node))

    def define(self, name: str, var: Var) -> None:
        """Let a name stand for what a loop, branch or scope gives; where blocks below assign it too, for a copy."""
        if (name, var.span) in self.widened:
            self._assign_to(name, self._variable(name, var, var.span), var, var.span)
        else:
            self.given.add(id(var))
            self.scope.bind(name, var, var.span)

    def outlives(self, name: str, binding: Binding) -> None:
        """Start again with a copy where a name is read outside the block whose loop or branch gave its value."""
        if binding.leaked:
            for value in _elements(binding.value):
                if isinstance(value, Var) and id(value) in self.given:
                    raise Widened((name, binding.span), value.type)

    def _settled(self, value: Value, name: str, node: ast.AST) -> Value:
        """Return a value that later assignments cannot change: what depends on a variable is copied now."""
        if isinstance(value, tuple):
            return alike(value, [self._settled(element, name, node) for element in sequence(value)])  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(value, Expr) or isinstance(value, Const):
            return value
        is_variable = any(id(var) in self.variables for var in variables([value]))
        if not is_variable and (name, self.span(node)) not in self.widened:
            return value
        var = Var(name, value.type, self.span(node))
        self.emit(AssignStmt(var, value, self.span(node)))
        return var

    def _warn_dropped_write(self, name: str, value: Value, span: Span) -> None:
        """Warn when an output's name is bound to something that is not that output."""
        known = self.scope.find(name)
        if known is None or id(known.value) not in self.outputs or isinstance(value, (Invoke, Submit, TupleGetItem)):
            return
        if isinstance(value, Var) or (isinstance(value, Call) and value.op.spec.alias):
            return
        mistake = KernelError(
            f"'{name}' is an output, and this only rebinds the name: the caller's buffer stays as it was",
            spans=[span],
            help=f"write it with pl.store(..., {name}) or `{name}[:] = ...`",
        )
        mistake.function = self.captured.node.name
        text = str(mistake)
        self.tell(lambda: warnings.warn_explicit(text, DroppedWriteWarning, span.filename, span.line))

    def tell(self, message: Callable[[], None]) -> None:
        """Let the author know something once this is the translation that counts."""
        self.callees.kernels.messages.tell(message)

    def _assign_shared(self, name: str, value: Value, node: ast.AST) -> None:
        """Assign a name that several blocks share; each element of a tuple is a variable of its own."""
        if not isinstance(value, tuple):
            self._assign_variable(name, self._as_expr(name, value, node), self.span(node))
        else:
            parts = sequence(value)  # pyright: ignore[reportUnknownArgumentType]
            for position, part in enumerate(parts):
                self._assign_shared(f"{name}.{position}", part, node)
            bindings = [self.scope.find(f"{name}.{position}") for position in range(len(parts))]
            self.scope.bind(name, tuple(b.value for b in bindings if b is not None), self.span(node))
        self.note_known(name, value)

    def note_known(self, name: str, value: Value) -> None:
        """Note the number that a variable was just given, where a specialization can go on computing with it."""
        if self.frame is not None and all(isinstance(part, (bool, int, float, Const)) for part in _elements(value)):
            self.scope.know(name, value)

    def _as_expr(self, name: str, value: Value, node: ast.AST) -> Expr:
        if isinstance(value, Expr):
            return value
        if value is None:
            return call(OPS["system.task_invalid"].spec, {}, self.span(node))
        return self.expr(value, node, f"`{name}`, which several blocks assign,")

    def _assign_variable(self, name: str, value: Expr, span: Span) -> None:
        """Assign a name that several blocks share: one variable of the IR, as long as its type allows."""
        known = self.scope.variable(name)
        var = known.value if known is not None else None
        if known is None or not isinstance(var, Var):
            self._assign_to(name, self._variable(name, value, span), value, span)
            return
        wider = self.joined(var.type, value.type, span)
        key = name, var.span
        if id(var) not in self.variables and known.block == self.scope.block:
            self._assign_to(name, self._variable(name, value, span), value, span)
        elif id(var) not in self.variables and self.widened.get(key) != var.type:
            raise Widened(key, var.type)
        elif wider == var.type:
            self._assign_to(name, var, value, span)
        elif known.block == self.scope.block or (known.leaked and wider is None):
            self._assign_to(name, self._variable(name, value, span), value, span)
        elif wider is None or id(var) in self.fixed:
            raise ReassignmentError(
                f"Cannot reassign '{name}' with a different type",
                spans=[span],
                notes=[f"`{name}` is {var.type} from line {var.span.line}", f"the new value is {value.type}"],
            )
        else:
            raise Widened(key, wider)

    def joined(self, first: Type, second: Type, span: Span) -> Type | None:
        """Return the type that covers two, or None; an axis that meets one a helper made dynamic becomes so too."""
        if self.frame is not None and isinstance(first, TensorType) and isinstance(second, TensorType):
            for pair in zip(first.shape, second.shape, strict=False):
                for have, met in (pair, pair[::-1]):
                    if (axis := self.frame.asked(have, met)) is not None and isinstance(met, Symbol):
                        raise BecomesDynamic(self.frame, [axis], met.name, is_named=False, span=span)
        return join(first, second)

    def _variable(self, name: str, value: Expr, span: Span) -> Var:
        var = Var(name.replace(".", "_"), self.widened.get((name, span), value.type), span)
        self.variables.add(id(var))
        return var

    def _assign_to(self, name: str, var: Var, value: Expr, span: Span) -> None:
        self.emit(AssignStmt(var, value, span))
        self.scope.bind(name, var, span)


def sequence(value: Value) -> tuple[Value, ...]:
    """Return several values as a tuple; a single one counts as one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def alike(value: Value, elements: Sequence[Value]) -> tuple[Value, ...]:
    """Return elements as what `value` is, a list or a tuple."""
    return Listed(elements) if isinstance(value, (list, Listed)) else tuple(elements)


def _elements(value: Value) -> Iterator[Value]:
    """Yield a value, or what a tuple holds at any depth."""
    if not isinstance(value, tuple):
        yield value
    else:
        for element in sequence(value):  # pyright: ignore[reportUnknownArgumentType]
            yield from _elements(element)


def is_action(value: Value) -> bool:
    """Return whether a value is a call that must stand in a statement of its own."""
    if isinstance(value, Call):
        return value.op.kind is not Kind.SCALAR or value.op.spec.effect is not Effect.PURE
    return isinstance(value, (Invoke, Submit, TupleGetItem))


def _hint(value: Expr) -> str:
    if isinstance(value, Call):
        return value.op.spec.name.rstrip("_")
    return value.op.name if isinstance(value, (Invoke, Submit)) else "item"


def _unsupported(what: str, node: ast.AST, span: Span) -> UnsupportedFeatureError:
    name = type(node).__name__
    return UnsupportedFeatureError(f"Unsupported {what} type: {name}", spans=[span], help=_INSTEAD.get(name, ""))


_LOOP = "write a loop: `for i in pl.range(...)`, or pl.unroll to have it written out"
_OUTSIDE = "define it outside the kernel, decorated with @pl.inline"
_INSTEAD = {
    "Assert": "pl.static_assert checks what is known before the program runs",
    "AsyncFor": "drop `async`",
    "AsyncFunctionDef": _OUTSIDE,
    "AsyncWith": "drop `async`",
    "Await": "drop `await`",
    "ClassDef": "define it outside the kernel",
    "Delete": "drop this line: storage is reused as soon as nobody reads it",
    "Dict": "use one name per value, or a tuple",
    "DictComp": _LOOP,
    "FunctionDef": _OUTSIDE,
    "GeneratorExp": _LOOP,
    "Global": "a kernel reads globals and cannot change them: return the value, or store it into an Out tensor",
    "Import": "import it at the top of the file",
    "ImportFrom": "import it at the top of the file",
    "Lambda": _OUTSIDE,
    "ListComp": _LOOP,
    "Match": "use if and elif",
    "NamedExpr": "bind the name on a line of its own",
    "Nonlocal": "a kernel reads names from outside and cannot change them",
    "Raise": "a kernel has no exceptions: pl.static_assert checks what is known before the program runs",
    "Set": "use a tuple",
    "SetComp": _LOOP,
    "Slice": "tensors, tiles, tuples and lists have slices",
    "Starred": "write the elements out",
    "Try": "a kernel has no exceptions: check before the call",
    "TryStar": "a kernel has no exceptions: check before the call",
    "Yield": "pl.yield_ hands values on from a loop body or branch",
    "YieldFrom": "pl.yield_ hands values on from a loop body or branch",
}
