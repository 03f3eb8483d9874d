"""Kernels: Python functions that are specialized to their arguments wherever they are called.

A kernel has no types of its own. Each call gives it what it knows: extents, element types, numbers. The front end then
translates the body with those in hand, so `x.shape`, `x.dtype` and scalars are plain values there, and shapes of locals
come from the one type inference that the IR has. Calls that know the same share one function of the program.

Dynamic axes travel against the calls. A helper that wants an axis dynamic (by annotation or `bind_dynamic`) is given a
`Dim`, which knows the parameter of the caller it came from; the caller is then translated again with that axis dynamic,
and so on up to the entry.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import CodeType, UnionType
from types import FunctionType as PythonFunction
from typing import Any, Literal, Union, get_args, get_origin

from tilewright import notebook
from tilewright.core import annotations as ann
from tilewright.core.annotations import outside_kernel
from tilewright.core.enums import FunctionType, Level, ParamDirection
from tilewright.core.types import TensorType, Type
from tilewright.dtypes import DataType
from tilewright.errors import AnnotationError, KernelError
from tilewright.frontend.annotations import evaluated, to_type
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.names import Resolver
from tilewright.frontend.value_keys import Same
from tilewright.records import record
from tilewright.source import Span


class KernelKind(Enum):
    """What a kernel is in a program, by the name of its decorator's function type."""

    ENTRY = "orchestration"
    INCORE = "incore"
    INLINE = "inline"
    OPAQUE = "opaque"
    HOST = "host"
    EXTERN = "extern"

    @property
    def function_type(self) -> FunctionType:
        """The type of the function it becomes."""
        return _FUNCTION_TYPES[self]


_FUNCTION_TYPES = {
    KernelKind.ENTRY: FunctionType.Orchestration,
    KernelKind.INCORE: FunctionType.InCore,
    KernelKind.OPAQUE: FunctionType.Opaque,
    KernelKind.HOST: FunctionType.Orchestration,
}

_CONSTANTS = (int, float, str, tuple, list, dict, Enum, DataType)
"""What parameters are annotated with that a kernel takes as constants."""

UNBOUND: Any = object()
"""Stands for no instance: the kernel is not a method of one."""


@record
class Declared:
    """What a parameter's annotation says: its direction, and a type as far as it states one."""

    direction: ParamDirection = ParamDirection.In
    type: Type | None = None
    is_tensor: bool = False
    """Whether it is a tensor: stated in full by `type`, or bare."""
    is_optional: bool = False
    """Whether None may stand for it."""
    bounds: tuple[int, int] | None = None
    """The least and largest value that a scalar is promised to have."""
    is_runtime: bool = False
    """Whether a scalar is no part of the code, and each call brings it."""
    built: type | None = None
    """The user's own type that arguments are made into; it says in `__cache_signature__` what code depends on."""


@record
class KernelParameter:
    """One parameter as it was written."""

    name: str
    default: Any
    is_positional: bool
    is_keyword: bool
    kernel: Kernel
    is_chosen: bool = False
    """Whether something other than its default stands for it where a call leaves it out."""

    @property
    def span(self) -> Span:
        """Where it was written."""
        node = self.kernel.captured.node
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        written = next((argument for argument in arguments if argument.arg == self.name), node)
        return self.kernel.captured.span(written)

    @property
    def is_optional(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not inspect.Parameter.empty


class Kernel:
    """A function decorated for specialization; what the front end sees of a `JITFunction`."""

    auto_scope: bool = True
    """Whether the order of its tasks follows from what they read and write, without it saying so."""

    def __init__(
        self, function: PythonFunction, kind: KernelKind, level: Level | None = None, owner: object = UNBOUND
    ) -> None:
        self.function = function
        self.kind = kind
        self.level = Level.HOST if kind is KernelKind.HOST else level
        self.owner = owner
        self._captured: tuple[CodeType, Captured] | None = None
        self._parameters: tuple[tuple[Same, ...], tuple[KernelParameter, ...]] | None = None

    def _repr_html_(self) -> str:
        """Return the kernel as a notebook shows it: its own text."""
        from textwrap import dedent

        where = self.captured.span(self.captured.node)
        return notebook.sheet(f"{self.name}  {where}", dedent(self.captured.text))

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.function.__name__

    @property
    def captured(self) -> Captured:
        """The function's syntax; SourceUnavailableError, an OSError, when its text cannot be had."""
        code = self.function.__code__
        if self._captured is None or self._captured[0] is not code:
            self._captured = code, capture(self.function, as_compiled=True)
        return self._captured[1]

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """The parameters a caller passes: a method's instance is not one of them."""
        stated = _stated(self.function)
        if self._parameters is None or self._parameters[0] != stated:
            self._parameters = stated, tuple(_parameters(self))
        return self._parameters[1]

    @property
    def self_name(self) -> str | None:
        """The name of the parameter that stands for the instance of a bound method."""
        return next(iter(self.function.__code__.co_varnames), None) if self.owner is not UNBOUND else None

    def declared(self, resolver: Resolver) -> tuple[Declared, ...]:
        """Return what each parameter's annotation says; AnnotationError, located, for one that says nothing."""
        return tuple(_declared(self, parameter, resolver) for parameter in self.parameters)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each parameter that a call gives or leaves to its default; TypeError as Python has it."""
        return bind(self.parameters, args, kwargs)

    def signature_text(self) -> str:
        """Return the signature as help lines show it."""
        return f"{self.name}({', '.join(p.name for p in self.parameters)})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Sub-functions only mean something inside a kernel."""
        outside_kernel(self.name)


def _stated(function: PythonFunction) -> tuple[Same, ...]:
    """Return what a function's parameters follow from: its code and its defaults can be replaced."""
    named = [part for item in (function.__kwdefaults__ or {}).items() for part in item]
    return tuple(map(Same, (function.__code__, function.__defaults__, *named)))


def bind(parameters: Sequence[KernelParameter], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each parameter that a call gives or leaves to its default; TypeError as Python has it."""
    positional = [p.name for p in parameters if p.is_positional]
    by_name = {p.name: p.is_keyword for p in parameters}
    if len(args) > len(positional):
        raise TypeError(f"takes {len(positional)} positional argument(s), got {len(args)}")
    given = {p.name: p.default for p in parameters if p.is_optional}
    bound = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name not in by_name:
            raise TypeError(f"has no parameter `{name}`")
        if not by_name[name]:
            raise TypeError(f"takes `{name}` by position only")
        if name in bound:
            raise TypeError(f"got `{name}` twice")
        bound[name] = value
    given |= bound
    return {p.name: given[p.name] for p in parameters if p.name in given}


def _parameters(kernel: Kernel) -> Iterator[KernelParameter]:
    for position, parameter in enumerate(inspect.signature(kernel.function).parameters.values()):
        if position == 0 and kernel.owner is not UNBOUND:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            message = f"a kernel's parameters are plain names, got `{stars}{parameter.name}`"
            help = "write each parameter out: code is made for a fixed number of them"
            raise AnnotationError(message, spans=[kernel.captured.span(kernel.captured.node)], help=help)
        is_positional = parameter.kind is not parameter.KEYWORD_ONLY
        is_keyword = parameter.kind is not parameter.POSITIONAL_ONLY
        yield KernelParameter(parameter.name, parameter.default, is_positional, is_keyword, kernel)


def _declared(kernel: Kernel, parameter: KernelParameter, resolver: Resolver) -> Declared:
    try:
        says = _meaning(evaluated(resolver.annotation(parameter.name), resolver))
        return replace(says, is_optional=True) if parameter.default is None else says
    except KernelError as error:
        error.locate([parameter.span])
        error.function = kernel.name
        raise


def _meaning(annotation: Any) -> Declared:
    """Return what an annotation says; constants and missing ones leave the kind to the argument."""
    inner = _optional(annotation)
    if inner is not None:
        return replace(_meaning(inner), is_optional=True)
    direction = ParamDirection.In
    if isinstance(annotation, ann.Directed):
        annotation, direction = annotation.annotation, annotation.direction  # pyright: ignore[reportUnknownMemberType]
    if annotation in (ann.Tensor, ann.DistributedTensor):
        return Declared(direction, None, True)
    if annotation is None or annotation in (ann.Tile, ann.Scalar, Any):
        return Declared(direction, is_optional=annotation in (None, Any))
    if isinstance(annotation, type) and hasattr(annotation, "__cache_signature__"):
        return Declared(direction, built=annotation)
    if _is_constant(annotation):
        return Declared(direction)
    if isinstance(annotation, type) and annotation.__module__ != ann.__name__:
        raise _unsigned(annotation)
    if isinstance(annotation, ann.Tensor) and annotation.view is not None:
        raise AnnotationError("a specialized kernel does not yet support pl.TensorView", help="drop the view")
    type_ = to_type(annotation)
    if not isinstance(type_, TensorType) and direction is not ParamDirection.In:
        raise AnnotationError("a scalar cannot be written", help="return it, or write it into a tensor")
    bounds, is_runtime = getattr(annotation, "bounds", None), getattr(annotation, "is_runtime", False)
    return Declared(direction, type_, isinstance(type_, TensorType), bounds=bounds, is_runtime=is_runtime)


def _is_constant(annotation: Any) -> bool:
    """Return whether an annotation names what a kernel takes as it is: numbers, texts, enums, containers of them."""
    kind = get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        return all(_is_constant(part) for part in get_args(annotation))
    return kind in (Literal, Sequence, Mapping) or (isinstance(kind, type) and issubclass(kind, _CONSTANTS))


def _unsigned(annotation: type) -> AnnotationError:
    """Return the error for a type whose objects no cache can tell apart."""
    if hasattr(annotation, "__dlpack__"):
        message = f"{annotation.__name__!r} is no annotation for a kernel's tensors"
        return AnnotationError(
            message, help="write pl.Tensor, or pl.Tensor[[64, 64], pl.FP32] to state shape and dtype"
        )
    help = "give it a method `__cache_signature__(self)` that returns them, as a tuple of numbers and strings"
    return AnnotationError(f"{annotation.__name__!r} does not say which parts of it the code depends on", help=help)


def _optional(annotation: Any) -> Any:
    """Return what `T | None` or `Optional[T]` may be besides None, or None when it is no such thing."""
    if isinstance(annotation, ann.Maybe):
        return annotation.annotation
    parts = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    is_union = type(None) in getattr(annotation, "__args__", ())
    return parts[0] if is_union and len(parts) == 1 else None
