"""The decorator: `@pto.jit(...)` checks a declaration and makes it a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from tilewright.frontend.tracebacks import brief
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoDeclarationError
from tilewright.pto.handle import KernelHandle, SourceKernel, TracedKernel
from tilewright.pto.options import Options, checked_options
from tilewright.pto.signature import Signature, signature_of
from tilewright.pto.source import Origin, is_text


def jit(
    name: str | None = None,
    *,
    target: str = "a5",
    kernel_kind: str | None = None,
    backend: str = "vpto",
    entry: bool = True,
    mode: str = "auto",
    insert_sync: bool | None = None,
    ast_rewrite: bool | None = None,
    frontend_options: Mapping[str, Any] | None = None,
    native_options: Mapping[str, Any] | None = None,
    source: str | None = None,
) -> Callable[[Callable[..., Any]], KernelHandle]:
    """Return the decorator that makes a function a kernel called `name`, or like the function.

    With `source`, the path of a file of PTO text or the text itself, the function declares the entry of that name in
    it, and has no body beside `...` or what it is for; without, its body is the kernel. Functions with `entry=False`
    are called by kernels. Everything wrong with the declaration is a TypeError or ValueError here that names the
    kernel, its parameter, the file and the line.
    `ast_rewrite`, `frontend_options` and `native_options` speak to other compilers of the family: they are checked,
    and change nothing here.
    """
    given: Any = name
    if callable(given):
        raise _without_parentheses(given)
    if given is not None and (not isinstance(given, str) or not given):
        raise TypeError(f"@pto.jit(name=...) takes the symbol of a function, got {given!r}")
    options = {
        **{"target": target, "kernel_kind": kernel_kind, "backend": backend},
        **{"entry": entry, "mode": mode, "insert_sync": insert_sync},
        **{"ast_rewrite": ast_rewrite, "frontend_options": frontend_options, "native_options": native_options},
    }
    namespace = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]

    @brief
    def decorate(function: Callable[..., Any]) -> KernelHandle:
        return _made(function, name, options, source, namespace)

    return decorate


def _without_parentheses(function: Any) -> TypeError:
    message, help = "@pto.jit is written with parentheses", "@pto.jit() or @pto.jit(source=...)"
    if not isinstance(function, FunctionType):
        return TypeError(f"{message}: {help}")
    return Declared(function, function.__name__).refusal(PtoDeclarationError, message, help=help)


def _made(
    function: Any, name: str | None, given: Mapping[str, object], source: Any, namespace: Mapping[str, Any]
) -> KernelHandle:
    if not isinstance(function, FunctionType):
        raise TypeError(f"@pto.jit decorates a Python function, got {type(function).__name__}")
    declared = Declared(function, name or function.__name__)
    if hasattr(function, "__wrapped__"):
        message = "this is a wrapper of another function, and its own code would not run"
        help = "put @pto.jit right above the `def`, below the other decorator"
        raise declared.refusal(PtoDeclarationError, message, help=help)
    options = checked_options(declared, given)
    if source is not None:
        _check_source(declared, options, source)
        _check_body(declared)
    signature = signature_of(declared, namespace, is_entry=options.entry)
    if source is None:
        return TracedKernel(declared, options, signature)
    _check_constants(declared, signature, source)
    return SourceKernel(declared, options, signature, Origin.of(source, declared.directory))


def _check_source(declared: Declared, options: Options, source: Any) -> None:
    if not isinstance(source, str):
        message = f"source= takes a path or PTO text as a str, got {type(source).__name__}"
        help = "pass str(path)" if hasattr(source, "__fspath__") else ""
        raise declared.refusal(PtoDeclarationError, message, help=help)
    if not options.entry:
        message = "source= needs entry=True: PTO text calls its own functions"
        raise declared.refusal(PtoDeclarationError, message)


def _check_body(declared: Declared) -> None:
    for span in declared.statements()[:1]:
        message = "the kernel is what source= says, and this body would never run"
        error = PtoDeclarationError(message, spans=[span], help="write `...` for the body, or leave source= out")
        error.function = declared.name
        raise error


def _check_constants(declared: Declared, signature: Signature, source: str) -> None:
    for parameter in signature.constants:
        shown = "inline PTO text" if is_text(source) else repr(source)
        message = f"parameter `{parameter.name}` is pto.const_expr, but the kernel's source= is {shown}, which has none"
        help = "write the number in the text, or pass it at launch as a scalar"
        raise declared.refusal(PtoDeclarationError, message, parameter.name, help)
