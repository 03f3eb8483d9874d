"""Programs: the decorators that turn Python functions and classes into IR."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any, overload

from tilewright.collector import paused_collection
from tilewright.core.enums import FunctionType, Level, Role
from tilewright.core.program import Function, Program
from tilewright.errors import (
    DuplicateFunctionError,
    EmptyProgramError,
    RecursiveCallError,
    UndefinedNameError,
    UnsupportedFeatureError,
)
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.launchable import Launchable
from tilewright.frontend.names import nearest
from tilewright.frontend.tracebacks import brief
from tilewright.records import mutable
from tilewright.source import UNKNOWN, Span, calling_line

if TYPE_CHECKING:  # what translates: programs that others compiled do without
    from tilewright.frontend.functions import Options
    from tilewright.frontend.specialize import Kernels

_OPTIONS = "__tilewright_options__"


@mutable
class Builder:
    """The functions of one program, translated when first needed."""

    methods: Mapping[str, tuple[Captured, Options]]
    done: dict[str, Function] = field(default_factory=dict[str, Function])
    active: list[str] = field(default_factory=list[str])
    taken: dict[str, Function] = field(default_factory=dict[str, Function])
    launched: dict[tuple[Launchable, bool], Function] = field(default_factory=dict[tuple[Launchable, bool], Function])
    """The functions that kernels of other languages are, on tensors that are apart, or may share memory."""
    kernels: Kernels = field(init=False)
    """The kernels that calls have specialized."""

    def __post_init__(self) -> None:
        """Start without kernels."""
        from tilewright.frontend.specialize import Kernels

        self.kernels = Kernels(self)

    def method(self, name: str, span: Span) -> Function:
        """Return one of the program's own functions, translating it first where that has not happened."""
        from tilewright.frontend.functions import translate

        if name not in self.methods:
            known = (
                f"it has {', '.join(self.methods)}" if self.methods else "only methods of a @pl.program have a program"
            )
            help = nearest(name, list(self.methods), "self.") or known
            raise UndefinedNameError(f"Function '{name}' not defined in program", spans=[span], help=help)
        if name in self.active:
            cycle = " -> ".join([*self.active[self.active.index(name) :], name])
            raise RecursiveCallError(f"`{name}` calls itself: {cycle}", spans=[span])
        if name not in self.done:
            self.active.append(name)
            captured, options = self.methods[name]
            self.done[name] = translate(captured, options, self, is_method=True)
            self.active.pop()
        return self.done[name]

    def free(self, function: Function, span: Span) -> Function:
        """Take a function defined outside into the program, with what it calls."""
        known = self.taken.get(function.name)
        is_other = function.name in self.methods or function.name in self.kernels.names()
        if is_other or (known is not None and known is not function):
            notes = [f"this one is from {function.span}", f"the other one is from {self._named(function.name)}"]
            raise DuplicateFunctionError(f"two functions are called '{function.name}'", spans=[span], notes=notes)
        self.taken[function.name] = function
        for callee in function.callees:
            self.free(callee, span)
        return function

    def names(self) -> set[str]:
        """Return what functions are called."""
        return {*self.taken, *self.methods, *self.kernels.names()}

    def _named(self, name: str) -> Span:
        if name in self.methods:
            captured = self.methods[name][0]
            return captured.span(captured.node)
        made = [made.function.span for made in self.kernels.done.values() if made.function.name == name]
        return self.taken[name].span if name in self.taken else made[0] if made else UNKNOWN

    def program(self, name: str, span: Span) -> Program:
        """Translate everything and return the program, functions in the order they were written."""
        own = [self.method(method, span) for method in self.methods]
        return Program(name, (*own, *self.brought), span, lambda: Builder(self.methods).program(name, span))

    @property
    def brought(self) -> tuple[Function, ...]:
        """The functions that calls have brought in: free ones, and kernels made for their arguments."""
        return (*self.taken.values(), *(made.function for made in self.kernels.done.values()))


@overload
def function(func: PythonFunction, /) -> Function: ...
@overload
def function(
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Mapping[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | None = None,
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    func: Any = None,
    /,
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Mapping[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | None = None,
) -> Any:
    """Read a Python function as a function of the IR; inside a class it waits for `@pl.program`."""
    with paused_collection():
        from tilewright.frontend.functions import Options, translate

    if attrs is not None:
        warnings.warn("attrs= is deprecated: use pl.func_attr in the body", DeprecationWarning, stacklevel=2)
    options = Options(type, level, role, dict(attrs or {}), strict_ssa, auto_scope, external_source or "")

    @brief
    def decorate(python: Any) -> Any:
        if isinstance(python, PythonFunction) and _is_method(python):
            setattr(python, _OPTIONS, options)
            return python
        builder = Builder({})
        result = translate(capture(python), options, builder, is_method=False)
        return replace(result, callees=builder.brought)

    return decorate(func) if func is not None else decorate


def _is_method(python: PythonFunction) -> bool:
    """Return whether a function is being defined in the body of a class."""
    *outer, _ = python.__qualname__.split(".")
    return bool(outer) and outer[-1] != "<locals>"


@overload
def program(cls: type[Any], /) -> Program: ...
@overload
def program(*, strict_ssa: bool = False) -> Callable[[type[Any]], Program]: ...
def program(cls: Any = None, /, *, strict_ssa: bool = False) -> Any:
    """Read a class of `@pl.function` methods as a program; the class name becomes its name."""

    @brief
    def decorate(python: Any) -> Program:
        if not isinstance(python, builtins.type):
            raise UnsupportedFeatureError(
                f"a program is a class, got {python!r}", spans=[calling_line()], help="use @pl.function for a function"
            )
        methods = {
            name: (_only(capture(value)), replace(options, strict_ssa=options.strict_ssa or strict_ssa))
            for name, value in vars(python).items()
            if (options := getattr(value, _OPTIONS, None)) is not None
        }
        if not methods:
            raise EmptyProgramError(f"class '{python.__name__}' has no @pl.function method", spans=[calling_line()])
        first = next(iter(methods.values()))[0]
        return Builder(methods).program(python.__name__, first.span(first.node))

    return decorate(cls) if cls is not None else decorate


def _only(captured: Captured) -> Captured:
    """Return a method; DuplicateFunctionError when its class has defined it before."""
    same = [node for node in captured.siblings if node.name == captured.node.name]
    if len(same) > 1:
        message = f"two functions are called '{captured.node.name}'"
        notes = [f"the other one is at line {same[0].lineno}, and Python keeps only the last"]
        raise DuplicateFunctionError(message, spans=[captured.span(captured.node)], notes=notes)
    return captured


def as_program(node: object) -> Program:
    """Return a program as it is, and a function as the program of itself and what it calls; TypeError for others."""
    if isinstance(node, Program):
        return node
    if not isinstance(node, Function):
        raise TypeError(_no_program(node))
    builder = Builder({})
    builder.free(node, UNKNOWN)
    return Program(node.name, tuple(builder.taken.values()), node.span)


def _no_program(node: object) -> str:
    """Return what is wrong with an argument that is neither program nor function, and what to pass instead."""
    message = "a program is a class decorated with @pl.program or a function decorated with @pl.function, "
    if isinstance(node, Kernel):
        return f"{message}got the kernel `{node.name}`: a @pl.jit kernel compiles itself, {node.name}.compile(...)"
    return f"{message}got {type(node).__name__}"
