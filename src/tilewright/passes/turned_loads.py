"""Turned loads: tiles that products read of the transpose of a tensor, as transposes of tiles of the tensor itself.

Weights lie output by output, and kernels multiply by their transpose: `x @ w.T`. A tile of `w.T` would be gathered
element by element, or row by row where its neighbours lie apart; a tile of `w` is read as it lies, and what turns it
is the product's affair. So is what is cast after it was turned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.expr import Absent, Call, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import expressions, statements, used, variables
from tilewright.passes import dce
from tilewright.passes.computed_operands import turned_source
from tilewright.passes.products import PRODUCTS, SUMS

TURN = "tensor.transpose"


def run(program: Program) -> Program:
    """Return a lowered program whose products turn what they load on its side themselves."""
    changed = [_inside(function) for function in program.function_list]
    is_turned = any(map(_turned, changed))
    if not is_turned and changed == list(program.function_list):
        return program
    made = program.with_functions(changed)
    return dce.run(_handed(made) if is_turned else made)


def _turned(function: Function) -> dict[Var, Var]:
    """Return the transposes of tensors that a function makes, and what each is one of."""
    found: dict[Var, Var] = {}
    for stmt in statements(function.body):
        made = stmt.value if isinstance(stmt, AssignStmt) else None
        if isinstance(stmt, AssignStmt) and isinstance(made, Call) and made.op.name == TURN:
            source, rank = made.args[0], len(getattr(made.type, "shape", ()))
            given = arguments(made)
            axes = {axis % rank for axis in (given["axis1"], given["axis2"]) if isinstance(axis, int)}
            if isinstance(source, Var) and axes == {rank - 2, rank - 1} and _is_plain(source):
                found[stmt.var] = source
    return found


def _is_plain(tensor: Var) -> bool:
    type_ = tensor.type
    return isinstance(type_, TensorType) and type_.valid == type_.shape and not type_.layout.is_permuted


def _inside(function: Function) -> Function:
    """Return a function that loads from tensors of whose transposes it has loaded tiles."""
    found = {var: source for var, source in _turned(function).items() if _is_only_multiplied(function, var)}
    tiles = _cast_turned(function)
    return function.with_body(_Turner(found, tiles).body(function.body)) if found or tiles else function


def _cast_turned(function: Function) -> dict[Var, Var]:
    """Return the tiles that are turned, then cast and multiplied, and what each is turned from."""
    turned = [(s, source) for s in statements(function.body) if (source := turned_source(_made(s))) is not None]
    readers = _readers(function) if turned else {}
    casts = [(s, source) for s, source in turned if any(_name(r) == "cast" for r in readers.get(_var(s), ()))]
    return {_var(stmt): source for stmt, source in casts if _multiplies(stmt, readers)}


def _made(stmt: Stmt) -> Call | None:
    return stmt.value if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) else None


def _var(stmt: Stmt) -> Var:
    assert isinstance(stmt, AssignStmt)
    return stmt.var


def _name(stmt: Stmt) -> str:
    made = _made(stmt)
    return made.op.spec.name if made is not None else ""


def _readers(function: Function) -> dict[Var, list[Stmt]]:
    found: dict[Var, list[Stmt]] = {}
    for stmt in statements(function.body):
        for var in variables(used(stmt)):
            found.setdefault(var, []).append(stmt)
    return found


def _handed(program: Program) -> Program:
    """Return a program whose kernels are handed tensors of whose transposes they load tiles."""
    sources = {var: source for function in program.function_list for var, source in _turned(function).items()}
    calls: dict[str, list[Invoke | Submit]] = {}
    for expr in (e for f in program.function_list for stmt in statements(f.body) for e in expressions(stmt)):
        if isinstance(expr, (Invoke, Submit)):
            calls.setdefault(expr.op.name, []).append(expr)
    turned: dict[str, list[int]] = {}
    functions: list[Function] = []
    for function in program.function_list:
        made = calls.get(function.name, [])
        places = [
            at
            for at, param in enumerate(function.params)
            if made and all(call.args[at] in sources for call in made) and _is_only_multiplied(function, param)
        ]
        turned[function.name] = places
        functions.append(_with_turned(function, places) if places else function)
    straight = _Straight(sources, turned)
    return program.with_functions([f.with_body(straight.body(f.body)) for f in functions])


def _with_turned(function: Function, places: Sequence[int]) -> Function:
    """Return a function some of whose tensors lie on their side."""
    params = list(function.params)
    for at in places:
        params[at] = Var(params[at].name_hint, _swapped(params[at]), params[at].span)
    found = {function.params[at]: params[at] for at in places}
    return replace(function, params=tuple(params), body=_Turner(found).body(function.body))


def _swapped(tensor: Var) -> TensorType:
    assert isinstance(tensor.type, TensorType)
    *before, rows, columns = tensor.type.shape
    return replace(tensor.type, shape=(*before, columns, rows), valid=(*before, columns, rows))


def _is_only_multiplied(function: Function, tensor: Var) -> bool:
    """Return whether all that is done with a tensor is to load matrices that are right operands of products."""
    if not _is_plain(tensor):
        return False
    readers = _readers(function)
    loads = readers.get(tensor, [])
    return bool(loads) and all(_is_matrix(stmt) and _multiplies(stmt, readers) for stmt in loads)


def _is_matrix(stmt: Stmt) -> bool:
    """Return whether a statement loads a matrix as it lies."""
    load = _made(stmt)
    if load is None or load.op.name != "tile.load" or len(getattr(load.type, "shape", ())) != 2:
        return False
    given = arguments(load)
    return all(
        given.get(name) is None or isinstance(given.get(name), Absent) for name in ("mask", "pad", "valid_shape")
    )


def _multiplies(stmt: Stmt, readers: Mapping[Var, Sequence[Stmt]]) -> bool:
    """Return whether all that reads a tile multiplies by it, perhaps after a cast."""
    var = _var(stmt)
    return var in readers and all(_multiplies_by(reader, var, readers) for reader in readers[var])


def _multiplies_by(stmt: Stmt, var: Var, readers: Mapping[Var, Sequence[Stmt]]) -> bool:
    made, name = _made(stmt), _name(stmt)
    if made is None or name not in (*PRODUCTS, *SUMS):
        return name == "cast" and _multiplies(stmt, readers)
    given = arguments(made)
    return given["rhs"] is var is not given["lhs"]


class _Turner(Rewriter):
    """Loads of transposes as transposes of loads; casts of those as transposes of casts."""

    def __init__(self, sources: Mapping[Var, Var], lying: Mapping[Var, Var] | None = None) -> None:
        super().__init__()
        self.sources = sources
        self.lying = dict(lying or {})
        """The tiles as they lie, by what they are turned to."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load or cast a tile as it lies, and turn it then."""
        value = stmt.value
        if isinstance(value, Call) and value.op.name == "tile.load" and value.args[0] in self.sources:
            return self._turning(stmt, self._load(value))
        source = value.args[0] if isinstance(value, Call) and value.op.name == "tile.cast" else None
        if isinstance(value, Call) and isinstance(source, Var) and source in self.lying:
            given = {**arguments(value), "x": self.expr(self.lying[source])}
            return self._turning(stmt, call(value.op.spec, given, value.span))
        return super().assign(stmt)

    def _load(self, load: Call) -> Expr:
        given = {name: self.expr(x) if isinstance(x, Expr) else x for name, x in arguments(load).items()}
        pairs = {name: _last_swapped(x) for name, x in given.items() if name in ("offsets", "shapes")}
        assert isinstance(load.args[0], Var)
        return call(load.op.spec, {**given, **pairs, "tensor": self.sources[load.args[0]]}, load.span)

    def _turning(self, stmt: AssignStmt, lying: Expr) -> Sequence[Stmt]:
        var = Var(f"{stmt.var.name_hint}_lying", lying.type)
        self.lying[stmt.var] = var
        turned = call(OPS["tile.transpose"].spec, {"x": var, "axis1": -2, "axis2": -1}, stmt.span)
        return AssignStmt(var, lying, stmt.span), AssignStmt(self.define(stmt.var, turned.type), turned, stmt.span)


def _last_swapped(elements: object) -> MakeTuple:
    assert isinstance(elements, MakeTuple)
    *before, rows, columns = elements.elements
    return MakeTuple((*before, columns, rows))


class _Straight(Rewriter):
    """Calls that are given tensors themselves instead of their transposes, which nobody makes that nobody reads."""

    def __init__(self, sources: Mapping[Var, Var], places: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self.sources, self.places = sources, places

    def expr(self, expr: Expr) -> Expr:
        """Give a call what its kernel turns itself."""
        made = super().expr(expr)
        if not isinstance(made, (Invoke, Submit)) or not self.places.get(made.op.name):
            return made
        turned = self.places[made.op.name]
        args = [self.sources[a] if at in turned and isinstance(a, Var) else a for at, a in enumerate(made.args)]
        return replace(made, args=tuple(args))
