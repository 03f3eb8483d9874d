"""Printing: the IR as Python that the front end reads back to an equal program."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from tilewright.core.enums import ForKind, ScopeMode
from tilewright.core.expr import ConstBool, Expr, Submit, Var, integer
from tilewright.core.expression_printer import ExpressionPrinter, listed
from tilewright.core.extents import bounds
from tilewright.core.stmt import (
    AssignStmt,
    Attributes,
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
from tilewright.core.types import ScalarType, TileType, Type
from tilewright.errors import InternalError

INDENT = "    "
RESERVED = ("self", "float")
"""Names that printed text uses for itself."""


class Printable:
    """A node that owns a piece of text and shows itself as Python: a function, a program."""

    __slots__ = ()

    @abstractmethod
    def printed(self, printer: Printer) -> Iterable[str]:
        """Return the node's lines."""

    def as_python(self, prefix: str = "pl", *, concise: bool = False) -> str:
        """Return the node as Python text that `pl.parse` reads back; `concise` leaves out types of locals."""
        return "\n".join(self.printed(Printer(prefix, concise))).rstrip() + "\n"

    def __str__(self) -> str:
        return self.as_python()


def python_print(node: Printable | Expr | Stmt, prefix: str = "pl", *, concise: bool = False) -> str:
    """Return any node of the IR as Python text."""
    if isinstance(node, Printable):
        return node.as_python(prefix, concise=concise)
    printer = Printer(prefix, concise)
    return printer.expr(node) if isinstance(node, Expr) else "\n".join(printer.stmt(node)) + "\n"


def python_print_type(type_: Type, prefix: str = "pl") -> str:
    """Return a type as the annotation that stands for it."""
    return Printer(prefix, False).type(type_)


class Printer(ExpressionPrinter):
    """Statements, and the names that stand outside of functions."""

    def declared(self, symbols: Iterable[str]) -> list[str]:
        """Return the lines that declare symbols, by the names they will have."""
        names = sorted(set(symbols))
        self.symbol_names = {name: name for name in names if name not in (self.pl, *RESERVED)}
        for name in set(names) - set(self.symbol_names):
            self.used = {*names, self.pl, *RESERVED}
            self.symbol_names[name] = self._free_name(name)
        lines = [f'{shown} = {self.pl}.dynamic("{name}")' for name, shown in self.symbol_names.items()]
        return [*lines, ""] if lines else []

    def begin_function(self) -> None:
        """Forget the names of the function before."""
        self.names, self.used = {}, {self.pl, *RESERVED, *self.symbol_names.values()}

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
                ignored = f"_: {self.type(stmt.expr.type)} = " if isinstance(stmt.expr, Submit) else ""
                return [f"{ignored}{self.expr(stmt.expr)}"]
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

    def bounded_type(self, var: Var) -> str:
        """Return a variable's type, with the bounds of a scalar where they are known."""
        if not isinstance(var.type, ScalarType) or var.bounds is None:
            return self.type(var.type)
        return f"{self.pl}.Scalar[{self.pl}.{var.type.dtype.symbol}, {var.bounds}]"

    def _local_type(self, var: Var, value: Expr) -> str:
        """Return the annotation of a local; a concise one only where it says what the value does not."""
        if isinstance(var.type, ScalarType) and var.bounds is not None and bounds(value) != var.bounds:
            return f": {self.bounded_type(var)}"
        placed = isinstance(var.type, TileType) and var.type.memref is not None
        shown = placed or not self.concise or isinstance(value, Submit)
        return f": {self.type(var.type)}" if shown else ""

    def _for(self, stmt: ForStmt) -> list[str]:
        limits = self._limits(stmt)
        said = {name: value for name, value in stmt.attrs.items() if name != "stage"}
        options = [f"stage={stmt.attrs['stage']}"] if "stage" in stmt.attrs else []
        inits = [self.expr(arg.init) for arg in stmt.iter_args]
        self._name_results(stmt)
        target = self.name(stmt.loop_var)
        if stmt.iter_args:
            options.append(f"init_values=({listed(inits)})")
            target += f", ({listed([self.name(arg.var) for arg in stmt.iter_args])})"
        word = stmt.kind.value
        if stmt.kind is ForKind.Unroll and stmt.iter_args:  # authors write unrolled loops without carried values
            word, said = ForKind.Sequential.value, {**said, "unroll": True}
        if said:
            options.append(f"attrs={self.attributes(said)}")
        head = f"for {target} in {self.pl}.{word}({', '.join([*limits, *options])}):"
        return [head, *self._yielding(stmt.body, stmt.return_vars)]

    def _limits(self, stmt: ForStmt) -> list[str]:
        """Return the bounds of a loop, without those that go without saying."""
        shown = [self.expr(limit) for limit in (stmt.start, stmt.stop, stmt.step)]
        if stmt.step != integer(1):
            return shown
        return shown[1:2] if stmt.start == integer(0) else shown[:2]

    def _while(self, stmt: WhileStmt) -> list[str]:
        if not stmt.iter_args:
            return [f"while {self._condition(stmt.condition)}:", *self._indented(stmt.body)]
        inits = [self.expr(arg.init) for arg in stmt.iter_args]
        self._name_results(stmt)
        names = listed([self.name(arg.var) for arg in stmt.iter_args])
        head = f"for ({names}) in {self.pl}.while_(init_values=({listed(inits)})):"
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
        names += f": {self.type(results[0].type)}" if len(results) == 1 and not self.concise else ""
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
                options = [f"level={pl}.Level.CORE_GROUP", *self._hints(stmt.attrs), *self._hint(stmt.name_hint)]
                options += [*self._deps(stmt.deps), *self._listed("no_dep_args", stmt.no_dep_args)]
                options += [*self._listed("dumps", stmt.dumps), *self._flags(stmt.attrs, "allow_early_resolve")]
                options += self._flags(stmt.attrs, "windowize")
                return [f"with {pl}.at({', '.join(options)}){self._task(stmt.task)}:", *self._indented(stmt.body)]
            case HierarchyScopeStmt():
                options = [f"level={self.attribute(stmt.level)}"]
                options += [f"role={self.attribute(stmt.role)}"] if stmt.role else []
                options += self._hint(stmt.name_hint)
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
        options = [self.expr(stmt.core_num), *self._flags(stmt.attrs, "sync_start"), *self._hint(stmt.name_hint)]
        options += [*self._hints(stmt.attrs), *self._deps(stmt.deps), *self._flags(stmt.attrs, "allow_early_resolve")]
        options += self._predicate(stmt.predicate)
        call = f"{self.pl}.spmd({', '.join(options)})"
        task = f"with {call}{self._task(stmt.task)}:"
        head = task if stmt.loop_var is None else f"for {self.name(stmt.loop_var)} in {call}:"
        return [head, *self._indented(stmt.body)]

    def _hints(self, attrs: Attributes) -> list[str]:
        """Return what a kernel says about how it is split and buffered."""
        found = [f"{self.pl}.split({self.attribute(attrs['split'])})"] if "split" in attrs else []
        found += [f"{self.pl}.cross_core_slot(slot_num={attrs['slot_num']})"] if "slot_num" in attrs else []
        return [f"optimizations=[{', '.join(found)}]"] if found else []

    def _hint(self, name_hint: str) -> list[str]:
        return [f'name_hint="{name_hint}"'] if name_hint else []

    def _task(self, task: Var | None) -> str:
        return f" as {self.name(task)}" if task is not None else ""
