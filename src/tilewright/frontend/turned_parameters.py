"""Turned parameters: entries for callers whose tensors lie on their side in memory.

`mm(x, w.T)` brings a tensor whose neighbours along the last axis lie apart. Code that takes tensors by rows would need
a copy of it; code that takes `w`, and loads the transposes of its tiles, needs none. So the entry is rewritten as its
author would have: a parameter with its last two axes swapped, tiles that are turned after they are loaded and before
they are stored, and for all other uses a view that is the tensor the author knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.expr import Absent, Call, Expr, MakeTuple, Var
from tilewright.core.op import OPS
from tilewright.core.program import STEPPED, TURNED, Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import expressions, statements
from tilewright.frontend.outputs import returned_parameters, tensor_written
from tilewright.source import Span

_VIEWS = ("slice", "strided", "transpose")
"""What shows a part of a tensor however it lies; other views need rows of adjacent elements."""


def turned(program: Program, entry: str, names: Sequence[str]) -> Program:
    """Return a program whose entry takes some tensors with their last two axes swapped; the same where it cannot."""
    function = program[entry]
    returned = returned_parameters(function)
    if not names or returned is None or not all(map(_shows_any, program.function_list)):
        return program
    made = _with_turned(function, names, returned)
    return program.with_functions([made if each is function else each for each in program.function_list])


def stepped(program: Program, entry: str, steps: Mapping[str, int]) -> Program:
    """Return a program whose entry takes some tensors in steps; the same where it cannot.

    Their elements are as far apart as it says, and nothing else about the program changes.
    """
    if not steps or not all(map(_shows_any, program.function_list)):
        return program
    said = {STEPPED: " ".join(f"{name}:{step}" for name, step in steps.items())}
    made = [replace(f, attrs={**f.attrs, **said}) if f.name == entry else f for f in program.function_list]
    return program.with_functions(made)


def _shows_any(function: Function) -> bool:
    """Return whether a function can be given tensors however they lie."""
    if function.external_source or function.is_sub_worker:
        return False
    return not any(_is_of_rows(expr) for stmt in statements(function.body) for expr in expressions(stmt))


def _is_of_rows(expr: Expr) -> bool:
    """Return whether an expression views a tensor in a way that needs rows of adjacent elements."""
    if not isinstance(expr, Call) or not isinstance(expr.type, TensorType) or not expr.op.spec.alias:
        return False
    return expr.op.spec.alias != expr.op.spec.writes and expr.op.spec.name not in _VIEWS


def _with_turned(function: Function, names: Sequence[str], returned: Sequence[int]) -> Function:
    known = {param: _swapped(param) for param in function.params if param.name_hint in names}
    params = tuple(known.get(param, param) for param in function.params)
    stays = {param for param in known if _stays(function, param)}
    body = _Turner({param: known[param] for param in stays}, [params[at] for at in returned]).body(function.body)
    views = [AssignStmt(param, _transposed("tensor", lying, param.span), param.span) for param, lying in known.items()]
    gives = tuple(params[at].type for at in returned) if function.return_types else ()
    said = {**function.attrs, TURNED: " ".join(param.name_hint for param in known)}
    return replace(function, params=params, return_types=gives, body=SeqStmts((*views, *body.stmts)), attrs=said)


def _swapped(param: Var) -> Var:
    assert isinstance(param.type, TensorType)
    shape, valid = ((*of[:-2], of[-1], of[-2]) for of in (param.type.shape, param.type.valid))
    return Var(param.name_hint, replace(param.type, shape=shape, valid=valid), param.span)


def _stays(function: Function, param: Var) -> bool:
    """Return whether a parameter's name stands for it from beginning to end."""
    assigned = [s for s in statements(function.body) if isinstance(s, AssignStmt) and s.var is param]
    return all(isinstance(stmt.value, Call) and tensor_written(stmt.value) is param for stmt in assigned)


def _transposed(kind: str, x: Expr, span: Span) -> Expr:
    return call(OPS[f"{kind}.transpose"].spec, {"x": x, "axis1": -2, "axis2": -1}, span)


class _Turner(Rewriter):
    """Loads of a tensor as transposes of loads of what lies in memory, stores as stores of transposes."""

    def __init__(self, lying: Mapping[Var, Var], returned: Sequence[Var]) -> None:
        super().__init__()
        self.lying, self.returned = lying, returned

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load a tile as it lies, and turn it then."""
        value = stmt.value
        if stmt.var in self.lying:
            return self._stored(value, stmt) or (EvalStmt(value, stmt.span),)
        tensor = self._loaded(value)
        if tensor is None or not isinstance(value, Call):
            return super().assign(stmt)
        given = arguments(value)
        pairs = {name: _last_swapped(given[name]) for name in ("offsets", "shapes")}
        load = call(value.op.spec, {**given, **pairs, "tensor": tensor}, value.span)
        tile = Var(f"{stmt.var.name_hint}_lying", load.type, stmt.var.span)
        made = _transposed("tile", tile, stmt.span)
        return (AssignStmt(tile, load, stmt.span), AssignStmt(stmt.var, made, stmt.span))

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Turn a tile, and store it as it shall lie."""
        return self._stored(stmt.expr, stmt) or super().evaluate(stmt)

    def stmt(self, stmt: Stmt) -> Sequence[Stmt]:
        """Return a parameter itself instead of a view of it."""
        if isinstance(stmt, ReturnStmt) and stmt.values:
            return (replace(stmt, values=tuple(self.returned)),)
        return super().stmt(stmt)

    def _loaded(self, value: Expr) -> Var | None:
        """Return what lies in memory where a value is a plain load of its transpose."""
        if not isinstance(value, Call) or value.op.name != "tile.load" or not isinstance(value.args[0], Var):
            return None
        given = arguments(value)
        is_plain = all(
            given[name] is None or isinstance(given[name], Absent) for name in ("mask", "pad", "valid_shape")
        )
        return self.lying.get(value.args[0]) if is_plain and _is_block(value.type) else None

    def _stored(self, value: Expr, stmt: Stmt) -> Sequence[Stmt]:
        if not isinstance(value, Call) or value.op.name != "tile.store":
            return ()
        given = arguments(value)
        target, tile = given["output_tensor"], given["tile"]
        is_plain = all(isinstance(given[name], Absent) for name in ("mask", "shapes"))
        if target not in self.lying or not is_plain or not isinstance(tile, Var) or not _is_block(tile.type):
            return ()
        assert isinstance(target, Var) and isinstance(target.type, TensorType) and isinstance(tile.type, TileType)
        if len(tile.type.shape) != len(target.type.shape):
            return ()
        made = _transposed("tile", tile, stmt.span)
        lying = Var(f"{tile.name_hint}_lying", made.type, tile.span)
        given |= {"tile": lying, "offsets": _last_swapped(given["offsets"]), "output_tensor": self.lying[target]}
        store = call(value.op.spec, given, value.span)
        return (AssignStmt(lying, made, stmt.span), EvalStmt(store, stmt.span))


def _is_block(type_: object) -> bool:
    """Return whether a tile has rows and columns."""
    return isinstance(type_, TileType) and len(type_.shape) > 1


def _last_swapped(elements: object) -> MakeTuple:
    assert isinstance(elements, MakeTuple)
    *before, rows, columns = elements.elements
    return MakeTuple((*before, columns, rows))
