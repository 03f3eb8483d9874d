"""Tile axes: which axes of a kernel's tiles are one axis, and from which loops they are cut.

Axes that an op joins element by element are one class: the rows of `a`, of `a @ b` and of what is stored. A load or a
store that begins at a loop's variable says that the class is cut by that loop; one that begins elsewhere, or an op that
tells the elements of an axis apart, says that its tiles mean what they are and cannot be others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeGuard

from tilewright.core.build import arguments
from tilewright.core.expr import ABSENT, Absent, Call, Const, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.op import Effect, Kind
from tilewright.core.operands import Bound
from tilewright.core.stmt import AssignStmt, ForStmt, ReturnStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import Extent, ScalarType, TensorType, TileType
from tilewright.core.visitor import bodies, defined, evaluated, used, variables
from tilewright.passes.made_axes import MADE, MadeAxes
from tilewright.passes.products import BIASED, PRODUCTS, SUMS, read_from
from tilewright.records import mutable, record

Axis = tuple[Var, int]
"""An axis of a tile, by its number."""

SAME = ("elementwise", "expansion", "mapped", "cast", "move")
"""Ops, by family or name, that make each element from those at its place, broadcast along axes of one element."""
FOLDS = ("row_max", "row_sum")
"""Folds that several tiles can share."""


@record
class Cut:
    """Where a load or a store takes an axis from: what it begins at, how far that axis of the tensor goes."""

    tensor: Var
    axis: int
    offset: Expr
    """Of an offset that is a multiple of a variable, the variable."""
    extent: Extent
    is_padded: bool = False
    times: int = 1
    """How many elements one step of the offset is."""


@mutable
class Class:
    """Axes that are one: how long they are in tiles, where they are cut from, and what they must not be."""

    sizes: set[int]
    axes: list[Axis]
    cuts: list[Cut] = field(default_factory=list[Cut])
    is_fixed: bool = False
    is_folded: bool = False
    """Whether the rest of a row is folded along it."""
    is_summed: bool = False
    """Whether products sum over it."""
    is_whole: bool = False
    """Whether all that it has of a tile is taken to be there, whatever a tensor has left."""
    counted: set[Var] = field(default_factory=set[Var])
    """Variables that numbers of its elements begin at."""
    roles: set[int] = field(default_factory=set[int])
    """Whether products have it as their rows, 0, or their columns, 1; or columns are folded along it that are loaded
    or made of such, 2; or it is a side of a matrix that is loaded, turned and stored, 3 and 4."""

    def take_in(self, other: Class) -> None:
        """Make the axes of another class ones of this."""
        self.sizes |= other.sizes
        self.cuts += other.cuts
        self.axes += other.axes
        self.is_fixed |= other.is_fixed
        self.is_folded |= other.is_folded
        self.is_whole |= other.is_whole
        self.counted |= other.counted
        self.is_summed |= other.is_summed
        self.roles |= other.roles

    @property
    def is_sole(self) -> bool:
        """Whether all of it is the one element that an axis of a tensor has."""
        return bool(self.cuts) and all(cut.extent == 1 and is_number(cut.offset, 0) for cut in self.cuts)

    def begins_at(self, var: Var) -> bool:
        """Return whether all that says where tiles begin says that they begin at a variable."""
        return all(cut.offset is var for cut in self.cuts) and self.counted <= {var}


class TileAxes:
    """The classes of axes of the tiles in some statements."""

    def __init__(self, body: SeqStmts) -> None:
        self._classes: dict[Axis, Class] = {}
        self.fixed: set[Var] = set()
        """Scalars that are used in other ways than as offsets."""
        self.loops: dict[Var, ForStmt] = {}
        """The loops among the statements, by their variables."""
        self.made: dict[Var, Call] = {}
        """What makes each tile."""
        self.stores: list[tuple[Cut, ...]] = []
        self.reads_in_place = True
        """Whether the right operands of products are tiles as they were loaded, or casts of such."""
        self.is_plain = True
        """Whether the statements only load, compute and store, as often as there are tiles."""
        self._made = MadeAxes()
        self._unplaced: dict[Expr, int] = {}
        """Tiles of numbers that count from zero along an axis, wherever they begin."""
        self._body(body)

    @property
    def sums(self) -> int:
        """How many tiles loops carry."""
        return sum(_is_tile(arg.var) for loop in self.loops.values() for arg in loop.iter_args)

    def of(self, var: Var, axis: int) -> Class:
        """Return the class of an axis of a tile."""
        assert isinstance(var.type, TileType)
        key = var, axis % len(var.type.shape)
        if key not in self._classes:
            self._classes[key] = Class({var.type.shape[key[1]]}, [key])
        return self._classes[key]

    def classes(self) -> Iterator[Class]:
        """Yield every class once."""
        yield from {id(found): found for found in self._classes.values()}.values()

    def cut_by(self, loop: Var) -> list[Class]:
        """Return the classes that begin at a loop's variable somewhere."""
        return [found for found in self.classes() if any(cut.offset is loop for cut in found.cuts)]

    def _join(self, first: Axis, second: Axis) -> None:
        one, other = self.of(*first), self.of(*second)
        if one is other:
            return
        one.take_in(other)
        self._classes.update(dict.fromkeys(other.axes, one))

    def _body(self, body: SeqStmts) -> None:
        for stmt in body:
            self._stmt(stmt)

    def _stmt(self, stmt: Stmt) -> None:
        value = evaluated(stmt)
        if isinstance(value, Call) and value.op.kind is Kind.TILE:
            self._op(stmt.var if isinstance(stmt, AssignStmt) else None, value)
        elif isinstance(stmt, ForStmt):
            self._loop(stmt)
        else:
            self.is_plain &= isinstance(stmt, ReturnStmt) or isinstance(value, (Call, Const)) and bool(defined(stmt))
            self._fix([*used(stmt), *defined(stmt)])
            for inner in bodies(stmt):
                self._body(inner)

    def _loop(self, loop: ForStmt) -> None:
        """Note a loop: what it carries keeps its axes."""
        self.loops[loop.loop_var] = loop
        self._fix([loop.start, loop.stop, loop.step])
        self._made.enter(loop)
        *stmts, last = loop.body.stmts or (YieldStmt(()),)
        handed = last.values if isinstance(last, YieldStmt) else ()
        self._body(SeqStmts((*stmts,) if isinstance(last, YieldStmt) else loop.body.stmts))
        for arg, value, result in zip(loop.iter_args, handed, loop.return_vars, strict=True) if handed else ():
            self._fix({arg.init, value} & self._unplaced.keys())
            self._same([arg.var, arg.init, value, result])
        self._made.leave(loop)
        if len(handed) != len(loop.iter_args):
            self._fix([*(var for var in defined(loop) if var is not loop.loop_var), *used(loop)])

    def _op(self, var: Var | None, call: Call) -> None:
        spec, given = call.op.spec, arguments(call)
        tiles = [a for a in call.args if isinstance(a, Var) and isinstance(a.type, TileType)]
        whole = [*tiles, *([var] if var is not None else [])]
        if var is not None:
            self.made[var] = call
        if spec.name in ("load", "store"):
            self._transfer(var, call)
            return
        self.is_plain &= spec.effect is not Effect.WRITE
        begin = self._count(var, call) if var is not None else None
        self._fix(v for v in variables(_scalars(call)) if v is not begin and not _starts(call, v))
        is_mapped = spec.family in SAME or spec.name in SAME or _only_adds_ones(var, call)
        for axis in self._made.meet(var, call, tiles, is_mapped) if var is not None else ():
            self.of(*axis).is_whole = True
        if is_mapped:
            self._same(whole, operands=tiles)
        elif spec.name in PRODUCTS + SUMS + BIASED and var is not None:
            self._product(var, given.get("acc", given.get("bias")), given["lhs"], given["rhs"])
        elif _turns(call) and var is not None:
            self._join((tiles[0], -1), (var, -2))
            self._join((tiles[0], -2), (var, -1))
        elif spec.family == "reduction" and var is not None and len(tiles) == 1:
            self._same(whole)
            folded = tiles[0], -1 if spec.name.startswith("row") else -2  # of one element, too: others may join it
            self._fix_axes([folded] if spec.name not in FOLDS else ())
            self.of(*folded).is_folded = True
            if spec.name.startswith("col") and _is_of_loads(self.made, tiles[0]):
                self.of(var, -1).roles.add(2)
        elif spec.name in ("slice", "strided") and var is not None and len(_shape(tiles[0])) == len(_shape(var)):
            self._window(tiles[0], var, given)
        elif spec.name not in MADE:
            self._fix(whole)

    def _count(self, var: Var, call: Call) -> Var | None:
        """Note the numbers of elements; return the variable that they begin at, where an op says so."""
        axis, start = _numbers(call, self._unplaced)
        if isinstance(start, Var):
            self.of(var, axis).counted.add(start)
            return start
        self._fix([var] if start is None and call.op.spec.name == "iota" else self._unplaced.keys() & {*call.args})
        self._unplaced |= {var: axis} if start is not None else {}
        return None

    def _product(self, result: Var, beside: object, lhs: object, rhs: object) -> None:
        assert isinstance(lhs, Var) and isinstance(rhs, Var)
        self._join((lhs, -1), (rhs, -2))
        self._join((lhs, -2), (result, -2))
        self._join((rhs, -1), (result, -1))
        for tile in (lhs, rhs, result):
            self._fix_axes((tile, axis) for axis in range(len(_shape(tile)) - 2))
        if isinstance(beside, Var):
            self._same([beside, result])
        self.reads_in_place &= read_from(self.made, rhs) is not None
        self.of(lhs, -1).is_summed = True
        self.of(result, -2).roles.add(0)
        self.of(result, -1).roles.add(1)

    def _window(self, whole: Var, part: Var, given: Bound) -> None:
        """Join the axes of which a part has all elements; of the others it matters which they are."""
        for axis, is_all in enumerate(_has_all(whole, part, given)):
            if is_all:
                self._join((whole, axis), (part, axis))
            else:
                self._fix_axes([(whole, axis), (part, axis)])

    def _transfer(self, var: Var | None, call: Call) -> None:
        """Note what a load or a store says of the axes of its tile."""
        given, is_stored = arguments(call), call.op.spec.name == "store"
        tile, tensor = (given["tile"], given["output_tensor"]) if is_stored else (var, given["tensor"])
        offsets, pad = given["offsets"], given.get("pad")
        others = [given.get(name) for name in ("mask", "valid_shape")] + [given.get("shapes") if is_stored else None]
        assert isinstance(tile, Var) and isinstance(tensor, Var) and isinstance(offsets, MakeTuple)
        type_, shape = tensor.type, _shape(tile)
        assert isinstance(type_, TensorType)
        before = len(type_.shape) - len(shape)  # axes of which the tile has one element
        plain = all(x is None or isinstance(x, Absent) for x in others) and before >= 0
        if not plain or type_.valid != type_.shape or pad not in (None, 0):
            self._fix([*call.args, tile])
            return
        starts = [multiple_of(offset) for offset in offsets.elements[before:]]
        self._fix(v for offset, _ in starts if not isinstance(offset, Var) for v in variables([offset]))
        self._fix([*offsets.elements[:before], *self._unplaced.keys() & {tile}])
        cuts = tuple(
            Cut(tensor, before + axis, offset, extent, pad is not None, times)
            for axis, ((offset, times), extent) in enumerate(zip(starts, type_.shape[before:], strict=True))
        )
        for axis, cut in enumerate(cuts):
            self.of(tile, axis).cuts.append(cut)
            self.of(tile, axis).is_whole |= self._made.is_made((tile, axis - len(shape)))
        if is_stored:
            self.stores.append(cuts)
            _note_sides(self, tile)

    def _same(self, tiles: Iterable[Expr], operands: Sequence[Expr] = ()) -> None:
        """Join the axes of tiles, counted from the last; those of one element are repeated along the others.

        So is the only row of a tensor beside operands of one row, whatever becomes of those.
        """
        found = list(filter(_is_tile, tiles))
        for number in range(max((len(_shape(tile)) for tile in found), default=0)):
            axes = [(tile, -1 - number) for tile in found if number < len(_shape(tile))]
            others = [axis for axis in axes if axis[0] not in operands or not self.of(*axis).is_sole]
            is_repeated = any(tile in operands for tile, _ in others)
            first: dict[int, Axis] = {}
            for axis in others if is_repeated else axes:
                self._join(first.setdefault(_shape(axis[0])[axis[1]], axis), axis)

    def _fix(self, exprs: Iterable[Expr]) -> None:
        """Note that expressions are used in ways that nobody here understands."""
        for var in variables(exprs):
            if isinstance(var.type, TileType):
                self._fix_axes((var, axis) for axis in range(len(var.type.shape)))
            elif isinstance(var.type, ScalarType):
                self.fixed.add(var)

    def _fix_axes(self, axes: Iterable[Axis]) -> None:
        for axis in axes:
            self.of(*axis).is_fixed = True


def _is_of_loads(made: Mapping[Var, Call], tile: Var) -> bool:
    """Return whether a tile is loaded, or computed element by element of tiles that are."""
    pending = [tile]
    for each in pending:
        spec = made[each].op.spec if each in made else None
        if spec is None or not (spec.family in SAME or spec.name in (*SAME, "load")):
            return False
        pending += [source for source in filter(_is_tile, made[each].args) if source not in pending]
    return True


def multiple_of(offset: Expr) -> tuple[Expr, int]:
    """Return a variable and how many times it is an offset; any other offset is itself once."""
    if isinstance(offset, Call) and offset.op.kind is Kind.SCALAR and offset.op.spec.name == "mul":
        for var, times in (offset.args, offset.args[::-1]):
            if isinstance(var, Var) and isinstance(times, ConstInt) and times.value > 0:
                return var, int(times.value)
    return offset, 1


def is_number(value: object, number: int) -> bool:
    """Return whether a value is a constant of a number, of whatever type."""
    return isinstance(value, Const) and value.value == number


def _is_tile(value: Expr) -> TypeGuard[Var]:
    return isinstance(value, Var) and isinstance(value.type, TileType)


def _shape(tile: Var) -> tuple[int, ...]:
    assert isinstance(tile.type, TileType)
    return tile.type.shape


def _only_adds_ones(var: Var | None, call: Call) -> bool:
    """Return whether an op only adds or takes away axes of one element ahead of all others."""
    source = call.args[0] if call.op.spec.name == "reshape" else None
    return var is not None and isinstance(source, Var) and _trimmed(source) == _trimmed(var)


def _trimmed(tile: Var) -> tuple[int, ...]:
    """Return the extents of a tile without axes of one element ahead of all others."""
    shape = _shape(tile)
    return shape[next((axis for axis, extent in enumerate(shape) if extent != 1), len(shape)) :]


def _numbers(call: Call, unplaced: Mapping[Expr, int]) -> tuple[int, Expr | None]:
    """Return along which axis an op counts one by one, and from where; from None where it does something else."""
    given = arguments(call)
    if call.op.spec.name == "iota" and is_number(given["step"], 1):
        start, axis = given["start"], given["axis"]
        assert isinstance(start, Expr) and isinstance(axis, int)
        return axis, start if isinstance(start, Var) or is_number(start, 0) else None
    tiles, others = [x for x in call.args if x in unplaced], [x for x in _scalars(call) if isinstance(x, Var)]
    is_placed = call.op.spec.name == "add" and len(tiles) == len(others) == 1
    return (unplaced[tiles[0]], others[0]) if is_placed else (0, None)


def _has_all(whole: Var, part: Var, given: Bound) -> list[bool]:
    """Return whether a part of a tile has all elements along each axis."""
    offset, steps, shape = given.get("offset"), given.get("steps"), _shape(part)
    starts = offset.elements if isinstance(offset, MakeTuple) else [integer(0)] * len(shape)
    by = steps if isinstance(steps, tuple) else [1] * len(shape)
    plain = not given.get("drop_dims") and isinstance(given.get("valid_shape") or ABSENT, Absent)
    every = zip(starts, by, shape, _shape(whole), strict=True)
    return [step == 1 and is_number(start, 0) and size == before and plain for start, step, size, before in every]


def _scalars(call: Call) -> list[Expr]:
    """Return the operands of an op that are not tiles or tensors."""
    return [a for a in call.args if not isinstance(a.type, (TileType, TensorType))]


def _turns(call: Call) -> bool:
    """Return whether an op swaps the axes of a matrix."""
    given = arguments(call)
    if call.op.spec.name == "transpose":
        axes = {axis % 2 for axis in (given["axis1"], given["axis2"]) if isinstance(axis, int)}
        return isinstance(call.type, TileType) and len(call.type.shape) == 2 == len(axes)
    return call.op.spec.name == "transpose_view"


def _note_sides(axes: TileAxes, stored: Var) -> None:
    """Give the axes of a tile their roles where it is a matrix as it was loaded, but on its side."""
    turned = axes.made.get(stored)
    source = turned.args[0] if turned is not None and _turns(turned) else None
    if isinstance(source, Var) and source in axes.made and axes.made[source].op.spec.name == "load":
        for axis, role in ((-2, 3), (-1, 4)):
            axes.of(stored, axis).roles.add(role)


def _starts(call: Call, loop: Var) -> bool:
    """Return whether an op only asks of a loop's variable whether the sum begins: `init_cond=k == 0`."""
    first = arguments(call).get("init_cond")
    if not isinstance(first, Call) or first.op.spec.name != "eq" or variables(_scalars(call)) != [loop]:
        return False
    return first.args[0] is loop and isinstance(first.args[1], Const) and first.args[1].value == 0
