"""Static calls: what runs while a kernel is read, directives and Python's own functions on known values."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

from tilewright.core.annotations import Arithmetic, dynamic
from tilewright.core.build import ceil_div
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.numbers import typed
from tilewright.core.operands import is_shaped
from tilewright.core.printer import python_print_type
from tilewright.core.stmt import EvalStmt
from tilewright.core.types import ScalarType
from tilewright.dtypes import INT64, STORABLE, DataType, objection
from tilewright.errors import (
    ArgumentCountError,
    ConditionError,
    DirectiveError,
    KernelError,
    MisplacedDirectiveError,
    NotStaticError,
    OperandError,
    StaticAssertionError,
    StaticEvaluationError,
    UncallableError,
    UnsupportedFeatureError,
)
from tilewright.frontend import directives
from tilewright.frontend.arguments import Arguments, arguments
from tilewright.frontend.branches import as_condition
from tilewright.frontend.builtin_calls import on_running
from tilewright.frontend.foreign import meant
from tilewright.frontend.joins import cat, stack
from tilewright.frontend.lambdas import is_lambda, unfollowed
from tilewright.frontend.marks import dump_tag, func_attr
from tilewright.frontend.operators import apply
from tilewright.frontend.tasks import submit
from tilewright.frontend.translator import Translator
from tilewright.frontend.value_keys import is_data
from tilewright.frontend.walk.expressions import grown
from tilewright.frontend.walk.known import FUNCTIONS, SEQUENCES, called, check_plain, is_mathematical, sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS


def _static_print(t: Translator, node: ast.Call) -> None:
    if node.keywords:
        raise t.error(DirectiveError, node, "pl.static_print() takes values by position", help="pl.static_print(x, n)")
    span = t.span(node)
    shown = " ".join([f"static_print [{span.filename}:{span.line}]:", *(_printed(t, arg) for arg in node.args)])
    t.tell(lambda: print(shown))


def _print(t: Translator, node: ast.Call) -> None:
    """Write one op for each run of known text and the running value after it."""
    if node.keywords:
        raise t.error(DirectiveError, node, "pl.print() takes values by position", help='pl.print("n =", n)')
    pieces: list[str | Expr] = []
    for number, arg in enumerate(node.args):
        parts = [part for part in arg.values] if isinstance(arg, ast.JoinedStr) else [arg]
        pieces += [" "] if number else []
        pieces += [_running(t, part) for part in parts]
    text = ""
    for place, piece in enumerate(pieces):
        if isinstance(piece, str):
            text += piece
            continue
        is_last = place == len(pieces) - 1
        t.emit(EvalStmt(_printing(t, text, piece, "\n" if is_last else "", node), t.span(node)))
        text = ""
    if text or not pieces or isinstance(pieces[-1], str):
        t.emit(EvalStmt(_printing(t, text, None, "\n", node), t.span(node)))


def _printing(t: Translator, text: str, value: Expr | None, end: str, node: ast.Call) -> Expr:
    return apply(t, OPS["system.print_value"].spec, {"text": text, "value": value, "end": end, "form": ""}, node, {})


def _running(t: Translator, node: ast.expr) -> str | Expr:
    """Return what is known as its text, anything else as a value to be shown."""
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    value = t.operand(inner)
    if isinstance(value, Expr) and not isinstance(value, Const):
        if isinstance(node, ast.FormattedValue) and (node.format_spec is not None or node.conversion != -1):
            message, help = "a running value is shown without conversions or formats", "write `{x}` alone"
            raise t.error(UnsupportedFeatureError, node, message, help=help)
        return value
    if isinstance(node, ast.FormattedValue):
        return str(t.evaluate(ast.copy_location(ast.JoinedStr([node]), node)))
    return show(value, is_typed=False) if not isinstance(value, str) else value


def _printed(t: Translator, node: ast.expr) -> str:
    """Return what is known of a value, its type as kernels write it; text as it is."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(t, part) for part in node.values)
    value = t.operand(node)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return show(value)
    expr = t.expr(value, node) if isinstance(value, (bool, int, float)) else value
    return f"{show(value, is_typed=False)}: {python_print_type(expr.type)}" if isinstance(expr, Expr) else show(value)


def _piece(t: Translator, part: ast.expr) -> str:
    if not isinstance(part, ast.FormattedValue):
        return str(t.evaluate(part))
    if part.conversion != -1 or part.format_spec is not None:
        message = "pl.static_print() fills in values without conversions or formats"
        raise t.error(UnsupportedFeatureError, part, message, help="write `{x}` alone")
    return _printed(t, part.value)


def _static_assert(t: Translator, node: ast.Call) -> None:
    given = arguments(t, node)
    if not 1 <= len(given.args) <= 2:
        help = 'pl.static_assert(condition, "what must hold")'
        raise t.error(ArgumentCountError, node, "pl.static_assert takes a condition and a message", help=help)
    condition = given.args[0].value if isinstance(given.args[0], Const) else given.args[0]
    if isinstance(condition, Expr):
        message = (
            f"`{ast.unparse(node.args[0])}` must be compile-time evaluable, and is not known before the program runs"
        )
        help = "a static assertion is about shapes and constants: check run-time values before the call"
        raise t.error(NotStaticError, node.args[0], message, help=help)
    if not condition:
        raise _failed(t, "static_assert", node.args[0], *given.args[1:])


def _failed(t: Translator, word: str, test: ast.expr, message: Value = None) -> StaticAssertionError:
    names = {n.id: t.evaluate(n) for n in ast.walk(test) if isinstance(n, ast.Name)}
    known = [f"{name} is {show(value)}" for name, value in names.items() if isinstance(value, (int, float, Expr))]
    said = ast.unparse(test) if message is None else message
    return t.error(StaticAssertionError, test, f"{word} failed: {said}", notes=known)


def assert_(t: Translator, node: ast.Assert) -> None:
    """Translate an `assert`: of what is known now, of anything else when the program runs."""
    value = t.operand(node.test)
    if is_shaped(value):
        help = f"pl.all({ast.unparse(node.test)}) is one condition"
        raise t.error(ConditionError, node.test, f"an assertion is about one condition, got {value.type}", help=help)
    condition = as_condition(t, value, node.test)
    message = None if node.msg is None else t.evaluate(node.msg)
    known = condition.value if isinstance(condition, Const) else condition
    if not isinstance(known, Expr):
        if not known:
            raise _failed(t, "assert", node.test, message)
        return
    if message is not None and not isinstance(message, str):
        help = 'write text, with known values in it: f"of {n}"'
        raise t.error(OperandError, node.msg or node, "the message of an assertion is text", help=help)
    bound = {"condition": condition, "message": message or f"`{ast.unparse(node.test)}` does not hold"}
    t.emit(EvalStmt(apply(t, OPS["system.device_assert"].spec, bound, node, {"condition": node.test}), t.span(node)))


def _const(t: Translator, node: ast.Call) -> Const:
    given = arguments(t, node)
    values = dict(zip(("value", "dtype"), given.args, strict=False)) | dict(given.kwargs)
    if not isinstance(values.get("value"), (bool, int, float)) or not isinstance(values.get("dtype"), DataType):
        raise t.error(OperandError, node, "pl.const takes a number and a dtype", help="pl.const(1, pl.INT32)")
    return directives.const(values["value"], values["dtype"])


def _cdiv(t: Translator, node: ast.Call) -> Value:
    given = arguments(t, node)
    values = dict(zip(("a", "b"), given.args, strict=False)) | dict(given.kwargs)
    if values.keys() != {"a", "b"} or len(given.args) + len(given.kwargs) != 2:
        raise t.error(ArgumentCountError, node, "pl.cdiv takes two integers", help="pl.cdiv(x.shape[0], 32)")
    if all(isinstance(value, int) for value in values.values()) and values["b"]:
        return directives.cdiv(values["a"], values["b"])
    a, b = (t.expr(value, node) for value in (values["a"], values["b"]))
    for value in (a, b):
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int()):
            raise t.error(OperandError, node, f"pl.cdiv takes two integers, got {value.type}", help="pl.cast converts")
    return ceil_div(a, b)


def _alloc(t: Translator, node: ast.Call) -> Const:
    arguments(t, node)
    return directives.const(0, INT64)  # a name for tiles to be placed in: where they are is no part of the program


def _transparent(t: Translator, node: ast.Call) -> Value:
    given = arguments(t, node)
    return given.args[0] if given.args else None


def _misplaced(t: Translator, node: ast.Call) -> None:
    callee, name = t.evaluate(node.func), ast.unparse(node.func)
    help = _PLACES.get(callee, f"write `with {name}(...):`" if callee in directives.SCOPES else "")
    help = help or f"write `for i in {name}(...):`"
    raise t.error(MisplacedDirectiveError, node, f"`{name}` means nothing here", help=help)


_PLACES: dict[Any, str] = {
    directives.yield_: "write `r = pl.yield_(value)` at the end of a loop body or branch",
    directives.cond: "write `pl.cond(condition)` first in the body of a `pl.while_` loop",
}


def _scan(t: Translator, node: ast.Call) -> Value:
    from tilewright.frontend.scans import scan  # few kernels scan

    return scan(t, node)


DIRECTIVES: dict[object, Callable[[Translator, ast.Call], Value]] = {
    directives.submit: submit,
    directives.spmd_submit: submit,
    directives.print: _print,
    directives.static_print: _static_print,
    directives.static_assert: _static_assert,
    directives.cdiv: _cdiv,
    directives.const: _const,
    directives.alloc: _alloc,
    directives.func_attr: func_attr,
    directives.cat: cat,
    directives.scan: _scan,
    directives.stack: stack,
    directives.no_dep: _transparent,
    directives.dump_tag: dump_tag,
    directives.yield_: _misplaced,
    directives.cond: _misplaced,
    **dict.fromkeys([*directives.LOOPS, *directives.SCOPES], _misplaced),
}


def show(value: Value, *, is_typed: bool = True) -> str:
    """Return a value as messages write it, with its type or without."""
    if isinstance(value, tuple):
        parts = [show(part) for part in sequence(value)]  # pyright: ignore[reportUnknownArgumentType]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, Var):
        return f"{value.name_hint}: {value.type}" if is_typed else value.name_hint
    if isinstance(value, Call) and not isinstance(value.type, ScalarType):
        return f"{value.op.name}(...): {value.type}" if is_typed else f"{value.op.name}(...)"
    return str(value.value) if isinstance(value, Const) else str(value)


def call_python(t: Translator, callee: object, given: Arguments, node: ast.Call) -> Value:
    """Return a call that Python itself makes while compiling, on values the compiler knows."""
    values = (*given.args, *given.kwargs.values())
    if (found := on_running(t, callee, given, node)) is not None:
        return found
    if (number := _of_numpy(callee, values)) is not None:
        return number
    if any(isinstance(v, Expr) for v in values) or not (_is_static_callable(callee) or is_lambda(callee)):
        raise _not_callable(t, callee, node)
    if is_lambda(callee):
        check_plain(t, node, *values)
        _read_lambda(t, callee, node)
    return called(t, callee, given.args, given.kwargs, node)


def _of_numpy(callee: object, values: Sequence[Value]) -> Value:
    """Return the number of a type that `np.float32(2.0)` makes of a known one; None for other calls."""
    name = callee.__name__ if isinstance(callee, type) and callee.__module__ == "numpy" else ""
    dtype = next((each for each in STORABLE if each.numpy_name == name), None)
    if dtype is None or len(values) != 1 or not isinstance(values[0], (bool, int, float)):
        return None
    return None if objection(values[0], dtype) else typed(values[0], dtype)


def _is_static_callable(callee: object) -> bool:
    if isinstance(callee, MethodType):
        return isinstance(callee.__self__, DataType)
    if isinstance(callee, BuiltinMethodType) and isinstance(callee.__self__, dict):
        return callee.__name__ in ("items", "keys", "values", "get")
    if isinstance(callee, type) and callee.__module__.startswith("tilewright.core"):
        return True
    ours = (isinstance, dynamic, directives.split, directives.cross_core_slot)
    return is_mathematical(callee) or any(callee is each for each in (*FUNCTIONS, *SEQUENCES, *ours))


def _read_lambda(t: Translator, function: Any, node: ast.Call) -> None:
    """Note what a lambda reads; raise where that cannot be followed."""
    name = unfollowed(t.callees.kernels.reader(function), _is_static_callable)
    if name:
        message = f"`{ast.unparse(node.func)}` reads `{name}`, which the cache cannot follow into a lambda"
        help = "pass it what it needs as arguments, or write it as a @pl.jit.inline function"
        raise t.error(StaticEvaluationError, node, message, help=help)


_CONVERSIONS: Mapping[object, str] = {
    float: "pl.cast({}, pl.FP32) converts what only the running program knows",
    int: "pl.cast({}, pl.INT32) converts what only the running program knows",
    bool: "a comparison asks what only the running program knows: `{} != 0`",
}
"""What to write for Python's own conversions, which are for numbers the compiler knows."""


_CALLS = "a kernel calls ops (pl.*), functions of its program, and functions decorated for it"


def _started(t: Translator) -> str:
    """Return the name of the kernel that callers start, which alone can be debugged."""
    active = t.callees.kernels.active
    return active[0].name if active else t.captured.node.name


def _not_callable(t: Translator, callee: object, node: ast.Call) -> KernelError:
    name = ast.unparse(node.func)
    if callee is builtins.range:
        fix = "what only the running program knows is counted by a loop: `for i in range(...)`"
    elif callee is builtins.print:
        fix = f"{meant('print')}; print itself works in {_started(t)}.debug(...)"
    elif callee is builtins.breakpoint:
        fix = f"{_started(t)}.debug(...) runs it line by line, and stops here"
    elif isinstance(owner := getattr(callee, "__self__", None), (list, tuple)):
        fix = grown(name.rpartition(".")[0], owner)
    elif is_data(owner):
        fix = "data of other libraries is read before the call: pass the tensor, or the number, as an argument"
    elif isinstance(callee, FunctionType):
        kinds = "@pl.inline or @pl.function" if t.frame is None else "@pl.jit.inline or @pl.jit.incore"
        fix = f"decorate `{name}` with {kinds} so that a kernel can call it"
    elif not callable(callee) or isinstance(callee, (ModuleType, Arithmetic)):
        fix = "this is not a function"
    elif isinstance(callee, type) and callee in _CONVERSIONS and node.args:
        fix = _CONVERSIONS[callee].format(ast.unparse(node.args[0]))
    else:
        fix = meant(name.rpartition(".")[2]) or _CALLS
    return t.error(UncallableError, node.func, f"Unsupported function call: `{name}`", help=fix)
