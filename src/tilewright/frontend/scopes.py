"""Scopes: `with` statements that place work or group it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from keyword import iskeyword
from types import FunctionType
from typing import Any
from unicodedata import normalize

from tilewright.core.enums import Level, Role, ScopeMode
from tilewright.core.expr import Call, Const, Expr, Invoke, Submit, Var
from tilewright.core.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    EvalStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
)
from tilewright.core.types import ScalarType
from tilewright.dtypes import TASK_ID
from tilewright.errors import (
    ArgumentCountError,
    AttributeValueError,
    OperandError,
    ParserSyntaxError,
    UnsupportedFeatureError,
)
from tilewright.frontend import directives
from tilewright.frontend.arguments import arguments, parameters_of
from tilewright.frontend.branches import predicate
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class SpmdOptions:
    """What `pl.spmd(...)` was given."""

    core_num: Expr
    name_hint: str
    deps: tuple[Expr, ...]
    predicate: Expr | None


def scope(t: Translator, node: ast.With) -> None:
    """Translate a `with`: what the scope it opens says about its body."""
    if len(node.items) > 1:
        first, *rest = node.items
        inner = ast.copy_location(ast.With(rest, node.body), node)
        node = ast.copy_location(ast.With([first], [inner]), node)
    item = node.items[0].context_expr
    callee: Any = t.evaluate(item.func) if isinstance(item, ast.Call) else None
    if not isinstance(item, ast.Call) or not isinstance(callee, FunctionType) or callee not in directives.SCOPES:
        help = "pl.at, pl.spmd, pl.cluster, pl.scope or pl.manual_scope"
        raise t.error(UnsupportedFeatureError, item, "`with` opens a scope of the language", help=help)
    _HANDLERS[directives.SCOPES[callee]](t, node, item)


def _task(t: Translator, node: ast.With) -> Var | None:
    """Return the variable of `as tid`, bound from here on."""
    target = node.items[0].optional_vars
    if target is None:
        return None
    if not isinstance(target, ast.Name):
        raise t.error(ParserSyntaxError, target, "a task id has one name", help="with pl.at(...) as task:")
    var = Var(target.id, ScalarType(TASK_ID), t.span(target))
    t.scope.bind(target.id, var, var.span)
    return var


def _options(t: Translator, item: ast.Call, directive: Callable[..., Any]) -> dict[str, Any]:
    """Return what a scope was given by name, as the directive that opens it declares its parameters."""
    given, (positional, allowed) = arguments(t, item), parameters_of(directive)
    if len(given.args) > len(positional):
        message = f"`{ast.unparse(item.func)}` takes at most {len(positional)} positional argument(s)"
        raise t.error(ArgumentCountError, item, message, help=f"by name it takes {', '.join((*positional, *allowed))}")
    values = dict(zip(positional, given.args, strict=False)) | dict(given.kwargs)
    for name in values:
        if name not in positional and name not in allowed:
            message, help = f"`{ast.unparse(item.func)}` has no parameter `{name}`", ", ".join((*positional, *allowed))
            raise t.error(ArgumentCountError, _where(item, name), message, help=f"it takes {help}")
    return values


def _where(item: ast.Call, option: str) -> ast.expr:
    """Return where an option was written, or the whole call."""
    return next((keyword.value for keyword in item.keywords if keyword.arg == option), item)


def _name_hint(t: Translator, options: dict[str, Any], item: ast.Call) -> str:
    hint = options.get("name_hint", "")
    if not isinstance(hint, str) or (hint and (not hint.isidentifier() or iskeyword(hint))):
        message, help = f"name_hint must be an identifier, got {hint!r}", "letters, digits and underscores"
        raise t.error(AttributeValueError, _where(item, "name_hint"), message, help=help)
    return hint if hint.isascii() else normalize("NFKC", hint)  # as Python reads the name of a function


def _deps(t: Translator, options: dict[str, Any], item: ast.Call) -> tuple[Expr, ...]:
    """Return the tasks a scope waits for; None entries are tasks that never were."""
    given = options.get("deps", ())
    entries = sequence(given)
    return tuple(t.expr(dep, item, "a dependence") for dep in entries if dep is not None)


def _at(t: Translator, node: ast.With, item: ast.Call) -> None:
    options = _options(t, item, directives.at)
    level, role = options.get("level"), options.get("role")
    help = "level=pl.Level.CORE_GROUP makes the body a kernel"
    if "level" not in options:
        raise t.error(ArgumentCountError, item, "pl.at needs a level", help=help)
    if not isinstance(level, Level):
        message = f"level must be a pl.Level, got {level!r}"
        raise t.error(AttributeValueError, _where(item, "level"), message, help=help)
    if role is not None and (not isinstance(role, Role) or level is Level.CORE_GROUP):
        raise t.error(AttributeValueError, _where(item, "role"), "role= is for levels above CORE_GROUP", help="drop it")
    hint, deps = _name_hint(t, options, item), _deps(t, options, item)
    body = _kernel_body(t, node.body) if level is Level.CORE_GROUP else t.block(node.body)
    task = _task(t, node)
    span = t.span(node)
    if level is Level.CORE_GROUP:
        t.emit(InCoreScopeStmt(body, hint, task, deps, span=span))
    else:
        t.emit(HierarchyScopeStmt(level, body, role, hint, task, span))


def _kernel_body(t: Translator, nodes: list[ast.stmt]) -> SeqStmts:
    """Translate the body of a kernel, which nothing inside can leave early."""
    t.loops.append("kernel")
    t.kernels.append(len(t.yields))
    body = t.block(nodes)
    t.kernels.pop()
    t.loops.pop()
    return body


def spmd_options(t: Translator, item: ast.Call) -> SpmdOptions:
    """Return what a `pl.spmd(...)` was given, checked."""
    options = _options(t, item, directives.spmd)
    if "count" not in options:
        raise t.error(ArgumentCountError, item, "pl.spmd needs the number of blocks", help="pl.spmd(n)")
    count = t.expr(options["count"], item, "the number of blocks")
    if not (isinstance(count.type, ScalarType) and count.type.dtype.is_int()) or (
        isinstance(count, Const) and count.value <= 0
    ):
        message, help = f"pl.spmd needs a positive number of blocks, got {count}", "an integer of at least 1"
        raise t.error(OperandError, item, message, help=help)
    return SpmdOptions(
        count,
        _name_hint(t, options, item),
        _deps(t, options, item),
        predicate(t, options.get("predicate"), _where(item, "predicate")),
    )


def _spmd(t: Translator, node: ast.With, item: ast.Call) -> None:
    options = spmd_options(t, item)
    if options.deps and node.items[0].optional_vars is None:
        help = "with pl.spmd(n, deps=[...]) as tid:"
        raise t.error(ParserSyntaxError, item, "deps= goes with a named task", help=help)
    body = _kernel_body(t, node.body)
    if not (_dispatches_once(body) or _reads_block(body)):
        message = "the body of `with pl.spmd(n)` dispatches one kernel or reads the block index"
        raise t.error(ParserSyntaxError, item, message, help="write `for i in pl.spmd(n):` to have the index by name")
    task = _task(t, node)
    t.emit(
        SpmdScopeStmt(
            options.core_num, body, None, options.name_hint, task, options.deps, options.predicate, span=t.span(node)
        )
    )


def _dispatches_once(body: SeqStmts) -> bool:
    calls = [s for s in body if isinstance(s, AssignStmt) and isinstance(s.value, (Invoke, Submit))]
    calls += [s for s in body if isinstance(s, EvalStmt) and isinstance(s.expr, (Invoke, Submit))]
    return len(calls) == 1


def _reads_block(body: SeqStmts) -> bool:
    for stmt in body:
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op is OPS["tile.get_block_idx"]:
            return True
        inner = getattr(stmt, "body", None)
        if isinstance(inner, SeqStmts) and _reads_block(inner):
            return True
    return False


def _cluster(t: Translator, node: ast.With, item: ast.Call) -> None:
    hint = _name_hint(t, _options(t, item, directives.cluster), item)
    t.emit(ClusterScopeStmt(t.block(node.body), hint, t.span(node)))


def _runtime(t: Translator, node: ast.With, item: ast.Call) -> None:
    mode = _options(t, item, directives.scope).get("mode", ScopeMode.AUTO)
    if t.evaluate(item.func) is directives.manual_scope:
        mode = ScopeMode.MANUAL
    if not isinstance(mode, ScopeMode):
        raise t.error(AttributeValueError, item, f"mode must be a pl.ScopeMode, got {mode!r}")
    if ScopeMode.MANUAL in t.runtime_scopes:
        inner = "a manual" if mode is ScopeMode.MANUAL else "an auto"
        raise t.error(ParserSyntaxError, item, f"{inner} scope cannot stand inside a manual one")
    t.runtime_scopes.append(mode)
    body = t.block(node.body)
    t.runtime_scopes.pop()
    t.emit(RuntimeScopeStmt(body, mode, t.span(node)))


_HANDLERS = {"at": _at, "spmd": _spmd, "cluster": _cluster, "scope": _runtime, "manual_scope": _runtime}
