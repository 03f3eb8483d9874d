"""Functions: each function of a program written once for every way it is called.

Inside, a function takes the context, an arena, its block, then its parameters word by word, then rooms for its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.signature import Emitted, Signature
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import Scalar, Tensor, static
from tilewright.backends.cpu.host.abi import parameter, word_types
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.solving import GIVEN
from tilewright.core.stmt import SeqStmts
from tilewright.core.types import TensorType, Type
from tilewright.core.visitor import expressions, statements
from tilewright.native.llvm import I64, PTR, Builder, Value, i64
from tilewright.passes.filled_rows import straightened
from tilewright.passes.fusing import fusion
from tilewright.passes.parted_stores import parted
from tilewright.passes.woven_stores import woven

HEAD = (Value(PTR, "%context"), Value(PTR, "%arena"), Value(I64, "%block_index"), Value(I64, "%block_count"))


def written(unit: Unit, function: Function, signature: Signature) -> Emitted:
    """Write a function once for each signature; return how to call it."""
    key = function.name, signature
    if key not in unit.emitted:
        unit.emitted[key] = _write(unit, function, signature)
    return unit.emitted[key]


def _write(unit: Unit, function: Function, signature: Signature) -> Emitted:
    name = unit.symbol("fn", function.name)
    params = [Value(t, f"%p{i}_{k}") for i, p in enumerate(function.params) for k, t in enumerate(word_types(p.type))]
    made = made_results(unit, function)
    b = Builder(unit.module, name, [*HEAD, *params, *_rooms(made)], attrs="nounwind")
    e = emitter(unit, function, b, signature)
    write_body(e, signature, params)
    b.finish()
    room, returned = unit.settle(e.arena, function.span), unit.returned[function.name]
    return Emitted(function, name, room, returned, tuple(made), tuple(e.turned_results))


def made_results(unit: Unit, function: Function) -> list[Type]:
    """Return the types of the results that are no parameters."""
    returned = unit.returned[function.name]
    return [type_ for type_, position in zip(function.return_types, returned, strict=True) if position is None]


def _rooms(results: Sequence[Type]) -> list[Value]:
    """Return where results go."""
    return [Value(PTR, f"%result{k}") for k in range(len(results))]


def emitter(unit: Unit, function: Function, b: Builder, signature: Signature) -> FunctionEmitter:
    """Return what emits a function for a signature."""
    turns = any(step != 1 for step in signature.steps) or _turns(unit.program, function.body)
    roots = roots_of(unit, function, signature)
    straight = woven(parted(straightened(function, roots)), roots)
    e = FunctionEmitter(unit, straight, b, has_turned_views=turns)
    e.is_concurrent = signature.is_concurrent or any(_is_window(param.type) for param in function.params)
    e.in_rounds, e.in_shares, e.in_rows = signature.in_rounds, signature.in_shares, signature.in_rows
    e.rooms = _rooms(made_results(unit, function))
    e.turned_results = [False] * len(e.rooms)
    return e


def _is_window(type_: Type) -> bool:
    """Return whether other ranks may add to what a parameter is."""
    return isinstance(type_, TensorType) and type_.is_window


def _turns(program: Program, body: SeqStmts) -> bool:
    """Return whether statements make views whose last stride may be other than one."""
    for stmt in statements(body):
        for expr in expressions(stmt):
            if isinstance(expr, (Invoke, Submit)) and _turns(program, program[expr.op.name].body):
                return True
            turns = isinstance(expr, Call) and (expr.op.spec.turns or expr.kwargs.get("drop_dims"))
            if turns and isinstance(expr.type, TensorType):
                return True
    return False


def write_body(e: FunctionEmitter, signature: Signature, words: Sequence[Value]) -> None:
    """Write a function up to its exit."""
    _bind(e, signature, words)
    turned = {param for param, step in zip(e.function.params, signature.steps, strict=True) if step != 1}
    e.fusion = fusion(e.function, e.roots, turned)
    e.uses = e.fusion.uses
    e.program.plans.append(e.fusion)
    with _alone(e):
        e.body(e.function.body)
    e.b.do(f"br label %{e.exit}")
    e.b.begin(e.exit)


def _alone(e: FunctionEmitter) -> AbstractContextManager[None]:
    """Return what to emit a body inside of whose rows ought to be divided: if they cannot be, one block does it all."""
    if not e.in_rows or _is_divisible(e):
        return nullcontext()
    e.in_rows = False
    return e.b.when(e.b.compare("icmp eq", e.block_index, i64(0)))


def _is_divisible(e: FunctionEmitter) -> bool:
    from tilewright.passes.row_shares import is_divisible  # few programs divide rows

    return is_divisible(e.fusion)


def roots_of(unit: Unit, function: Function, signature: Signature) -> Mapping[Var, Var]:
    """Return, for each tensor of a function, one that stands for all that may share memory with it."""
    shared = [(function.params[position], function.params[first]) for position, first in enumerate(signature.shared)]
    windows = [p for p in function.params if isinstance(p.type, TensorType) and p.type.is_window]
    shared += [(window, windows[0]) for window in windows[1:]]  # several may show one buffer
    return unit.footprints.aliases(function.name).classes(shared)


def _bind(e: FunctionEmitter, signature: Signature, words: Sequence[Value]) -> None:
    """Bind the parameters; an argument that contradicts the signature is an error, and made harmless."""
    params, given = e.function.params, iter(words)
    e.roots = roots_of(e.program, e.function, signature)
    for param, step in zip(params, signature.steps, strict=True):
        e.bind(param, parameter(param.type, given, step=step))
    for symbol, (position, axis) in e.function.symbols.items():
        tensor = e.bindings[params[position]]
        assert isinstance(tensor, Tensor)
        e.symbols[symbol] = tensor.shape[axis]
    for symbol, told in e.function.solutions.items():
        tensor = e.bindings[params[told.position]]
        assert isinstance(tensor, Tensor)
        e.symbols[GIVEN.name] = tensor.shape[told.axis]
        e.symbols[symbol] = e.scalar(told.value).value
    e.symbols.pop(GIVEN.name, None)
    if e.checked:
        for param in params:
            _check_bounds(e, param)
        _check_extents(e)


def _check_bounds(e: FunctionEmitter, param: Var) -> None:
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


def _check_extents(e: FunctionEmitter) -> None:
    """Check that extents of one name agree; where they do not, no tensor of unknown extent has elements."""
    agree: Value | None = None
    for param in e.function.params:
        tensor = e.bindings[param]
        extents = param.type.shape if isinstance(param.type, TensorType) else ()
        for axis, extent in enumerate(extents):
            assert isinstance(tensor, Tensor)
            wanted = e.index(e.scalar(extent)) if isinstance(extent, Expr) else tensor.shape[axis]
            if wanted == tensor.shape[axis]:
                continue
            same = e.b.compare("icmp eq", tensor.shape[axis], wanted)
            e.fail(e.negated(same), f"axis {axis} of `{param.name_hint}` is not {extent}", param)
            agree = same if agree is None else e.b.op("and", agree, same)
    if agree is not None:
        _empty_unless(e, agree)


def _empty_unless(e: FunctionEmitter, agree: Value) -> None:
    def kept(extents: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(v if static(v) is not None else e.b.select(agree, v, i64(0)) for v in extents)

    for param in e.function.params:
        tensor = e.bindings[param]
        if isinstance(tensor, Tensor):
            shape, valid = kept(tensor.shape), kept(tensor.valid)
            e.bindings[param] = Tensor(tensor.pointer, shape, tensor.strides, valid, tensor.dtype, tensor.root)
