"""Grids: loops over the blocks of a launch and over the vector lanes of a core group."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.core.enums import SplitMode
from tilewright.core.expr import Const, Var
from tilewright.core.stmt import SpmdScopeStmt
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX
from tilewright.errors import DirectiveError
from tilewright.frontend import directives
from tilewright.frontend.bodies import loop_body
from tilewright.frontend.lanes import each_lane
from tilewright.frontend.options import read_options
from tilewright.frontend.scopes import check_hints, grid
from tilewright.frontend.translator import Translator


def blocks(t: Translator, node: ast.For, iterable: ast.Call) -> None:
    """Translate `for block in pl.spmd(...)`: the body once per block."""
    if not isinstance(node.target, ast.Name):
        message = "pl.spmd() binds a single loop variable, the block index"
        raise t.error(DirectiveError, node.target, message, help="for block in pl.spmd(n):")
    _check_accepted(t, "spmd", iterable, ("init_values", "chunk"))
    options = read_options(t, iterable, directives.spmd)
    given = grid(t, options, is_task=False)
    count = given.core_num
    reach = (0, max(0, int(count.value) - 1)) if isinstance(count, Const) else None
    loop_var = Var(node.target.id, ScalarType(INDEX), t.span(node.target), reach)
    t.scope.forget(node.body)
    t.scope.enter()
    t.scope.bind(node.target.id, loop_var, loop_var.span)
    t.kernels.append(len(t.yields))
    _, body = loop_body(t, node.body, "spmd")
    t.kernels.pop()
    t.scope.leak(t.scope.leave(), (node.target.id,))
    check_hints(options, body)
    attrs, span = given.attrs, t.span(node)
    t.emit(SpmdScopeStmt(count, body, loop_var, given.name_hint, None, (), given.predicate, attrs, span))


def _check_accepted(t: Translator, word: str, call: ast.Call, refused: Sequence[str]) -> None:
    """Raise for arguments that other loops have."""
    for keyword in call.keywords:
        if keyword.arg in refused:
            message = f"a loop over pl.{word}() does not accept '{keyword.arg}='"
            raise t.error(DirectiveError, keyword.value, message, help="drop it")


def lanes(t: Translator, node: ast.For, iterable: ast.Call) -> None:
    """Translate `for lane in pl.split_aiv(...)`: the body is written out for each lane."""
    if not isinstance(node.target, ast.Name):
        message, help = (
            "pl.split_aiv() binds a single loop variable, the lane",
            "for lane in pl.split_aiv(2, mode=...):",
        )
        raise t.error(DirectiveError, node.target, message, help=help)
    _check_accepted(t, "split_aiv", iterable, ("init_values", "optimizations"))
    options = read_options(t, iterable, directives.split_aiv)
    form = "pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)"
    if options.value("n") != 2:
        raise options.error("n", "pl.split_aiv() requires n == 2: a core group has two vector lanes", form)
    if not isinstance(options.value("mode"), SplitMode):
        raise options.error("mode", "pl.split_aiv() requires mode=, a pl.SplitMode", form)
    if "split_aiv" in t.loops:
        raise options.error("n", "pl.split_aiv() cannot be nested", "one loop over the lanes is enough")
    if t.attrs.get("split", SplitMode.NONE) is not SplitMode.NONE:
        message = "pl.split_aiv() and the function's own split exclude each other"
        raise options.error("n", message, 'drop "split" from pl.func_attr')
    t.loops.append("split_aiv")
    each_lane(t, node, options.value("mode"))
    t.loops.pop()
