"""Printing: the IR as Python that the front end reads back to an equal program."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import FunctionType, MemorySpace, ParamDirection, ScopeMode
from tilewright.core.expr import (
    Absent,
    Attribute,
    Call,
    Const,
    ConstBool,
    Expr,
    Invoke,
    MakeTuple,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
    constant,
)
from tilewright.core.extents import bounds, symbols_in
from tilewright.core.op import Kind, OpSpec, Parameter
from tilewright.core.operands import literal
from tilewright.core.program import Function, Printable, Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import ArrayType, MemRef, ScalarType, Shape, TensorType, TileType, TupleType, Type
from tilewright.core.visitor import expressions, statements, types_of
from tilewright.dtypes import DataType
from tilewright.errors import InternalError, OperandError

INDENT = "    "
RESERVED = ("self", "float")
"""Names that printed text uses for itself."""


def python_print(node: Printable | Expr | Stmt, prefix: str = "pl", *, concise: bool = False) -> str:
    """Return any node of the IR as Python text."""
    printer = Printer(prefix, concise)
    if isinstance(node, Program):
        return printer.program(node)
    if isinstance(node, Function):
        return "\n".join([*printer.symbols((node,)), *printer.function(node)]) + "\n"
    if isinstance(node, Expr):
        return printer.expr(node)
    return "\n".join(printer.stmt(node)) + "\n"  # pyright: ignore[reportArgumentType]


def python_print_type(type_: Type, prefix: str = "pl") -> str:
    """Return a type as the annotation that stands for it."""
    return Printer(prefix, False).type(type_)


class Printer:
    """One printing: the names given out so far and the style."""

    def __init__(self, prefix: str, concise: bool) -> None:
        self.pl = prefix
        self.concise = concise
        self.names: dict[int, str] = {}
        self.used: set[str] = set()
        self.symbol_names: dict[str, str] = {}
        self.in_program = False
        self._kept: list[Var] = []

    def program(self, program: Program) -> str:
        """Return a whole program: header, symbols, class."""
        self.in_program = True
        lines = [
            f"# tilewright.program: {program.name}",
            f"import tilewright.language as {self.pl}",
            "",
            *self.symbols(program.function_list),
            f"@{self.pl}.program",
            f"class {program.name}:",
        ]
        for function in program.function_list:
            lines += [INDENT + line if line else "" for line in self.function(function)] + [""]
        return "\n".join(lines).rstrip() + "\n"

    def symbols(self, functions: Sequence[Function]) -> list[str]:
        """Return the lines that declare every symbol the functions use."""
        names = sorted({name for f in functions for name in _symbols(f)})
        self.symbol_names = {name: name for name in names if name not in (self.pl, *RESERVED)}
        for name in set(names) - set(self.symbol_names):
            self.used = {*names, self.pl, *RESERVED}
            self.symbol_names[name] = self._free_name(name)
        lines = [f'{shown} = {self.pl}.dynamic("{name}")' for name, shown in self.symbol_names.items()]
        return [*lines, ""] if lines else []

    def function(self, function: Function) -> list[str]:
        """Return a function as lines: decorator, signature, body."""
        self.names, self.used = {}, {self.pl, *RESERVED, *self.symbol_names.values()}
        params = ["self"] if self.in_program else []
        for param, direction in zip(function.params, function.param_directions, strict=True):
            type_ = self._bounded_type(param)
            wrapped = type_ if direction is ParamDirection.In else f"{self.pl}.{direction.name}[{type_}]"
            params.append(f"{self.name(param)}: {wrapped}")
        returns = [self.type(type_) for type_ in function.return_types]
        arrow = (
            f" -> {returns[0]}"
            if len(returns) == 1
            else f" -> {self.pl}.Tuple[{', '.join(returns)}]"
            if returns
            else ""
        )
        attrs = [f"{self.pl}.func_attr({{{self._items(function.attrs)}}})"] if function.attrs else []
        body = [*attrs, *self.body(function.body)]
        return [
            self._decorator(function),
            f"def {function.name}({', '.join(params)}){arrow}:",
            *(INDENT + line for line in (body or ["pass"])),
        ]

    def _items(self, attrs: Any) -> str:
        return ", ".join(f"{name!r}: {self.attribute(value)}" for name, value in attrs.items())

    def _decorator(self, function: Function) -> str:
        options = [] if function.func_type is FunctionType.Opaque else [f"type={self.attribute(function.func_type)}"]
        options += [f"level={self.attribute(function.level)}"] if function.level else []
        options += [f"role={self.attribute(function.role)}"] if function.role else []
        return f"@{self.pl}.function" + (f"({', '.join(options)})" if options else "")

    def name(self, var: Var) -> str:
        """Return the name of a variable, unique within the function."""
        known = self.names.get(id(var))
        if known is None:
            known = self._free_name(var.name_hint)
            self._give(var, known)
        return known

    def _free_name(self, hint: str, suffix: str = "") -> str:
        """Return a name nobody has, made from a hint; with a suffix, the name with that suffix is free too."""
        hint = unicodedata.normalize("NFKC", hint)
        hint = hint if hint.isidentifier() and not keyword.iskeyword(hint) else "v"
        known, count = hint, 0
        while known in self.used or (suffix and known + suffix in self.used):
            count += 1
            known = f"{hint}_{count}"
        return known

    def _give(self, var: Var, name: str) -> None:
        self.used.add(name)
        self.names[id(var)] = name
        self._kept.append(var)

    def _name_results(self, stmt: ForStmt | WhileStmt) -> None:
        """Name what a loop hands on where no closing yield does: the reader calls it `<carried>_out`."""
        if stmt.body.stmts and isinstance(stmt.body.stmts[-1], YieldStmt):
            return
        for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
            name = self._free_name(arg.var.name_hint, "_out")
            self._give(arg.var, name)
            self._give(result, f"{name}_out")

    def body(self, body: SeqStmts) -> list[str]:
        """Return the statements of a body as lines."""
        return [line for stmt in body for line in self.stmt(stmt)]

    def _indented(self, body: SeqStmts) -> list[str]:
        return [INDENT + line for line in self.body(body)] or [f"{INDENT}pass"]

    def stmt(self, stmt: Stmt) -> list[str]:
        """Return one statement as lines."""
        match stmt:
            case AssignStmt():
                value = self.expr(stmt.value)
                return [f"{self.name(stmt.var)}{self._local_type(stmt.var, stmt.value)} = {value}"]
            case EvalStmt():
                return [self.expr(stmt.expr)]
            case ReturnStmt():
                return [f"return {self._several(stmt.values)}".rstrip()]
            case YieldStmt():
                return [f"{self.pl}.yield_({self._several(stmt.values)})"]
            case BreakStmt() | ContinueStmt():
                word = "break" if isinstance(stmt, BreakStmt) else "continue"
                return [*([f"{self.pl}.yield_({self._several(stmt.values)})"] if stmt.values else []), word]
            case ForStmt():
                return self._for(stmt)
            case WhileStmt():
                return self._while(stmt)
            case IfStmt():
                return self._if(stmt)
            case _:
                return self._scope(stmt)

    def _bounded_type(self, var: Var) -> str:
        """Return a variable's type, with the bounds of a scalar where they are known."""
        if not isinstance(var.type, ScalarType) or var.bounds is None:
            return self.type(var.type)
        return f"{self.pl}.Scalar[{self.pl}.{var.type.dtype.symbol}, {var.bounds}]"

    def _local_type(self, var: Var, value: Expr) -> str:
        if isinstance(var.type, ScalarType):
            return f": {self._bounded_type(var)}" if var.bounds is not None and bounds(value) != var.bounds else ""
        placed = isinstance(var.type, TileType) and var.type.memref is not None
        shown = placed or (not self.concise and isinstance(var.type, (TensorType, TileType)))
        return f": {self.type(var.type)}" if shown else ""

    def _several(self, values: Sequence[Expr]) -> str:
        return ", ".join(self.expr(value) for value in values)

    def _for(self, stmt: ForStmt) -> list[str]:
        limits = [self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)]
        options = [f"{name}={self.attribute(value)}" for name, value in stmt.attrs.items()]
        inits = [self.expr(arg.init) for arg in stmt.iter_args]
        self._name_results(stmt)
        target = self.name(stmt.loop_var)
        if stmt.iter_args:
            options.append(f"init_values=({_tuple(inits)})")
            target += f", ({_tuple([self.name(arg.var) for arg in stmt.iter_args])})"
        head = f"for {target} in {self.pl}.{stmt.kind.value}({', '.join([*limits, *options])}):"
        return [head, *self._yielding(stmt.body, stmt.return_vars)]

    def _while(self, stmt: WhileStmt) -> list[str]:
        if not stmt.iter_args:
            return [f"while {self._condition(stmt.condition)}:", *self._indented(stmt.body)]
        inits = [self.expr(arg.init) for arg in stmt.iter_args]
        self._name_results(stmt)
        names = _tuple([self.name(arg.var) for arg in stmt.iter_args])
        head = f"for ({names}) in {self.pl}.while_(init_values=({_tuple(inits)})):"
        test = f"{INDENT}{self.pl}.cond({self._condition(stmt.condition)})"
        return [head, test, *self._yielding(stmt.body, stmt.return_vars)]

    def _condition(self, condition: Expr) -> str:
        if isinstance(condition, ConstBool):
            return f"{self.pl}.const({condition.value}, {self.pl}.BOOL)"
        return self.expr(condition)

    def _yielding(self, body: SeqStmts, results: Sequence[Var]) -> list[str]:
        """Return a body whose last yield names what it hands on."""
        if not results or not body.stmts or not isinstance(body.stmts[-1], YieldStmt):
            return self._indented(body)
        lines = [INDENT + line for line in self.body(SeqStmts(body.stmts[:-1]))]
        names = ", ".join(self.name(var) for var in results)
        return [*lines, f"{INDENT}{names} = {self.pl}.yield_({self._several(body.stmts[-1].values)})"]

    def _if(self, stmt: IfStmt) -> list[str]:
        lines = [f"if {self._condition(stmt.condition)}:", *self._yielding(stmt.then_body, stmt.return_vars)]
        if stmt.else_body is not None:
            lines += ["else:", *self._yielding(stmt.else_body, stmt.return_vars)]
        return lines

    def _scope(self, stmt: Stmt) -> list[str]:
        pl = self.pl
        match stmt:
            case InCoreScopeStmt():
                options = [f"level={pl}.Level.CORE_GROUP", *self._hint(stmt.name_hint), *self._deps(stmt.deps)]
                return [f"with {pl}.at({', '.join(options)}){self._task(stmt.task)}:", *self._indented(stmt.body)]
            case HierarchyScopeStmt():
                options = [f"level={self.attribute(stmt.level)}", *self._hint(stmt.name_hint)]
                options += [f"role={self.attribute(stmt.role)}"] if stmt.role else []
                return [f"with {pl}.at({', '.join(options)}){self._task(stmt.task)}:", *self._indented(stmt.body)]
            case SpmdScopeStmt():
                return self._spmd(stmt)
            case ClusterScopeStmt():
                return [f"with {pl}.cluster({', '.join(self._hint(stmt.name_hint))}):", *self._indented(stmt.body)]
            case RuntimeScopeStmt():
                mode = "" if stmt.mode is ScopeMode.AUTO else f"mode={self.attribute(stmt.mode)}"
                return [f"with {pl}.scope({mode}):", *self._indented(stmt.body)]
            case _:
                raise InternalError(f"no way to print {type(stmt).__name__}")

    def _spmd(self, stmt: SpmdScopeStmt) -> list[str]:
        options = [self.expr(stmt.core_num), *self._hint(stmt.name_hint), *self._deps(stmt.deps)]
        options += self._predicate(stmt.predicate)
        call = f"{self.pl}.spmd({', '.join(options)})"
        head = (
            f"with {call}{self._task(stmt.task)}:"
            if stmt.loop_var is None
            else f"for {self.name(stmt.loop_var)} in {call}:"
        )
        return [head, *self._indented(stmt.body)]

    def _hint(self, name_hint: str) -> list[str]:
        return [f'name_hint="{name_hint}"'] if name_hint else []

    def _deps(self, deps: Sequence[Expr]) -> list[str]:
        return [f"deps=[{self._several(deps)}]"] if deps else []

    def _predicate(self, predicate: Expr | None) -> list[str]:
        return [] if predicate is None else [f"predicate={self.expr(predicate)}"]

    def _task(self, task: Var | None) -> str:
        return f" as {self.name(task)}" if task is not None else ""

    def expr(self, expr: Expr, nested: bool = False) -> str:
        """Return an expression; `nested` arithmetic gets parentheses."""
        match expr:
            case Var():
                return self.name(expr)
            case Symbol():
                return self.symbol_names.get(expr.name, expr.name)
            case Const():
                return self.number(expr, lambda: constant(expr.value))
            case MakeTuple():
                return f"[{self._several(expr.elements)}]"
            case TupleGetItem():
                return f"{self.expr(expr.value)}[{expr.index}]"
            case Call():
                return self._call(expr, nested)
            case Invoke():
                return f"{self._callee(expr.op.name)}({self._several(expr.args)})"
            case Submit():
                return self._submit(expr)
            case Absent():
                return "None"
            case _:
                raise InternalError(f"no way to print {type(expr).__name__}")

    def number(self, const: Const, read: Callable[[], Const]) -> str:
        """Return a constant: bare where to `read` it gives it back, else with its type."""
        shown = repr(const.value)
        if isinstance(const.value, float) and not (const.value - const.value == 0):
            shown = f'float("{const.value}")'
        try:
            is_bare = read() == const
        except OperandError:
            is_bare = False
        return shown if is_bare else f"{self.pl}.const({shown}, {self.pl}.{const.dtype.symbol})"

    def _callee(self, name: str) -> str:
        return f"self.{name}" if self.in_program else name

    def _submit(self, expr: Submit) -> str:
        parts = [self._callee(expr.op.name), *(self.expr(arg) for arg in expr.args), *self._deps(expr.deps)]
        parts += [] if expr.core_num is None else [f"core_num={self.expr(expr.core_num)}"]
        name = "submit" if expr.core_num is None else "spmd_submit"
        return f"{self.pl}.{name}({', '.join([*parts, *self._predicate(expr.predicate)])})"

    def _call(self, call: Call, nested: bool) -> str:
        spec, bound = call.op.spec, arguments(call)
        if spec.symbol and call.op.kind is Kind.SCALAR:
            operands = [self._operand(spec, p, bound, nested=True) for p in spec.parameters]
            text = f"{spec.symbol} {operands[0]}" if spec.symbol == "not" else f"{spec.symbol}{operands[0]}"
            text = text if len(operands) == 1 else f"{operands[0]} {spec.symbol} {operands[1]}"
            return f"({text})" if nested else text
        parts: list[str] = []
        by_name = False
        for p in spec.parameters:
            value = bound[p.name]
            if isinstance(value, Absent) or (
                not p.is_operand and value == p.default and type(value) is type(p.default)
            ):
                by_name = True
                continue
            by_name = by_name or not p.is_operand
            shown = self._operand(spec, p, bound)
            parts.append(f"{p.name}={shown}" if by_name else shown)
        name = spec.name if call.op.kind is Kind.SCALAR else call.op.name
        return f"{self.pl}.{name}({', '.join(parts)})"

    def _operand(self, spec: OpSpec, parameter: Parameter, bound: Any, nested: bool = False) -> str:
        value = bound[parameter.name]
        if isinstance(value, Const):
            return self.number(value, lambda: literal(spec, parameter, value.value, bound | {parameter.name: None}))
        return self.expr(value, nested) if isinstance(value, Expr) else self.attribute(value)  # pyright: ignore[reportArgumentType]

    def attribute(self, value: Attribute) -> str:
        """Return a static option."""
        if isinstance(value, Enum):
            owner = {"MaskPattern": "tile.MaskPattern"}.get(type(value).__name__, type(value).__name__)
            return f"{self.pl}.{owner}.{value.name}"
        if isinstance(value, DataType):
            return f"{self.pl}.{value.symbol}"
        if isinstance(value, tuple):
            return f"({_tuple([self.attribute(v) for v in value])})"
        if isinstance(value, float) and not (value - value == 0):
            return f'float("{value}")'
        return repr(value)

    def type(self, type_: Type) -> str:
        """Return a type as an annotation."""
        pl = self.pl
        match type_:
            case ScalarType():
                return f"{pl}.Scalar[{pl}.{type_.dtype.symbol}]"
            case ArrayType():
                return f"{pl}.Array[{type_.extent}, {pl}.{type_.dtype.symbol}]"
            case TupleType():
                return f"{pl}.Tuple[{', '.join(map(self.type, type_.elements))}]"
            case TensorType():
                extra = [] if type_.layout.value == "ND" else [f"{pl}.{type_.layout.value}"]
                extra += (
                    [f"{pl}.TensorView(valid_shape={self._shape(type_.valid)})"] if type_.valid != type_.shape else []
                )
                return f"{pl}.Tensor[{', '.join([self._shape(type_.shape), f'{pl}.{type_.dtype.symbol}', *extra])}]"
            case TileType():
                extra = [self._memref(type_.memref)] if type_.memref is not None else []
                extra += [self.attribute(type_.memory)] if extra or type_.memory is not MemorySpace.Vec else []
                extra += (
                    [f"{pl}.TileView(valid_shape={self._shape(type_.valid)})"] if type_.valid != type_.shape else []
                )
                return f"{pl}.Tile[{', '.join([self._shape(type_.shape), f'{pl}.{type_.dtype.symbol}', *extra])}]"

    def _memref(self, memref: MemRef) -> str:
        return f"{self.pl}.MemRef({memref.offset}, {memref.size})"

    def _shape(self, shape: Shape) -> str:
        return f"[{', '.join('None' if e is None else str(e) if isinstance(e, int) else self.expr(e) for e in shape)}]"  # pyright: ignore[reportArgumentType]


def _tuple(parts: Sequence[str]) -> str:
    return f"{parts[0]}," if len(parts) == 1 else ", ".join(parts)


def _symbols(function: Function) -> set[str]:
    """Return the names of every symbol a function mentions."""
    return set(_mentioned(function))


def _mentioned(function: Function) -> Iterator[str]:
    for param in function.params:
        yield from _in_type(param.type)
    for type_ in function.return_types:
        yield from _in_type(type_)
    for stmt in statements(function.body):
        for type_ in types_of(stmt):
            yield from _in_type(type_)
        for expr in expressions(stmt):
            if isinstance(expr, Symbol):
                yield expr.name


def _in_type(type_: Type) -> Iterator[str]:
    if isinstance(type_, (TensorType, TileType)):
        for extent in (*type_.shape, *type_.valid):
            yield from symbols_in(extent)


Printable.printer = staticmethod(python_print)
