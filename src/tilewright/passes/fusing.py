"""Fusing: for each tile op, what waits and what is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tilewright.core.expr import Call, Const, Expr, MakeTuple, Var
from tilewright.core.op import OpSpec
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import BOOL, FP64, DataType
from tilewright.ops.pipes import PIPES
from tilewright.ops.product_types import SMALL_FLOATS
from tilewright.passes.chains import tiles_on_their_side
from tilewright.passes.few_rows import factors, most_few
from tilewright.passes.fusion import Extent, Fusion, Waiting, spans
from tilewright.passes.fusion_walk import Given, Rule, Walk, along_rows, is_there, known, number, strays
from tilewright.passes.multiplied_casts import multiplied_casts
from tilewright.passes.scaled_sums import scaled_sums


def fusion(function: Function, roots: Mapping[Var, Var], turned: Collection[Var] = ()) -> Fusion:
    """Return the groups of a function.

    `roots` has the same for tensors that may share memory; neighbours along the last axis of `turned` parameters
    may lie apart.
    """
    walk = Walk(function, roots, set(turned), _rule_of)
    walk.on_their_side = tiles_on_their_side(function)
    walk.body(function.body)
    plan = walk.recorder.plan
    for stmt in multiplied_casts(function):
        plan.note(stmt, multiplied=True)
    for stmt in scaled_sums(function):
        plan.note(stmt, stays=True)
    return plan


_RULES: dict[str, Rule] = {}
"""What waits and what is needed, by the name or the family of a tile op."""


def _rule_of(spec: OpSpec) -> Rule:
    return _RULES.get(spec.name) or _RULES.get(spec.family) or Walk.needing


def _plans(*names: str) -> Callable[[Rule], Rule]:
    def sign(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return sign


@_plans(*PIPES)
def _handed_over(w: Walk, call: Call, given: Given) -> Waiting | None:
    w.recorder.end(f"`{call.op.name}` lets others run")
    return w.in_memory(call)


@_plans("elementwise", "expansion", "mapped")
def _elementwise(w: Walk, call: Call, given: Given) -> Waiting:
    operands = w.tiles(given, *call.op.spec.data)
    shape = _shape(call)
    return w.map(shape, spans(operands, len(shape)), operands)


@_plans("row_expand_add")
def _add_rows(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let rows be repeated as they are met; of those with one valid column, that column is read from memory."""
    x, vec = w.tiles(given, *call.op.spec.data)
    is_column = vec.valid[-1] == 1
    if is_column and not vec.is_column:
        w.recorder.need(vec)
    return w.map(_shape(call), x.valid, [x, vec], alone=is_column)


@_plans("cast")
def _cast(w: Walk, call: Call, given: Given) -> Waiting:
    (x,) = w.tiles(given, "x")
    return w.map(x.shape, x.valid, [x])


@_plans("full", "expands", "ci", "iota", "tri")
def _full(w: Walk, call: Call, given: Given) -> Waiting:
    target = w.tiles(given, "target")
    assert isinstance(call.type, TileType)
    own = [(id(call), axis) for axis in range(len(call.type.shape))]  # what only the running program knows
    return w.map(_shape(call), target[0].valid if target else known(call.type, own), ())


@_plans("partial")
def _partial(w: Walk, call: Call, given: Given) -> Waiting:
    lhs, rhs = w.tiles(given, "lhs", "rhs")
    shape = _shape(call)
    valid = spans([lhs, rhs], len(shape))
    if all(_covers(rhs, extent, axis - len(valid)) for axis, extent in enumerate(valid)):
        return w.map(shape, valid, [lhs, rhs])
    w.recorder.need(w.map(shape, valid, [lhs], alone=False))
    both = [(id(call), axis) for axis in range(len(valid))]
    w.recorder.need(w.map(shape, both, [lhs, rhs], alone=False))
    return Waiting(shape, valid)


@_plans("reduction")
def _reduction(w: Walk, call: Call, given: Given) -> Waiting | None:
    (x,) = w.tiles(given, "x")
    if not call.op.spec.name.startswith("row") and x.loaded is not None and x.tensor not in w.turned:
        w.withdraw(x)  # columns are folded where they lie
    from tilewright.passes.gathers import note_pick  # few kernels fold or gather

    note_pick(w, call, x)
    return _folded(w, call, x, lambda: w.recorder.record(_column(call, x), [x], may_float=False))


@_plans("position")
def _position(w: Walk, call: Call, given: Given) -> Waiting | None:
    (x,) = w.tiles(given, "x")

    def found() -> Waiting:
        x.turned = False
        best = w.recorder.record(_column(call, x), [x], may_float=False)
        return w.recorder.record(_column(call, x), [x, best], may_float=False)

    return _folded(w, call, x, found)


def _folded(w: Walk, call: Call, x: Waiting, row: Callable[[], Waiting]) -> Waiting | None:
    """Return a fold's result: columns fold in memory, a row of one element is itself, others as `row` records."""
    if not call.op.spec.name.startswith("row"):
        w.recorder.need(x)
        return w.in_memory(call, (*x.valid[:-2], 1, x.valid[-1]))
    return w.map(_shape(call), (*x.rows, 1), [x]) if x.is_column else row()


def _column(call: Call, x: Waiting) -> Waiting:
    return Waiting(_shape(call), (*x.rows, 1))


@_plans("load")
def _load(w: Walk, call: Call, given: Given) -> Waiting | None:
    tensor, stmt, starts, wanted = given["tensor"], w.recorder.stmt, given["offsets"], given["valid_shape"]
    if isinstance(tensor, Var) and is_there(given["mask"]):
        return _masked_load(w, call, given, tensor)
    if not isinstance(tensor, Var) or not isinstance(starts, MakeTuple) or _is_apart(given["pad"], tensor):
        w.recorder.end("a padded or permuted load follows")
        return w.in_memory(call)
    assert isinstance(call.type, TileType)
    if stmt is not None and strays(w, call.type, starts):
        w.recorder.plan.note(stmt, strays=True)
    shape, reach = call.type.shape, [_reach(tensor, axis) for axis in range(len(call.type.shape))]
    asked = [number(size) for size in wanted.elements] if isinstance(wanted, MakeTuple) else shape
    cut = zip(reach, starts.elements, asked, shape, strict=True)
    found = [1 if not given["clamp"] and _finds_one(each[0], each[2]) else each for each in cut]
    tile = Waiting(shape, known(call.type, found), loaded=stmt, tensor=tensor, turned=along_rows(shape))
    tile.corner = w.recorder.corner(tensor, [number(start) for start in starts.elements])
    if stmt is not None and _is_plain(call.type.dtype) and w.is_multiplied(stmt):
        w.recorder.after_stores(tensor)
        w.recorder.plan.note(stmt, in_place=True)
        return tile
    return w.recorder.load(tile, may_float=tensor not in w.turned and not w.is_copied(stmt))


def _reach(tensor: Var, axis: int) -> Extent:
    """Return what a load is cut by along an axis: where tensors are known to end, those that end there are alike."""
    end = tensor.type.valid[axis] if isinstance(tensor.type, TensorType) else None
    return end if isinstance(end, int) else (tensor, axis)


def _finds_one(end: Extent, asked: Extent) -> bool:
    """Return whether a load asks for one element of an axis that has some, and so may not start where there is none."""
    return asked == 1 and isinstance(end, int) and end > 0


def _masked_load(w: Walk, call: Call, given: Given, tensor: Var) -> Waiting:
    """Let a load wait with its mask, which may too."""
    w.recorder.after_stores(tensor)
    rows = Waiting(_shape(call), _shape(call), turned=False)
    tile = w.map(rows.shape, rows.valid, [*w.tiles(given, "mask"), rows], alone=False)
    tile.tensor = tensor
    w.recorder.loads.append(tile)
    return tile


def _is_apart(pad: Argument, tensor: Var) -> bool:
    """Return whether a load is written on its own: it fills what is not there, or puts elements in order."""
    return is_there(pad) or (isinstance(tensor.type, TensorType) and tensor.type.layout.is_permuted)


@_plans("store")
def _store(w: Walk, call: Call, given: Given) -> None:
    (tile,), shapes = w.tiles(given, "tile"), given["shapes"]
    if isinstance(shapes, MakeTuple):
        w.recorder.need(tile)
        shape = tuple(int(n.value) if isinstance(n, Const) else 0 for n in shapes.elements)
        tile = Waiting(shape, shape)
    if is_there(given["mask"]):
        if tile.is_column and tile.valid[-1] != 1:
            w.recorder.need(tile)
            tile = Waiting((1, 1), ((id(call), 0), 1)) if len(tile.shape) == 1 else tile
            tile = Waiting(tile.shape, ((id(call), 1), *tile.valid[1:-1], 1))
        tile = w.map(tile.shape, tile.valid, [tile, *w.tiles(given, "mask")], alone=False)
    w.write(tile, given["output_tensor"], given["offsets"])


@_plans("cmp")
def _compare(w: Walk, call: Call, given: Given) -> Waiting | None:
    operands, result, stmt = w.tiles(given, "lhs", "rhs"), w.in_memory(call), w.recorder.stmt
    shape = _broadcast(operands)
    bools = w.map(shape, spans(operands, len(shape)), operands)
    assert result is not None and stmt is not None
    if isinstance(stmt, AssignStmt) and _only_chooses(w, stmt.var):
        w.recorder.plan.note(stmt, only_chooses=True)
        result.bools, result.owners = bools, bools.owners
    else:
        w.recorder.need(bools)
    return result


def _only_chooses(w: Walk, mask: Var) -> bool:
    """Return whether nothing but `sel` and `sels` in the same body reads a mask."""
    here = {id(stmt) for stmt in w.here}
    return all(id(stmt) in here and _is_choice(stmt, mask) for stmt in w.readers.get(mask, ()))


def _is_choice(stmt: Stmt, mask: Var) -> bool:
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(value, Call) or value.op.name not in ("tile.sel", "tile.sels"):
        return False
    return mask not in variables(value.args[1:])


@_plans("sel", "sels")
def _choose(w: Walk, call: Call, given: Given) -> Waiting:
    (mask,), taken = w.tiles(given, "mask"), w.tiles(given, "lhs", "src", "rhs")
    bools = [mask] if _is_bool(given["mask"]) else [] if mask.bools is None else [mask.bools]
    w.recorder.need(None if bools else mask)
    assert isinstance(call.type, TileType)
    valid = spans(taken, len(call.type.shape))
    return w.map(call.type.shape, known(call.type, valid), [*bools, *taken])


def _is_bool(mask: Argument) -> bool:
    return isinstance(mask, Expr) and isinstance(mask.type, TileType) and mask.type.dtype == BOOL


@_plans("move")
def _move(w: Walk, call: Call, given: Given) -> Waiting:
    return w.tiles(given, "tile")[0]


@_plans("fillpad", "set_validshape")
def _resized(w: Walk, call: Call, given: Given) -> Waiting | None:
    (x,), result = w.tiles(given, "x"), w.in_memory(call)
    if result is not None and result.valid == x.valid:
        return x
    return _put_together(w, call, given) if call.op.spec.name == "fillpad" else w.needing(call, given)


@_plans("reshape")
def _reshape(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let a row that is loaded to be seen otherwise be in memory ahead of the group that goes on."""
    for tile in w.tiles(given, "x"):
        if tile.floats and tile.loaded is not None:
            w.withdraw(tile)
    return w.needing(call, given)


@_plans("slice", "extract", "strided", "flip", "gather_mask", "reinterpret_view")
@_plans("ravel_index", "take", "mgather", "gather", "pick")
def _picked(w: Walk, call: Call, given: Given) -> Waiting | None:
    from tilewright.passes import gathers, parts  # few kernels pick

    return gathers.RULES.get(call.op.spec.name, parts.part)(w, call, given)


@_plans("scan")
def _scan(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let rows be read where they lie, and go where they are stored, unless that is where they lie."""
    (x,) = w.tiles(given, "x")
    read: list[Var] = []
    if x.tensor is not None and x.tensor not in w.turned and w.withdraw(x):
        read.append(x.tensor)
    scanned = w.needing(call, given)
    assert scanned is not None
    w.straighten(scanned.rows, read=read)
    return scanned


@_plans("scatter_mask")
def _spread_columns(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let columns that are computed be put between others row by row; those that are loaded are put where they go."""
    (dst, src), stmt = w.tiles(given, "dst", "src"), w.recorder.stmt
    waits = w.recorder.waits(dst) and w.recorder.waits(src) and src.loaded is None and not dst.is_column
    if stmt is not None and waits and all(tile.valid == tile.shape for tile in (dst, src)):
        w.recorder.plan.note(stmt, joins=True)
        return w.map(_shape(call), dst.valid, [dst, src], alone=False)
    return _put_together(w, call, given)


@_plans("concat", "fillpad_expand", "fillpad_inplace")
def _put_together(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let parts of a tile be read where they lie, and be written where a store alone wants them."""
    tiles, fills = w.tiles(given), call.op.spec.name.startswith("fillpad")
    for tile in tiles:
        if tile.tensor not in w.turned and len(tile.shape) == 2 and (fills or tile.valid[-1] == tile.shape[-1]):
            w.withdraw(tile)
    put = w.needing(call, given)
    read = [tile for tile in tiles if tile.loaded is not None and w.recorder.plan.at(tile.loaded).in_place]
    if put is not None and len(read) == len(tiles):
        w.recorder.end(f"`{call.op.spec.name}` works on what is in memory")
        loads = [load for tile in read if (load := _load_of(tile)) is not None and not fills]
        parts = [tile.tensor for tile in read if tile.tensor is not None and (fills or _load_of(tile) is None)]
        w.straighten(put.rows, loads, parts)  # what is filled is written before it is read
    return put


def _load_of(tile: Waiting) -> Call | None:
    """Return the load that gives a tile; None for part of another."""
    call = tile.loaded.value if isinstance(tile.loaded, AssignStmt) else None
    return call if isinstance(call, Call) and call.op.spec.name == "load" else None


@_plans("atomic")
def _update(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let what changes a tensor be read where it lies in another one."""
    x = given["x"]
    for tile in w.tiles(given, "indices", "values"):
        apart = tile.tensor is not None and isinstance(x, Var) and not w.recorder.may_meet(tile.tensor, x)
        if apart:
            w.withdraw(tile)
    return w.needing(call, given)


@_plans("transpose", "transpose_view")
def _transpose(w: Walk, call: Call, given: Given) -> Waiting | None:
    from tilewright.passes.transposes import transpose  # few kernels turn tiles

    return transpose(w, call, given)


@_plans("matmul", "matmul_acc", "matmul_bias", "batch_matmul", "batch_matmul_acc", "gemv", "gemv_acc", "gemv_bias")
def _product(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let a product read its operands where they lie; whether it does is its own affair."""
    lhs, rhs = w.tiles(given, "lhs", "rhs")
    acc = w.tiles(given, "acc")
    valid = (*spans([lhs, rhs, *acc], len(_shape(call)) - 2, 2), lhs.valid[-2], rhs.valid[-1])
    for sum_ in acc:
        axes = enumerate(zip(sum_.valid, valid, _shape(call), strict=True))
        valid = tuple(v if have in (v, most) else (id(w.recorder.stmt), axis) for axis, (have, v, most) in axes)
    read = [_multiplied(w, tile, given[name]) for name, tile in (("lhs", lhs), ("rhs", rhs))]
    for tile in read[: 1 + (rhs.tensor not in w.turned)]:
        w.withdraw(tile)
    w.recorder.need(*read, *w.tiles(given, "acc", "bias"))
    if "acc" in given:
        w.recorder.end("a product is added to what is in memory")
    made = w.in_memory(call, valid)
    is_many = made is not None and made.shape[-2] > most_few(factors(call))  # few are summed in memory
    if call.op.spec.name == "matmul" and made is not None and is_many:
        in_place = (tile for tile in (lhs, rhs) if tile.loaded is not None and w.recorder.plan.at(tile.loaded).in_place)
        w.straighten(made.rows, read=[tile.tensor for tile in in_place if tile.tensor is not None])
    return made


def _multiplied(w: Walk, tile: Waiting, expr: Argument) -> Waiting:
    """Return an operand with elements that are multiplied as they are: neither long nor small floats."""
    assert isinstance(expr, Expr) and isinstance(expr.type, TileType)
    return tile if _is_plain(expr.type.dtype) else w.map(tile.shape, tile.valid, [tile], alone=False)


def _is_plain(dtype: DataType) -> bool:
    return dtype == FP64 or (dtype.bits <= 32 and dtype not in SMALL_FLOATS)


def _shape(call: Call) -> tuple[int, ...]:
    assert isinstance(call.type, TileType)
    return call.type.shape


def _broadcast(tiles: Sequence[Waiting]) -> tuple[int, ...]:
    """Return the common shape of tiles."""
    rank = max(len(tile.shape) for tile in tiles)
    shapes = [(1,) * (rank - len(tile.shape)) + tile.shape for tile in tiles]
    return tuple(next((n for n in axis if n != 1), 1) for axis in zip(*shapes, strict=True))


def _covers(tile: Waiting, extent: Extent, axis: int) -> bool:
    """Return whether a tile is surely valid as far along an axis as another; one element serves a whole axis."""
    if -axis > len(tile.valid) or tile.valid[axis] == extent:
        return True
    have = tile.valid[axis]
    if not isinstance(have, int) or tile.shape[axis] == 1:
        return have == 1
    return have >= tile.shape[axis] or (isinstance(extent, int) and have >= extent)
