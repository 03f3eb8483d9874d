"""Files of kernels: the program that a Python file defines, without anybody calling it."""

from __future__ import annotations

import builtins
import os
import sys
import tokenize
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from traceback import extract_tb, print_exception
from types import ModuleType, TracebackType
from typing import Any

import tilewright.language as pl
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import AnnotationError, ResultCountError, TilewrightError
from tilewright.frontend.kernels import Declared, KernelKind, KernelParameter
from tilewright.frontend.names import Resolver
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import executed, only_result, results
from tilewright.jit.parameters import UntoldOutputError
from tilewright.programs.compiler import compile
from tilewright.programs.config import RunConfig
from tilewright.programs.platforms import DEFAULT
from tilewright.programs.program import CompiledProgram
from tilewright.source import Source
from tilewright.tools.arguments import RANKS, USUAL, check_fits, check_names, is_number, number_of, tensor_of
from tilewright.tools.naming import CommandError, check_known
from tilewright.tools.pto import entry_of, lowered
from tilewright.tools.pto_texts import module_in

STARTED = (KernelKind.ENTRY, KernelKind.HOST)
"""The kernels that callers start."""


def named(text: str) -> tuple[str, str | None]:
    """Return the file and, where it is named, the kernel of `FILE[:KERNEL]`."""
    file, separator, kernel = text.rpartition(":")
    is_both = separator and kernel.isidentifier() and not os.path.exists(text)
    return (file, kernel) if is_both else (text, None)


def program_in(path: str, kernel: str | None = None, said: Mapping[str, str] | None = None) -> Program:
    """Return the one program of a file, or what its annotations or some arguments make of one `@pl.jit` kernel."""
    found = _found(path, kernel)
    if isinstance(found, Program):
        made = found
        check_fits(said or {}, found.entries)
    else:
        with as_command():
            made = found.specialize(**_arguments(found, said or {})).program
    check_names(said or {}, _parameters(found), made.entries)
    return made


def compiled_in(
    path: str,
    kernel: str | None = None,
    said: Mapping[str, str] | None = None,
    platform: str | None = None,
    ranks: int = RANKS,
) -> CompiledProgram:
    """Return that program, compiled: a host function for so many ranks."""
    found = _found(path, kernel)
    if isinstance(found, Program):
        check_fits(said or {}, found.entries)
        made = compile(found, platform=platform)
    else:
        with as_command():
            devices = range(ranks) if found.kind is KernelKind.HOST else None
            config = RunConfig(platform=platform or DEFAULT, device_ids=devices)
            made = found.compile(**_arguments(found, said or {}), config=config)
    check_names(said or {}, _parameters(found), made.declared.entries)
    return made


def _parameters(found: pl.JITFunction | Program) -> list[str]:
    return [] if isinstance(found, Program) else [parameter.name for parameter in found.parameters]


@contextmanager
def as_command() -> Generator[None]:
    """Raise what is wrong with arguments as an error of the command that says them."""
    try:
        yield
    except TilewrightError:
        raise
    except UntoldOutputError as error:
        help = f"behind the file, {error.output}=64x128 says its shape, with the extents it has"
        raise CommandError(f"{error}\n    help: {help}") from None
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


def called_in(path: str, kernel: str | None = None) -> CompiledProgram:
    """Return the program of a kernel's first call where the file is run as a script, which prints to stderr."""
    kernels = [value for value in _ran(path).values() if isinstance(value, pl.JITFunction) and _programs(value)]
    if not kernels:
        raise CommandError(f"{path} calls no @pl.jit kernel when it is run")
    return _programs(_chosen(kernels, kernel))[0]


def _ran(path: str) -> dict[str, Any]:
    """Return what a script has defined when it is through, or has ended itself."""
    code = builtins.compile(_text_of(path), path, "exec")
    script = ModuleType("__main__")
    script.__file__ = path
    before, sys.argv, main = sys.argv, [path], sys.modules["__main__"]
    sys.modules["__main__"] = script
    try:
        with redirect_stdout(sys.stderr), _beside(path):
            exec(code, vars(script))  # noqa: S102 - the author's own script
    except SystemExit:  # as `sys.exit(main())` does
        pass
    except Exception as error:  # what it has called until then can be shown
        print_exception(type(error), error, _frames_of(error, path), file=sys.stderr)
    finally:
        sys.argv, sys.modules["__main__"] = before, main
    return vars(script)


def _text_of(path: str) -> str:
    """Return a Python file's text, in the encoding that it names; CommandError for one in another."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (UnicodeDecodeError, SyntaxError) as error:
        help = "write it in UTF-8, or name its encoding in the first line, as in # -*- coding: latin-1 -*-"
        raise CommandError(f"{path} is no text: {error}\n    help: {help}") from None


def _programs(kernel: pl.JITFunction) -> list[CompiledProgram]:
    """Return what calls of a kernel have had compiled, the first one first."""
    return list(kernel._cache.values()) if kernel.kind in STARTED else []  # pyright: ignore


@contextmanager
def _beside(path: str) -> Generator[None]:
    """Let a file import what lies beside it, as Python does for a script."""
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _frames_of(error: Exception, path: str) -> TracebackType | None:
    """Return the frames of an error from a script's own on."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename != path:
        found = found.tb_next
    return found


def _found(path: str, kernel: str | None) -> pl.JITFunction | Program:
    if path.endswith(".pto"):
        module = module_in(Path(path))
        return lowered(module, entry_of(module, kernel), "a5")
    names = {"pl": pl}
    with redirect_stdout(sys.stderr), _unended(path), _beside(path):
        module, source = executed(_text_of(path), names, path)
    kernels = [value for value in module.values() if _is_entry(value, module)]
    programs = results(module, names)
    if kernel is None and not kernels:
        return _only_program(module, source, names, programs)
    if kernel is None or kernel in [each.name for each in kernels]:
        return _chosen(kernels, kernel)
    return as_program(_named(kernel, programs, kernels))


def _named(name: str, programs: Sequence[Function | Program], kernels: Sequence[pl.JITFunction]) -> Function | Program:
    """Return the program or function of a file that has a name; CommandError where nothing has it."""
    known = [each.name for each in (*kernels, *programs)]
    noun = "kernel or program" if programs else "@pl.jit kernel"
    check_known(name, known, noun, f"the file has {', '.join(known) or 'none'}")
    return next(each for each in programs if each.name == name)


@contextmanager
def _unended(path: str) -> Generator[None]:
    """Raise CommandError for a file that ends the process while it is read."""
    try:
        yield
    except SystemExit as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == path]
        help = 'put what it runs below `if __name__ == "__main__":`, or have `explore --run` run it'
        said = f"{path}:{lines[0] if lines else 1}: it ends (SystemExit: {error.code}) before its kernels are read"
        raise CommandError(f"{said}\n    help: {help}") from None


def _only_program(
    module: Mapping[str, Any], source: Source, names: Mapping[str, Any], programs: Sequence[Function | Program]
) -> Program:
    """Return the one program of a file without `@pl.jit` kernels."""
    try:
        return as_program(only_result(module, source, names))
    except ResultCountError as error:
        if programs:
            raise ResultCountError(
                error.message, spans=error.spans, help=f"pick one, as in FILE:{programs[0].name}"
            ) from None
        help = "decorate a function with @pl.jit, or else one with @pl.function or a class with @pl.program"
        raise ResultCountError("No @pl.jit kernel found", spans=error.spans, help=help) from None


def _is_entry(value: object, module: Mapping[str, Any]) -> bool:
    """Return whether a value is a kernel that the file itself defines, for callers to start."""
    return isinstance(value, pl.JITFunction) and value.kind in STARTED and value.function.__globals__ is module


def _chosen(kernels: Sequence[pl.JITFunction], name: str | None) -> pl.JITFunction:
    names = [kernel.name for kernel in kernels]
    if name is not None:
        check_known(name, names, "@pl.jit kernel", f"the file has {', '.join(names) or 'none'}")
        return kernels[names.index(name)]
    kernels = [kernel for kernel in kernels if not _takes_windows(kernel)] or kernels
    names = [kernel.name for kernel in kernels]
    if len(kernels) > 1:
        message, second = f"Multiple @pl.jit kernels found: {', '.join(names)}", kernels[1].captured
        raise ResultCountError(message, spans=[second.span(second.node)], help=f"pick one, as in FILE:{names[0]}")
    return kernels[0]


def _takes_windows(kernel: pl.JITFunction) -> bool:
    """Return whether only a host function can start a kernel, which makes its windows."""
    types = [says.type for says in kernel.declared(Resolver.of(kernel.function))]
    return any(isinstance(type_, TensorType) and type_.is_window for type_ in types)


def _arguments(kernel: pl.JITFunction, said: Mapping[str, str]) -> dict[str, Any]:
    """Return what a kernel is specialized to: what was said, and for the rest its annotations.

    Scalars stay open; AnnotationError for what nothing tells.
    """
    check_names({name: text for name, text in said.items() if not is_number(text)}, _parameters(kernel))
    declared = zip(kernel.parameters, kernel.declared(Resolver.of(kernel.function)), strict=True)
    needed = [(parameter, says) for parameter, says in declared if not parameter.is_optional or parameter.name in said]
    is_called = any(parameter.name in said and says.is_tensor for parameter, says in needed)
    found = {parameter.name: _argument(kernel, parameter, says, said, is_called) for parameter, says in needed}
    return {name: value for name, value in found.items() if value is not None}


def _argument(
    kernel: pl.JITFunction, parameter: KernelParameter, says: Declared, said: Mapping[str, str], is_called: bool
) -> Any:
    """Return a sample of one parameter, None where its annotation or the other arguments are enough."""
    text = said.get(parameter.name)
    if text is not None and not says.is_tensor:
        is_text = says.type is None and not is_number(text) and isinstance(parameter.default, str)
        return text if is_text else number_of(parameter.name, text)
    if text is not None:
        return tensor_of(text, says.type.dtype if isinstance(says.type, TensorType) else None)
    if isinstance(says.type, ScalarType):
        return pl.RUNTIME
    if is_called and says.direction is ParamDirection.Out:
        return None
    if says.type is None:
        raise _untold(kernel, parameter, says)
    if is_called and isinstance(says.type, TensorType):
        extents = [
            str(extent) if isinstance(extent, int) else said.get(str(extent), str(USUAL)) for extent in says.type.shape
        ]
        return tensor_of("x".join(extents), says.type.dtype)
    return None


class UntoldError(AnnotationError):
    """A kernel that only a call tells what it is compiled for."""


def _untold(kernel: pl.JITFunction, parameter: KernelParameter, says: Declared) -> AnnotationError:
    what, example, value = "the type", "pl.FP32", "4"
    if says.is_tensor:
        what, example = "the shape and dtype", 'pl.Tensor[[M, 128], pl.FP32] with M = pl.dynamic("M")'
        value = "fp32:64x128"
    error = UntoldError(
        f"only a call tells {what} of `{parameter.name}`",
        spans=[parameter.span],
        help=f"say {parameter.name}={value} behind the file, or annotate it, as in {example}",
    )
    error.function = kernel.name
    return error
