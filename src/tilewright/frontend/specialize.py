"""Specialization: kernels translated for what is known about their arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.core.expr import Const, Expr, GlobalVar, Invoke, Symbol, constant
from tilewright.core.program import Function
from tilewright.core.signature import result_type
from tilewright.core.types import Extent, ScalarType, TensorType, TileType, TupleType, Type, unplaced
from tilewright.dtypes import BOOL, FP32, INDEX, DataType
from tilewright.errors import (
    AnnotationError,
    ArgumentCountError,
    DTypeMismatchError,
    InternalError,
    KernelError,
    OperandError,
    RecursiveCallError,
    ShapeMismatchError,
    UncallableError,
)
from tilewright.frontend.calls import Arguments, fitting
from tilewright.frontend.functions import Header, Options, Parameter, check_symbols, declared_returns, translated
from tilewright.frontend.inline import InlineFunction, returns_once
from tilewright.frontend.kernels import BecomesDynamic, Declared, Frame, Kernel, KernelKind
from tilewright.frontend.names import Resolver
from tilewright.frontend.signature import Dim, Known, axis_of
from tilewright.frontend.state import Translator, Value
from tilewright.source import Span


@dataclass(frozen=True)
class Specialized:
    """A kernel made for one set of arguments: the function, its frame, and which argument each parameter takes."""

    function: Function
    frame: Frame
    taken: tuple[int, ...]


@dataclass(frozen=True)
class Spec:
    """What a specialization knows about one argument: its type as a value of the IR, or the value itself."""

    type: Type | None = None
    known: Known | None = None
    alike: str | None = None
    """The argument it is shaped like."""


@dataclass(eq=False)
class Kernels:
    """The kernels that one program has specialized so far."""

    builder: Any
    """The functions of the program, which kernels may call too."""
    done: dict[tuple[object, ...], Specialized] = field(default_factory=dict[tuple[object, ...], Specialized])
    active: list[Kernel] = field(default_factory=list[Kernel])
    resolvers: list[Resolver] = field(default_factory=list[Resolver])
    dynamic_names: dict[str, tuple[str, Span]] = field(default_factory=dict[str, tuple[str, Span]])

    def resolver(self, kernel: Kernel) -> Resolver:
        """Return a resolver for a kernel's names, remembered with what it hands out."""
        found = Resolver.of(kernel.function)
        self.resolvers.append(found)
        return found

    def call(self, t: Translator, kernel: Kernel, given: Arguments, node: ast.Call) -> Value:
        """Translate a call of a kernel from inside another."""
        if kernel.kind not in (KernelKind.INCORE, KernelKind.OPAQUE, KernelKind.INLINE):
            raise _uncallable(t, kernel, node)
        values, nodes = _bound(t, kernel, given, node)
        if kernel.kind is KernelKind.INLINE:
            return self._expanded(t, kernel, values, nodes, node)
        span = t.span(node)
        specs = {name: _argument_spec(t, kernel, name, value, nodes[name]) for name, value in values.items()}
        made = self.specialized(kernel, specs, span)
        args = tuple(
            _argument(t, made, position, list(values.items())[taken], nodes)
            for position, taken in enumerate(made.taken)
        )
        _spread_dynamic_axes(t, made, args, span)
        return Invoke(GlobalVar(made.function.name), args, _result_type(made, args), span)

    def specialized(self, kernel: Kernel, specs: Mapping[str, Spec], span: Span) -> Specialized:
        """Return a kernel for what is known about its arguments, made when it is first asked for."""
        key = (kernel.function, id(kernel.owner), tuple(specs.items()))
        if key in self.done:
            return self.done[key]
        if any(other.function is kernel.function and other.owner is kernel.owner for other in self.active):
            cycle = " -> ".join([*(k.name for k in self.active), kernel.name])
            raise RecursiveCallError(f"`{kernel.name}` calls itself: {cycle}", spans=[span])
        name = self._free_name(kernel.name)
        frame = Frame(kernel, self.dynamic_names)
        self.active.append(kernel)
        before = len(self.done), len(self.resolvers)
        try:
            while True:
                try:
                    self.done[key] = made = self._made(kernel, specs, frame, name)
                    return made
                except BecomesDynamic as request:
                    if request.frame is not frame:
                        raise
                    request.apply()
                    self._forget(*before)
        finally:
            self.active.pop()

    def _forget(self, functions: int, resolvers: int) -> None:
        """Drop what was made and read for a caller that starts again."""
        self.done = dict(list(self.done.items())[:functions])
        del self.resolvers[resolvers:]

    def _made(self, kernel: Kernel, specs: Mapping[str, Spec], frame: Frame, name: str) -> Specialized:
        resolver = self.resolver(kernel)
        taken: list[int] = []

        def header() -> Header:
            declared = kernel.declared(resolver)
            parameters = tuple(_parameters(kernel, specs, declared, frame, taken))
            check_symbols(parameters)
            known = {n: s.known.value for n, s in specs.items() if s.known is not None}
            if kernel.self_name is not None:
                known[kernel.self_name] = kernel.owner
            return Header(name, parameters, _returns(kernel, resolver), known, frame)

        options = Options(kernel.kind.function_type, kernel.level)
        function = translated(kernel.captured, options, self.builder, resolver, header)
        return Specialized(function, frame, tuple(taken))

    def _free_name(self, name: str) -> str:
        taken = {*self.builder.taken, *self.builder.methods, *(k.name for k in self.active)}
        taken |= {made.function.name for made in self.done.values()}
        numbered = (f"{name}_{i}" for i in range(1, len(taken) + 2))
        return name if name not in taken else next(n for n in numbered if n not in taken)

    def _expanded(
        self, t: Translator, kernel: Kernel, values: Mapping[str, Value], nodes: Mapping[str, ast.expr], node: ast.Call
    ) -> Value:
        """Write a kernel out in place, its annotations held against the arguments."""
        resolver = self.resolver(kernel)
        returns_once(kernel.captured)
        for declared, (name, value) in zip(kernel.declared(resolver), values.items(), strict=True):
            _meet_annotation(t, kernel, name, declared, value, t.span(nodes.get(name, node)))
        bound = {**values} if kernel.self_name is None else {kernel.self_name: kernel.owner, **values}
        template = InlineFunction(kernel.captured)
        return template.expand(t, Arguments((), bound, (), {}), node, resolver)


def _uncallable(t: Translator, kernel: Kernel, node: ast.Call) -> UncallableError:
    if kernel.kind is KernelKind.ENTRY:
        message = f"`{kernel.name}` is an entry: callers outside start it"
        help = "a kernel calls functions decorated with @pl.jit.incore, @pl.jit.inline or @pl.jit.opaque"
    else:
        message = f"`{kernel.name}` is a {kernel.kind.value} function, which cannot be compiled yet"
        help = "write it with @pl.jit.incore or @pl.jit.opaque"
    return UncallableError(message, spans=[t.span(node.func)], help=help)


def _bound(
    t: Translator, kernel: Kernel, given: Arguments, node: ast.Call
) -> tuple[dict[str, Value], dict[str, ast.expr]]:
    """Return the value of every parameter, and the syntax of those that were written."""
    try:
        values = kernel.bind(given.args, given.kwargs)
    except TypeError as error:
        blamed = [n for name, n in given.keyword_nodes.items() if f"`{name}`" in str(error)] or [node]
        message = f"`{kernel.name}` {error}"
        raise ArgumentCountError(message, spans=[t.span(blamed[0])], help=kernel.signature_text()) from None
    missing = [p.name for p in kernel.parameters if p.name not in values]
    if missing:
        message = f"`{kernel.name}` expects {len(kernel.parameters)} argument(s), got {len(values)}"
        help = f"{kernel.signature_text()}: `{missing[0]}` is missing"
        raise ArgumentCountError(message, spans=[t.span(node)], help=help)
    names = [p.name for p in kernel.parameters]
    return values, dict(zip(names, given.nodes, strict=False)) | dict(given.keyword_nodes)


def _argument_spec(t: Translator, kernel: Kernel, name: str, value: Value, node: ast.expr | None) -> Spec:
    """Return what a call knows about one argument."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Expr):
        return Spec(unplaced(value.type))
    if any(isinstance(part, Expr) for part in _parts(value)):
        spans = [t.span(node)] if node is not None else []
        message = f"`{name}` of `{kernel.name}` is a tuple of values the program computes"
        raise OperandError(message, spans=spans, help="pass them one by one, or make the helper @pl.jit.inline")
    return Spec(known=Known(value))


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, (tuple, list)):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _parts(part)
    else:
        yield value


def _parameters(
    kernel: Kernel, specs: Mapping[str, Spec], declared: Sequence[Declared], frame: Frame, taken: list[int]
) -> Iterator[Parameter]:
    """Yield the parameters of the function a kernel becomes; values that are no numbers are not among them."""
    taken.clear()
    types: dict[str | None, Type | None] = {}
    for position, (parameter, says) in enumerate(zip(kernel.parameters, declared, strict=True)):
        spec = specs[parameter.name]
        try:
            type_ = types.get(spec.alike) or _parameter_type(parameter.name, position, spec, says, frame)
            types[parameter.name] = type_
            _note_stated_axes(frame, position, says, parameter.span)
        except KernelError as error:
            error.locate([parameter.span])
            raise
        if type_ is None:
            continue
        taken.append(position)
        yield Parameter(parameter.name, type_, says.direction, parameter.span, _bounds(spec, type_))


def _note_stated_axes(frame: Frame, position: int, says: Declared, span: Span) -> None:
    for axis, extent in enumerate(says.type.shape if isinstance(says.type, TensorType) else ()):
        if isinstance(extent, Symbol):
            frame.state((position, axis), extent.name, span)


def _bounds(spec: Spec, type_: Type) -> tuple[int, int] | None:
    """Return the one value that a specialized number has."""
    if spec.known is None or not isinstance(type_, ScalarType) or not type_.dtype.is_int() or type_.dtype == BOOL:
        return None
    return int(spec.known.value), int(spec.known.value)


def _parameter_type(name: str, position: int, spec: Spec, says: Declared, frame: Frame) -> Type | None:
    """Return a parameter's type: what the argument is, held against what the annotation says; None for no parameter."""
    if spec.known is not None:
        return _known_type(name, spec.known.value, says)
    if isinstance(spec.type, TensorType):
        if says.type is not None and not isinstance(says.type, TensorType):
            raise OperandError(f"`{name}` is {says.type}, got a tensor", help="pass a number")
        return _tensor_type(name, position, spec.type, says.type, frame)
    if isinstance(spec.type, ScalarType) and says.is_tensor:
        raise OperandError(f"`{name}` is a tensor, got {spec.type}", help="pass a tensor")
    if isinstance(spec.type, ScalarType) and isinstance(says.type, ScalarType):
        if problem := fitting(says.type, spec.type):
            raise DTypeMismatchError(f"`{name}` is {says.type}, got {spec.type}: {problem}", help="convert it first")
        return says.type
    if isinstance(spec.type, TileType) and says.is_tensor:
        raise OperandError(f"`{name}` is a tensor, got a tile", help="store it first, or make the helper inline")
    return spec.type


def _known_type(name: str, value: Any, says: Declared) -> Type | None:
    if says.is_tensor and value is not None:
        raise OperandError(f"`{name}` is a tensor, got {value!r}", help="pass a tensor")
    if not isinstance(value, (bool, int, float)):
        return None
    if not isinstance(says.type, ScalarType):
        return ScalarType(number_type(value))
    dtype = says.type.dtype
    if (dtype == BOOL) != isinstance(value, bool) or (dtype.is_int() and not _holds(dtype, value)):
        raise DTypeMismatchError(f"`{name}` is {says.type}, which cannot be {value!r}", help="convert it first")
    return says.type


def _holds(dtype: DataType, value: float) -> bool:
    return not isinstance(value, float) and (dtype == BOOL or dtype.limits[0] <= value <= dtype.limits[1])


def number_type(value: float) -> DataType:
    """Return the element type that a number has without an annotation."""
    return BOOL if isinstance(value, bool) else INDEX if isinstance(value, int) else FP32


def _tensor_type(name: str, position: int, given: TensorType, stated: TensorType | None, frame: Frame) -> TensorType:
    """Return a tensor parameter's type; extents the argument decides remember that they do."""
    if stated is not None and len(stated.shape) != len(given.shape):
        raise ShapeMismatchError(f"`{name}` has {len(stated.shape)} axes, got {len(given.shape)}: {given}")
    if stated is not None and stated.dtype != given.dtype:
        raise DTypeMismatchError(f"`{name}` is {stated.dtype}, got {given.dtype}", help="convert it with pl.cast")
    shape = tuple(
        _extent(name, position, axis, have, None if stated is None else (stated.shape[axis],), frame)
        for axis, have in enumerate(given.shape)
    )
    return TensorType(shape, given.dtype, shape, stated.layout if stated is not None else given.layout)


def _extent(name: str, position: int, axis: int, have: Extent, stated: tuple[Extent] | None, frame: Frame) -> Extent:
    dynamic = frame.dynamic.get((position, axis))
    if dynamic is not None:
        return Symbol(dynamic.symbol)
    want = stated[0] if stated is not None else have
    if isinstance(want, int):
        if isinstance(have, int) and have != want:
            raise ShapeMismatchError(f"axis {axis} of `{name}` is {want}, got {have}", help="pass a window of it")
        return Dim.of(want, frame, position, axis)
    if stated is not None or isinstance(want, Symbol):
        return want
    return Symbol(f"{name}_{axis}")


def _returns(kernel: Kernel, resolver: Resolver) -> tuple[Type, ...] | None:
    """Return the stated result types; an annotation that leaves shapes open states nothing."""
    try:
        return declared_returns(kernel.captured, resolver)
    except AnnotationError:
        return None


def _argument(
    t: Translator, made: Specialized, position: int, bound: tuple[str, Value], nodes: Mapping[str, ast.expr]
) -> Expr:
    name, value = bound
    param = made.function.params[position]
    where = nodes.get(name)
    if isinstance(value, (bool, int, float)) and isinstance(param.type, ScalarType):
        return constant(value, param.type.dtype, t.span(where) if where is not None else param.span)
    if isinstance(value, Const) and isinstance(param.type, ScalarType):
        return constant(value.value, param.type.dtype, value.span)
    if not isinstance(value, Expr):
        raise InternalError(f"`{name}` of `{made.function.name}` is no value of the program")
    return value


def _spread_dynamic_axes(t: Translator, made: Specialized, args: Sequence[Expr], span: Span) -> None:
    """Make axes of the caller's own parameters dynamic where the callee has them so."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for param, arg in zip(made.function.params, args, strict=True):
        if isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            for want, have in zip(param.type.shape, arg.type.shape, strict=True):
                axis = axis_of(have, t.frame)
                if isinstance(want, Symbol) and axis is not None:
                    groups.setdefault(want.name, []).append(axis)
    for symbol, axes in groups.items():
        raise BecomesDynamic(t.frame, axes, symbol, is_named=False, span=span)


def _meet_annotation(t: Translator, kernel: Kernel, name: str, declared: Declared, value: Value, span: Span) -> None:
    """Hold an argument of an inlined kernel against its annotation; axes it names become dynamic."""
    if declared.type is None and not declared.is_tensor:
        return
    try:
        if declared.is_tensor and value is not None and not isinstance(getattr(value, "type", None), TensorType):
            shown = value.type if isinstance(value, Expr) else repr(value)
            raise OperandError(f"`{name}` of `{kernel.name}` is a tensor, got {shown}", help="pass a tensor")
        if isinstance(declared.type, TensorType) and isinstance(value, Expr) and isinstance(value.type, TensorType):
            checked = _tensor_type(name, -1, value.type, declared.type, Frame(kernel, {}))
            for want, have in zip(checked.shape, value.type.shape, strict=True):
                axis = axis_of(have, t.frame)
                if isinstance(want, Symbol) and axis is not None:
                    raise BecomesDynamic(t.frame, [axis], want.name, is_named=True, span=span)
    except KernelError as error:
        error.locate([span])
        raise


def _result_type(made: Specialized, args: Sequence[Expr]) -> Type:
    """Return the type of a call's result, in the caller's own extents."""
    plain = result_type(made.function, args)
    return _in_callers_terms(plain, made, args)


def _in_callers_terms(type_: Type, made: Specialized, args: Sequence[Expr]) -> Type:
    if isinstance(type_, TupleType):
        return TupleType(tuple(_in_callers_terms(element, made, args) for element in type_.elements))
    if not isinstance(type_, TensorType):
        return type_

    def told(extent: Extent) -> Extent:
        axis = axis_of(extent, made.frame)
        if axis is None:
            return extent
        source = args[made.taken.index(axis[0])].type
        assert isinstance(source, TensorType)
        return source.shape[axis[1]]

    return replace(type_, shape=tuple(map(told, type_.shape)), valid=tuple(map(told, type_.valid)))
