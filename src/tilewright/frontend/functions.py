"""Functions: one captured Python function translated into one function of the IR."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any

from tilewright.collector import paused_collection
from tilewright.core.endings import ends
from tilewright.core.enums import FunctionType, Level, ParamDirection, Role
from tilewright.core.expr import Call, Symbol, Var
from tilewright.core.extents import symbols_in
from tilewright.core.program import Function
from tilewright.core.signature import substituted
from tilewright.core.solving import located, told
from tilewright.core.stmt import EMPTY, SeqStmts
from tilewright.core.types import Extent, TensorType, Type, join
from tilewright.errors import (
    DirectiveError,
    InternalError,
    KernelError,
    MissingAnnotationError,
    NestingError,
    NotStaticError,
    OperandError,
    ReturnMismatchError,
    UnboundSymbolError,
    UnsupportedFeatureError,
)
from tilewright.frontend.annotations import evaluated, parameter_type, return_types
from tilewright.frontend.capture import Captured
from tilewright.frontend.deferred import settle
from tilewright.frontend.frames import Frame
from tilewright.frontend.kernel_builder import KernelBuilder
from tilewright.frontend.names import Resolver, free_name
from tilewright.frontend.properties import ProgramSelf
from tilewright.frontend.state import Callees, Widened
from tilewright.frontend.translator import Translator
from tilewright.records import record
from tilewright.source import Span

BUILDER: ContextVar[type[KernelBuilder]] = ContextVar("BUILDER", default=KernelBuilder)
"""What walks over the functions that are translated."""


@record
class Options:
    """What the decorator of a function said about it."""

    func_type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    strict_ssa: bool = False
    auto_scope: bool = True
    external_source: str = ""


@record
class Parameter:
    """A parameter before its function is translated."""

    name: str
    type: Type
    direction: ParamDirection
    span: Span
    bounds: tuple[int, int] | None = None


@record
class Header:
    """What a function is translated with."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: tuple[Type, ...] | None
    """The types its return annotation states, None to take what it returns."""
    known: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Names that stand for values the compiler knows; a parameter among them keeps its place in the signature."""
    frame: Frame | None = None
    """The specialization it is part of, for extents that become dynamic."""


def translate(captured: Captured, options: Options, callees: Callees, is_method: bool) -> Function:
    """Return the function as IR; KernelError, located and naming the function, for any mistake in it."""
    resolver = Resolver.of(captured.function)
    if options.level is Level.HOST and options.role is Role.SubWorker:
        return _sub_worker(captured, options, resolver)
    known = {captured.node.args.args[0].arg: ProgramSelf()} if is_method and captured.node.args.args else {}

    def header() -> Header:
        check_external(captured, options)
        parameters = _parameters(captured, resolver, is_method)
        return Header(captured.node.name, parameters, declared_returns(captured, resolver), known)

    return translated(captured, options, callees, resolver, header)


def _sub_worker(captured: Captured, options: Options, resolver: Resolver) -> Function:
    """Return the signature of a function that Python itself runs; it needs no self."""
    arguments = captured.node.args.args
    parameters = _parameters(captured, resolver, bool(arguments) and arguments[0].arg == "self")
    from tilewright.frontend.sub_workers import remember  # which few programs have

    remember(captured)
    params = tuple(Var(p.name, p.type, p.span, p.bounds) for p in parameters)
    returns = declared_returns(captured, resolver) or ()
    directions = tuple(p.direction for p in parameters)
    name, span = captured.node.name, captured.span(captured.node)
    return Function(name, params, returns, EMPTY, span, options.func_type, directions, options.level, options.role)


def check_external(captured: Captured, options: Options) -> None:
    """Raise where a function that another language holds is not declared as a kernel without statements."""
    if not options.external_source:
        return
    where = captured.span(captured.node)
    if not options.func_type.is_incore:
        message = f"external_source= is for kernels, and this is a function of type {options.func_type.name}"
        raise OperandError(message, spans=[where], help="type=pl.FunctionType.AIV, AIC or InCore")
    if not all(isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) for stmt in captured.node.body):
        message = "a function with external_source= has `...` for its body"
        raise DirectiveError(message, spans=[where], help="write `...`: its statements are in the other file")


@paused_collection()
def translated(
    captured: Captured, options: Options, callees: Callees, resolver: Resolver, header: Callable[[], Header]
) -> Function:
    """Return a function translated under the header that is found for it, its mistakes located in its own text."""
    found: Header | None = None
    try:
        found = header()
        with callees.kernels.messages.held() as told:
            return _widening(captured, options, callees, resolver, found, told)
    except KernelError as error:
        error.locate([captured.span(captured.node)])
        if isinstance(error, NotStaticError) and not error.function and found is not None and found.frame is not None:
            error.notes += tuple(found.frame.reasons())
        error.function = error.function or captured.node.name
        raise
    except RecursionError:
        error = NestingError("this function nests too deeply", spans=[captured.span(captured.node)])
        error.function = captured.node.name
        raise error from None


def _widening(
    captured: Captured, options: Options, callees: Callees, resolver: Resolver, header: Header, told: int
) -> Function:
    """Return a function translated as often as it takes until every variable's type covers what it is given."""
    widened: dict[tuple[str, Span], Type] = {}
    mistake: KernelError | None = None
    while True:
        try:
            return _translate(captured, options, callees, resolver, header, widened)
        except Widened as request:
            known = widened.get(request.key)
            wider = request.type if known is None or request.is_literal else join(known, request.type)
            if wider is None or wider == known:
                raise InternalError(f"`{request.key[0]}`, a {known}, cannot be widened to {request.type}") from None
            widened[request.key] = wider
            mistake = mistake or request.mistake
            callees.kernels.messages.forget(told)
        except KernelError as error:
            if mistake is None or mistake is error:
                raise
            raise mistake from None  # as the author wrote it


def _translate(
    captured: Captured,
    options: Options,
    callees: Callees,
    resolver: Resolver,
    header: Header,
    widened: Mapping[tuple[str, Span], Type],
) -> Function:
    t = BUILDER.get()(
        captured=captured,
        resolver=resolver,
        callees=callees,
        strict_ssa=options.strict_ssa,
        widened=widened,
        frame=header.frame,
        func_type=options.func_type,
        level=options.level,
        auto_scope=options.auto_scope,
    )
    params = tuple(Var(p.name, p.type, p.span, p.bounds) for p in header.parameters)
    for param, p in zip(params, header.parameters, strict=True):
        if p.name not in header.known:
            _bind_parameter(t, param, p)
    for name, value in header.known.items():
        t.assign_known(name, value, captured.node)
    t.execute(captured.node.body)
    settle(t)
    _check_bound(t, params)
    return Function(
        header.name,
        params,
        _in_known_terms(_checked_returns(t, header.returns, bool(options.external_source)), params),
        SeqStmts(tuple(t.stmts)),
        captured.span(captured.node),
        options.func_type,
        tuple(p.direction for p in header.parameters),
        options.level,
        options.role,
        {**options.attrs, **t.attrs},
        auto_scope=options.auto_scope,
        external_source=options.external_source,
    )


def _check_bound(t: Translator, params: Sequence[Var]) -> None:
    """Raise when the value of a `pl.dynamic` name is read that no parameter's extent tells."""
    known = told(located([param.type for param in params])) if t.symbols else ()
    for name, span in t.symbols.items():
        if name not in known:
            message = f"'{name}' is no extent that an argument tells"
            help = f"write it in the shape of a parameter, or say x.bind_dynamic(axis, {name}) in a @pl.jit kernel"
            raise UnboundSymbolError(message, spans=[span], help=help)


def _bind_parameter(t: Translator, param: Var, p: Parameter) -> None:
    t.scope.bind(p.name, param, p.span)
    t.fixed.add(id(param))
    if p.name in t.scope.shared:
        t.variables.add(id(param))
    if p.direction is not ParamDirection.In:
        t.outputs.add(id(param))


def _parameters(captured: Captured, resolver: Resolver, is_method: bool) -> tuple[Parameter, ...]:
    node = captured.node.args
    others = [node.vararg, node.kwarg, *node.posonlyargs, *node.kwonlyargs, *node.defaults]
    if odd := [part for part in others if part is not None]:
        message = "a kernel's parameters are plain names with annotations"
        help = "drop the star, the slash or the default: callers pass every argument"
        raise UnsupportedFeatureError(message, spans=[captured.span(odd[0])], help=help)
    if is_method and not node.args:
        raise UnsupportedFeatureError(
            "a method of a program takes self first", spans=[captured.span(captured.node)], help="def name(self, ...):"
        )
    args = node.args[1:] if is_method else node.args
    written = captured.function.__code__.co_varnames[len(node.args) - len(args) :]
    parameters = tuple(_parameter(captured, resolver, arg, name) for arg, name in zip(args, written, strict=False))
    return with_told_extents(parameters)


def _parameter(captured: Captured, resolver: Resolver, arg: ast.arg, mangled: str) -> Parameter:
    span = captured.span(arg)
    if arg.annotation is None:
        raise MissingAnnotationError(f"missing type annotation for parameter '{arg.arg}'", spans=[span])
    try:
        annotation = evaluated(captured.function.__annotations__.get(mangled), resolver)
        type_, direction = parameter_type(annotation)
    except KernelError as error:
        error.locate([captured.span(arg.annotation)])
        raise
    return Parameter(arg.arg, type_, direction, span, getattr(annotation, "bounds", None))


def with_told_extents(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Return parameters whose symbols arguments tell: a formula of symbols that none does is a name of its own."""
    extents = located([parameter.type for parameter in parameters])
    known, names = told(extents), dict[Extent, Extent]()
    taken = frozenset(known).union(*(symbols_in(extent) for *_, extent in extents))
    for position, axis, extent in extents:
        if isinstance(extent, Call) and not symbols_in(extent) <= known:
            names.setdefault(extent, Symbol(free_name(f"{parameters[position].name}_{axis}", taken)))
    return tuple(_renamed(p, names) for p in parameters) if names else parameters


def _renamed(parameter: Parameter, names: Mapping[Extent, Extent]) -> Parameter:
    if not isinstance(type_ := parameter.type, TensorType):
        return parameter
    shape, valid = (tuple(names.get(e, e) for e in extents) for extents in (type_.shape, type_.valid))
    return replace(parameter, type=replace(type_, shape=shape, valid=valid))


def declared_returns(captured: Captured, resolver: Resolver) -> tuple[Type, ...] | None:
    """Return the types that a return annotation states, None without one."""
    if captured.node.returns is None:
        return None
    try:
        return return_types(evaluated(captured.function.__annotations__.get("return"), resolver))
    except KernelError as error:
        error.locate([captured.span(captured.node.returns)])
        raise


def _checked_returns(t: Translator, declared: tuple[Type, ...] | None, is_external: bool) -> tuple[Type, ...]:
    """Return the types a function gives, every return statement agreeing with them."""
    if not t.returned:
        return declared or () if is_external else ()
    types, first = t.returned[0]
    says, help = f"the return at line {first.line} gives", "every return gives values of the same types"
    if declared is not None:
        types, says, help = declared, "the function says", "return what the annotation says, or change it"
    for found, span in t.returned:
        if len(found) != len(types):
            message = f"this returns {len(found)} value(s), {says} {len(types)}"
            raise ReturnMismatchError(message, spans=[span], help=help)
        for position, (want, have) in enumerate(zip(types, found, strict=True)):
            if not _returnable(want, have):
                message = f"returned value {position} is {have}, {says} {want}"
                raise ReturnMismatchError(message, spans=[span], help=help)
    if types and not ends(SeqStmts(tuple(t.stmts))):
        message = "this returns values, and another path through the function ends without"
        raise ReturnMismatchError(message, spans=[first], help="return at the end of the function, too")
    return types


def _in_known_terms(types: tuple[Type, ...], params: Sequence[Var]) -> tuple[Type, ...]:
    """Return the types of results, extents of names that no argument tells being unknown."""
    shapes = [type_.shape for type_ in types if isinstance(type_, TensorType)]
    names = frozenset[str]().union(*(symbols_in(extent) for shape in shapes for extent in shape))
    if not names or not (unknown := names - told(located([param.type for param in params]))):
        return types
    return tuple(substituted(type_, dict.fromkeys(unknown)) for type_ in types)


def _returnable(want: Type, have: Type) -> bool:
    if isinstance(want, TensorType) and isinstance(have, TensorType):
        return join(replace(want, valid=want.shape), replace(have, valid=have.shape)) is not None
    return join(want, have) is not None
