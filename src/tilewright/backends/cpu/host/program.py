"""Programs: every function of a program in one module, callable from outside.

Inside, a function takes the context, an arena, its block, then its parameters word by word, then rooms for its results.
Outside, an entry takes an array of 64-bit words (arguments, then room for results) and the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.backends.cpu.compute import (
    compare,
    convert,
    copies,
    elements,
    partial,
    products,
    reduce,
    tensor_math,
    tensor_products,
    tiles,
    views,
)
from tilewright.backends.cpu.host import arrays, byte_views, control, scalars, system, tensor_views, tensors
from tilewright.backends.cpu.host.abi import (
    entry_word_types,
    from_outside,
    leave_result,
    parameter,
    read_words,
    room_bytes,
    tensor_words,
    to_outside,
    word_types,
    write_words,
)
from tilewright.backends.cpu.host.calls import OWN_SIZE, Emitted, Signature, call
from tilewright.backends.cpu.host.emit import FunctionEmitter
from tilewright.backends.cpu.host.heap import LARGEST, NO_ARENA, Memory, allocate
from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cpu.host.parallel import grid, parallel_loop
from tilewright.backends.cpu.host.values import Scalar, Tensor, static
from tilewright.backends.cpu.host.work import Estimate
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ForStmt, SeqStmts
from tilewright.core.types import TensorType, Type
from tilewright.core.visitor import expressions, statements
from tilewright.errors import UnsupportedFeatureError
from tilewright.forks import computed_once
from tilewright.native.llvm import I64, PTR, Builder, Module, Value, i64, spelled
from tilewright.native.target import Target
from tilewright.passes.aliases import Footprints
from tilewright.passes.identity import returned_parameters
from tilewright.source import Span

HANDLERS = (
    arrays, byte_views, compare, control, convert, copies, elements, partial, products, reduce, scalars, system,
    tensor_math, tensor_products, tensor_views, tensors, tiles, views,
)  # fmt: skip
"""The modules that sign code in for statements and ops."""

_HEAD = (Value(PTR, "%context"), Value(PTR, "%arena"), Value(I64, "%block_index"), Value(I64, "%block_count"))


@dataclass
class ProgramEmitter:
    """A program being written for a target."""

    program: Program
    target: Target
    options: Options = Options()
    module: Module = field(init=False)
    emitted: dict[tuple[str, Signature], Emitted] = field(default_factory=dict[tuple[str, Signature], Emitted])
    errors: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])
    names: int = 0

    def __post_init__(self) -> None:
        """Start an empty module."""
        self.module = Module(
            fused=self.target.has_fma, converts_half=self.target.has_f16c, scales=self.target.has("avx512f")
        )

    @computed_once
    def work(self) -> Estimate:
        """How much its functions do."""
        return Estimate(self.program)

    @computed_once
    def footprints(self) -> Footprints:
        """What its functions do to the tensors they are given."""
        return Footprints(self.program)

    @computed_once
    def returned(self) -> dict[str, tuple[int | None, ...]]:
        """For each function, which parameter each of its results is."""
        return dict(returned_parameters(self.program.function_list))

    def note(self, message: str, span: Span) -> int:
        """Return the number under which an error is reported."""
        self.errors.append((message, span))
        return len(self.errors)

    def task_name(self, function: str) -> str:
        """Return a name for a task of a function."""
        self.names += 1
        return f"task{self.names}_{spelled(function)}"

    def entry(self, function: Function) -> str:
        """Write a function that is called from outside, its parameters read from words; return its symbol."""
        symbol, words = f"entry_{spelled(function.name)}", Value(PTR, "%words")
        b = Builder(self.module, symbol, [words, _HEAD[0]], linkage="", attrs="nounwind")
        types = [type_ for p in function.params for type_ in entry_word_types(p.type)]
        given = iter(read_words(b, words, types))
        params = [from_outside(p.type, given) for p in function.params]
        done = b.label("done")
        memory = Memory(b, _HEAD[0], self.note(NO_ARENA, function.span), done)
        e = self._emitter(function, b, Signature.plain(function))
        e.arena_base, e.block_index, e.block_count = memory.base, i64(0), i64(1)
        for room, type_ in zip(e.rooms, self._made(function), strict=True):
            b.do(f"{room.ref} = getelementptr i8, {memory.base}, i64 {e.arena.take(room_bytes(type_))[0]}")
        passed = [word for p, value in zip(function.params, params, strict=True) for word in _argument(p.type, value)]
        self._body(e, Signature.plain(function), passed)
        write_words(b, words, self._results(e, params), len(types))
        b.do(f"br label %{done}")
        b.begin(done)
        memory.fill(self.room(e))
        memory.free()
        b.finish()
        self.settle(e)
        return symbol

    def _results(self, e: FunctionEmitter, params: list[Scalar | Tensor]) -> list[Value]:
        """Return what an entry gives its caller: parameters, and what lies in its rooms."""
        rooms = iter(e.rooms)
        results = [
            params[position] if position is not None else _result(e.b, type_, next(rooms))
            for type_, position in zip(e.function.return_types, self.returned[e.function.name], strict=True)
        ]
        return [word for value in results for word in to_outside(value)]

    def function(self, function: Function, signature: Signature) -> Emitted:
        """Write a function once for each signature; return how to call it."""
        key = function.name, signature
        if key not in self.emitted:
            self.emitted[key] = self._write(function, signature)
        return self.emitted[key]

    def _write(self, function: Function, signature: Signature) -> Emitted:
        self.names += 1
        name = f"fn{self.names}_{spelled(function.name)}"
        params = [
            Value(t, f"%p{i}_{k}") for i, p in enumerate(function.params) for k, t in enumerate(word_types(p.type))
        ]
        made = self._made(function)
        b = Builder(self.module, name, [*_HEAD, *params, *_rooms(made)], attrs="nounwind")
        e = self._emitter(function, b, signature)
        self._body(e, signature, params)
        b.finish()
        returned = self.returned[function.name]
        return Emitted(function, name, self.settle(e), returned, tuple(made), tuple(e.turned_results))

    def _made(self, function: Function) -> list[Type]:
        """Return the types of the results that are no parameters."""
        returned = self.returned[function.name]
        return [type_ for type_, position in zip(function.return_types, returned, strict=True) if position is None]

    def _emitter(self, function: Function, b: Builder, signature: Signature) -> FunctionEmitter:
        e = FunctionEmitter(self, function, b)
        e.has_turned_views = e.has_turned_views or any(signature.turned)
        e.is_concurrent = signature.is_concurrent
        e.exit = b.label("exit")
        e.rooms = _rooms(self._made(function))
        e.turned_results = [False] * len(e.rooms)
        return e

    def _body(self, e: FunctionEmitter, signature: Signature, words: list[Value]) -> None:
        """Write a function up to its exit."""
        self._bind(e, signature, words)
        e.body(e.function.body)
        e.b.do(f"br label %{e.exit}")
        e.b.begin(e.exit)

    def _bind(self, e: FunctionEmitter, signature: Signature, words: list[Value]) -> None:
        """Bind the parameters; an argument that contradicts the signature is an error, and made harmless."""
        params, given = e.function.params, iter(words)
        shared = [(params[position], params[first]) for position, first in enumerate(signature.shared)]
        e.roots = self.footprints.aliases(e.function.name).classes(shared)
        for param, is_turned in zip(params, signature.turned, strict=True):
            e.bind(param, parameter(param.type, given, is_turned=is_turned))
        for symbol, (position, axis) in e.function.symbols.items():
            tensor = e.bindings[params[position]]
            assert isinstance(tensor, Tensor)
            e.symbols[symbol] = tensor.shape[axis]
        if e.checked:
            for param in params:
                self._check_bounds(e, param)
            self._check_extents(e)

    def _check_bounds(self, e: FunctionEmitter, param: Var) -> None:
        """Keep a scalar within what its type promises."""
        binding = e.bindings[param]
        if param.bounds is None or not isinstance(binding, Scalar):
            return
        low, high = (i64(bound) for bound in param.bounds)
        number = e.index(binding)
        outside = e.b.op("or", e.b.compare("icmp slt", number, low), e.b.compare("icmp sgt", number, high))
        message = f"`{param.name_hint}` is outside its bounds {param.bounds[0]} to {param.bounds[1]}"
        e.fail(outside, message, param)
        if binding.value.type == I64:
            e.bindings[param] = Scalar(e.b.select(outside, low, number), binding.dtype)

    def _check_extents(self, e: FunctionEmitter) -> None:
        """Check that extents of one name agree; where they do not, no tensor of unknown extent has elements."""
        agree: Value | None = None
        for param in e.function.params:
            tensor = e.bindings[param]
            extents = param.type.shape if isinstance(param.type, TensorType) else ()
            for axis, extent in enumerate(extents):
                assert isinstance(tensor, Tensor)
                wanted = e.index(e.value(extent)) if isinstance(extent, Expr) else tensor.shape[axis]
                if wanted == tensor.shape[axis]:
                    continue
                same = e.b.compare("icmp eq", tensor.shape[axis], wanted)
                e.fail(e.negated(same), f"axis {axis} of `{param.name_hint}` is not {extent}", param)
                agree = same if agree is None else e.b.op("and", agree, same)
        if agree is not None:
            self._empty_unless(e, agree)

    def _empty_unless(self, e: FunctionEmitter, agree: Value) -> None:
        def kept(extents: tuple[Value, ...]) -> tuple[Value, ...]:
            return tuple(v if static(v) is not None else e.b.select(agree, v, i64(0)) for v in extents)

        for param in e.function.params:
            tensor = e.bindings[param]
            if isinstance(tensor, Tensor):
                shape, valid = kept(tensor.shape), kept(tensor.valid)
                e.bindings[param] = Tensor(tensor.pointer, shape, tensor.strides, valid, tensor.dtype, tensor.root)

    def room(self, e: FunctionEmitter) -> int:
        """Return how many bytes a function and what it calls need for their tiles."""
        whole = e.arena.size + e.callee_arena
        if whole > LARGEST:
            raise UnsupportedFeatureError(f"no machine holds tiles of {whole} bytes", spans=[e.function.span])
        return whole

    def settle(self, e: FunctionEmitter) -> int:
        """Fill in where the arenas of callees begin, known only once a function is written; return its whole room."""
        self.module.functions[-1] = self.module.functions[-1].replace(OWN_SIZE, str(e.arena.size))
        return self.room(e)

    def call(self, e: FunctionEmitter, expr: Invoke | Submit) -> Any:
        """Write a call of another function."""
        return call(e, expr)

    def grid(self, e: FunctionEmitter, callee: Emitted, args: list[Value], count: Value) -> None:
        """Write a call of a function for every block."""
        grid(e, callee, args, count)

    def parallel(self, e: FunctionEmitter, stmt: ForStmt) -> bool:
        """Write a loop whose turns run side by side, where they can."""
        return parallel_loop(e, stmt)

    def give_back(self, e: FunctionEmitter, values: list[Any]) -> None:
        """Write a function's results into their rooms; those that are parameters need none."""
        made = [
            (type_, value)
            for type_, value, position in zip(
                e.function.return_types, values, self.returned[e.function.name], strict=True
            )
            if position is None
        ]
        for k, (type_, value) in enumerate(made):
            if isinstance(value, Tensor) and value.strides:
                e.turned_results[k] |= static(value.strides[-1]) != 1
            leave_result(e, type_, value, e.rooms[k])

    def turns(self, function: Function) -> bool:
        """Return whether a function makes views whose last stride may be other than one."""
        return _turns(self.program, function.body)

    def allocate(self, e: FunctionEmitter, nbytes: Value, clear: bool) -> Value:
        """Write the making of a buffer that the context keeps until the caller has read the results."""
        return allocate(e, nbytes, clear)


_TURNING = ("tensor.transpose", "tensor.as_strided")
"""Ops whose views may have a last stride other than one."""


def _rooms(results: Sequence[Type]) -> list[Value]:
    """Return where results go."""
    return [Value(PTR, f"%result{k}") for k in range(len(results))]


def _argument(type_: Type, value: Scalar | Tensor) -> list[Value]:
    """Return a value from outside as functions pass it."""
    if isinstance(value, Scalar):
        return [value.value]
    assert isinstance(type_, TensorType)
    return tensor_words(type_, value)


def _result(b: Builder, type_: Type, room: Value) -> Scalar | Tensor:
    """Return what a function has left in a room."""
    value = parameter(type_, iter(read_words(b, room, word_types(type_))), is_turned=True)
    assert isinstance(value, (Scalar, Tensor))
    return value


def _turns(program: Program, body: SeqStmts) -> bool:
    for stmt in statements(body):
        for expr in expressions(stmt):
            if isinstance(expr, (Invoke, Submit)) and _turns(program, program[expr.op.name].body):
                return True
            if isinstance(expr, Call) and (expr.op.name in _TURNING or expr.kwargs.get("drop_dims")):
                return True
    return False
