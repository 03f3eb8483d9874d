"""Scopes: `with` statements that place work or group it."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from tilewright.core.enums import Level, Role, ScopeMode
from tilewright.core.expr import Attribute, Call, Expr, Invoke, Submit, Var
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
from tilewright.core.visitor import statements
from tilewright.dtypes import TASK_ID
from tilewright.errors import DirectiveError, UnsupportedFeatureError
from tilewright.frontend import directives
from tilewright.frontend.bodies import kernel_body
from tilewright.frontend.deferred import defer, has_deferred
from tilewright.frontend.options import Options, read_options
from tilewright.frontend.translator import Translator
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class Grid:
    """What `pl.spmd(...)` was given."""

    core_num: Expr
    name_hint: str
    deps: tuple[Expr, ...]
    predicate: Expr | None
    attrs: dict[str, Attribute]


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
    _HANDLERS[directives.SCOPES[callee]](t, node, read_options(t, item, callee))


def _task(t: Translator, node: ast.With) -> Var | None:
    """Return the variable of `as tid`, bound from here on."""
    target = node.items[0].optional_vars
    if target is None:
        return None
    if not isinstance(target, ast.Name):
        message, help = "what follows `as` must be a plain variable name", "with pl.at(...) as task:"
        raise t.error(DirectiveError, target, message, help=help)
    var = Var(target.id, ScalarType(TASK_ID), t.span(target))
    t.scope.bind(target.id, var, var.span)
    return var


def _at(t: Translator, node: ast.With, options: Options) -> None:
    level, role = _level(options)
    hint, deps = options.name_hint(), _dependencies(t, options)
    dumps, no_dep_args = options.tensors("dumps"), options.tensors("no_dep_args")
    attrs = {**options.hints(), **options.flags("allow_early_resolve", "windowize")}
    is_kernel = level is Level.CORE_GROUP
    if not is_kernel and "optimizations" in options:
        message = "optimizations= of pl.at() is for kernels, level=pl.Level.CORE_GROUP"
        raise options.error("optimizations", message, "drop it here, and say it where the kernel is")
    outer, t.level = t.level, None if level is Level.CHIP else t.level
    body = kernel_body(t, node.body) if is_kernel else t.block(node.body)
    t.level = outer
    task = _task(t, node)
    if is_kernel and has_deferred(body):
        defer(t, node, options, body, task)
    elif is_kernel:
        dumps += _tagged(t, body, dumps)
        t.emit(InCoreScopeStmt(body, hint, task, deps, dumps, no_dep_args, attrs, t.span(node)))
    else:
        t.emit(HierarchyScopeStmt(level, body, role, hint, task, t.span(node)))


def _tagged(t: Translator, body: SeqStmts, dumps: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return what else a kernel reads that `pl.dump_tag` marks."""
    if not t.tagged:
        return ()
    read = dict.fromkeys(e for stmt in statements(body) for e in getattr(getattr(stmt, "value", None), "args", ()))
    return tuple(e for e in read if id(e) in t.tagged and e not in dumps)


def _level(options: Options) -> tuple[Level, Role | None]:
    level, role = options.value("level"), options.value("role")
    help = "level=pl.Level.CORE_GROUP makes the body a kernel"
    if "level" not in options:
        raise options.error("level", "pl.at() requires a level argument", help)
    if not isinstance(level, Level):
        raise options.error("level", f"the level of pl.at() must be a pl.Level, got {level!r}", help)
    if role is not None and (not isinstance(role, Role) or level is Level.CORE_GROUP):
        raise options.error("role", "role= of pl.at() is for levels above CORE_GROUP", "drop it")
    if role is Role.SubWorker and level is Level.HOST:
        message = "a sub-worker at the host is a function of its own, not a scope"
        raise options.error("role", message, "write it as a function: @pl.function(level=pl.Level.HOST, role=...)")
    return level, role


def grid(t: Translator, options: Options, *, is_task: bool) -> Grid:
    """Return what a `pl.spmd(...)` was given, checked; only one whose task has a name waits for others."""
    if "core_num" not in options:
        raise options.error("core_num", "pl.spmd() requires core_num, the number of blocks", "pl.spmd(8)")
    if "deps" in options and not is_task:
        message = "pl.spmd() without `as` does not accept 'deps='"
        raise options.error("deps", message, "with pl.spmd(n, deps=[...]) as tid:")
    from tilewright.frontend.predicates import predicate  # few programs have grids of their own
    from tilewright.frontend.tasks import check_group, core_count

    check_group(t, options, ("deps", "predicate", "allow_early_resolve"))
    count, deps = core_count(options, "core_num"), _dependencies(t, options)
    attrs = {**options.hints(), **options.flags("sync_start", "allow_early_resolve")}
    decided = predicate(t, options.given.get("predicate"), deps)
    return Grid(count, options.name_hint(), deps, decided, attrs)


def _dependencies(t: Translator, options: Options) -> tuple[Expr, ...]:
    """Return the tasks that `deps=` lists."""
    if "deps" not in options:
        return ()
    from tilewright.frontend.tasks import dependencies  # which few programs name

    return dependencies(t, options.given["deps"])


def check_hints(options: Options, body: SeqStmts) -> None:
    """Raise where a grid has hints for a kernel that its body holds or calls."""
    if "optimizations" not in options:
        return
    inner = [stmt for stmt in statements(body) if isinstance(stmt, InCoreScopeStmt)]
    if any("split" in stmt.attrs or "slot_num" in stmt.attrs for stmt in inner):
        message = "optimizations= is specified twice: on pl.spmd() and on the pl.at() inside"
        raise options.error("optimizations", message, "say it on pl.at()")
    if inner or _dispatches(body):
        message = "optimizations= belongs on the InCore scope inside, or on the kernel that is called"
        raise options.error("optimizations", message, "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[...]):")


def _spmd(t: Translator, node: ast.With, options: Options) -> None:
    is_task = node.items[0].optional_vars is not None
    if is_task and t.clusters:
        message = "pl.spmd() cannot capture a TaskId when nested inside pl.cluster()"
        raise options.error("core_num", message, "drop `as`: the group is one task")
    given = grid(t, options, is_task=is_task)
    body = kernel_body(t, node.body)
    _check_body(options, body)
    check_hints(options, body)
    task = _task(t, node)
    hint, attrs, span = given.name_hint, given.attrs, t.span(node)
    t.emit(SpmdScopeStmt(given.core_num, body, None, hint, task, given.deps, given.predicate, attrs, span))


def _check_body(options: Options, body: SeqStmts) -> None:
    if _reads_block(body):
        return
    count, help = _dispatches(body), "write `for i in pl.spmd(n):` to have the index by name"
    if count == 0:
        message = "the body of `with pl.spmd(n)` neither reads the per-block index nor dispatches a kernel"
        raise options.error("core_num", message, help)
    if count > 1:
        message = f"the body of `with pl.spmd(n)` launches {count} kernels, and a grid is of one"
        raise options.error("core_num", message, help)


def _dispatches(body: SeqStmts) -> int:
    """Return how many kernels a body calls."""
    values = [getattr(stmt, "value", None) for stmt in body if isinstance(stmt, AssignStmt)]
    values += [stmt.expr for stmt in body if isinstance(stmt, EvalStmt)]
    return sum(isinstance(value, (Invoke, Submit)) for value in values)


def _reads_block(body: SeqStmts) -> bool:
    values = (stmt.value for stmt in statements(body) if isinstance(stmt, AssignStmt))
    return any(isinstance(value, Call) and value.op is OPS["tile.get_block_idx"] for value in values)


def _cluster(t: Translator, node: ast.With, options: Options) -> None:
    hint = options.name_hint()
    t.clusters += 1
    body = t.block(node.body)
    t.clusters -= 1
    t.emit(ClusterScopeStmt(body, hint, t.span(node)))


def _runtime(t: Translator, node: ast.With, options: Options) -> None:
    mode = options.value("mode", ScopeMode.AUTO)
    if t.evaluate(options.call.func) is directives.manual_scope:
        mode = ScopeMode.MANUAL
    if not isinstance(mode, ScopeMode):
        raise options.error("mode", f"mode must be a pl.ScopeMode, got {mode!r}", "pl.ScopeMode.MANUAL")
    if ScopeMode.MANUAL in t.runtime_scopes:
        inner = "a manual" if mode is ScopeMode.MANUAL else "an auto"
        raise options.error("mode", f"{inner} scope cannot stand inside a manual one", "close the outer one first")
    if mode is ScopeMode.AUTO and t.auto_scope:
        message = "an auto scope placed by hand needs a function with auto_scope=False"
        help = "decorate the function with auto_scope=False to place scopes by hand"
        raise options.error("mode", message, help)
    t.runtime_scopes.append(mode)
    body = t.block(node.body)
    t.runtime_scopes.pop()
    t.emit(RuntimeScopeStmt(body, mode, t.span(node)))


_HANDLERS = {"at": _at, "spmd": _spmd, "cluster": _cluster, "scope": _runtime, "manual_scope": _runtime}
