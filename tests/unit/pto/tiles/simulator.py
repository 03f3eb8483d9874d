"""A simulator of PTO: what a function does to bytes, op by op and element by element, straight from the specification.

It shares nothing with the lowering but the parser. Every local memory is an array of bytes; a tile is a place in one,
and its elements are gathered and scattered one address each. Memory nobody has written holds zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import ml_dtypes
import numpy

from tilewright.pto.fold_laws import is_turned
from tilewright.pto.module import Enumerated, Func, Module, Op, Region, SymbolRef, Value
from tilewright.pto.types import Ptr, Space, TileBuf

np = cast("Any", numpy)
Array = Any

ARENA = 1 << 17
ELEMENTS: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip


def _turns(a: Array, b: Array) -> Array:
    """Return by how much to shift: counts wrap at the width."""
    return b & (a.dtype.itemsize * 8 - 1)


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _sum(x: Array, axis: int) -> Array:
    return np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=True)


def _product(x: Array, axis: int) -> Array:
    return np.multiply.reduce(x, axis=axis, dtype=x.dtype, keepdims=True)


def _most(x: Array, axis: int) -> Array:
    return np.max(x, axis=axis, keepdims=True)


def _least(x: Array, axis: int) -> Array:
    return np.min(x, axis=axis, keepdims=True)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": lambda a, b: a << _turns(a, b),
    "shr": lambda a, b: a >> _turns(a, b),
}  # fmt: skip
UNARY: dict[str, Callable[[Array], Array]] = {"not": np.invert, "neg": np.negative, "abs": np.abs, "relu": _relu}
COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
FOLDS: dict[str, Callable[[Array, int], Array]] = {"sum": _sum, "prod": _product, "max": _most, "min": _least}


@dataclass(frozen=True)
class Address:
    """A byte of a buffer, and the type of what is there."""

    memory: Array
    offset: int
    element: str


@dataclass(frozen=True)
class Window:
    """A strided window on global memory."""

    at: Address
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def places(self) -> Array:
        """Return the byte offset of each element, as rows and columns."""
        steps = np.indices(self.shape).reshape(len(self.shape), -1)
        size = np.dtype(ELEMENTS[self.at.element]).itemsize
        flat = self.at.offset + size * sum(i * s for i, s in zip(steps, self.strides, strict=True))
        grid = np.asarray(flat).reshape(self.shape)
        if (
            len(self.shape) == 5
            and self.shape[0] != 1
            and self.shape[1] == self.shape[3] == 1
            and self.shape[4] * size == 32
        ):
            return grid[:, 0, :, 0, :].transpose(1, 0, 2).reshape(self.shape[2], -1)
        return grid.reshape(-1, self.shape[-1])


@dataclass(eq=False)
class Local:
    """A tile: where it starts, where its elements are from there, and how much of it is valid."""

    memory: Array
    start: int
    type: TileBuf
    offsets: Array
    valid: list[int] = field(default_factory=list[int])

    @property
    def dtype(self) -> Any:
        return np.dtype(ELEMENTS[self.type.element.name])

    def get(self, rows: int, cols: int, at: tuple[int, int] = (0, 0)) -> Array:
        """Return rows and columns from a position on."""
        return gathered(self.memory, self.start + self._part(rows, cols, at), self.dtype)

    def put(self, value: Array, at: tuple[int, int] = (0, 0)) -> None:
        """Write rows and columns from a position on."""
        places = self.start + self._part(value.shape[0], value.shape[1], at)
        scattered(self.memory, places, value.astype(self.dtype, copy=False))

    def all(self) -> Array:
        return self.get(self.valid[0], self.valid[1])

    def _part(self, rows: int, cols: int, at: tuple[int, int]) -> Array:
        part = self.offsets[at[0] : at[0] + rows, at[1] : at[1] + cols]
        assert part.shape == (rows, cols), "a program that leaves its tile"
        return part


def gathered(memory: Array, places: Array, dtype: Any) -> Array:
    found = memory[places[..., None] + np.arange(dtype.itemsize)]
    return np.ascontiguousarray(found).view(dtype)[..., 0]


def scattered(memory: Array, places: Array, value: Array) -> None:
    pieces = np.ascontiguousarray(value)[..., None].view(np.uint8)
    memory[places[..., None] + np.arange(value.dtype.itemsize)] = pieces


def layout(type_: TileBuf, arch: str) -> Array:
    """Return the byte offset of every element of a tile from its start."""
    i, j = np.indices((type_.rows, type_.cols))
    size = np.dtype(ELEMENTS[type_.element.name]).itemsize
    blayout = type_.blayout
    if type_.slayout == "none_box":
        return size * (i * type_.cols + j if blayout == "row_major" else j * type_.rows + i)
    if type_.space is Space.LEFT:
        blayout = "col_major" if arch == "a5" else "row_major"
    narrow = 16 if type_.fractal == 1024 else 32 // size
    tall, wide = (16, narrow) if type_.slayout == "row_major" else (narrow, 16)
    inside = (i % tall) * wide + j % wide if type_.slayout == "row_major" else (j % wide) * tall + i % tall
    down, across = type_.rows // tall, type_.cols // wide
    box = (i // tall) * across + j // wide if blayout == "row_major" else (j // wide) * down + i // tall
    return size * (box * tall * wide + inside)


class Block:
    """One block of a grid: its local memories, and what its values are."""

    def __init__(self, module: Module, index: int, count: int, arch: str = "a5") -> None:
        self.funcs = {f.name: f for f in module.funcs()}
        self.index, self.count, self.arch = index, count, arch
        self.memories = {space: np.zeros(ARENA, np.uint8) for space in Space}
        self.values: dict[Value, Any] = {}

    def function(self, func: Func, arguments: Sequence[Any]) -> tuple[Any, ...]:
        assert func.body is not None
        outer, self.values = self.values, dict(zip(func.arguments, arguments, strict=True))
        results = self.region(func.body)
        self.values = outer
        return results

    def region(self, region: Region, arguments: Sequence[Any] = ()) -> tuple[Any, ...]:
        self.values.update(zip(region.arguments, arguments, strict=False))
        handed: tuple[Any, ...] = ()
        for op in region.ops:
            meaning = MEANINGS.get(op.name)
            assert meaning is not None, op.name
            handed = meaning(self, op)
            self.values.update(zip(op.results, handed, strict=False))
        return handed

    def many(self, op: Op, clause: str) -> tuple[int, ...]:
        return tuple(int(self.values[v]) for v in op.clause(clause) or ())

    def tile(self, value: Value) -> Local:
        found = self.values[value]
        assert isinstance(found, Local)
        return found


Meaning = Callable[[Block, Op], "tuple[Any, ...]"]
MEANINGS: dict[str, Meaning] = {}


def means(*names: str) -> Callable[[Callable[[Block, Op], Any]], None]:
    def sign(function: Callable[[Block, Op], Any]) -> None:
        def meaning(block: Block, op: Op) -> tuple[Any, ...]:
            result = function(block, op)
            if isinstance(result, tuple):
                return cast("tuple[Any, ...]", result)
            return () if result is None else (result,)

        MEANINGS.update(dict.fromkeys(names, meaning))

    return sign


def simulate(module: Module, entry: str, grid: int, *arguments: Any) -> None:
    """Run a function on each block of a grid; arrays are changed in place."""
    func = next(f for f in module.funcs() if f.name == entry)
    for index in range(grid):
        given = [_argument(a, v) for a, v in zip(func.arguments, arguments, strict=True)]
        Block(module, index, grid).function(func, given)


def _argument(argument: Value, value: Any) -> Any:
    return Address(value.view(np.uint8), 0, argument.type.element.name) if isinstance(argument.type, Ptr) else value


# scalars and control


SCALAR: dict[str, Callable[[int, int], Any]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "maxsi": np.maximum, "minsi": np.minimum,
    "remsi": np.fmod, "andi": np.bitwise_and,
    **{f"cmpi {word}": COMPARED[word.removeprefix("s")] for word in ("eq", "ne", "slt", "sle", "sgt", "sge")},
}  # fmt: skip


@means(*(f"arith.{name}" for name in SCALAR if " " not in name), "arith.cmpi")
def _arithmetic(b: Block, op: Op) -> int:
    name = op.name.removeprefix("arith.")
    if name == "cmpi":
        name = f"cmpi {op.attributes['predicate']}"
    return int(SCALAR[name](*(b.values[v] for v in op.operands)))


@means("arith.constant")
def _constant(b: Block, op: Op) -> Any:
    return op.attributes["value"]


@means("arith.index_cast", "arith.extsi", "arith.trunci")
def _same_number(b: Block, op: Op) -> Any:
    return b.values[op.operands[0]]


@means("arith.select")
def _choice(b: Block, op: Op) -> Any:
    condition, yes, no = (b.values[v] for v in op.operands)
    return yes if condition else no


@means("pto.get_block_idx")
def _index(b: Block, op: Op) -> int:
    return b.index


@means("pto.get_block_num")
def _count(b: Block, op: Op) -> int:
    return b.count


@means("pto.barrier", "pto.set_flag", "pto.wait_flag")
def _order(b: Block, op: Op) -> None:
    return None


@means("scf.yield", "func.return", "scf.condition")
def _hand_on(b: Block, op: Op) -> tuple[Any, ...]:
    return tuple(b.values[v] for v in op.operands)


@means("func.call")
def _call(b: Block, op: Op) -> tuple[Any, ...]:
    callee = op.attributes["callee"]
    assert isinstance(callee, SymbolRef)
    return b.function(b.funcs[callee.name], [b.values[v] for v in op.operands])


@means("pto.section.cube", "pto.section.vector")
def _section(b: Block, op: Op) -> None:
    b.region(op.regions[0])


@means("scf.for")
def _for(b: Block, op: Op) -> tuple[Any, ...]:
    carried = tuple(b.values[v] for v in op.clause("iter_args") or ())
    for i in range(*(int(b.values[v]) for v in op.operands[:3])):
        carried = b.region(op.regions[0], (i, *carried))
    return carried


@means("scf.if")
def _if(b: Block, op: Op) -> tuple[Any, ...]:
    taken = op.regions[0 if b.values[op.operands[0]] else 1 :][:1]
    return b.region(taken[0]) if taken else ()


@means("scf.while")
def _while(b: Block, op: Op) -> tuple[Any, ...]:
    carried = tuple(b.values[v] for v in op.operands)
    while True:
        going, *values = b.region(op.regions[0], carried)
        if not going:
            return tuple(values)
        carried = b.region(op.regions[1], values)


# places


@means("pto.castptr")
def _cast(b: Block, op: Op) -> Any:
    value, type_ = b.values[op.operands[0]], op.results[0].type
    assert isinstance(type_, Ptr) and isinstance(value, Address)
    return Address(value.memory, value.offset, type_.element.name)


@means("pto.make_tensor_view")
def _view(b: Block, op: Op) -> Window:
    return Window(b.values[op.operands[0]], b.many(op, "shape"), b.many(op, "strides"))


@means("pto.partition_view")
def _part(b: Block, op: Op) -> Window:
    view: Window = b.values[op.operands[0]]
    size = np.dtype(ELEMENTS[view.at.element]).itemsize
    moved = sum(o * s for o, s in zip(b.many(op, "offsets"), view.strides, strict=True)) * size
    return Window(Address(view.at.memory, view.at.offset + moved, view.at.element), b.many(op, "sizes"), view.strides)


@means("pto.alloc_tile")
def _alloc(b: Block, op: Op) -> Local:
    type_ = op.results[0].type
    assert isinstance(type_, TileBuf)
    address = b.many(op, "addr")
    memory = b.memories[type_.space] if address else np.zeros(type_.nbytes, np.uint8)
    rows = type_.valid_rows if type_.valid_rows is not None else b.many(op, "valid_row")[0]
    cols = type_.valid_cols if type_.valid_cols is not None else b.many(op, "valid_col")[0]
    return Local(memory, address[0] if address else 0, type_, layout(type_, b.arch), [rows, cols])


@means("pto.subview")
def _subview(b: Block, op: Op) -> Local:
    tile, type_ = b.tile(op.operands[0]), op.results[0].type
    assert isinstance(type_, TileBuf)
    i, j = b.many(op, "offsets")
    part = tile.offsets[i : i + type_.rows, j : j + type_.cols]
    valid = list(b.many(op, "valid")) or [type_.valid_rows or type_.rows, type_.valid_cols or type_.cols]
    return Local(tile.memory, tile.start + int(part[0, 0]), type_, part - part[0, 0], valid)


@means("pto.treshape")
def _reshape(b: Block, op: Op) -> Local:
    tile, type_ = b.tile(op.operands[0]), op.results[0].type
    assert isinstance(type_, TileBuf)
    return Local(tile.memory, tile.start, type_, layout(type_, b.arch), [type_.valid_rows or 0, type_.valid_cols or 0])


@means("pto.set_validshape")
def _resize(b: Block, op: Op) -> None:
    b.tile(op.operands[0]).valid[:] = [int(b.values[v]) for v in op.operands[1:]]


@means("pto.tgetval")
def _get(b: Block, op: Op) -> Any:
    tile, index = b.tile(op.ins[0]), int(b.values[op.ins[1]])
    return gathered(tile.memory, np.array([tile.start + index * tile.dtype.itemsize]), tile.dtype)[0]


@means("pto.tsetval")
def _set(b: Block, op: Op) -> None:
    tile, index = b.tile(op.outs[0]), int(b.values[op.ins[0]])
    value = np.array([b.values[op.ins[1]]]).astype(tile.dtype)
    scattered(tile.memory, np.array([tile.start + index * tile.dtype.itemsize]), value)


# tiles in and out


def _pad(type_: TileBuf) -> Any:
    dtype = np.dtype(ELEMENTS[type_.element.name])
    limits: Any = cast("Any", ml_dtypes).finfo(dtype) if type_.element.is_float else np.iinfo(dtype)
    return {2: limits.max, 3: limits.min}.get(type_.pad, 0)


@means("pto.tload")
def _load(b: Block, op: Op) -> None:
    window, tile = b.values[op.ins[0]], b.tile(op.outs[0])
    places = window.places()[: tile.valid[0], : tile.valid[1]]
    value = gathered(window.at.memory, places, tile.dtype)
    if tile.type.pad:
        whole = np.full((tile.type.rows, tile.type.cols), _pad(tile.type), tile.dtype)
        whole[: value.shape[0], : value.shape[1]] = value
        value = whole
    tile.put(value)


@means("pto.tstore")
def _store(b: Block, op: Op) -> None:
    tile, window = b.tile(op.ins[0]), b.values[op.outs[0]]
    places = window.places()[: tile.valid[0], : tile.valid[1]]
    dtype = np.dtype(ELEMENTS[window.at.element])
    value = tile.get(*places.shape).astype(dtype)
    how = op.attributes.get("atomicType")
    if isinstance(how, Enumerated) and how.word == "atomic_add":
        value = value + gathered(window.at.memory, places, dtype)
    scattered(window.at.memory, places, value)


@means("pto.tmov")
def _move(b: Block, op: Op) -> None:
    source, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    target.put(source.get(min(source.valid[0], target.valid[0]), min(source.valid[1], target.valid[1])))


@means("pto.textract")
def _extract(b: Block, op: Op) -> None:
    source, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    target.put(source.get(target.valid[0], target.valid[1], at=(int(b.values[op.ins[1]]), int(b.values[op.ins[2]]))))


@means("pto.tinsert")
def _insert(b: Block, op: Op) -> None:
    b.tile(op.outs[0]).put(b.tile(op.ins[0]).all(), (int(b.values[op.ins[1]]), int(b.values[op.ins[2]])))


@means("pto.tconcat")
def _concat(b: Block, op: Op) -> None:
    left, right = (b.tile(v).all() for v in op.ins[:2])
    b.tile(op.outs[0]).put(np.concatenate([left, right], axis=1))


@means("pto.ttrans")
def _transpose(b: Block, op: Op) -> None:
    source, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    has_room = source.type.rows <= target.type.cols and source.type.cols <= target.type.rows
    whole = source.get(source.type.rows, source.type.cols) if has_room else source.all()
    target.put(whole.T)  # as A5 has it


@means("pto.tfillpad", "pto.tfillpad_expand", "pto.tfillpad_inplace")
def _fill(b: Block, op: Op) -> None:
    source, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    whole = np.full(target.valid, _pad(target.type), target.dtype)
    rows, cols = (min(a, n) for a, n in zip(source.valid, target.valid, strict=True))
    whole[:rows, :cols] = source.get(rows, cols)
    target.put(whole)


# arithmetic on tiles


def _operand(b: Block, value: Value, target: Local) -> Array:
    found = b.values[value]
    if isinstance(found, Local):
        return found.get(target.valid[0], target.valid[1])
    return np.full(target.valid, found).astype(target.dtype)


@means(*(f"pto.t{name}{form}" for name in BINARY for form in ("", "s")))
def _binary(b: Block, op: Op) -> None:
    target = b.tile(op.outs[0])
    name = op.name.removeprefix("pto.t")
    target.put(BINARY[name if name in BINARY else name[:-1]](*(_operand(b, v, target) for v in op.ins[:2])))


@means(*(f"pto.t{name}" for name in UNARY))
def _unary(b: Block, op: Op) -> None:
    target = b.tile(op.outs[0])
    target.put(UNARY[op.name.removeprefix("pto.t")](_operand(b, op.ins[0], target)))


@means("pto.texpands")
def _fill_number(b: Block, op: Op) -> None:
    target = b.tile(op.outs[0])
    target.put(_operand(b, op.ins[0], target))


@means("pto.tcvt")
def _convert(b: Block, op: Op) -> None:
    target = b.tile(op.outs[0])
    value = b.tile(op.ins[0]).get(target.valid[0], target.valid[1])
    pair = (b.tile(op.ins[0]).type.element.name, target.type.element.name)
    if target.dtype.kind in "iu" and pair not in (("i64", "i32"), ("i32", "i16")):
        limits, wide = np.iinfo(target.dtype), value.astype(np.int64)
        value = np.clip(wide, limits.min, limits.max)
    target.put(value.astype(target.dtype))


@means(*(f"pto.t{axis}{fold}" for axis in ("row", "col") for fold in FOLDS))
def _fold(b: Block, op: Op) -> None:
    word = op.name.removeprefix("pto.t")
    b.tile(op.outs[0]).put(FOLDS[word[3:]](b.tile(op.ins[0]).all(), 1 if word.startswith("row") else 0))


@means(*(f"pto.t{axis}arg{end}" for axis in ("row", "col") for end in ("max", "min")))
def _position(b: Block, op: Op) -> None:
    axis = 1 if op.name.startswith("pto.trow") else 0
    find = np.argmax if op.name.endswith("max") else np.argmin
    b.tile(op.outs[0]).put(find(b.tile(op.ins[0]).all(), axis=axis, keepdims=True))


@means(*(f"pto.t{axis}expand{name}" for axis in ("row", "col") for name in ("", "add", "sub", "mul", "max", "min")))
def _expand(b: Block, op: Op) -> None:
    target, name = b.tile(op.outs[0]), op.name[len("pto.trowexpand") :]
    whole, line = op.ins[:2] if name else (op.ins[0], op.ins[0])
    if op.name in ("pto.trowexpandmax", "pto.trowexpandmin") and is_turned(op):
        whole, line = line, whole
    vector = b.tile(line)
    each = vector.get(target.valid[0], 1) if op.name.startswith("pto.trow") else vector.get(1, target.valid[1])
    each = np.broadcast_to(each, target.valid)
    target.put(BINARY[name](_operand(b, whole, target), each) if name else each)


@means("pto.tmatmul", "pto.tmatmul.acc", "pto.tmatmul.bias")
def _multiply(b: Block, op: Op) -> None:
    left, right = (b.tile(v) for v in (op.ins[1:3] if op.name.endswith(".acc") else op.ins[:2]))
    target = b.tile(op.outs[0])
    (rows, depth), cols = left.valid, right.valid[1]
    product = left.all().astype(target.dtype) @ right.get(depth, cols).astype(target.dtype)
    if op.name.endswith(".acc"):
        product = product + b.tile(op.ins[0]).get(rows, cols)
    if op.name.endswith(".bias"):
        product = product + b.tile(op.ins[2]).get(1, cols)
    target.put(product)


# packed bits


@means("pto.tcmp")
def _compare(b: Block, op: Op) -> None:
    source, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    mode = op.attributes["cmpMode"]
    assert isinstance(mode, Enumerated)
    bits = COMPARED[mode.word](source.all(), _operand(b, op.ins[1], source))
    packed = np.packbits(bits, axis=1, bitorder="little")
    for i, row in enumerate(packed):
        start = target.start + i * target.type.cols * target.dtype.itemsize
        target.memory[start : start + len(row)] = row


@means("pto.tsel")
def _select(b: Block, op: Op) -> None:
    mask, target = b.tile(op.ins[0]), b.tile(op.outs[0])
    rows, cols = target.valid
    starts = mask.start + np.arange(rows)[:, None] * (mask.type.cols * mask.dtype.itemsize)
    packed = mask.memory[starts + np.arange((cols + 7) // 8)]
    bits = np.unpackbits(packed, axis=1, bitorder="little")[:, :cols].astype(bool)
    target.put(np.where(bits, _operand(b, op.ins[1], target), _operand(b, op.ins[2], target)))
