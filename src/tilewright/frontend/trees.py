"""Trees: Python text as syntax trees and trees as code, one thread at a time.

CPython counts how deep a tree is that it makes or reads for all threads together, and ends with a SystemError where two
of them take turns at it. Trees have so many parts that the collector, which finds nothing in them, would take a third
of the time.
"""

from __future__ import annotations

import ast
from types import CodeType

from tilewright.collector import paused_collection
from tilewright.forks import Lock

_ONE_AT_A_TIME = Lock()


def parsed(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the tree of a text; SyntaxError and kin where it is not Python."""
    with paused_collection(), _ONE_AT_A_TIME:
        return ast.parse(text, filename)


def parsed_expression(text: str) -> ast.Expression:
    """Return the tree of an expression; SyntaxError where it is none."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode="eval")


def code_of(tree: ast.Module | ast.Expression, filename: str) -> CodeType:
    """Return a tree as code."""
    with paused_collection(), _ONE_AT_A_TIME:
        return compile(tree, filename, "exec" if isinstance(tree, ast.Module) else "eval")
