"""Tile gemm: the matrix product of A and of the words of B on matrix tiles, as an LLVM function.

C is cut into blocks of two tiles of rows by two of columns, those of the same rows one after the other: words of B stay
in the second cache, and while some rows of A are multiplied the next ones are fetched. The registers are configured
when a product begins and given back when it ends. A long one is computed some rows at a time: between those anybody who
looks whether the program is over may use them too. Rows of A are read where they lie; the last rows have registers cut
to fit. Sums are those of C itself where a whole block is there, and else of a block beside it, from which what exists
is written, or added to what C holds.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.compute.matrix_tiles import (
    BYTES,
    LEFT,
    RIGHT,
    ROWS,
    SUMS,
    MatrixTiles,
    depth_of_tile,
    room_of_tiles,
)
from tilewright.backends.cpu.compute.storage import SECOND_CACHE, computed_type, fetch, first_lanes, load, store
from tilewright.backends.cpu.compute.words import Words, tile_words
from tilewright.backends.cpu.emit.polls import Polls
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.dtypes import BF16, DataType
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import F32, I1, I8, I32, I64, PTR, TRUE, Builder, Module, Value, i64, vector
from tilewright.native.target import Target
from tilewright.records import record

BLOCK = 2 * ROWS
"""Rows and columns of a block."""
SLICE = 4 * BLOCK
"""Rows that are computed between two looks whether the program is over."""
FETCHED = 4
"""How many of the next rows are fetched meanwhile, a line each in every step: all of them in eight blocks."""
_ROOM, _CONTEXT = Value(PTR, "%room"), Value(PTR, "%context")
_TO, _APART, _NEXT = Value(PTR, "%to"), Value(I64, "%apart"), Value(PTR, "%next")


@record
class TileGemmSpec:
    """What one function is made for: elements of A and B; one that is `polled` returns where its program is over."""

    target: Target
    lhs: DataType
    rhs: DataType
    polled: bool = False

    def __str__(self) -> str:
        units = "emulated tiles" if self.target.emulates_tiles else "AMX's tiles"
        kinds = " by ".join(dict.fromkeys((str(self.lhs), str(self.rhs))))
        return f"products of {kinds} on {units}: {BLOCK} x {BLOCK} sums in registers, {self.depth} steps at a time"

    @property
    def family(self) -> str:
        """What the names of its functions start with."""
        return f"tile_gemm.{self.lhs}.{self.rhs}"

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"{self.family}{'.polled' * self.polled}"

    @property
    def depth(self) -> int:
        """How many products of each element a step adds."""
        return depth_of_tile(self.target, self.lhs, self.rhs)

    @property
    def sums(self) -> str:
        """The LLVM type of a row of sums."""
        return vector(computed_type(self.lhs), ROWS)

    @property
    def words(self) -> Words:
        """How B lies."""
        return tile_words(self.rhs)


class TileOperands(NamedTuple):
    """Where the matrices lie: rows of A and C so many bytes apart, B in words; how large they are, in steps of K.

    Each step is of so many words, no more than a row of a register holds.
    """

    a: Value = Value(PTR, "%a")
    a_row: Value = Value(I64, "%a_row")
    b: Value = Value(PTR, "%b")
    c: Value = Value(PTR, "%c")
    c_row: Value = Value(I64, "%c_row")
    m: Value = Value(I64, "%m")
    n: Value = Value(I64, "%n")
    steps: Value = Value(I64, "%steps")
    words: Value = Value(I64, "%words")
    accumulate: Value = Value(I1, "%accumulate")


def emit_tile_gemm(module: Module, spec: TileGemmSpec) -> str:
    """Return the name of a function that computes C = A B, or C += A B, adding it to the module once.

    Its parameters are those of `TileOperands`, and `ptr context` where it is polled.
    """
    if spec.name not in module.defined:
        module.on_tiles[str(spec)] = None
        (_define_polled if spec.polled else _define)(module, spec)
    return spec.name


def _define_polled(module: Module, spec: TileGemmSpec) -> None:
    """Add a function that computes some rows at a time, and looks whether its program is over after each."""
    o, some = TileOperands(), emit_tile_gemm(module, replace(spec, polled=False))
    b = Builder(module, spec.name, (*o, _CONTEXT), attrs="noinline nounwind")
    end = b.label("end")
    polls = Polls(b, _CONTEXT, end)
    with b.loop(i64(0), o.m, i64(SLICE)) as row:
        left = b.op("sub", o.m, row)
        b.invoke(some, *_from_row(b, row)._replace(m=b.intrinsic("llvm.smin", left, i64(SLICE))))
        polls.count(PIECE)
    b.do(f"br label %{end}")
    b.begin(end)
    b.finish()


def _define(module: Module, spec: TileGemmSpec) -> None:
    """Add a function that computes all rows, first of the blocks that are whole, then those that are left."""
    o = TileOperands()
    b = Builder(module, spec.name, o, attrs="noinline nounwind")
    room = b.slot(f"[{room_of_tiles(spec.target.emulates_tiles) + BLOCK * BLOCK * 4} x i8], align {BYTES}")
    tiles, whole = MatrixTiles(b, room, spec.target.emulates_tiles), b.op("and", o.m, i64(-BLOCK))
    with b.when(b.compare("icmp sgt", whole, i64(0))):
        tiles.configure(i64(ROWS), i64(ROWS), o.words)
        with b.loop(i64(0), whole, i64(BLOCK)) as row, b.loop(i64(0), o.n, i64(BLOCK)) as column:
            _emit_block(b, spec, _placed(b, spec, row, column)._replace(m=i64(BLOCK)), room, 2, column)
    rest = b.op("sub", o.m, whole)
    with b.when(b.compare("icmp sgt", rest, i64(0))):
        lower = b.op("sub", rest, i64(ROWS))
        with b.when(b.op("or", b.compare("icmp eq", whole, i64(0)), b.compare("icmp ne", rest, i64(ROWS)))):
            tiles.configure(b.intrinsic("llvm.smin", rest, i64(ROWS)), b.intrinsic("llvm.smax", lower, i64(1)), o.words)
        is_tall = b.compare("icmp sgt", lower, i64(0))
        with b.loop(i64(0), o.n, i64(BLOCK)) as column:
            here = _placed(b, spec, whole, column)._replace(m=rest)
            with b.when(is_tall):
                _emit_block(b, spec, here, room, 2, column)
            with b.when(b.op("xor", is_tall, TRUE)):
                _emit_block(b, spec, here, room, 1, column)
    tiles.release()
    b.finish()


def _from_row(b: Builder, row: Value) -> TileOperands:
    """Return the operands from a row on."""
    o = TileOperands()
    a, c = (b.offset(p, b.op("mul", row, apart), I8) for p, apart in ((o.a, o.a_row), (o.c, o.c_row)))
    return o._replace(a=a, c=c, m=b.op("sub", o.m, row))


def _placed(b: Builder, spec: TileGemmSpec, row: Value, column: Value) -> TileOperands:
    """Return the operands from a row and a column on."""
    o = _from_row(b, row)
    words = spec.words.place(b, b.op("mul", o.steps, o.words), column)
    return o._replace(b=b.offset(o.b, words, I32), c=b.offset(o.c, column, F32), n=b.op("sub", o.n, column))


def _next_rows(b: Builder, o: TileOperands, column: Value) -> Value:
    """Return where the rows begin that are fetched while a block that begins at a column is computed."""
    turn = b.op("and", b.op("udiv", column, i64(BLOCK)), i64(BLOCK // FETCHED - 1))
    first = b.op("add", b.op("mul", turn, i64(FETCHED)), i64(BLOCK))
    return b.offset(o.a, b.op("mul", first, o.a_row), I8)


def _emit_block(b: Builder, spec: TileGemmSpec, o: TileOperands, room: Value, tall: int, column: Value) -> None:
    """Emit the product of so many tiles of rows, and write it where it belongs."""
    beside = b.offset(room, i64(room_of_tiles(spec.target.emulates_tiles)), I8)
    straight = b.op("and", b.compare("icmp sge", o.m, i64(tall * ROWS)), b.compare("icmp sge", o.n, i64(BLOCK)))
    to, apart = b.select(straight, o.c, beside), b.select(straight, o.c_row, i64(BLOCK * 4))
    goes_on, following = b.op("and", straight, o.accumulate), _next_rows(b, o, column)
    b.invoke(
        _emit_micro(b.module, spec, tall), o.a, o.a_row, o.b, o.steps, o.words, to, apart, goes_on, following, room
    )
    with b.when(b.op("xor", straight, TRUE)):
        b.invoke(_emit_writing(b.module, spec), beside, o.c, o.c_row, o.m, o.n, o.accumulate)


def _emit_micro(module: Module, spec: TileGemmSpec, tall: int) -> str:
    """Return the name of a function that computes a block, adding it to the module once."""
    name, o = f"{spec.family}.micro{tall * ROWS}x{BLOCK}", TileOperands()
    if name in module.defined:
        return name
    params = (o.a, o.a_row, o.b, o.steps, o.words, _TO, _APART, o.accumulate, _NEXT, _ROOM)
    b = Builder(module, name, params, attrs="noinline nounwind")
    tiles, blocks = MatrixTiles(b, _ROOM, spec.target.emulates_tiles), [(i, j) for i in range(tall) for j in range(2)]
    lower = b.offset(_TO, b.op("mul", _APART, i64(ROWS)), I8)
    sums = {2 * i + j: b.offset(lower if i else _TO, i64(j * BYTES), I8) for i, j in blocks}
    with b.when(o.accumulate):
        for register, place in sums.items():
            tiles.load(SUMS + register, place, _APART)
    with b.when(b.op("xor", o.accumulate, TRUE)):
        for register in sums:
            tiles.clear(SUMS + register)
    down, panel = b.op("mul", o.a_row, i64(ROWS)), spec.words.panel * 4
    on = b.op("mul", o.words, i64(4)), b.op("mul", o.words, i64(panel))
    loop = b.open_loop(i64(0), o.steps, i64(1), (o.a, o.b, _NEXT, b.offset(_TO, i64(2 * BYTES), I8)))
    left, right, following, aside = loop.values
    for j in range(2):
        fetch(b, b.offset(aside, i64(j * BYTES), I8), is_written=True)
    for row in range(FETCHED):
        fetch(b, b.offset(following, b.op("mul", o.a_row, i64(row)), I8), SECOND_CACHE)
    for j in range(2):
        tiles.load(RIGHT + j, b.offset(right, i64(j * BYTES), I8), i64(panel))
    for i in range(tall):
        tiles.load(LEFT + i, b.offset(left, down, I8) if i else left, o.a_row)
    for i, j in blocks:
        tiles.multiply_add(spec.lhs, spec.rhs, SUMS + 2 * i + j, LEFT + i, RIGHT + j)
    steps = zip((left, right, following, aside), (*on, on[0], _APART), strict=True)
    b.close_loop(loop, tuple(b.offset(place, step, I8) for place, step in steps))
    for register, place in sums.items():
        tiles.store(SUMS + register, place, _APART)
    b.finish()
    return name


def _emit_writing(module: Module, spec: TileGemmSpec) -> str:
    """Return the name of a function that writes what exists of a block to C, or adds it; adding it once."""
    kind, o = computed_type(spec.lhs), TileOperands()
    name = f"write_tiles.{kind}"
    if name in module.defined:
        return name
    b = Builder(module, name, (_TO, o.c, o.c_row, o.m, o.n, o.accumulate), attrs="noinline nounwind")
    masks = [first_lanes(b, b.op("sub", o.n, i64(j * ROWS)), ROWS) for j in range(2)]

    def rows(adds: bool) -> None:
        with b.loop(i64(0), o.m, i64(1)) as row:
            source = b.offset(_TO, b.op("mul", row, i64(BLOCK * 4)), I8)
            target = b.offset(o.c, b.op("mul", row, o.c_row), I8)
            for j, mask in enumerate(masks):
                value = b.load(spec.sums, b.offset(source, i64(j * BYTES), I8), BYTES)
                place = b.offset(target, i64(j * BYTES), I8)
                if adds:
                    value = b.op("fadd" if spec.lhs == BF16 else "add", load(b, spec.sums, place, 4, mask), value)
                store(b, value, place, 4, mask)

    with b.when(o.accumulate):
        rows(adds=True)
    with b.when(b.op("xor", o.accumulate, TRUE)):
        rows(adds=False)
    b.finish()
    return name
