"""Signatures: the parameters of a `@pto.jit` function, each of a kind that a launch or a compilation can fill."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from tilewright.pto.declarations import Marker, PartitionTensorView, TensorView, Tile, const_expr
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoDeclarationError
from tilewright.pto.types import Ptr, Scalar, Space

Annotation: TypeAlias = Ptr | Scalar | Marker

_HELP = 'annotate it with pto.ptr(dtype, "gm"), a scalar type such as pto.i32, or, after `*`, pto.const_expr = default'


class Kind(Enum):
    """What fills a parameter."""

    POINTER = "pointer"
    SCALAR = "scalar"
    VALUE = "value"
    """A tile or a view, which only kernels pass."""
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name, kind and type, and for a constant what it is unless a compilation says otherwise."""

    name: str
    kind: Kind
    annotation: Annotation
    default: Any = None

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, in order."""

    parameters: tuple[Parameter, ...]

    @property
    def runtime(self) -> tuple[Parameter, ...]:
        """Those that a launch passes."""
        return tuple(p for p in self.parameters if p.kind is not Kind.CONSTANT)

    @property
    def constants(self) -> tuple[Parameter, ...]:
        """Those that a compilation fixes."""
        return tuple(p for p in self.parameters if p.kind is Kind.CONSTANT)

    @property
    def abi(self) -> tuple[tuple[str, str, str], ...]:
        """Kind, name and canonical type of each parameter: the same in every process."""
        return tuple((p.kind.value, p.name, str(p.annotation)) for p in self.parameters)


def signature_of(declared: Declared, namespace: Mapping[str, Any], *, is_entry: bool) -> Signature:
    """Return the signature of a function; PtoDeclarationError names the parameter that nothing could fill.

    `namespace` are the names where the function was defined, for annotations that are still text.
    """
    signature = inspect.signature(declared.function)
    returns = _evaluated(declared, "return", signature.return_annotation, namespace)
    if returns is not inspect.Signature.empty and returns is not None:
        message = f"a @pto.jit function returns nothing, but its annotation says {_text(returns)}"
        raise declared.refusal(PtoDeclarationError, message, help="write results through pointers, and drop it")
    read = (_Reader(declared, parameter, namespace, is_entry) for parameter in signature.parameters.values())
    return Signature(tuple(each.parameter() for each in read))


@dataclass(frozen=True)
class _Reader:
    """One parameter while it is looked at."""

    declared: Declared
    given: inspect.Parameter
    namespace: Mapping[str, Any]
    is_entry: bool

    def parameter(self) -> Parameter:
        given = self.given
        if given.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            stars = "*" if given.kind is inspect.Parameter.VAR_POSITIONAL else "**"
            raise self._refusal(f"takes any number of arguments (`{stars}{given.name}`)", "write each parameter out")
        if given.annotation is inspect.Parameter.empty:
            raise self._refusal("has no annotation")
        annotation = _evaluated(self.declared, given.name, given.annotation, self.namespace)
        if given.kind is inspect.Parameter.KEYWORD_ONLY or annotation is const_expr:
            return self._constant(annotation)
        if given.default is not inspect.Parameter.empty:
            raise self._refusal("has a default", "launches pass every argument: drop the default")
        return self._entry(annotation) if self.is_entry else self._helper(annotation)

    def _constant(self, annotation: object) -> Parameter:
        given = self.given
        if not self.is_entry:
            help = "let the entry pass a value, or read a global"
            raise self._refusal(f"is {_shown(annotation)}: functions with entry=False take none after `*`", help)
        if annotation is not const_expr:
            help = "put it before the `*`, or make it pto.const_expr"
            raise self._refusal(f"is keyword-only and not pto.const_expr but {_shown(annotation)}", help)
        if given.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise self._refusal("is pto.const_expr and not keyword-only", f"put it after a `*`: `*, {given.name}: ...`")
        if given.default is inspect.Parameter.empty:
            raise self._refusal(
                "is pto.const_expr without a default", f"give it one: `{given.name}: pto.const_expr = 16`"
            )
        check_hashable(self.declared, given.name, given.default)
        return Parameter(given.name, Kind.CONSTANT, const_expr, given.default)

    def _entry(self, annotation: object) -> Parameter:
        name = self.given.name
        if isinstance(annotation, Ptr):
            if annotation.space is not Space.GM:
                help = f'launches pass addresses of global memory: pto.ptr(pto.{annotation.element.name}, "gm")'
                raise self._refusal(f"is a pointer to {annotation.space.value}, not to gm", help)
            return Parameter(name, Kind.POINTER, annotation)
        return self._scalar(annotation)

    def _scalar(self, annotation: object) -> Parameter:
        if not isinstance(annotation, Scalar):
            raise self._refusal(f"is {_shown(annotation)}, which no launch can pass")
        if not annotation.is_launchable:
            raise self._refusal(f"is a scalar of {annotation}, which no launch can pass", "pass it in memory")
        return Parameter(self.given.name, Kind.SCALAR, annotation)

    def _helper(self, annotation: object) -> Parameter:
        if isinstance(annotation, Ptr):
            return Parameter(self.given.name, Kind.POINTER, annotation)
        if annotation in (Tile, TensorView, PartitionTensorView):
            assert isinstance(annotation, Marker)
            return Parameter(self.given.name, Kind.VALUE, annotation)
        return self._scalar(annotation)

    def _refusal(self, problem: str, help: str = _HELP) -> PtoDeclarationError:
        message = f"parameter `{self.given.name}` {problem}"
        return self.declared.refusal(PtoDeclarationError, message, self.given.name, help)


def check_hashable(declared: Declared, name: str, value: object) -> None:
    """Raise PtoDeclarationError for a constant that programs cannot be found by."""
    try:
        hash(value)
    except TypeError:
        message = f"parameter `{name}` is pto.const_expr, and {type(value).__name__} values cannot be hashed"
        raise declared.refusal(PtoDeclarationError, message, name, "use a number, a string or a tuple") from None


def _evaluated(declared: Declared, name: str, annotation: Any, namespace: Mapping[str, Any]) -> Any:
    """Return an annotation, evaluated where a `from __future__ import annotations` has left its text."""
    try:
        while isinstance(annotation, str):  # one of text has its text twice
            annotation = eval(annotation, declared.function.__globals__, dict(namespace))
        return annotation
    except Exception as error:
        parameter = None if name == "return" else name
        message = f"the annotation of `{name}`, {annotation}, cannot be evaluated: {error}"
        raise declared.refusal(PtoDeclarationError, message, parameter) from error


def _shown(annotation: object) -> str:
    is_ours = isinstance(annotation, (Ptr, Scalar, Marker))
    return _text(annotation) if is_ours else f"annotated with {_text(annotation)}"


def _text(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
