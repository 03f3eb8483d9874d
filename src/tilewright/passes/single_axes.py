"""Single axes: leading axes of one element that tiles lose after they are loaded, or get before they are stored.

A kernel loads `[1, 8, size]` of a tensor of three axes and works on `[8, size]`. As two tiles of different rows these
are in memory, both; but a matrix of the tensor can be loaded as one, and stored as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call
from tilewright.core.expr import Absent, Call, Expr, MakeTuple, Var, integer
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import TensorType, TileType, is_fully_valid
from tilewright.core.visitor import statements, used, variables
from tilewright.passes import dce

_PLAIN = {"valid_shape": None, "pad_value": None, "clamp": False}
"""What is asked of a slice that lies inside its tensor."""


def run(program: Program) -> Program:
    """Return a lowered program that loads and stores tiles without leading axes of one element, where it works so."""
    functions = [_without(function) for function in program.function_list]
    same = all(new is old for new, old in zip(functions, program.function_list, strict=True))
    return program if same else dce.run(program.with_functions(functions))


def _without(function: Function) -> Function:
    every = list(statements(function.body))
    views = {stmt.var: source for stmt in every if isinstance(stmt, AssignStmt) and (source := _seen(stmt.value))}
    if not views:
        return function
    readers: dict[Var, list[Stmt]] = {}
    for stmt in every:
        for var in variables(used(stmt)):
            readers.setdefault(var, []).append(stmt)
    loads = {s.var for s in every if isinstance(s, AssignStmt) and _is_cut(s, readers.get(s.var, ()), views)}
    return function.with_body(_Dropper(views, loads).body(function.body))


def _seen(value: Expr) -> Var | None:
    """Return the tile of which a value has all axes but leading ones of one element, which it may have more of."""
    source = value.args[0] if isinstance(value, Call) and value.op.name == "tile.reshape" else None
    if not isinstance(source, Var) or not isinstance(source.type, TileType) or not isinstance(value.type, TileType):
        return None
    is_same = _inner(source.type.shape) == _inner(value.type.shape) and source.type.dtype == value.type.dtype
    return source if is_same and is_fully_valid(source.type) and is_fully_valid(value.type) else None


def _inner(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape from its first axis of several elements on."""
    first = next((axis for axis, extent in enumerate(shape) if extent != 1), len(shape))
    return tuple(shape[first:])


def _is_cut(stmt: AssignStmt, readers: Sequence[Stmt], views: Mapping[Var, Var]) -> bool:
    """Return whether a statement loads a tile that is only looked at with fewer axes, the same for all."""
    made = stmt.value
    if not isinstance(made, Call) or made.op.name != "tile.load" or not isinstance(made.type, TileType):
        return False
    given, source = arguments(made), made.args[0].type
    if not isinstance(source, TensorType) or source.layout.is_permuted or not is_fully_valid(source):
        return False
    if not all(isinstance(extent, int) for extent in source.shape):
        return False
    seen = [reader.var for reader in readers if isinstance(reader, AssignStmt) and views.get(reader.var) is stmt.var]
    shapes = {var.type.shape for var in seen if isinstance(var.type, TileType)}
    is_plain = all(_is_absent(given.get(name)) for name in ("mask", "pad", "valid_shape")) and not given["clamp"]
    is_less = len(shapes) == 1 and len(next(iter(shapes))) < len(made.type.shape)
    return is_plain and is_less and len(seen) == len(readers)


def _is_absent(given: object) -> bool:
    return given is None or isinstance(given, Absent)


class _Dropper(Rewriter):
    """Loads of fewer axes, and stores of tiles as they are computed."""

    def __init__(self, views: Mapping[Var, Var], loads: set[Var]) -> None:
        super().__init__()
        self.views, self.loads = views, loads
        self.lower: dict[Var, Var] = {}
        """What is loaded with fewer axes, by the variable that had all of them."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load a matrix of a tensor; what it is looked at as is the matrix."""
        source = self.views.get(stmt.var)
        if source is not None and source in self.lower:
            self.replaced[stmt.var] = self.lower[source]
            return ()
        if stmt.var in self.loads and isinstance(stmt.value, Call):
            return self._load(stmt, stmt.value)
        stored = self._store(stmt.value)
        return super().assign(stmt if stored is None else AssignStmt(stmt.var, stored, stmt.span))

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Store a tile without axes that it has for that alone."""
        stored = self._store(stmt.expr)
        return super().evaluate(stmt if stored is None else EvalStmt(stored, stmt.span))

    def _load(self, stmt: AssignStmt, load: Call) -> Sequence[Stmt]:
        given = {name: self.expr(x) if isinstance(x, Expr) else x for name, x in arguments(load).items()}
        tensor, offsets, shapes = given["tensor"], given["offsets"], given["shapes"]
        assert isinstance(tensor, Expr) and isinstance(tensor.type, TensorType) and isinstance(load.type, TileType)
        assert isinstance(offsets, MakeTuple) and isinstance(shapes, MakeTuple)
        cut = len(load.type.shape) - len(self._shape_of(stmt.var))
        extents = [integer(extent) for extent in tensor.type.shape[cut:] if isinstance(extent, int)]
        window = {
            "x": tensor,
            "shape": MakeTuple((*[integer(1)] * cut, *extents)),
            "offset": MakeTuple((*offsets.elements[:cut], *[integer(0)] * len(extents))),
            "drop_dims": tuple(range(cut)),
            **_PLAIN,
        }
        sliced = call(OPS["tensor.slice"].spec, window, stmt.span)
        view = Var(f"{stmt.var.name_hint}_part", sliced.type)
        rest = {"offsets": MakeTuple(offsets.elements[cut:]), "shapes": MakeTuple(shapes.elements[cut:])}
        loaded = call(load.op.spec, {**given, "tensor": view, **rest}, stmt.span)
        self.lower[stmt.var] = Var(stmt.var.name_hint, loaded.type)
        return AssignStmt(view, sliced, stmt.span), AssignStmt(self.lower[stmt.var], loaded, stmt.span)

    def _shape_of(self, loaded: Var) -> tuple[int, ...]:
        """Return the shape as which a load is looked at."""
        seen = next(var for var, source in self.views.items() if source is loaded)
        assert isinstance(seen.type, TileType)
        return seen.type.shape

    def _store(self, value: Expr) -> Expr | None:
        """Return a store of a tile as it was before it was looked at with other axes, None for anything else."""
        if not isinstance(value, Call) or value.op.name != "tile.store":
            return None
        given = arguments(value)
        tile, offsets = given["tile"], given["offsets"]
        source = self.views.get(tile) if isinstance(tile, Var) else None
        if source is None or source in self.lower or not isinstance(offsets, MakeTuple):
            return None
        is_plain = _is_absent(given.get("mask")) and _is_absent(given.get("shapes"))
        fits = isinstance(source.type, TileType) and len(source.type.shape) <= len(offsets.elements)
        return call(value.op.spec, {**given, "tile": source}, value.span) if is_plain and fits else None
