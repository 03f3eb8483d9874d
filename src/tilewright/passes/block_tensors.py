"""Blocking: compute on whole tensors becomes loops over tiles, whatever their extents.

What is left after `tensor_to_tile`: tensors whose extents only the running program knows, and those of which only a
part holds data. The result is a new tensor, written block by block. Sums and products of matrices go on from block to
block in a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.core.build import arguments, call, scalar
from tilewright.core.enums import CmpType
from tilewright.core.expr import Call, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.extents import as_scalar
from tilewright.core.op import Kind
from tilewright.core.operands import Argument
from tilewright.core.program import Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.dtypes import FP32, INT32, DataType
from tilewright.errors import KernelError
from tilewright.ops.compare import beside_scalar
from tilewright.ops.lanes import AXES, GAP
from tilewright.ops.load import padding
from tilewright.ops.masks import compared_in
from tilewright.ops.position import NOTHING
from tilewright.ops.product_types import accumulator, summed_in
from tilewright.passes import block_scans, block_sorts
from tilewright.passes.blocks import COMBINED, FOLDED, ZERO, Blocks, Offsets, sizes_of, tensor_type
from tilewright.passes.few_rows import FEW_ROWS
from tilewright.passes.turned_copies import turned_copy

Given = Mapping[str, Argument]
Rule = Callable[[Blocks, Call, Given], Var]


def run(program: Program) -> Program:
    """Block what the functions of a program compute on whole tensors."""
    return program.with_functions([f.with_body(_Blocker().body(f.body)) for f in program.function_list])


class _Blocker(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.views: dict[Var, Call] = {}

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Write the blocks of a tensor computation; its name goes to the tensor they are stored into."""
        (kept,) = super().assign(stmt) or (None,)
        if not isinstance(kept, AssignStmt) or (rule := _rule(kept.value)) is None:
            if isinstance(kept, AssignStmt) and isinstance(kept.value, Call) and kept.value.op.spec.is_view:
                self.views[kept.var] = kept.value
            return () if kept is None else (kept,)
        assert isinstance(kept.value, Call)
        blocks = Blocks(kept.span, kept.var.name_hint)
        result = rule(blocks, kept.value, arguments(kept.value))
        self.replaced[stmt.var] = result
        return blocks.stmts

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Drop what is computed for nobody, and write what lies on its side tile by tile."""
        if _rule(stmt.expr) is not None:
            return ()
        (kept,) = super().evaluate(stmt)
        return (isinstance(kept, EvalStmt) and turned_copy(kept, self.views)) or (kept,)


def _rule(value: Expr) -> Rule | None:
    if not isinstance(value, Call) or value.op.kind is not Kind.TENSOR or not isinstance(value.type, TensorType):
        return None
    return _RULES.get(value.op.spec.family) or _RULES.get(value.op.spec.name)


def _operand(given: Given, name: str) -> Var:
    operand = given[name]
    assert isinstance(operand, Var)
    return operand


def _tensors(given: Given) -> dict[str, Var]:
    return {name: v for name, v in given.items() if isinstance(v, Var) and isinstance(v.type, TensorType)}


def _mapped(b: Blocks, value: Call, given: Given, compute: Callable[[Blocks, Given], Var]) -> Var:
    """Write a function of the same element of each operand."""
    tensors = _tensors({name: given[name] for name in value.op.spec.data})
    shape, valid, met = b.met(list(tensors.values()))
    sizes, made = sizes_of(valid), b.create(shape, tensor_type(value).dtype)

    def block(inner: Blocks, at: Offsets) -> None:
        tiles = {name: inner.load(t, at, sizes) for name, t in zip(tensors, met, strict=True)}
        inner.store(compute(inner, {**given, **tiles}), at, made)

    b.each(valid, sizes, block)
    return b.part(made, shape, valid)


def _elementwise(b: Blocks, value: Call, given: Given) -> Var:
    """Write an op as the same op on tiles, their elements converted where a scalar would not meet them."""
    dtype, spec = tensor_type(value).dtype, value.op.at(Kind.TILE).spec

    def compute(inner: Blocks, bound: Given) -> Var:
        try:
            result = call(spec, bound, value.span)
        except KernelError:
            result = None
        if result is None or not isinstance(result.type, TileType) or result.type.dtype != dtype:
            tiles = {n: t for n in spec.data if isinstance(t := bound[n], Var) and _is_tile(t)}
            types = spec.element_types(dtype, [_tile_type(t).dtype for t in tiles.values()])
            cast = {n: inner.cast(t, type_) for (n, t), type_ in zip(tiles.items(), types, strict=True)}
            result = call(spec, {**bound, **cast}, value.span)
        return inner.bind(result)

    return _mapped(b, value, given, compute)


def _tile_type(var: Var) -> TileType:
    assert isinstance(var.type, TileType)
    return var.type


def _is_tile(var: Expr) -> bool:
    return isinstance(var.type, TileType)


def _cmp(b: Blocks, value: Call, given: Given) -> Var:
    """Write a comparison as a choice between one and zero."""
    rhs, dtype = given["rhs"], tensor_type(value).dtype
    other = rhs.type if isinstance(rhs, Expr) else None
    types = compared_in(dtype, other.dtype) if isinstance(other, TensorType) else (beside_scalar(dtype),) * 2

    def compute(inner: Blocks, bound: Given) -> Var:
        sides = zip(("lhs", "rhs"), types, strict=True)
        pair = {n: inner.cast(v, met) if isinstance(v := bound[n], Var) and _is_tile(v) else v for n, met in sides}
        mask = inner.do("tile.cmp", **pair, cmp_type=given["cmp_type"])
        like = inner.do("tile.add", **pair) if isinstance(other, TensorType) else pair["lhs"]
        ones = inner.do("tile.expands", target=like, scalar=integer(1))
        return inner.cast(inner.do("tile.sels", mask=mask, src=ones, scalar=integer(0)), dtype)

    return _mapped(b, value, given, compute)


def _expands(b: Blocks, value: Call, given: Given) -> Var:
    target = _operand(given, "target")
    shape, valid = b.extents(target), b.extents(target, valid=True)
    filled = {"shape": MakeTuple(tuple(shape)), "dtype": tensor_type(value).dtype, "value": given["scalar"]}
    return b.part(b.do("tensor.full", **filled), shape, valid)


def _fillpad(b: Blocks, value: Call, given: Given) -> Var:
    x, dtype, wider = _operand(given, "x"), tensor_type(value).dtype, given.get("shape")
    shape, number = b.extents(x), padding(given["pad_value"], dtype)
    if isinstance(wider, MakeTuple):
        shape = [*wider.elements]
    made = b.do("tensor.create", shape=MakeTuple(tuple(shape)), dtype=dtype, init_value=number)
    b.act("tensor.assemble", target=made, source=x, offset=MakeTuple((ZERO,) * len(shape)))
    return made


def _concat(b: Blocks, value: Call, given: Given) -> Var:
    first, second = _operand(given, "src0"), _operand(given, "src1")
    shape, rows = b.extents(first), b.extents(first, valid=True)[:-1]
    width, other = shape[-1], b.extent(second, -1, valid=True)
    whole = [*shape[:-1], scalar("add", width, b.extent(second, -1))]
    made = b.create(whole, tensor_type(value).dtype)
    starts = [ZERO] * len(rows)
    b.act("tensor.assemble", target=made, source=first, offset=MakeTuple((*starts, ZERO)))
    beside = b.part(second, b.extents(second), [*rows, other])
    b.act("tensor.assemble", target=made, source=beside, offset=MakeTuple((*starts, width)))
    return b.part(made, whole, [*rows, scalar("add", width, other)])


def _gather(b: Blocks, value: Call, given: Given) -> Var:
    """Write two lanes' parts one after the other into a new tensor."""
    first, second, split = _operand(given, "x"), given["other"], given["split"]
    if not isinstance(split, int) or not split:
        return first
    axis, valid, own = AXES[split], b.extents(first, valid=True), b.extents(first)
    place = [own[axis] if each == axis else ZERO for each in range(2)]
    shape = [*map(as_scalar, tensor_type(value).shape)]
    made = b.create(shape, tensor_type(value).dtype)
    b.act("tensor.assemble", target=made, source=first, offset=MakeTuple((ZERO, ZERO)))
    if isinstance(second, Var):
        more = b.extents(second, valid=True)
        is_empty = scalar("eq", more[axis], ZERO)
        b.check(scalar("or_", is_empty, scalar("eq", valid[axis], own[axis])), GAP)
        b.act("tensor.assemble", target=made, source=second, offset=MakeTuple(tuple(place)))
        less = scalar("min", valid[1 - axis], more[1 - axis])
        own_across = valid[1 - axis]
        across = b.either(is_empty, lambda _: own_across, lambda _: less)
        valid = [scalar("add", valid[axis], more[axis]) if each == axis else across for each in range(2)]
    return b.part(made, shape, valid)


def _reduction(b: Blocks, value: Call, given: Given) -> Var:
    """Write a folding block by block; sums of short floats go on in fp32, as those within a block do."""
    x, spec, dtype = _operand(given, "x"), value.op.spec, tensor_type(value).dtype
    axis = -1 if spec.name.startswith("row") else -2
    rounds = spec.combine in ("add", "multiply") and dtype.is_float() and dtype.bits < 32
    wide = FP32 if rounds and dtype not in spec.stepwise else dtype
    shape, valid = b.extents(x), b.extents(x, valid=True)
    sizes = sizes_of(valid, 1 if dtype in spec.stepwise else 64, 256) if axis == -2 else sizes_of(valid, *FOLDED)
    depth, size = valid[axis], sizes[axis]
    shape[axis] = valid[axis] = integer(1)
    made, fold = b.create(shape, dtype), f"tile.{spec.name}"

    def block(inner: Blocks, at: Offsets) -> None:
        def part(each: Blocks, along: Expr) -> Var:
            place = list(at)
            place[axis] = along
            return each.do(fold, x=each.cast(each.load(x, place, sizes), wide))

        def step(each: Blocks, acc: Var, along: Expr) -> Var:
            return each.do(COMBINED[spec.combine], lhs=acc, rhs=part(each, along))

        inner.store(inner.cast(inner.folded(part(inner, ZERO), depth, size, step), dtype), at, made)

    outer = [*sizes]
    outer[axis] = 1
    b.each(valid, outer, block)
    return b.part(made, shape, valid)


def _position(b: Blocks, value: Call, given: Given) -> Var:
    """Write a search block by block: the best elements so far go on beside their places."""
    x, spec, dtype = _operand(given, "x"), value.op.spec, tensor_type(value).dtype
    axis = -1 if spec.name.startswith("row") else -2
    shape, valid = b.extents(x), b.extents(x, valid=True)
    sizes = sizes_of(valid, 64, 256) if axis == -2 else sizes_of(valid, *FOLDED)
    depth, size = valid[axis], sizes[axis]
    if not isinstance(depth, ConstInt):
        b.check(scalar("gt", depth, ZERO), NOTHING)
    shape[axis] = valid[axis] = integer(1)
    made, side, is_max = b.create(shape, dtype), "row" if axis == -1 else "col", spec.combine == "maximum"

    def block(inner: Blocks, at: Offsets) -> None:
        def part(each: Blocks, along: Expr) -> list[Var]:
            place = list(at)
            place[axis] = along
            tile = each.load(x, place, sizes)
            best = each.do(f"tile.{side}_{spec.name[-3:]}", x=tile)
            where = each.do(f"tile.{spec.name}", x=tile, tmp_tile=each.scratch(_tile_type(tile)))
            return [best, each.do("tile.add", lhs=where, rhs=each.op("scalar.cast", x=along, target_type=INT32))]

        def step(each: Blocks, held: Sequence[Var], along: Expr) -> list[Var]:
            best, where = held
            other, there = part(each, along)
            kept = each.do("tile.cmp", lhs=best, rhs=other, cmp_type=CmpType.GE if is_max else CmpType.LE)
            found = each.do("tile.sel", mask=kept, lhs=where, rhs=there)
            if tensor_type(x).dtype.is_float():  # nothing takes the place of NaN
                unordered = each.do("tile.cmp", lhs=best, rhs=best, cmp_type=CmpType.NE)
                found = each.do("tile.sel", mask=unordered, lhs=where, rhs=found)
            return [each.do(COMBINED[spec.combine], lhs=best, rhs=other), found]

        _, where = inner.carried(part(inner, ZERO), depth, size, step)
        inner.store(where, at, made)

    outer = [*sizes]
    outer[axis] = 1
    b.each(valid, outer, block)
    return b.part(made, shape, valid)


_M, _N, _BYTES = 128, 128, 128
"""The block of a matrix product: rows, columns, and how many bytes of a row of A are multiplied at a time.

A GPU holds so much in registers and shared memory; processors choose their own tiles for products in any case.
"""

LARGE = 1 << 26
"""How many elements are multiplied at least in a product that is cut into blocks: about what is worth two threads."""
LONG = 1 << 22
"""Of few rows the elements of the right matrix count, which are read once each: how many there are at least."""


def is_large_product(value: Call) -> bool:
    """Return whether a product of matrices is summed block by block though its shapes are known.

    As one tile it would leave every cache, and be made by one thread.
    """
    if _RULES.get(value.op.spec.name) is not _product:
        return False
    rows, columns = tensor_type(value).shape[-2:]
    depth = tensor_type(value.args[0]).shape[-1 if not arguments(value)["a_trans"] else -2]
    if not isinstance(rows, int) or not isinstance(columns, int) or not isinstance(depth, int):
        return False
    if rows <= FEW_ROWS:
        return columns > _N and columns * depth >= LONG
    return rows * columns > _M * _N and rows * columns * depth >= LARGE


def _product(b: Blocks, value: Call, given: Given) -> Var:
    """Write a product of matrices, summed block by block in a tile."""
    lhs, rhs, acc = _operand(given, "lhs"), _operand(given, "rhs"), given.get("acc")
    left, right = _turned(b, lhs, given["a_trans"]), _turned(b, rhs, given["b_trans"])
    dtype, inner_type = _types(lhs, rhs, tensor_type(value).dtype)
    sums = [acc] if isinstance(acc, Var) else []
    shape, valid, (left, right, *_) = b.met([left, right, *sums], 2)
    shape += [b.extent(left, -2), b.extent(right, -1)]
    valid += [b.extent(left, -2, valid=True), b.extent(right, -1, valid=True)]
    if sums:
        valid = [_least(*axis) for axis in zip(b.extents(sums[0], valid=True), valid, shape, strict=True)]
    sizes, depth = sizes_of(valid, _M, _N), b.extent(left, -1, valid=True)
    (k,) = sizes_of([depth], 1, _BYTES // max(inner_type.get_byte(), 1))
    if isinstance(acc, Var):
        for have, want in zip(b.extents(acc), shape, strict=True):
            if have != want:
                b.check(scalar("eq", have, want), "acc must be shaped like the product")
    made = b.create(shape, tensor_type(value).dtype)
    multiply = "tile.matmul" if len(shape) == 2 else "tile.batch_matmul"

    def block(inner: Blocks, at: Offsets) -> None:
        def pair(each: Blocks, along: Expr) -> dict[str, Var]:
            a = each.load(left, [*at[:-1], along], [*sizes[:-1], k])
            c = each.load(right, [*at[:-2], along, at[-1]], [*sizes[:-2], k, sizes[-1]])
            return {"lhs": each.cast(a, inner_type), "rhs": each.cast(c, inner_type)}

        def step(each: Blocks, total: Var, along: Expr) -> Var:
            return each.do(f"{multiply}_acc", acc=total, **pair(each, along))

        if isinstance(acc, Var):
            first = step(inner, _start(inner, acc, given.get("init_cond"), at, sizes, dtype), ZERO)
        else:
            first = inner.do(multiply, **pair(inner, ZERO))
        total = inner.folded(first, depth, k, step)
        inner.store(inner.cast(total, tensor_type(value).dtype), at, made)

    b.each(valid, sizes, block)
    return b.part(made, shape, valid)


def _least(held: Expr, valid: Expr, most: Expr) -> Expr:
    """Return where along an axis a product is added to an accumulator: where both are valid."""
    if held in (valid, most):
        return valid
    return held if valid == most else scalar("min", held, valid)


def _start(b: Blocks, acc: Var, first: Argument | None, at: Offsets, sizes: Sequence[int], dtype: DataType) -> Var:
    """Return what a product is added to: the accumulator's block, or zeros where it begins."""
    if not isinstance(first, Expr) or not isinstance(first.type, ScalarType):
        return b.load(acc, at, sizes)
    shape = MakeTuple(tuple(map(integer, sizes)))
    zeros = {"shape": shape, "dtype": dtype, "value": integer(0) if dtype.is_int() else 0.0}
    return b.either(first, lambda side: side.do("tile.full", **zeros), lambda side: side.load(acc, at, sizes))


def _turned(b: Blocks, x: Var, transposed: Argument) -> Var:
    return b.do("tensor.transpose", x=x, axis1=-2, axis2=-1) if transposed else x


def _types(lhs: Var, rhs: Var, result: DataType) -> tuple[DataType, DataType]:
    """Return the type that products are summed in, and the one that both sides of a product have."""
    a, c = tensor_type(lhs).dtype, tensor_type(rhs).dtype
    wide = summed_in(a, c, result)
    return wide, a if a == c and accumulator(a) == wide else wide


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("elementwise", "expansion", "mapped", "partial", "cast"), _elementwise),
    "cmp": _cmp,
    "expands": _expands,
    **dict.fromkeys(("fillpad", "fillpad_expand"), _fillpad),
    "concat": _concat,
    "aic_gather": _gather,
    "reduction": _reduction,
    "position": _position,
    "scan": block_scans.scan,
    "order": block_sorts.order,
    "sort32": block_sorts.sort32,
    "mrgsort": block_sorts.mrgsort,
    **dict.fromkeys(("matmul", "matmul_acc"), _product),
}
