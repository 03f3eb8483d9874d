"""Scopes: `with` statements that place work or group it."""

from __future__ import annotations

import ast
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
from tilewright.frontend.branches import predicate
from tilewright.frontend.calls import arguments
from tilewright.frontend.state import Translator, sequence, statement
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class SpmdOptions:
    """What `pl.spmd(...)` was given."""

    core_num: Expr
    name_hint: str
    deps: tuple[Expr, ...]
    predicate: Expr | None


@statement(ast.With)
def _with(t: Translator, node: ast.With) -> None:
    if len(node.items) > 1:
        first, *rest = node.items
        inner = ast.copy_location(ast.With(rest, node.body), node)
        node = ast.copy_location(ast.With([first], [inner]), node)
    item = node.items[0].context_expr
    callee: Any = t.evaluate(item.func) if isinstance(item, ast.Call) else None
    if not isinstance(item, ast.Call) or not isinstance(callee, FunctionType) or callee not in directives.SCOPES:
        raise UnsupportedFeatureError(
            "`with` opens a scope of the language",
            spans=[t.span(item)],
            help="pl.at, pl.spmd, pl.cluster, pl.scope or pl.manual_scope",
        )
    _HANDLERS[directives.SCOPES[callee]](t, node, item)


def _task(t: Translator, node: ast.With) -> Var | None:
    """Return the variable of `as tid`, bound from here on."""
    target = node.items[0].optional_vars
    if target is None:
        return None
    if not isinstance(target, ast.Name):
        raise ParserSyntaxError("a task id has one name", spans=[t.span(target)], help="with pl.at(...) as task:")
    var = Var(target.id, ScalarType(TASK_ID), t.span(target))
    t.scope.bind(target.id, var, var.span)
    return var


def _options(t: Translator, item: ast.Call, positional: tuple[str, ...], allowed: tuple[str, ...]) -> dict[str, Any]:
    given = arguments(t, item)
    if len(given.args) > len(positional):
        raise ArgumentCountError(
            f"`{ast.unparse(item.func)}` takes at most {len(positional)} positional argument(s)",
            spans=[t.span(item)],
            help=f"by name it takes {', '.join((*positional, *allowed))}",
        )
    values = dict(zip(positional, given.args, strict=False)) | dict(given.kwargs)
    for name in values:
        if name not in positional and name not in allowed:
            message, help = f"`{ast.unparse(item.func)}` has no parameter `{name}`", ", ".join((*positional, *allowed))
            raise ArgumentCountError(message, spans=[t.span(_where(item, name))], help=f"it takes {help}")
    return values


def _where(item: ast.Call, option: str) -> ast.expr:
    """Return where an option was written, or the whole call."""
    return next((keyword.value for keyword in item.keywords if keyword.arg == option), item)


def _name_hint(t: Translator, options: dict[str, Any], item: ast.Call) -> str:
    hint = options.get("name_hint", "")
    if not isinstance(hint, str) or (hint and (not hint.isidentifier() or iskeyword(hint))):
        message, help = f"name_hint must be an identifier, got {hint!r}", "letters, digits and underscores"
        raise AttributeValueError(message, spans=[t.span(_where(item, "name_hint"))], help=help)
    return hint if hint.isascii() else normalize("NFKC", hint)  # as Python reads the name of a function


def _deps(t: Translator, options: dict[str, Any], item: ast.Call) -> tuple[Expr, ...]:
    """Return the tasks a scope waits for; None entries are tasks that never were."""
    given = options.get("deps", ())
    entries = sequence(given)
    return tuple(t.expr(dep, item, "a dependence") for dep in entries if dep is not None)


def _at(t: Translator, node: ast.With, item: ast.Call) -> None:
    allowed = ("optimizations", "deps", "no_dep_args", "dumps", "allow_early_resolve", "name_hint", "windowize")
    options = _options(t, item, ("level", "role"), allowed)
    level, role = options.get("level"), options.get("role")
    if "level" not in options:
        help = "level=pl.Level.CORE_GROUP makes the body a kernel"
        raise ArgumentCountError("pl.at needs a level", spans=[t.span(item)], help=help)
    if not isinstance(level, Level):
        message, help = f"level must be a pl.Level, got {level!r}", "level=pl.Level.CORE_GROUP makes the body a kernel"
        raise AttributeValueError(message, spans=[t.span(_where(item, "level"))], help=help)
    if role is not None and (not isinstance(role, Role) or level is Level.CORE_GROUP):
        message, help = "role= is for levels above CORE_GROUP", "drop it"
        raise AttributeValueError(message, spans=[t.span(_where(item, "role"))], help=help)
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
    try:
        return t.block(nodes)
    finally:
        t.kernels.pop()
        t.loops.pop()


def spmd_options(t: Translator, item: ast.Call) -> SpmdOptions:
    """Return what a `pl.spmd(...)` was given, checked."""
    allowed = ("sync_start", "name_hint", "optimizations", "deps", "allow_early_resolve", "predicate")
    options = _options(t, item, ("count",), allowed)
    if "count" not in options:
        raise ArgumentCountError("pl.spmd needs the number of blocks", spans=[t.span(item)], help="pl.spmd(n)")
    count = t.expr(options["count"], item, "the number of blocks")
    if not (isinstance(count.type, ScalarType) and count.type.dtype.is_int()) or (
        isinstance(count, Const) and count.value <= 0
    ):
        message, help = f"pl.spmd needs a positive number of blocks, got {count}", "an integer of at least 1"
        raise OperandError(message, spans=[t.span(item)], help=help)
    return SpmdOptions(
        count,
        _name_hint(t, options, item),
        _deps(t, options, item),
        predicate(t, options.get("predicate"), _where(item, "predicate")),
    )


def _spmd(t: Translator, node: ast.With, item: ast.Call) -> None:
    options = spmd_options(t, item)
    if options.deps and node.items[0].optional_vars is None:
        raise ParserSyntaxError(
            "deps= goes with a named task", spans=[t.span(item)], help="with pl.spmd(n, deps=[...]) as tid:"
        )
    body = _kernel_body(t, node.body)
    if not (_dispatches_once(body) or _reads_block(body)):
        raise ParserSyntaxError(
            "the body of `with pl.spmd(n)` dispatches one kernel or reads the block index",
            spans=[t.span(item)],
            help="write `for i in pl.spmd(n):` to have the index by name",
        )
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
    hint = _name_hint(t, _options(t, item, (), ("name_hint",)), item)
    t.emit(ClusterScopeStmt(t.block(node.body), hint, t.span(node)))


def _runtime(t: Translator, node: ast.With, item: ast.Call) -> None:
    mode = _options(t, item, (), ("mode",)).get("mode", ScopeMode.AUTO)
    if t.evaluate(item.func) is directives.manual_scope:
        mode = ScopeMode.MANUAL
    if not isinstance(mode, ScopeMode):
        raise AttributeValueError(f"mode must be a pl.ScopeMode, got {mode!r}", spans=[t.span(item)])
    if ScopeMode.MANUAL in t.runtime_scopes:
        inner = "manual" if mode is ScopeMode.MANUAL else "auto"
        raise ParserSyntaxError(
            f"an {inner} scope cannot stand inside a manual one".replace("an manual", "a manual"), spans=[t.span(item)]
        )
    t.runtime_scopes.append(mode)
    try:
        body = t.block(node.body)
    finally:
        t.runtime_scopes.pop()
    t.emit(RuntimeScopeStmt(body, mode, t.span(node)))


_HANDLERS = {"at": _at, "spmd": _spmd, "cluster": _cluster, "scope": _runtime, "manual_scope": _runtime}
