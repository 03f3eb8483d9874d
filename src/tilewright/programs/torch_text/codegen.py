"""Torch text: a program as Python that needs nothing but torch, to be read, run and compared."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from tilewright.core.expr import Expr, Symbol, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    IterArg,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import Extent, TensorType, TileType
from tilewright.core.visitor import statements
from tilewright.errors import NoTorchError
from tilewright.frontend.programs import as_program
from tilewright.programs.torch_text.expressions import Expressions, function_name, symbol, torch_dtype
from tilewright.programs.torch_text.prelude import prelude

INDENT = "    "


def torch_codegen(node: Program | Function, *, check_shapes: bool = False) -> str:
    """Return Python text that defines one function for each function of the program, under its name.

    They take tensors of torch and numbers by position, write outputs in place, and return what the program's function
    returns. With `check_shapes` every value is asserted to have the shape and element type that the program says.
    TypeError for anything but a program or a function; NoTorchError names what torch cannot say.
    """
    if not isinstance(node, (Program, Function)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"torch_codegen takes a Program or a Function, got {type(node).__name__}")
    program = as_program(node)
    writer = _Writer(check_shapes)
    functions = [line for function in program.function_list for line in (*writer.function(function), "", "")]
    body = "\n\n\n".join([*writer.expressions.meanings.values(), "\n".join(functions)])
    imports, definitions = prelude(body)
    text = "\n\n\n".join([*definitions, body])
    return "\n".join([f'"""{program.name}, computed by torch."""', "", *imports, "", "", text.rstrip(), ""])


class _Writer:
    """Writes functions and their statements."""

    def __init__(self, check_shapes: bool) -> None:
        self.expressions = Expressions()
        self.check_shapes = check_shapes
        self.targets: list[tuple[Var, ...]] = []
        """What values that are handed on go to, the innermost loop or branch last."""
        self.carried: list[tuple[Var, ...]] = []
        """What each loop carries, the innermost last."""

    def function(self, function: Function) -> Iterator[str]:
        """Yield a function on values of the text's own, and the one for callers around it."""
        self.expressions.begin()
        names = [self.expressions.name(param) for param in function.params]
        body = list(self._body(function.body))
        yield f"def {function_name(function.name)}({', '.join(names)}):"
        for name, (position, axis) in function.symbols.items():
            yield f"{INDENT}{symbol(name)} = {names[position]}.data.shape[{axis}]"
        if unbound := [self.expressions.name(var) for var in _handed_on(function)]:
            yield f"{INDENT}{' = '.join(unbound)} = None"
        yield from (INDENT + line for line in body)
        yield f"{INDENT}return ()"
        yield from ("", "")
        given = ", ".join(f"_value({name})" for name in names)
        yield f"def {function.name}({', '.join(names)}):"
        yield f"{INDENT}return _given_back({function_name(function.name)}({given}))"

    def _body(self, body: SeqStmts) -> Iterator[str]:
        lines = [line for stmt in body for line in self._stmt(stmt)]
        yield from lines or ["pass"]

    def _indented(self, body: SeqStmts) -> Iterator[str]:
        yield from (INDENT + line for line in self._body(body))

    def _stmt(self, stmt: Stmt) -> Iterator[str]:
        match stmt:
            case AssignStmt():
                yield f"{self.expressions.name(stmt.var)} = {self._checked(stmt.var, self._text(stmt.value))}"
            case EvalStmt():
                yield self._text(stmt.expr)
            case ReturnStmt():
                yield f"return ({''.join(f'{self._text(value)}, ' for value in stmt.values).rstrip()})"
            case YieldStmt():
                yield from self._assigned(self.targets[-1] if self.targets else (), stmt.values)
            case BreakStmt() | ContinueStmt():
                yield from self._assigned(self.carried[-1] if stmt.values else (), stmt.values)
                yield "break" if isinstance(stmt, BreakStmt) else "continue"
            case ForStmt():
                bounds = ", ".join(map(self._text, (stmt.start, stmt.stop, stmt.step)))
                head = f"for {self.expressions.name(stmt.loop_var)} in range({bounds}):"
                yield from self._loop(head, stmt.iter_args, stmt.return_vars, stmt.body)
            case WhileStmt():
                yield from self._loop("while ", stmt.iter_args, stmt.return_vars, stmt.body, stmt.condition)
            case IfStmt():
                yield from self._if(stmt)
            case SpmdScopeStmt():
                yield from self._spmd(stmt)
            case _:
                yield from self._body(stmt.body)
                yield from self._named(getattr(stmt, "task", None))

    def _loop(
        self, head: str, carried: Sequence[IterArg], results: Sequence[Var], body: SeqStmts,
        condition: Expr | None = None,
    ) -> Iterator[str]:  # fmt: skip
        variables = tuple(arg.var for arg in carried)
        yield from self._assigned(variables, [arg.init for arg in carried])
        yield head if condition is None else f"{head}{self._text(condition)}:"
        with self._inside(variables, is_loop=True):
            yield from self._indented(body)
        yield from self._assigned(results, variables)

    def _if(self, stmt: IfStmt) -> Iterator[str]:
        yield f"if {self._text(stmt.condition)}:"
        with self._inside(stmt.return_vars):
            yield from self._indented(stmt.then_body)
            if stmt.else_body is not None:
                yield "else:"
                yield from self._indented(stmt.else_body)

    def _spmd(self, stmt: SpmdScopeStmt) -> Iterator[str]:
        if stmt.predicate is not None:
            raise NoTorchError("torch_codegen cannot write a grid with a predicate")
        index = "_" if stmt.loop_var is None else self.expressions.name(stmt.loop_var)
        yield f"for {index} in _blocks({self._text(stmt.core_num)}):"
        yield from self._indented(stmt.body)
        yield from self._named(stmt.task)

    def _named(self, task: Var | None) -> Iterator[str]:
        if task is not None:
            yield f"{self.expressions.name(task)} = 0"

    def _assigned(self, targets: Sequence[Var], values: Sequence[Expr]) -> Iterator[str]:
        """Yield the assignment of several values at once, as far as there is anybody to take them."""
        if targets and values:
            names = ", ".join(map(self.expressions.name, targets))
            yield f"{names} = {', '.join(map(self._text, values))}"

    @contextmanager
    def _inside(self, targets: tuple[Var, ...], is_loop: bool = False) -> Generator[None]:
        self.targets.append(targets)
        if is_loop:
            self.carried.append(targets)
        yield
        self.targets.pop()
        if is_loop:
            self.carried.pop()

    def _text(self, expr: Expr) -> str:
        return self.expressions.text(expr)

    def _checked(self, var: Var, text: str) -> str:
        """Return a value, asserted to be what it is said to be where that is asked for."""
        if not self.check_shapes or not isinstance(var.type, (TensorType, TileType)):
            return text
        shape = "".join(f"{_extent(extent)}, " for extent in var.type.shape).rstrip()
        return f"_checked({text}, ({shape}), {torch_dtype(var.type.dtype)})"


def _extent(extent: Extent) -> int | str | None:
    """Return an extent as far as it is known: a number, or the name of what arguments decide."""
    return extent if isinstance(extent, int) else symbol(extent.name) if isinstance(extent, Symbol) else None


def _handed_on(function: Function) -> list[Var]:
    """Return the variables that loops and branches hand on, perhaps before anybody has bound them."""
    found: list[Expr] = []
    for stmt in statements(function.body):
        if isinstance(stmt, (ForStmt, WhileStmt)):
            found += [*(arg.init for arg in stmt.iter_args), *(arg.var for arg in stmt.iter_args), *stmt.return_vars]
        elif isinstance(stmt, (YieldStmt, BreakStmt, ContinueStmt)):
            found += stmt.values
        elif isinstance(stmt, IfStmt):
            found += stmt.return_vars
    return [var for var in dict.fromkeys(found) if isinstance(var, Var) and var not in function.params]
