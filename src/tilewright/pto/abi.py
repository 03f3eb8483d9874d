"""The ABI: the function of a module that a kernel stands for, held to its Python declaration."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoAbiError
from tilewright.pto.memrefs import as_passed
from tilewright.pto.module import Func, Module
from tilewright.pto.signature import Signature
from tilewright.pto.text.kinds import counted
from tilewright.pto.types import Type
from tilewright.source import Span


def entry_of(module: Module, declared: Declared, label: str) -> Func:
    """Return the only function of a module, nested ones included, that has a kernel's name and a body."""
    named = [func for func in module.funcs() if func.name == declared.name]
    found = [func for func in named if func.body is not None]
    if len(found) == 1:
        return found[0]
    if found:
        message = f"{label} has {len(found)} functions @{declared.name} with a body; a kernel is exactly one"
        notes = [f"one is at {func.span}" for func in found]
        raise _mismatch(declared, message, found[1].span, help="rename all but one of them", notes=notes)
    others = dict.fromkeys(f"@{func.name}" for func in module.funcs() if func.body is not None)
    has = f"it has {', '.join(others)}" if others else "it has no functions"
    message = f"missing non-declaration func.func @{declared.name} in {label}; {has}"
    help = "give the function a body" if named else "rename the function, or pass its symbol as @pto.jit(name=...)"
    raise _mismatch(declared, message, named[0].span if named else module.span, help=help)


def check_abi(func: Func, signature: Signature, declared: Declared, label: str) -> None:
    """Raise PtoAbiError where an entry's results, parameter count or parameter types are not what is declared."""
    entry = f"entry @{func.name} of {label}"
    if func.results:
        message = f"{entry} must not return anything; it returns {_listed(func.results)}"
        raise _mismatch(declared, message, func.span, help="write results through pointers")
    expected = [p.annotation for p in signature.runtime]
    got = [argument.type for argument in func.arguments]
    if len(expected) != len(got):
        message = (
            f"{entry} has {counted(len(got), 'parameter')}, and its declaration {counted(len(expected), 'parameter')}; "
            f"expected {_listed(expected)}, got {_listed(got)}"
        )
        raise _mismatch(declared, message, func.span)
    for position, (wanted, argument) in enumerate(zip(expected, func.arguments, strict=True)):
        if wanted != as_passed(argument.type):
            message = f"{entry}: parameter {position} differs; expected {wanted}, got {argument.type}"
            name = signature.runtime[position].name
            span = argument.span if argument.span.is_known else func.span
            raise _mismatch(declared, message, span, parameter=name)


def _mismatch(
    declared: Declared,
    message: str,
    span: Span,
    help: str = "",
    notes: Iterable[str] = (),
    parameter: str | None = None,
) -> PtoAbiError:
    name = "" if parameter is None else f" as `{parameter}`"
    place = f"declared{name} at {declared.span(parameter)}"
    error = PtoAbiError(message, spans=[span], help=help, notes=[*notes, place])
    error.function = declared.name
    return error


def _listed(types: Iterable[Type | object]) -> str:
    return f"({', '.join(map(str, types))})"
