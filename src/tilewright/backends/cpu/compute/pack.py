"""Packing: copying a tile into contiguous rows, transposing it on the way."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.storage import can_mask, first_lanes, load, store
from tilewright.backends.cpu.compute.streaming import LINE, store_past_caches
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import I64, PTR, Builder, Module, Value, i64, lanes, vector
from tilewright.native.target import Target
from tilewright.records import record


@record
class PackSpec:
    """What one packing function is made for; any strides are right, those it is made for are quick.

    It is quick where the columns of the source are adjacent, or where its rows are if it is `transposed`. One that is
    `streaming` is transposed, takes a target whose rows begin with cache lines, and writes whole lines of it past the
    caches.
    """

    target: Target
    nbytes: int
    """The size of an element."""
    transposed: bool = False
    streaming: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        kind = f"{'.turned' * self.transposed}{'.streaming' * self.streaming}"
        return f"pack{self.target.vector_bits}.{self.nbytes}{kind}"

    @property
    def sides(self) -> tuple[int, ...]:
        """How many rows and columns of a transposed tile are in registers at once, and of what is left of it then.

        Where a line of the source is one vector it is read once: rows that lie some powers of two apart soon take each
        other's place in the first cache.
        """
        few, line = min(8, self.target.vector_bits // 32), LINE // self.nbytes
        if self.streaming:
            return (line,)
        return (line, few) if line == self.target.vector_bits // 32 > few else (few,)

    @property
    def element(self) -> str:
        """The LLVM type of an element."""
        return f"i{8 * self.nbytes}"


class Copy(NamedTuple):
    """One copy: `rows` by `cols` elements from a source with two strides to contiguous rows `ld` apart."""

    src: Value = Value(PTR, "%src")
    row_stride: Value = Value(I64, "%row_stride")
    col_stride: Value = Value(I64, "%col_stride")
    dst: Value = Value(PTR, "%dst")
    ld: Value = Value(I64, "%ld")
    rows: Value = Value(I64, "%rows")
    cols: Value = Value(I64, "%cols")

    def read(self, b: Builder, spec: PackSpec, row: Value, col: Value) -> Value:
        """Return the address of an element of the source."""
        index = b.op("add", b.op("mul", row, self.row_stride), b.op("mul", col, self.col_stride))
        return b.offset(self.src, index, spec.element)

    def write(self, b: Builder, spec: PackSpec, row: Value, col: Value) -> Value:
        """Return the address of an element of the target."""
        return b.offset(self.dst, b.op("add", b.op("mul", row, self.ld), col), spec.element)

    def rest(self, b: Builder, spec: PackSpec, row: Value, col: Value) -> Copy:
        """Return the copy of what lies from a row and a column on."""
        return self._replace(
            src=self.read(b, spec, row, col),
            dst=self.write(b, spec, row, col),
            rows=b.op("sub", self.rows, row),
            cols=b.op("sub", self.cols, col),
        )


def emit_pack(module: Module, spec: PackSpec) -> str:
    """Return the name of a function that packs tiles, adding it to the module once.

    Its parameters are `ptr src, i64 row_stride, i64 col_stride, ptr dst, i64 ld, i64 rows, i64 cols`.
    """
    if spec.name not in module.defined:
        copy, slow = Copy(), _emit_one_by_one(module, spec)
        b = Builder(module, spec.name, copy, attrs="noinline nounwind")
        stride = copy.row_stride if spec.transposed else copy.col_stride
        adjacent = b.compare("icmp eq", stride, i64(1))
        with b.when(adjacent):
            (_emit_turned if spec.transposed else _emit_rows)(b, spec, slow)
        with b.when(b.op("xor", adjacent, Value("i1", "true"))):
            b.invoke(slow, *copy)
        b.finish()
    return spec.name


def _elements(b: Builder, spec: PackSpec, source: Value, count: int = 1, mask: Value | None = None) -> Value:
    """Emit the load of `count` neighbours."""
    return load(b, vector(spec.element, count), source, spec.nbytes, mask)


def _emit_one_by_one(module: Module, spec: PackSpec) -> str:
    """Return the name of a function that copies element by element, adding it to the module once."""
    copy, name = Copy(), f"{spec.name}.slow"
    b = Builder(module, name, copy, attrs="noinline nounwind")
    with b.loop(i64(0), copy.rows, i64(1)) as row, b.loop(i64(0), copy.cols, i64(1)) as col:
        b.store(_elements(b, spec, copy.read(b, spec, row, col)), copy.write(b, spec, row, col), spec.nbytes)
    b.finish()
    return name


def _emit_rows(b: Builder, spec: PackSpec, slow: str) -> None:
    """Emit the copy of rows of adjacent elements, a vector at a time."""
    copy, masks = Copy(), can_mask(spec.target, 8 * spec.nbytes)
    count = spec.target.vector_bits // (8 * spec.nbytes)
    whole = b.op("and", copy.cols, i64(-count))
    mask = first_lanes(b, b.op("sub", copy.cols, whole), count)
    with b.loop(i64(0), copy.rows, i64(1)) as row:
        with b.loop(i64(0), whole, i64(count)) as col:
            _copy_vector(b, spec, row, col, count, None)
        if masks:
            with b.when(b.compare("icmp ne", whole, copy.cols)):
                _copy_vector(b, spec, row, whole, count, mask)
    if not masks:
        b.invoke(slow, *copy.rest(b, spec, i64(0), whole))


def _copy_vector(b: Builder, spec: PackSpec, row: Value, col: Value, count: int, mask: Value | None) -> None:
    """Emit the copy of adjacent elements of a row."""
    copy = Copy()
    values = _elements(b, spec, copy.read(b, spec, row, col), count, mask)
    store(b, values, copy.write(b, spec, row, col), spec.nbytes, mask)


def _emit_turned(b: Builder, spec: PackSpec, slow: str) -> None:
    """Emit the copy of columns of adjacent elements, a square block at a time.

    Blocks follow each other along the rows of the target, so that streamed lines are neighbours: the transpose
    of 4096 x 4096 floats in tiles of 128 x 128 takes 5.7 ms, and 7.7 down its columns.
    """
    _emit_blocks(b, spec, Copy(), spec.sides, slow)


def _emit_blocks(b: Builder, spec: PackSpec, copy: Copy, sides: Sequence[int], slow: str) -> None:
    """Emit the copy of the square blocks of the first size, then of smaller ones, and of single elements."""
    if not sides:
        b.invoke(slow, *copy)
        return
    side, *smaller = sides
    rows, cols = (b.op("and", extent, i64(-side)) for extent in (copy.rows, copy.cols))
    with b.loop(i64(0), rows, i64(side)) as row, b.loop(i64(0), cols, i64(side)) as col:
        _turn_block(b, spec, copy.rest(b, spec, row, col), side)
    _emit_blocks(b, spec, copy.rest(b, spec, i64(0), cols)._replace(rows=rows), smaller, slow)
    _emit_blocks(b, spec, copy.rest(b, spec, rows, i64(0)), smaller, slow)


def _turn_block(b: Builder, spec: PackSpec, block: Copy, side: int) -> None:
    """Emit the copy of a square block whose columns are adjacent elements."""
    columns = [_elements(b, spec, block.read(b, spec, i64(0), i64(at)), side) for at in range(side)]
    for row, values in enumerate(turned_block(b, columns)):
        if spec.streaming:
            store_past_caches(b, values, block.write(b, spec, i64(row), i64(0)), LINE)
        else:
            b.store(values, block.write(b, spec, i64(row), i64(0)), spec.nbytes)


def turned_block(b: Builder, columns: Sequence[Value]) -> list[Value]:
    """Return the rows of a square block given by its columns: its quarters change places, then theirs, and so on."""
    turned, side = list(columns), len(columns)
    for half in (side >> level for level in range(1, side.bit_length())):
        upper = [lane if not lane & half else lane - half + side for lane in range(side)]
        lower = [lane + half if not lane & half else lane + side for lane in range(side)]
        for at in (at for at in range(side) if not at & half):
            pair = turned[at], turned[at + half]
            turned[at], turned[at + half] = _shuffled(b, *pair, upper), _shuffled(b, *pair, lower)
    return turned


def _shuffled(b: Builder, low: Value, high: Value, indices: Sequence[int]) -> Value:
    """Emit a vector of the lanes of two vectors that `indices` name."""
    mask = ", ".join(f"i32 {index}" for index in indices)
    return b.value(low.type, f"shufflevector {low}, {high}, <{lanes(low.type)} x i32> <{mask}>")
