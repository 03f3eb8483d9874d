"""Decorators: `@pl.jit` and the kinds of functions it comes with."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from types import FunctionType as PythonFunction
from typing import Any, overload

from tilewright.core.enums import Level
from tilewright.frontend.kernels import KernelKind
from tilewright.jit.function import JITFunction

_CORES = ("aic", "aiv", "mixed")


def check_sources(function: FunctionType, options: Mapping[str, Any]) -> None:
    """Raise ValueError where a kernel's sources are not all there, TypeError for folders that are no list."""
    core = options.get("core_type", "aiv")
    if core not in _CORES:
        raise ValueError(f"core_type= takes one of {', '.join(_CORES)}, got {core!r}")
    if options.get("dual_aiv_dispatch") and core != "mixed":
        raise ValueError(f"dual_aiv_dispatch= is for core_type='mixed', got {core!r}")
    wanted = ("aic_source", "aiv_source") if core == "mixed" else ("source",)
    if missing := [name for name in wanted if not options.get(name)]:
        raise ValueError(f"a kernel of core_type={core!r} needs {' and '.join(missing)}=")
    folders: Sequence[Any] = options.get("include_dirs") or ()
    if isinstance(folders, (str, bytes)):
        raise TypeError(f"include_dirs= takes a list of folders, got {folders!r}")
    home = os.path.dirname(function.__code__.co_filename)
    for name in wanted:
        if not any(map(os.path.isfile, (os.path.join(home, options[name]), options[name]))):
            raise ValueError(f"{name}= names a file that is not there: {options[name]}")
    for folder in folders:
        if not any(map(os.path.isdir, (os.path.join(home, folder), folder))):
            raise ValueError(f"include_dirs= names a folder that is not there: {folder}")


class Decorator:
    """A decorator that makes one kind of kernel, with or without parentheses."""

    def __init__(self, kind: KernelKind, word: str, takes: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.word = word
        self.takes = takes
        self.__doc__ = _DOCS[kind]

    @overload
    def __call__(self, function: Callable[..., Any], /) -> JITFunction: ...
    @overload
    def __call__(self, /, **options: Any) -> Callable[[Callable[..., Any]], JITFunction]: ...
    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        """Decorate a function, or return the decorator for some options."""
        for name in options:
            if name not in self.takes:
                article = "an" if name[0] in "aeiou" else "a"
                raise TypeError(f"@{self.word} does not accept {article} {name}= argument")
        if function is None:
            return partial(self._made, options=options)
        return self._made(function, options)

    def _made(self, function: Any, options: dict[str, Any]) -> JITFunction:
        if problem := _problem(function):
            raise TypeError(f"@{self.word} decorates a Python function, got {problem}")
        if (wrapped := getattr(function, "__wrapped__", None)) is not None:
            raise TypeError(self._wrapper(getattr(wrapped, "__name__", repr(wrapped))))
        level, auto_scope = options.get("level"), options.get("auto_scope", True)
        if level is not None and not isinstance(level, Level):
            raise TypeError(f"level= takes a pl.Level, got {type(level).__name__}")
        if self.kind is KernelKind.EXTERN:
            check_sources(function, options)
        drift = options.get("drift")
        if drift not in (None, "raise", "recompile"):
            raise ValueError(f"drift= takes 'raise' or 'recompile', got {drift!r}")
        made = JITFunction(function, self.kind, level, bool(auto_scope), drift=drift)
        if options.get("backward") is not None:
            made.backward(options["backward"])
        return made

    def _wrapper(self, name: str) -> str:
        help = "put @pl.jit right above the `def`, below the other decorator"
        return (
            f"@{self.word} decorates a Python function, got a wrapper of `{name}`, whose own code would not run: "
            f"{help if self.kind is KernelKind.ENTRY else 'drop the other decorator, or write what it does inside'}"
        )

    def __repr__(self) -> str:
        return f"<decorator @{self.word}>"


def _problem(function: Any) -> str:
    """Return what something is that no kernel can be made of, or nothing."""
    if not isinstance(function, PythonFunction):
        return repr(function) if isinstance(function, JITFunction) else type(function).__name__
    if function.__code__.co_name == "<lambda>":
        return "a lambda, which has no statements"
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return "an async one" if is_async else ""


class JITDecorator(Decorator):
    """`@pl.jit`, with the decorators of sub-functions as attributes."""

    def __init__(self) -> None:
        super().__init__(KernelKind.ENTRY, "pl.jit", ("auto_scope", "drift", "backward"))
        self.incore = Decorator(KernelKind.INCORE, "pl.jit.incore", ("level",))
        self.inline = Decorator(KernelKind.INLINE, "pl.jit.inline", ("auto_scope",))
        self.opaque = Decorator(KernelKind.OPAQUE, "pl.jit.opaque")
        self.host = Decorator(KernelKind.HOST, "pl.jit.host", ("auto_scope", "backward"))
        self.extern = Decorator(
            KernelKind.EXTERN,
            "pl.jit.extern",
            ("source", "core_type", "aic_source", "aiv_source", "dual_aiv_dispatch", "include_dirs"),
        )


_DOCS = {
    KernelKind.ENTRY: "Make a function a kernel: its first call with new shapes, dtypes or scalars compiles it.",
    KernelKind.INCORE: "Make a function a device kernel that other kernels call.",
    KernelKind.INLINE: "Make a function a template, written out at each call.",
    KernelKind.OPAQUE: "Make a function a part of a program with loops and kernel scopes of its own.",
    KernelKind.HOST: "Make a function a host function: it lays out windows and dispatches kernels to ranks.",
    KernelKind.EXTERN: "Mark a kernel that C++ sources define; it can be declared, and not compiled yet.",
}

jit = JITDecorator()
