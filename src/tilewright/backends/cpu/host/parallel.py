"""Parallel regions: loops and grids whose turns run side by side.

What a region reads from around it is written into words; a task, a function of its own, reads them and runs one chunk.
A region inside a task is a plain loop. Turns that add to the same memory do so atomically.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.backends.cpu.emit.durations import PIECE
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.signature import Emitted
from tilewright.backends.cpu.emit.values import static
from tilewright.backends.cpu.host.abi import captured, invoke, read_words, room_bytes, words_of, write_words
from tilewright.backends.cpu.host.heap import NO_ARENA, Memory
from tilewright.backends.cpu.host.loops import counted_loop, turns_of
from tilewright.backends.cpu.host.nests import Nest
from tilewright.backends.cpu.host.row_shares import divides_rows
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements, used, variables
from tilewright.native.context import Context
from tilewright.native.llvm import I64, PTR, Builder, Value, i64
from tilewright.passes.launches import runs_side_by_side
from tilewright.passes.shares import shared_out

PIECES = 16
"""How many pieces a region is cut into for each of several threads: so many that all have an equal share in the end.

Each ends with a fence that all its stores past the caches wait for, several microseconds where a core streams as fast
as it can; on two threads 64 for each took up to a tenth longer. One thread runs its turns as one piece.
"""

WORKERS = 64
"""How many threads divide rows among them at most."""

NO_STACKS = "there is no memory for the stacks of these blocks"

_DATA, _CHUNK = Value(PTR, "%data"), Value(I64, "%chunk")


def parallel_loop(e: FunctionEmitter, stmt: ForStmt) -> bool:
    """Emit a loop as a task where its turns can run side by side; return whether they can."""
    if e.is_task or not runs_side_by_side(stmt):
        return False
    outside = list(dict.fromkeys(v for s in statements(stmt.body) for v in variables(used(s)) if v in e.bindings))
    flagged = [var for var in outside if var in e.bound]
    (start, step), turns = turns_of(e, stmt)
    nest = Nest.of(e, stmt, turns)
    words = [start, step, e.context, e.block_index, e.block_count, *e.symbols.values()]
    words += [word for var in outside for word in words_of(e, e.bindings[var])]
    words += [e.bound[var] for var in flagged]
    if nest is not None:
        words, turns, stmt = [*words, *nest.words], nest.turns, nest.inner
    in_shares = nest is None and shared_out(e.program.program, stmt, e.roots) is not None
    in_rows = nest is None and not in_shares and divides_rows(e, stmt, turns)
    chunks = _workers(e) if in_shares or in_rows else _chunks(e, turns, e.program.durations.each_turn(stmt))
    task = Task(e, chunks, [*words, turns], chunks) if in_shares or in_rows else Task(e, turns, words, chunks)
    loaded = iter(task.words)
    start, step, *head = (next(loaded) for _ in range(5))
    inner = task.emitter(head)
    inner.symbols = {symbol: next(loaded) for symbol in e.symbols}
    inner.bindings = {var: captured(e.bindings[var], loaded) for var in outside}
    inner.bound = {var: next(loaded) for var in flagged}
    inner.regions = []
    if in_shares or in_rows:
        inner.block_index, inner.block_count = task.first, task.turns
        inner.in_shares, inner.in_rows, inner.is_concurrent = in_shares, in_rows, in_rows or e.is_concurrent
        counted_loop(inner, stmt, (i64(0), next(loaded)), (), (start, step))
    elif nest is not None:
        nest.emit(inner, (task.first, task.last), (start, step), [*loaded])
    else:
        begin = task.b.op("add", start, task.b.op("mul", task.first, step))
        counted_loop(inner, stmt, (task.first, task.last), (), (begin, step))
    task.finish(inner)
    task.run()
    return True


def _workers(e: FunctionEmitter) -> Value:
    """Return how many threads may run side by side."""
    return e.b.intrinsic("llvm.umin", e.b.intrinsic("llvm.umax", threads(e), i64(1)), i64(WORKERS))


def threads(e: FunctionEmitter) -> Value:
    """Return how many threads the caller has said there are."""
    return e.b.load(I64, e.b.offset(e.context, i64(Context.THREADS), I64), 8)


def grid(e: FunctionEmitter, callee: Emitted, args: Sequence[Value], count: Value) -> None:
    """Emit a call per block; only the last block's results are kept."""
    if e.is_task:
        with e.b.loop(i64(0), count, i64(1)) as block:
            invoke(e, callee, block, count, args)
            e.worked(e.program.work.call(callee.function.name))
        return
    turns = task_turns(e, count)
    task = Task(
        e, turns, [e.context, count, *args], _chunks(e, turns, 1 + e.program.durations.call(callee.function.name))
    )
    _blocks(task, callee, False)
    task.run()


def rounds(e: FunctionEmitter, callee: Emitted, args: Sequence[Value], count: Value) -> None:
    """Emit a call per block, each block run as far as a barrier before any goes on; only the last's results are kept.

    The blocks share a context of their own, which says where they wait.
    """
    from tilewright.native.rounds import GRID, NEEDED, ROUNDS  # few programs have barriers

    part = e.arena.take(8 * (GRID + 1))
    own = e.address(part[0])
    turns = task_turns(e, count)
    task = Task(e, turns, [own, count, *args], turns)
    _blocks(task, callee, True)
    for text in (*NEEDED, ROUNDS):
        e.b.module.declare(text)
    note = i64(e.program.note(NO_STACKS, e.at.span))
    with task.data() as data:
        e.b.invoke("rounds", Value(PTR, f"@{task.name}"), data, task.chunks, e.context, own, note)
    e.arena.give_back(part)
    e.leave_after_an_error()


def _blocks(task: Task, callee: Emitted, in_rounds: bool) -> None:
    """Emit the blocks of a chunk, the last one's results written where they are kept."""
    e = task.outer
    context, blocks, *given = task.words
    inner = task.emitter([context, i64(0), blocks])
    inner.in_rounds = in_rounds
    rooms = len(callee.results)
    plain, kept = given[: len(given) - rooms], given[len(given) - rooms :]
    spare = [inner.address(inner.arena.take(room_bytes(type_))[0]) for type_ in callee.results]
    with task.b.loop(task.first, task.last, i64(1)) as block:
        is_last = task.b.compare("icmp eq", block, task.b.op("sub", blocks, i64(1)))
        left = [task.b.select(is_last, room, other) for room, other in zip(kept, spare, strict=True)]
        invoke(inner, callee, block, blocks, [*plain, *left])
        inner.worked(e.program.work.call(callee.function.name))
    task.finish(inner)


def _chunks(e: FunctionEmitter, turns: Value, work: int) -> Value:
    """Return how many pieces turns of so many nanoseconds each are cut into: one where all is too little."""
    known = static(turns)
    if known is not None and known * work < e.program.worth:
        return i64(min(known, 1))
    b, available = e.b, threads(e)
    busy = b.intrinsic("llvm.umin", available, _pieces(e, turns, work, e.program.worth // 2))
    long = b.intrinsic("llvm.umin", b.op("mul", available, i64(PIECES)), _pieces(e, turns, work, PIECE))
    is_worth = b.compare("icmp ugt", available, i64(1))
    if known is None:
        is_worth = b.op("and", is_worth, b.compare("icmp uge", turns, i64(-(-e.program.worth // work))))
    most = b.select(is_worth, b.intrinsic("llvm.umax", busy, long), i64(1))
    return b.intrinsic("llvm.umin", turns, most)


def _pieces(e: FunctionEmitter, turns: Value, work: int, least: int) -> Value:
    """Return how many pieces of so many nanoseconds turns make; where even the least is shared, as many as turns."""
    known = static(turns)
    if not e.program.worth:
        return turns
    return e.b.op("udiv", e.b.op("mul", turns, i64(work)), i64(least)) if known is None else i64(known * work // least)


def task_turns(e: FunctionEmitter, count: Value) -> Value:
    """Return how many blocks run: none where there are fewer."""
    known = static(count)
    return e.b.intrinsic("llvm.smax", count, i64(0)) if known is None else i64(max(known, 0))


def _share(b: Builder, turns: Value, pieces: Value, piece: Value) -> Value:
    """Return how many turns the pieces before one have, all of them about as many."""
    if pieces == turns:
        return piece
    return b.op("udiv", b.op("mul", turns, piece), pieces)


class Task:
    """A function that runs one chunk of a region: the turns from `first` to `last`, given the words around it."""

    def __init__(self, e: FunctionEmitter, turns: Value, words: Sequence[Value], chunks: Value) -> None:
        self.outer, self.chunks = e, chunks
        self.name = e.program.symbol("task", e.function.name)
        self.b = b = Builder(e.program.module, self.name, [_DATA, _CHUNK], attrs="nounwind")
        self.given = [turns, chunks, *words]
        loaded = iter(read_words(self.b, _DATA, [word.type for word in self.passed]))
        turns, count, *self.words = [word if static(word) is not None else next(loaded) for word in self.given]
        """The words as the task sees them: constants stay what they are."""
        self.turns = turns
        self.first, self.last = (_share(b, turns, count, end) for end in (_CHUNK, b.op("add", _CHUNK, i64(1))))

    @property
    def passed(self) -> list[Value]:
        """What the task cannot know without being told."""
        return [word for word in self.given if static(word) is None]

    def emitter(self, head: Sequence[Value]) -> FunctionEmitter:
        """Return an emitter for the task, given its context, block and number of blocks."""
        outer = self.outer
        inner = FunctionEmitter(outer.program, outer.function, self.b, has_turned_views=outer.has_turned_views)
        inner.uses, inner.roots, inner.fusion = outer.uses, outer.roots, outer.fusion
        inner.is_task = inner.is_concurrent = True
        inner.context, inner.block_index, inner.block_count = head
        note = outer.program.note(NO_ARENA, outer.at.span)
        self.memory = Memory(self.b, inner.context, note, inner.exit)
        inner.arena.base = self.memory.base
        inner.leave_after_an_error()
        return inner

    def finish(self, inner: FunctionEmitter) -> None:
        """End the task."""
        span = self.outer.function.span
        self.memory.fill(self.outer.program.room(inner.arena, span))
        self.b.do(f"br label %{inner.exit}")
        self.b.begin(inner.exit)
        self.memory.free()
        self.b.finish()
        self.outer.program.settle(inner.arena, span)

    def run(self) -> None:
        """Emit the running of every chunk."""
        e = self.outer
        with self.data() as data:
            run = e.b.load(PTR, e.b.offset(e.context, i64(Context.PARALLEL), I64), 8)
            e.b.do(f"call void {run.ref}(ptr @{self.name}, {data}, {self.chunks}, {e.context})")
        e.leave_after_an_error()

    @contextmanager
    def data(self) -> Generator[Value, None, None]:
        """Emit the words that the task reads; give where they lie while what runs it is emitted."""
        e = self.outer
        part = e.arena.take(8 * len(self.passed))
        data = e.address(part[0])
        write_words(e.b, data, self.passed)
        yield data
        e.arena.give_back(part)
