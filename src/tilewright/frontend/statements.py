"""Statements: assignments, returns, exits from loops, and expressions evaluated for their effect."""

from __future__ import annotations

import ast

from tilewright.core.annotations import Tile
from tilewright.core.expr import Call, Expr, Submit, TupleGetItem, Var
from tilewright.core.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ReturnStmt, YieldStmt
from tilewright.core.types import ScalarType, TensorType, TileType, TupleType, Type
from tilewright.dtypes import BOOL
from tilewright.errors import (
    AnnotationMismatchError,
    DirectiveError,
    KernelError,
    LoopExitError,
    MisplacedDirectiveError,
    OperandError,
    ParserSyntaxError,
    UnsupportedFeatureError,
    YieldMismatchError,
)
from tilewright.frontend import directives
from tilewright.frontend.annotations import local_type
from tilewright.frontend.deferred import settle
from tilewright.frontend.handed_back import HandedBack
from tilewright.frontend.state import is_action
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Listed, Value


def takes(t: Translator, node: ast.Expr | ast.Assign) -> bool:
    """Translate a statement that is `names = pl.yield_(values)`, with names or without; return whether it is one."""
    if not is_directive(t, node.value, directives.yield_):
        return False
    assert isinstance(node.value, ast.Call)
    _yield_values(t, node.value, _yield_names(t, node) if isinstance(node, ast.Assign) else ())
    return True


def effect(t: Translator, node: ast.Expr) -> None:
    """Translate an expression that stands alone: calls that do something."""
    value = t.evaluate(node.value)
    if isinstance(value, Submit):
        raise _not_unpacked(t, node.value)
    if isinstance(value, Call) and _gives_the_changed_tile(value):
        target = _written_name(node.value)
        if target is not None:
            t.assign(target.id, value, target)
            return
    if isinstance(value, Call) and value.op.spec.updates and isinstance(node.value, ast.Call):
        from tilewright.frontend.accumulators import keep_sum  # which few kernels have

        keep_sum(t, value, node.value)
    elif is_action(value):
        t.emit(EvalStmt(value, t.span(node)))


def _gives_the_changed_tile(call: Call) -> bool:
    spec = call.op.spec
    return spec.writes is not None and isinstance(call.type, TileType) and not spec.is_atomic


def _written_name(node: ast.expr) -> ast.Name | None:
    """Return the tile that `pl.write(t, ...)` changes: a tile is a value, so the name gets the new one."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
        return node.args[0]
    return None


def is_directive(t: Translator, node: ast.expr, directive: object) -> bool:
    """Return whether an expression is a call of a directive."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    return name == getattr(directive, "__name__", "") and t.evaluate(node.func) is directive


def _yield_values(t: Translator, node: ast.Call, names: tuple[str, ...]) -> None:
    """Translate `names = pl.yield_(values)`: the values now, the names once the loop or branch has ended."""
    span = t.span(node)
    if not t.yields:
        message = "pl.yield_ hands values on from a loop body or branch, and this is neither"
        raise MisplacedDirectiveError(message, spans=[span], help="bind the value to a name, or return it")
    frame = t.yields[-1]
    if frame.names is not None:
        notes = [f"first at line {frame.span.line}"] if frame.span else ()
        help = "yield everything at once: a, b = pl.yield_(x, y)"
        raise YieldMismatchError("this block has yielded already", spans=[span], notes=notes, help=help)
    if names and len(names) != len(node.args):
        message = f"{len(names)} name(s) for {len(node.args)} yielded value(s)"
        raise YieldMismatchError(message, spans=[span], help="give each value one name")
    values = tuple(t.expr(t.evaluate(arg), arg, "a yielded value") for arg in node.args)
    if frame.is_loop and len(values) != len(frame.carried):
        message = f"the loop carries {len(frame.carried)} value(s), this yields {len(values)}"
        raise YieldMismatchError(message, spans=[span], help="yield one value for each of init_values")
    frame.names, frame.types, frame.span = names, tuple(v.type for v in values), span
    t.emit(YieldStmt(values, span))


def _yield_names(t: Translator, node: ast.Assign) -> tuple[str, ...]:
    target = node.targets[0]
    elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = tuple(e.id for e in elements if isinstance(e, ast.Name))
    if len(node.targets) != 1 or len(names) != len(elements):
        raise t.error(ParserSyntaxError, node, "yielded values are bound to plain names", help="a, b = pl.yield_(x, y)")
    return names


def bind(t: Translator, target: ast.Name, value: Value, source: ast.expr) -> None:
    """Bind a name to what an expression gave."""
    if isinstance(value, Submit):
        raise _not_unpacked(t, source)
    t.assign(target.id, _not_void(t, value, source), target)


def _not_unpacked(t: Translator, source: ast.expr) -> DirectiveError:
    name = ast.unparse(source.func) if isinstance(source, ast.Call) else "a task"
    message = f"what {name}(...) gives must be unpacked into its results and its task id"
    return t.error(DirectiveError, source, message, help=f"out, tid = {name}(self.kernel, x, out)")


def _not_void(t: Translator, value: Value, source: ast.expr) -> Value:
    if isinstance(value, Expr) and isinstance(value.type, TupleType) and not value.type.elements:
        help = "write it on a line of its own, or let the function return something"
        raise t.error(OperandError, source, "this has no result to bind", help=help)
    return value


def annotated(t: Translator, node: ast.AnnAssign) -> None:
    """Bind an annotated name, its value held against the annotation."""
    if node.value is None or not isinstance(node.target, ast.Name):
        message, help = "an annotated name needs a value", "write `name: type = value`"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    if is_directive(t, node.value, directives.yield_):
        assert isinstance(node.value, ast.Call)
        _yield_values(t, node.value, (node.target.id,))
        return
    if (kind := _python_type(t, node.annotation)) is not None:
        value = t.evaluate(node.value)
        _check_kind(t, node, node.target.id, kind, value)
        t.assign(node.target.id, _not_void(t, value, node.value), node.target)
        return
    from tilewright.frontend.memory import check_place, without_values  # few kernels say where tiles lie

    try:
        annotation = t.evaluate(without_values(t, node.annotation))
        declared = local_type(annotation)
        if isinstance(annotation, Tile) and annotation.memref is not None:
            check_place(t, annotation.memref, annotation.memory, node.annotation)
    except KernelError as error:
        error.locate([t.span(node.annotation)])
        raise
    t.declared = declared
    value = t.evaluate(node.value)
    t.declared = None
    if declared is None:
        t.assign(node.target.id, _not_void(t, value, node.value), node.target)
        return
    actual = t.expr(value, node.value).type if not isinstance(value, Expr) else value.type
    if not _agrees(declared, actual):
        message = f"'{node.target.id}' is annotated {declared}, but its value is {actual}"
        raise AnnotationMismatchError(message, spans=[t.span(node.annotation), t.span(node.value)])
    if isinstance(value, Submit) and node.target.id == "_":
        t.emit(EvalStmt(value, t.span(node)))
        return
    limits = getattr(annotation, "bounds", None)
    placed = isinstance(declared, TileType) and declared.memref is not None
    if isinstance(value, Expr) and (placed or limits is not None) and is_action(value):
        var = Var(node.target.id, declared, t.span(node.target), limits)
        if not t.scope.is_variable(node.target.id, value):
            _bind_refined(t, node.target, var, value)
            return
        if placed:  # what several blocks assign has no place of its own: what one assigns to it has
            t.emit(AssignStmt(var, value, var.span))
            value = var
    t.assign(node.target.id, _stamped(value, declared), node.target)


_KINDS: dict[type, tuple[type, ...]] = {
    bool: (bool,), int: (int,), float: (int, float), str: (str,), list: (list, Listed), tuple: (tuple,), dict: (dict,)
}  # fmt: skip
"""Python's own types, which locals may be annotated with, and what a value of each can be."""


def _python_type(t: Translator, node: ast.expr) -> type | None:
    """Return the type of Python's that an annotation names, `list[int]` being a list; None for one of ours."""
    base = node.value if isinstance(node, ast.Subscript) else node
    named = t.evaluate(base) if isinstance(base, ast.Name) else None
    return named if isinstance(named, type) and named in _KINDS else None


def _check_kind(t: Translator, node: ast.AnnAssign, name: str, kind: type, value: Value) -> None:
    """Raise where a local is annotated with another type of Python's than its value has."""
    assert node.value is not None
    fits = isinstance(value, _KINDS[kind]) and (kind is bool or not isinstance(value, bool))
    if isinstance(value, Expr):
        dtype = value.type.dtype if isinstance(value.type, ScalarType) else None
        fits = dtype is not None and {int: dtype.is_int(), float: dtype.is_float(), bool: dtype == BOOL}.get(
            kind, False
        )
    if not fits:
        message = f"'{name}' is annotated {kind.__name__}, but its value is {shown_type(value)}"
        raise AnnotationMismatchError(message, spans=[t.span(node.annotation), t.span(node.value)])


def shown_type(value: Value) -> str:
    """Return what kind of value something is, as messages name it."""
    if isinstance(value, Expr):
        return str(value.type)
    return f"a {'list' if isinstance(value, Listed) else type(value).__name__}"


def _bind_refined(t: Translator, target: ast.Name, var: Var, value: Expr) -> None:
    """Bind a name whose annotation says more than its value does: where it lives, or how far it reaches."""
    t.emit(AssignStmt(var, value, var.span))
    t.scope.bind(target.id, var, var.span)


def _stamped(value: Value, declared: Type) -> Value:
    """Return a literal in the type its annotation gives."""
    if isinstance(value, (bool, int, float)) and isinstance(declared, ScalarType) and declared.dtype.name != "index":
        return directives.const(value, declared.dtype)
    return value


def _agrees(declared: Type, actual: Type) -> bool:
    match declared, actual:
        case (TileType(), TileType()) | (TensorType(), TensorType()):
            return (
                declared.dtype == actual.dtype
                and len(declared.shape) == len(actual.shape)
                and all(a == b or a is None or b is None for a, b in zip(declared.shape, actual.shape, strict=True))
            )
        case (ScalarType(), ScalarType()):
            literal = actual.dtype.name in ("index", "fp32")
            return declared == actual or (literal and declared.dtype.is_float() == actual.dtype.is_float())
        case (TupleType(), TupleType()):
            return len(declared.elements) == len(actual.elements) and all(
                map(_agrees, declared.elements, actual.elements)
            )
        case _:
            return declared == actual


def return_(t: Translator, node: ast.Return) -> None:
    """Translate a `return`; that of a helper which is written out ends the reading of it."""
    if t.home is not None:
        raise HandedBack(_handed_back(t, node))
    settle(t)
    span = t.span(node)
    if t.kernels and len(t.yields) > t.kernels[-1]:
        raise t.error(UnsupportedFeatureError, node, "`return` cannot leave a kernel scope", help=_KERNEL_END)
    value = None if node.value is None else t.operand(node.value)
    if isinstance(value, Expr) and isinstance(value.type, TupleType):
        value = tuple(t.placed(TupleGetItem(value, i, e, span), node) for i, e in enumerate(value.type.elements))
    parts = () if value is None else sequence(value)
    values = tuple(t.expr(part, node, "a returned value") for part in parts)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    t.returned.append((tuple(v.type for v in values), span))
    t.emit(ReturnStmt(values, span))


def _handed_back(t: Translator, node: ast.Return) -> Value:
    """Return what a helper gives; an error inside a block, which the running program may leave out or repeat."""
    if t.stmts is not t.home:
        message = f"`{t.captured.node.name}` returns in a block, and where a helper ends is known while it is compiled"
        help = "bind the result in each branch, and return it after them"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    return t.handed_back(node)


def exit_loop(t: Translator, node: ast.Break | ast.Continue) -> None:
    """Translate a `break` or `continue`."""
    kind, word = (BreakStmt, "break") if isinstance(node, ast.Break) else (ContinueStmt, "continue")
    from tilewright.frontend.unrolled_loops import WORD, exit_written  # few kernels have exits

    if t.loops and t.loops[-1] == WORD:
        exit_written(t, node, isinstance(node, ast.Break))
    _check_exit(t, node, word)
    t.emit(kind(_handed_on(t, node), t.span(node)))


def _handed_on(t: Translator, node: ast.stmt) -> tuple[Expr, ...]:
    """Return what a loop carries out of an exit: the values of a `pl.yield_(...)` right before it.

    Where no turn yields it is what the carried names stand for; else, with nothing given, what the turn began with.
    """
    if not t.stmts or not isinstance(last := t.stmts[-1], YieldStmt):
        loop = next(frame for frame in reversed(t.yields) if frame.is_loop)
        bindings = [] if loop.yields else [t.scope.find(name) for name in loop.carried]
        return tuple(t.expr(binding.value, node) for binding in bindings if binding is not None)
    t.stmts.pop()
    t.yields[-1].names = None
    return last.values


_KERNEL_END = "a kernel runs to its end: decide outside the scope"


def _check_exit(t: Translator, node: ast.stmt, word: str) -> None:
    if t.loops and t.loops[-1] == "kernel":
        raise t.error(UnsupportedFeatureError, node, f"`{word}` cannot leave a kernel scope", help=_KERNEL_END)
    if not t.loops or t.loops[-1] not in ("range", "while"):
        where = f"a pl.{t.loops[-1]} loop" if t.loops else "no loop"
        message = f"`{word}` leaves a pl.range or while loop, and the innermost one here is {where}"
        raise t.error(LoopExitError, node, message, help="use pl.range, or put the rest of the body under an `if`")
