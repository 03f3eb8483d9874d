"""Programs: every function of a program in one module, callable from outside.

Inside, a function takes the context, an arena, its block, then its parameters word by word, then where its results go.
Outside, an entry takes an array of 64-bit words (arguments, then room for results) and the context: three words that
hold how to run chunks in parallel, the number of the first error, and the list of buffers to free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.backends.cpu import control, tensors, tiles
from tilewright.backends.cpu.emit import FunctionEmitter
from tilewright.backends.cpu.llvm import I64, PTR, Builder, Module, Value, i64
from tilewright.backends.cpu.target import Target
from tilewright.backends.cpu.traced import compute_type
from tilewright.backends.cpu.values import Binding, Place, Scalar, Tensor, Tile, contiguous
from tilewright.core.expr import Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ForStmt, ReturnStmt
from tilewright.core.types import ScalarType, TensorType, TileType, TupleType, Type
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import INDEX, TASK_ID
from tilewright.errors import UnsupportedFeatureError
from tilewright.source import Span

HANDLERS = (control, tensors, tiles)
"""The modules that sign code in for statements and ops."""

CHUNKS = 64
"""How many pieces a parallel loop is cut into at most."""

_HEAD = (Value(PTR, "%context"), Value(PTR, "%arena"), Value(I64, "%block_index"), Value(I64, "%block_count"))
_ARENA_SIZE = "ARENA-SIZE"


@dataclass(frozen=True)
class Emitted:
    """A function that has been written: its name, and how much arena it needs in all."""

    name: str
    arena: int


@dataclass
class ProgramEmitter:
    """A program being written for a target."""

    program: Program
    target: Target
    module: Module = field(init=False)
    emitted: dict[str, Emitted] = field(default_factory=dict[str, Emitted])
    errors: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])
    tasks: int = 0

    def __post_init__(self) -> None:
        """Start an empty module."""
        self.module = Module(
            fused=self.target.has_fma, converts_half=self.target.has_f16c, scales=self.target.has("avx512f")
        )

    def note(self, message: str, span: Span) -> int:
        """Return the number under which an error is reported."""
        self.errors.append((message, span))
        return len(self.errors)

    def entry(self, function: Function) -> str:
        """Write a function that is called from outside; return its symbol."""
        inner = self.function(function)
        symbol = f"entry_{function.name}"
        words, context = Value(PTR, "%words"), _HEAD[0]
        b = Builder(self.module, symbol, [words, context], linkage="")
        at = 0
        args: list[Value] = []
        for param in function.params:
            for type_ in word_types(param.type):
                args.append(b.load(type_, b.offset(words, i64(at), I64), 8))
                at += 1
        for type_ in function.return_types:
            args.append(b.offset(words, i64(at), I64))
            at += len(word_types(type_))
        arena = self._arena(b, inner.arena)
        b.invoke(inner.name, context, arena, i64(0), i64(1), *args)
        self._free(b, arena)
        b.finish()
        return symbol

    def _arena(self, b: Builder, size: int | str) -> Value:
        self.module.intrinsic("aligned_alloc", PTR, I64, I64)
        return b.value(PTR, f"call ptr @aligned_alloc(i64 64, i64 {size if isinstance(size, str) else max(size, 64)})")

    def _free(self, b: Builder, pointer: Value) -> None:
        self.module.declare("declare void @free(ptr)")
        b.invoke("free", pointer)

    def function(self, function: Function) -> Emitted:
        """Write a function once; return how to call it."""
        known = self.emitted.get(function.name)
        if known is not None:
            return known
        params = [
            Value(t, f"%p{i}_{k}") for i, p in enumerate(function.params) for k, t in enumerate(word_types(p.type))
        ]
        results = [Value(PTR, f"%result{i}") for i in range(len(function.return_types))]
        name = f"fn_{function.name}"
        b = Builder(self.module, name, [*_HEAD, *params, *results], attrs="nounwind")
        e = FunctionEmitter(self, function, b)
        words = iter(params)
        for param in function.params:
            e.bind(param, bind_words(param.type, words, param))
        for symbol, (position, axis) in function.symbols.items():
            tensor = e.bindings[function.params[position]]
            assert isinstance(tensor, Tensor)
            e.symbols[symbol] = tensor.shape[axis]
        e.body(function.body)
        b.finish()
        total = e.arena.size + e.callee_arena
        self._settle(e.arena.size, total)
        self.emitted[function.name] = Emitted(name, total)
        return self.emitted[function.name]

    def _settle(self, own: int, total: int) -> None:
        """Fill in the sizes that are known only once a function has been written."""
        text = self.module.functions[-1]
        self.module.functions[-1] = text.replace(f"{_ARENA_SIZE}-OWN", str(own)).replace(
            f"{_ARENA_SIZE}-ALL", str(max(total, 64))
        )

    def call(self, e: FunctionEmitter, expr: Invoke | Submit) -> Any:
        """Write a call of another function; a dispatch over a grid calls it once per block."""
        function = self.program[expr.op.name]
        args = [word for arg, p in zip(expr.args, function.params, strict=True) for word in self._argument(e, arg, p)]
        if isinstance(expr, Submit) and expr.core_num is not None:
            count = e.index(e.value(expr.core_num))
            if function.return_types:
                raise UnsupportedFeatureError("a grid that returns values has no native code yet", spans=[expr.span])
            with e.b.loop(i64(0), count, i64(1)) as block:
                self._invoke(e, function, args, [], block, count)
            return (Scalar(i64(0), TASK_ID),)
        results = self._invoke(e, function, args, function.return_types, e.block_index, e.block_count)
        if isinstance(expr, Submit):
            return (*results, Scalar(i64(0), TASK_ID))
        return results[0] if len(results) == 1 and not isinstance(expr.type, TupleType) else tuple(results)

    def _argument(self, e: FunctionEmitter, arg: Any, param: Var) -> list[Value]:
        binding = e.value(arg)
        if isinstance(binding, Scalar) and isinstance(param.type, ScalarType) and binding.dtype != param.type.dtype:
            binding = Scalar(e.index(binding), INDEX)
        return words_of(e, binding)

    def _invoke(
        self,
        e: FunctionEmitter,
        function: Function,
        args: Sequence[Value],
        results: Sequence[Type],
        block: Value,
        count: Value,
    ) -> list[Binding]:
        callee = self.function(function)
        e.callee_arena = max(e.callee_arena, callee.arena)
        arena = e.b.offset(e.arena_base, Value(I64, f"{_ARENA_SIZE}-OWN"), "i8")
        parts = [e.arena.take(8 * len(word_types(t))) for t in results]
        rooms = [e.address(part[0]) for part in parts]
        e.b.invoke(callee.name, e.context, arena, block, count, *args, *rooms)
        bindings = [self._loaded(e, t, room) for t, room in zip(results, rooms, strict=True)]
        for part in parts:
            e.arena.give_back(part)
        return bindings

    def _loaded(self, e: FunctionEmitter, type_: Type, room: Value) -> Binding:
        words = [e.b.load(t, e.b.offset(room, i64(k), I64), 8) for k, t in enumerate(word_types(type_))]
        return bind_words(type_, iter(words), object())

    def give_back(self, e: FunctionEmitter, values: Sequence[Any], stmt: ReturnStmt) -> None:
        """Write a function's results where its caller wants them."""
        if stmt is not e.function.body.stmts[-1]:
            raise UnsupportedFeatureError("returning early has no native code yet", spans=[stmt.span])
        for position, value in enumerate(values):
            room = Value(PTR, f"%result{position}")
            for k, word in enumerate(words_of(e, value)):
                e.b.store(word, e.b.offset(room, i64(k), I64), 8)

    def allocate(self, e: FunctionEmitter, nbytes: Value) -> Value:
        """Write the making of a buffer that the context keeps until the caller has read the results."""
        self.module.intrinsic("malloc", PTR, I64)
        block = e.b.call(PTR, "malloc", e.b.op("add", nbytes, i64(128)))
        head = e.b.offset(e.context, i64(2), I64)
        older = e.b.value(PTR, f"atomicrmw xchg {head}, {block} monotonic")
        e.b.store(older, block, 8)
        address = e.b.value(I64, f"ptrtoint {block} to i64")
        aligned = e.b.op("and", e.b.op("add", address, i64(127)), i64(-64))
        return e.b.value(PTR, f"inttoptr {aligned} to ptr")

    def parallel(self, e: FunctionEmitter, stmt: ForStmt) -> bool:
        """Write a parallel loop as a task that runs chunks of it; a loop inside a task stays a loop."""
        if e.is_task:
            return False
        captured = list(dict.fromkeys(v for s in statements(stmt.body) for v in variables(used(s)) if v in e.bindings))
        start, stop, step = (e.index(e.value(x)) for x in (stmt.start, stmt.stop, stmt.step))
        span = e.b.op("sub", e.b.op("add", e.b.op("sub", stop, start), step), i64(1))
        trips = e.b.intrinsic("llvm.smax", e.b.op("sdiv", span, step), i64(0))
        chunks = e.b.intrinsic("llvm.smin", trips, i64(CHUNKS))
        words = [start, step, trips, chunks, e.context, e.block_index, e.block_count, *e.symbols.values()]
        words += [word for var in captured for word in words_of(e, e.bindings[var])]
        part = e.arena.take(8 * len(words))
        data = e.address(part[0])
        for k, word in enumerate(words):
            e.b.store(word, e.b.offset(data, i64(k), I64), 8)
        name = self._task(e, stmt, captured, [w.type for w in words])
        run = e.b.load(PTR, e.context, 8)
        e.b.do(f"call void {run.ref}(ptr @{name}, {data}, {chunks})")
        e.arena.give_back(part)
        return True

    def _task(self, e: FunctionEmitter, stmt: ForStmt, captured: Sequence[Var], types: Sequence[str]) -> str:
        self.tasks += 1
        name = f"task{self.tasks}_{e.function.name}"
        data, chunk = Value(PTR, "%data"), Value(I64, "%chunk")
        b = Builder(self.module, name, [data, chunk], attrs="nounwind")
        loaded = iter([b.load(t, b.offset(data, i64(k), I64), 8) for k, t in enumerate(types)])
        start, step, trips, chunks, context, block_index, block_count = (next(loaded) for _ in range(7))
        inner = FunctionEmitter(self, e.function, b)
        inner.uses, inner.is_task = e.uses, True
        inner.context, inner.block_index, inner.block_count = context, block_index, block_count
        inner.symbols = {symbol: next(loaded) for symbol in e.symbols}
        inner.arena_base = self._arena(b, f"{_ARENA_SIZE}-ALL")
        for var in captured:
            inner.bindings[var] = rebound(e.bindings[var], loaded)
        size = b.op("sdiv", b.op("sub", b.op("add", trips, chunks), i64(1)), chunks)
        first = b.op("mul", chunk, size)
        last = b.intrinsic("llvm.smin", b.op("add", first, size), trips)
        with b.loop(first, last, i64(1)) as turn:
            inner.bindings[stmt.loop_var] = Scalar(b.op("add", start, b.op("mul", turn, step)), INDEX)
            inner.body(stmt.body)
        self._free(b, inner.arena_base)
        b.finish()
        self._settle(inner.arena.size, inner.arena.size + inner.callee_arena)
        return name


def word_types(type_: Type) -> list[str]:
    """Return the types of the words a value of a type travels in."""
    match type_:
        case ScalarType():
            return [compute_type(type_.dtype)]
        case TensorType():
            return [PTR, *[I64] * (2 * len(type_.shape))]
        case TileType():
            return [PTR, *[I64] * len(type_.shape)]
        case _:
            raise UnsupportedFeatureError(f"passing {type_} has no native code yet")


def words_of(e: FunctionEmitter, binding: Any) -> list[Value]:
    """Return a value as the words it travels in."""
    if isinstance(binding, Scalar):
        return [binding.value]
    if isinstance(binding, Tensor):
        if binding.strides and binding.strides[-1] != i64(1):
            raise UnsupportedFeatureError("passing a turned view to a function has no native code yet")
        return [binding.pointer, *binding.shape, *binding.strides]
    assert isinstance(binding, Tile)
    return [e.stored(binding).pointer, *binding.valid]


def bind_words(type_: Type, words: Any, root: object) -> Binding:
    """Return the value that words stand for."""
    if isinstance(type_, ScalarType):
        return Scalar(next(words), type_.dtype)
    if isinstance(type_, TensorType):
        pointer, rank = next(words), len(type_.shape)
        given = [next(words) for _ in range(2 * rank)]
        shape = tuple(
            i64(extent) if isinstance(extent, int) else word for extent, word in zip(type_.shape, given, strict=False)
        )
        return Tensor(pointer, shape, (*given[rank:-1], *[i64(1)] * bool(rank)), shape, type_.dtype, root)
    assert isinstance(type_, TileType)
    pointer = next(words)
    return Tile(type_, tuple(next(words) for _ in type_.shape), place=Place(pointer, contiguous(type_.shape)))


def rebound(binding: Any, words: Any) -> Binding:
    """Return a captured value in the function that reads its words."""
    if isinstance(binding, Scalar):
        return Scalar(next(words), binding.dtype)
    if isinstance(binding, Tensor):
        pointer, rank = next(words), len(binding.shape)
        given = [next(words) for _ in range(2 * rank)]
        shape = tuple(known if known.ref.isdigit() else word for known, word in zip(binding.shape, given, strict=False))
        strides = tuple(
            known if known.ref.isdigit() else word for known, word in zip(binding.strides, given[rank:], strict=True)
        )
        return Tensor(pointer, shape, strides, shape, binding.dtype, binding.root)
    assert isinstance(binding, Tile) and binding.place is not None
    pointer = next(words)
    valid = tuple(next(words) for _ in binding.valid)
    return Tile(binding.type, valid, place=Place(pointer, binding.place.strides), owners=binding.owners)
