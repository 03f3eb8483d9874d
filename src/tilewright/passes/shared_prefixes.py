"""Shared prefixes: tiles of rows whose online folds end with the rows, and which fold alike what comes before.

`for first in range(0, row + 32, 32)` is causal attention: rows see what comes up to their own. Some tiles of rows
following each other all fold what comes before the first of them. They do that together, in tiles as the machine wants
them, and each goes on by itself from there. What a mask hides of the rest reaches no other rows that way: a weight of
zero times infinity is no number, and each of the tiles reads what it was written to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lcm

from tilewright.core.build import arguments, call, scalar
from tilewright.core.expr import ABSENT, Call, ConstInt, Expr, GlobalVar, Invoke, MakeTuple, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.op import OPS, Effect, Kind
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter, loop_bounds
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import defined, evaluated, invocations, statements, used, variables
from tilewright.errors import KernelError
from tilewright.passes.hidden_keys import HiddenKeys
from tilewright.passes.launches import runs_side_by_side
from tilewright.passes.online_folds import OnlineFold
from tilewright.passes.product_grids import Wanted
from tilewright.passes.spans import Span
from tilewright.passes.tile_axes import Axis, Class, TileAxes
from tilewright.passes.wider_tiles import Wider, with_kernels
from tilewright.records import record

VECTOR = 16
"""What rows and keys are multiples of: elements of a vector."""
TRANSPOSES = ("tile.transpose", "tile.transpose_view")
PRODUCTS = ("tile.matmul", "tile.matmul_acc")
FEWEST = 8
"""How many tiles of rows are left at least, of those that are taken together."""


def run(program: Program, wanted: Wanted) -> tuple[Program, tuple[str, ...]]:
    """Return a lowered program whose folds that end with their rows share what they can, and what was changed."""
    walk = _Walk(program, wanted)
    calling = {
        f.name for f in program.function_list if any(True for _ in invocations(f.body))
    }  # kernels stay as they are
    functions = [f.with_body(walk.body(f.body)) if f.name in calling else f for f in program.function_list]
    return (with_kernels(program, walk.made, functions), tuple(walk.notes)) if walk.made else (program, ())


class _Walk(Rewriter):
    """The functions of a program, with their grids of such folds in larger steps."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        super().__init__()
        self.program, self.wanted = program, wanted
        self.made: list[Function] = []
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a loop over tiles of rows; one that does something else may have some inside."""
        made = evaluated(stmt.body.stmts[0]) if len(stmt.body) == 1 else None
        if not isinstance(made, Invoke) or made.device is not None or not runs_side_by_side(stmt):
            return super().for_loop(stmt)
        rows = _rows(stmt, made, self.program[made.op.name], self.wanted)
        shared = rows and _shared(self.program[made.op.name], rows, self.wanted)
        wider = self._wider(stmt, made, shared) if shared else None
        return super().for_loop(stmt) if wider is None else (wider,)

    def _wider(self, stmt: ForStmt, made: Invoke, shared: SharedPrefix) -> Stmt | None:
        """Return a loop in other steps that calls another kernel, None where an op wants its operands as they were."""
        name, size = f"{made.op.name}_shared{len(self.made)}", shared.size
        try:
            self.made.append(shared.kernel(name))
        except KernelError:
            return None
        before = f"{stmt.loop_var.name_hint} by {size} instead of {shared.rows.step}"
        self.notes.append(f"{made.op.name}: {before} for what comes before")
        var = shared.rows.stepped(stmt.loop_var, size)
        (named,) = Rewriter({stmt.loop_var: var}).body(SeqStmts((EvalStmt(replace(made, op=GlobalVar(name))),)))
        return replace(stmt, loop_var=var, step=integer(size), body=SeqStmts((named,)))


@record
class Rows:
    """The rows that a loop steps over, as a kernel is told where it is."""

    param: Var
    length: int
    step: int
    most: int
    """How many may be taken together."""

    def stepped(self, var: Var, size: int) -> Var:
        """Return a variable that takes the values of another in steps of so many rows."""
        reach = loop_bounds(integer(0), integer(self.length), integer(size))
        return Var(var.name_hint, var.type, var.span, reach)


def _rows(loop: ForStmt, made: Invoke, function: Function, wanted: Wanted) -> Rows | None:
    """Return what a loop steps over, if all that a kernel is told of it is where it is."""
    params = [p for p, arg in zip(function.params, made.args, strict=True) if loop.loop_var in variables([arg])]
    start, stop, step = (as_extent(x) for x in (loop.start, loop.stop, loop.step))
    if len(params) != 1 or loop.loop_var not in made.args or defined(loop.body.stmts[0]):
        return None
    if start != 0 or not isinstance(stop, int) or not isinstance(step, int):
        return None
    most = min(max(wanted.queries, wanted.many_queries), stop // FEWEST)
    return Rows(params[0], stop, step, most) if 0 < step <= most // 2 else None


@record
class SharedPrefix:
    """A kernel with one online fold that ends with its rows, and how many of those, and of keys, are taken together."""

    function: Function
    rows: Rows
    fold: ForStmt
    size: int
    keys: int
    axes: dict[Axis, int]
    """The axes of tiles that are longer for rows that are taken together."""
    loads: tuple[frozenset[Var], frozenset[Var]]
    """What is loaded of the rows, and of the keys."""
    hidden: HiddenKeys | None
    """What no row sees of the keys."""

    def kernel(self, name: str) -> Function:
        """Return the kernel for rows that are taken together, of which each tile goes on by itself."""
        first, views = self.rows.stepped(self.rows.param, self.size), self._views()
        stmts = [stmt for stmt in self.function.body if stmt not in views]
        fold = replace(self.fold, body=SeqStmts(tuple(stmt for stmt in self.fold.body if stmt not in views)))
        stmts[stmts.index(self.fold)] = fold
        wider = _Together(self, first, replace(fold, stop=self.rows.param, step=integer(self.keys)))
        together = wider.body(SeqStmts((*stmts[: stmts.index(fold)], fold)))
        carried = [wider.replaced[var] for var in fold.return_vars]
        alone, end = self._alone(first, carried, fold, stmts), stmts[-1:] if isinstance(stmts[-1], ReturnStmt) else ()
        body = SeqStmts((*views, *_read([*together, alone, *end])))
        body = Rewriter().body(body)  # what is known of the tiles goes round the loops
        params = tuple(first if param is self.rows.param else param for param in self.function.params)
        return replace(self.function, name=name, params=params, body=body)

    def _views(self) -> list[Stmt]:
        """Return the statements that take parts of tensors, the same for all rows and keys: each tile folds some."""
        there, found = {*self.function.params} - {self.rows.param}, list[Stmt]()
        for stmt in (*self.function.body, *self.fold.body):
            made = stmt.value if isinstance(stmt, AssignStmt) else None
            is_view = isinstance(made, Call) and made.op.kind is Kind.TENSOR and made.op.spec.is_view
            if isinstance(stmt, AssignStmt) and is_view and {*variables(used(stmt))} <= there:
                there.add(stmt.var)
                found.append(stmt)
        return found

    def _alone(self, first: Var, carried: Sequence[Expr], fold: ForStmt, stmts: Sequence[Stmt]) -> ForStmt:
        """Return the loop over tiles that go on from what they have in common."""
        rows, index = self.rows, self.rows.param.type
        place = Var("place", index, bounds=loop_bounds(integer(0), integer(self.size), integer(rows.step)))
        here = rows.stepped(rows.param, rows.step)
        begin = AssignStmt(here, scalar("add", first, place))
        parts = [_part(whole, place, rows.step) for whole in carried]
        args = zip(fold.iter_args, parts, strict=True)
        inits = tuple(replace(arg, init=part.var) for arg, part in args)
        goes_on = replace(fold, start=first, stop=_from(fold.stop, rows, first, place), iter_args=inits)
        own = [goes_on if stmt is fold else stmt for stmt in stmts if not isinstance(stmt, ReturnStmt)]
        padded = self.loads[1] if self.hidden is not None else frozenset[Var]()
        body = _Alone({rows.param: here}, padded).body(SeqStmts(tuple(_read(own))))
        left = scalar("min", integer(self.size), scalar("sub", integer(rows.length), first))
        stop = left if rows.length % self.size else integer(self.size)
        return ForStmt(place, integer(0), stop, integer(rows.step), SeqStmts((begin, *parts, *body)))


class _Together(Wider):
    """What rows that are taken together fold: they see all of it, and of the last ones some are not there, but zero."""

    def __init__(self, shared: SharedPrefix, first: Var, loop: ForStmt) -> None:
        super().__init__({shared.rows.param: first}, shared.axes, {loop.loop_var: loop})
        self.padded = shared.loads[0] if shared.rows.length % shared.size else frozenset[Var]()
        self.hidden = shared.hidden

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load whole tiles, and take scores as they are."""
        if self.hidden is not None and stmt.var is self.hidden.seen:
            self.replaced[stmt.var] = self.expr(self.hidden.scores)
            return ()
        return super().assign(_padded(stmt) if stmt.var in self.padded else stmt)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Leave out what told which scores are seen."""
        (made,) = super().for_loop(stmt)
        assert isinstance(made, ForStmt)
        return (replace(made, body=SeqStmts(tuple(_read(made.body.stmts)))),)


class _Alone(Rewriter):
    """What each tile of rows goes on with: keys that are not there are zero, where nobody sees them."""

    def __init__(self, replaced: Mapping[Var, Expr], padded: frozenset[Var]) -> None:
        super().__init__(replaced, fresh=True)
        self.padded = padded

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load whole tiles."""
        return super().assign(_padded(stmt) if stmt.var in self.padded else stmt)


def _padded(stmt: AssignStmt) -> AssignStmt:
    """Return a load that fills up what is not there."""
    made = stmt.value
    assert isinstance(made, Call)
    return replace(stmt, value=call(made.op.spec, {**arguments(made), "pad": 0}, made.span))


def _part(whole: Expr, place: Expr, rows: int) -> AssignStmt:
    """Return the statement that takes some rows of what all carry."""
    assert isinstance(whole, Var) and isinstance(whole.type, TileType)
    shape = MakeTuple((integer(rows), integer(whole.type.shape[1])))
    asked = {"x": whole, "shape": shape, "offset": MakeTuple((place, integer(0)))}
    others = {"valid_shape": ABSENT, "drop_dims": None, "pad_value": None, "clamp": False}
    made = call(OPS["tile.slice"].spec, asked | others)
    return AssignStmt(Var(whole.name_hint, made.type), made)


def _read(stmts: Sequence[Stmt]) -> list[Stmt]:
    """Return statements without those that make what none of the others reads."""
    found, read = list[Stmt](), set[Var]()
    for stmt in reversed(stmts):
        if not isinstance(stmt, AssignStmt) or stmt.var in read or _writes(stmt):
            found.insert(0, stmt)
            read |= {var for each in statements(SeqStmts((stmt,))) for var in variables(used(each))}
    return found


def _writes(stmt: Stmt) -> bool:
    made = evaluated(stmt)
    return not isinstance(made, Call) or made.op.spec.effect not in (Effect.PURE, Effect.READ)


def _shared(function: Function, rows: Rows, wanted: Wanted) -> SharedPrefix | None:
    """Return a kernel as one whose rows share what comes before them, if it is such a one."""
    stmts = function.body.stmts
    folds = [stmt for stmt in stmts if isinstance(stmt, ForStmt)]
    others = [stmt for stmt in stmts if not isinstance(stmt, (ForStmt, AssignStmt, EvalStmt, ReturnStmt))]
    if len(folds) != 1 or others:
        return None
    (fold,) = folds
    before = stmts[: stmts.index(fold)]
    if any(map(_writes, before)) or not _ends_with(fold.stop, rows):
        return None
    known = replace(fold, stop=integer(rows.length))
    axes = TileAxes(SeqStmts((*before, known)))
    found = OnlineFold(known, axes)
    sizes = _sizes(found, axes, rows, wanted) if axes.is_plain and found.is_one else None
    if sizes is None:
        return None
    loads = _loads(axes.cut_by(rows.param), axes), _loads(found.keys, axes)
    if not all(_is_whole((tile, -1)) for tile in loads[0]):
        return None
    hidden = HiddenKeys.of(fold, axes.made, rows.param)
    if hidden is not None and not all(_is_whole((tile, -1)) and _is_multiplied(tile, fold) for tile in loads[1]):
        hidden = None  # what is made of nothing may be no number
    return SharedPrefix(function, rows, fold, *sizes, loads, hidden)


def _loads(classes: Sequence[Class], axes: TileAxes) -> frozenset[Var]:
    """Return what is loaded along some axes."""
    tiles = {tile for each in classes for tile, _ in each.axes}
    return frozenset(tile for tile in tiles if (made := axes.made.get(tile)) and made.op.name == "tile.load")


def _is_multiplied(tile: Var, fold: ForStmt) -> bool:
    """Return whether one product alone reads a tile of a fold, perhaps on its side."""
    readers = [stmt for stmt in fold.body if tile in variables(used(stmt))]
    (reader,) = readers if len(readers) == 1 else (None,)
    made = reader.value if isinstance(reader, AssignStmt) else None
    if not isinstance(reader, AssignStmt) or not isinstance(made, Call):
        return False
    if made.op.name in TRANSPOSES:
        return _is_multiplied(reader.var, fold)
    return made.op.name in PRODUCTS


def _ends_with(stop: Expr, rows: Rows) -> bool:
    """Return whether a loop ends some elements after rows begin, or where there are no more rows."""
    if isinstance(stop, Call) and stop.op.spec.name == "min":
        ends = [arg for arg in stop.args if not (isinstance(arg, ConstInt) and arg.value >= rows.length)]
        return len(ends) == 1 and _ends_with(ends[0], rows)
    if not isinstance(stop, Call) or stop.op.spec.name != "add":
        return False
    more = [arg for arg in stop.args if arg is not rows.param]
    return len(more) == 1 and isinstance(more[0], ConstInt) and more[0].value > 0


def _from(stop: Expr, rows: Rows, first: Expr, place: Expr) -> Expr:
    """Return where a loop ends, as a distance from where it begins, which tells in what steps it comes there."""
    assert isinstance(stop, Call)
    if stop.op.spec.name == "min":
        ends = [arg if isinstance(arg, ConstInt) else _from(arg, rows, first, place) for arg in stop.args]
        return scalar("min", *ends)
    (more,) = (arg for arg in stop.args if arg is not rows.param)
    return scalar("add", first, scalar("add", place, more))


def _sizes(fold: OnlineFold, axes: TileAxes, rows: Rows, wanted: Wanted) -> tuple[int, int, dict[Axis, int]] | None:
    """Return how many rows and keys are taken together, and the axes that are as long; None where they may not be.

    Tiles have all the rows that somebody said: nobody looks at what may not be there.
    """
    loop, step, cut = fold.loop, as_extent(fold.loop.step), axes.cut_by(rows.param)
    if as_extent(loop.start) != 0 or not isinstance(step, int) or {rows.param, loop.loop_var} & axes.fixed:
        return None
    carried = {id(axes.of(arg.var, -2)) for arg in loop.iter_args if isinstance(arg.var.type, TileType)}
    if not carried <= {id(each) for each in cut} or not all(
        _is_cut(each, rows.param, rows.step, rows.length) for each in cut
    ):
        return None
    if any(each.is_folded or each.is_summed or not all(map(_is_whole, each.axes)) for each in cut):
        return None
    if not all(_is_cut(each, loop.loop_var, step, rows.length) for each in fold.keys):
        return None
    unit = lcm(rows.step, step, VECTOR)
    size = rows.most // unit * unit
    if size < 2 * rows.step:
        return None
    keys = Span(0, integer(size), step, size, exact=True).wider(wanted.keys, VECTOR, VECTOR)
    longer = [(cut, size), (fold.keys, keys)]
    return size, keys, {axis: extent for classes, extent in longer for each in classes for axis in each.axes}


def _is_whole(axis: Axis) -> bool:
    """Return whether all that a tile has room for along an axis is there."""
    tile, number = axis
    return isinstance(tile.type, TileType) and tile.type.valid[number] == tile.type.shape[number]


def _is_cut(found: Class, by: Var, size: int, length: int) -> bool:
    """Return whether axes begin at a variable, are as long as its steps, and are cut from all there is."""
    extents = [cut.extent for cut in found.cuts if cut.times == 1]
    is_all = len(extents) == len(found.cuts) and all(isinstance(n, int) and n >= length for n in extents)
    return is_all and not found.is_fixed and found.begins_at(by) and found.sizes == {size}
