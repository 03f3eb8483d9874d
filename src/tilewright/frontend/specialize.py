"""Specialization: kernels translated for what is known about their arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import FunctionType as PythonFunction
from typing import Any

from tilewright.core.enums import Level
from tilewright.core.expr import Const, Expr, GlobalVar, Invoke, Symbol, constant
from tilewright.core.program import Function
from tilewright.core.signature import result_type
from tilewright.core.types import Extent, ScalarType, TensorType, TupleType, Type
from tilewright.dtypes import BOOL
from tilewright.errors import (
    AnnotationError,
    ArgumentCountError,
    DTypeMismatchError,
    InternalError,
    KernelError,
    OperandError,
    RecursiveCallError,
    UncallableError,
)
from tilewright.frontend.annotations import evaluated, return_types
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.capture import Captured
from tilewright.frontend.frames import BecomesDynamic, Frame
from tilewright.frontend.functions import Header, Options, translated, with_told_extents
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Declared, Kernel, KernelKind
from tilewright.frontend.messages import Messages
from tilewright.frontend.names import Origins, Resolver, free_name
from tilewright.frontend.parameters import Site, Spec, argument_spec, known_type, known_value, parameters, tensor_type
from tilewright.frontend.signature import axis_of
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.records import mutable, record
from tilewright.source import Span

_CALLED = (KernelKind.INCORE, KernelKind.OPAQUE, KernelKind.INLINE)
"""What kernels call; a host function dispatches entries."""


@record
class Specialized:
    """A kernel made for one set of arguments: the function, its frame, and which argument each parameter takes."""

    function: Function
    frame: Frame
    taken: tuple[int, ...]


@mutable
class Kernels:
    """The kernels that one program has specialized so far."""

    builder: Any
    """The functions of the program, which kernels may call too."""
    done: dict[tuple[object, ...], Specialized] = field(default_factory=dict[tuple[object, ...], Specialized])
    active: list[Kernel] = field(default_factory=list[Kernel])
    naming: list[str] = field(default_factory=list[str])
    """What the active ones are called in the program."""
    resolvers: list[Resolver] = field(default_factory=list[Resolver])
    origins: Origins = field(default_factory=Origins)
    messages: Messages = field(default_factory=Messages)
    dynamic_names: dict[str, tuple[str, Span]] = field(default_factory=dict[str, tuple[str, Span]])

    def resolver(self, kernel: Kernel) -> Resolver:
        """Return a resolver for a kernel's names, remembered with what it hands out."""
        instance = (kernel.self_name, kernel.owner) if kernel.self_name else None
        found = Resolver.of(kernel.function, instance, self.origins)
        found.captured = kernel.captured
        if kernel.kind is not KernelKind.ENTRY:  # whose callers give it its arguments, so that defaults are some
            found.read_defaults()
        self.resolvers.append(found)
        return found

    def reader(self, function: PythonFunction, captured: Captured | None = None) -> Resolver:
        """Return a resolver for the names of a function that is no kernel."""
        found = Resolver.of(function, None, self.origins)
        found.captured = captured
        found.read_defaults()
        self.resolvers.append(found)
        return found

    def call(self, t: Translator, kernel: Kernel, given: Arguments, node: ast.Call) -> Value:
        """Translate a call of a kernel from inside another."""
        if kernel.kind is not KernelKind.ENTRY if t.level is Level.HOST else kernel.kind not in _CALLED:
            raise _uncallable(t, kernel, node)
        values, nodes = _bound(t, kernel, given, node)
        if kernel.kind is KernelKind.INLINE:
            return self._expanded(t, kernel, values, nodes, node)
        span = t.span(node)
        specs = {name: argument_spec(t, kernel, name, value, nodes.get(name)) for name, value in values.items()}
        made = self.specialized(kernel, specs, Site(span, {name: t.span(where) for name, where in nodes.items()}))
        args = tuple(
            _argument(t, made, position, list(values.items())[taken], nodes)
            for position, taken in enumerate(made.taken)
        )
        from tilewright.frontend.dynamic import spread  # few kernels call others

        spread(t, _extents(made, args), span)
        return Invoke(GlobalVar(made.function.name), args, _result_type(made, args), span)

    def specialized(self, kernel: Kernel, specs: Mapping[str, Spec], site: Site) -> Specialized:
        """Return a kernel for what is known about its arguments, made when it is first asked for."""
        key = (kernel.function, id(kernel.owner), tuple(specs.items()))
        if key in self.done:
            return self.done[key]
        if any(other.function is kernel.function and other.owner is kernel.owner for other in self.active):
            cycle = " -> ".join([*(k.name for k in self.active), kernel.name])
            raise RecursiveCallError(f"`{kernel.name}` calls itself: {cycle}", spans=[site.span])
        name = self._free_name(kernel.name)
        frame = Frame(kernel, self.dynamic_names, site.span)
        self.active.append(kernel)
        self.naming.append(name)
        before = len(self.done), len(self.resolvers)
        try:
            with self.messages.held() as told:
                while True:
                    try:
                        self.done[key] = made = self._made(kernel, specs, frame, name, site)
                        return made
                    except BecomesDynamic as request:
                        if request.frame is not frame:
                            raise
                        request.apply()
                        self._forget(*before, told)
        finally:
            self.active.pop()
            self.naming.pop()

    def _forget(self, functions: int, resolvers: int, messages: int) -> None:
        """Drop what was made, read and told for a caller that starts again."""
        self.done = dict(list(self.done.items())[:functions])
        del self.resolvers[resolvers:]
        self.messages.forget(messages)

    def _made(self, kernel: Kernel, specs: Mapping[str, Spec], frame: Frame, name: str, site: Site) -> Specialized:
        resolver = self.resolver(kernel)
        taken: list[int] = []
        declared = kernel.declared(resolver)
        found = tuple(parameters(kernel, specs, declared, frame, taken, site))
        known = {
            n: known_value(spec.known.value, says)
            for (n, spec), says in zip(specs.items(), declared, strict=True)
            if spec.known is not None
        }
        if kernel.self_name is not None:
            known[kernel.self_name] = kernel.owner

        def header() -> Header:
            return Header(name, with_told_extents(found), _returns(kernel, resolver), known, frame)

        options = Options(kernel.kind.function_type, kernel.level, auto_scope=kernel.auto_scope)
        function = translated(kernel.captured, options, self.builder, resolver, header)
        return Specialized(function, frame, tuple(taken))

    def names(self) -> set[str]:
        """Return what the functions made and being made are called."""
        return {*self.naming, *(made.function.name for made in self.done.values())}

    def _free_name(self, name: str) -> str:
        return free_name(name, self.builder.names())

    def _expanded(
        self, t: Translator, kernel: Kernel, values: Mapping[str, Value], nodes: Mapping[str, ast.expr], node: ast.Call
    ) -> Value:
        """Write a kernel out in place, its annotations held against the arguments."""
        resolver = self.resolver(kernel)
        bound = {} if kernel.self_name is None else {kernel.self_name: kernel.owner}
        named: list[tuple[str, Expr, int]] = []
        for says, (name, value) in zip(kernel.declared(resolver), values.items(), strict=True):
            bound[name] = _met(kernel, name, says, value, t.span(nodes.get(name, node)))
            named += _named_axes(says, value)
        dims: dict[str, Value] = {}
        if t.frame is not None:
            from tilewright.frontend.dynamic import name_axes

            name_axes(t, dims, named, node)
        template = InlineFunction(kernel.captured)
        outer, t.auto_scope = t.auto_scope, t.auto_scope and kernel.auto_scope
        result = template.expand(t, Arguments((), bound, (), {}), node, resolver, dims)
        t.auto_scope = outer
        return result


def _uncallable(t: Translator, kernel: Kernel, node: ast.Call) -> UncallableError:
    if t.level is Level.HOST:
        message = f"`{kernel.name}` is a {kernel.kind.value} function, and a host function dispatches to chips alone"
        help = "call it from a function decorated with @pl.jit, and dispatch that: chip(..., device=r)"
    elif kernel.kind is KernelKind.ENTRY:
        message = f"`{kernel.name}` is an entry: callers outside start it"
        help = "a kernel calls functions decorated with @pl.jit.incore, @pl.jit.inline or @pl.jit.opaque"
    else:
        message = f"`{kernel.name}` is a {kernel.kind.value} function, which cannot be compiled yet"
        help = "write it with @pl.jit.incore or @pl.jit.opaque"
    return t.error(UncallableError, node.func, message, help=help)


def _bound(
    t: Translator, kernel: Kernel, given: Arguments, node: ast.Call
) -> tuple[dict[str, Value], dict[str, ast.expr]]:
    """Return the value of every parameter, and the syntax of those that were written."""
    try:
        values = kernel.bind(given.args, given.kwargs)
    except TypeError as error:
        blamed = [n for name, n in given.keyword_nodes.items() if f"`{name}`" in str(error)] or [node]
        raise t.error(ArgumentCountError, blamed[0], f"`{kernel.name}` {error}", help=kernel.signature_text()) from None
    missing = [p.name for p in kernel.parameters if p.name not in values]
    if missing:
        message = f"`{kernel.name}` expects {len(kernel.parameters)} argument(s), got {len(values)}"
        help = f"{kernel.signature_text()}: `{missing[0]}` is missing"
        raise t.error(ArgumentCountError, node, message, help=help)
    names = [p.name for p in kernel.parameters]
    return values, dict(zip(names, given.nodes, strict=False)) | dict(given.keyword_nodes)


def _returns(kernel: Kernel, resolver: Resolver) -> tuple[Type, ...] | None:
    """Return the stated result types; an annotation that leaves shapes open, or is another's, states nothing."""
    says = evaluated(resolver.annotation("return"), resolver)
    try:
        return None if says is None else return_types(says)
    except AnnotationError:
        return None


def _argument(
    t: Translator, made: Specialized, position: int, bound: tuple[str, Value], nodes: Mapping[str, ast.expr]
) -> Expr:
    name, value = bound
    param = made.function.params[position]
    where = nodes.get(name)
    number = value.value if isinstance(value, Const) else value
    if isinstance(number, (bool, int, float)) and isinstance(param.type, ScalarType):
        span = value.span if isinstance(value, Const) else t.span(where) if where is not None else param.span
        return constant(bool(number) if param.type.dtype == BOOL else number, param.type.dtype, span)
    if not isinstance(value, Expr):
        raise InternalError(f"`{name}` of `{made.function.name}` is no value of the program")
    from tilewright.frontend.invocations import as_parameter  # few kernels call others

    return as_parameter(value, param.type)


def _extents(made: Specialized, args: Sequence[Expr]) -> Iterator[tuple[Extent, Extent]]:
    """Yield the extents of tensor parameters, with those of the arguments they are given."""
    for param, arg in zip(made.function.params, args, strict=True):
        if isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            yield from zip(param.type.shape, arg.type.shape, strict=True)


def _met(kernel: Kernel, name: str, says: Declared, value: Value, span: Span) -> Value:
    """Return an argument of an inlined kernel as its annotation has it."""
    from tilewright.frontend.invocations import as_parameter, fitting

    try:
        if not isinstance(value, Expr):
            known_type(name, value, says)
            return known_value(value, says)
        if says.is_tensor and not isinstance(value.type, TensorType):
            raise OperandError(f"`{name}` of `{kernel.name}` is a tensor, got {value.type}", help="pass a tensor")
        if isinstance(says.type, ScalarType) and (problem := fitting(says.type, value.type)):
            message = f"`{name}` of `{kernel.name}` is {says.type}, got {value.type}: {problem}"
            raise DTypeMismatchError(message, help="convert it first")
        if isinstance(says.type, TensorType) and isinstance(value.type, TensorType):
            tensor_type(name, -1, value.type, says.type, Frame(kernel, {}))
        return value if says.type is None else as_parameter(value, says.type)
    except KernelError as error:
        error.locate([span])
        raise


def _named_axes(says: Declared, value: Value) -> Iterator[tuple[str, Expr, int]]:
    """Yield the names that an annotation gives axes of an argument."""
    for axis, extent in enumerate(says.type.shape if isinstance(says.type, TensorType) else ()):
        if isinstance(extent, Symbol) and isinstance(value, Expr):
            yield extent.name, value, axis


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
