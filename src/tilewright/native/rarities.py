"""Rarities: branches that are hardly ever taken, so that nothing waits to know whether they are.

LLVM turns a branch with little behind it into a choice, which waits for its condition, unless it knows the odds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import Builder, Value

ODDS = '!1 = !{!"branch_weights", i32 1, i32 1000000}'


class Way(NamedTuple):
    """What usually runs: where the branch to it stands, and its first block."""

    position: int
    label: str


def unless(b: Builder, condition: Value, usual: Value, other: Callable[[], Value]) -> Value:
    """Return the usual, or what is emitted instead where a condition holds that hardly ever does."""
    before, rare, after = b.block, b.label("rare"), b.label("after")
    b.do(_branch(b, condition, rare, after))
    b.begin(rare)
    made, end = other(), b.block
    b.do(f"br label %{after}")
    b.begin(after)
    return b.value(usual.type, f"phi {usual.type} [ {usual.ref}, %{before} ], [ {made.ref}, %{end} ]")


def open_way(b: Builder) -> Way:
    """Begin what the program may pass by: `otherwise` says when."""
    label = b.label("way")
    b.do(f"br label %{label}")
    way = Way(len(b.lines) - 1, label)
    b.begin(label)
    return way


@contextmanager
def otherwise(b: Builder, way: Way, condition: Value) -> Generator[None, None, None]:
    """Emit what runs instead of all since a way was opened, where a condition held there that hardly ever does."""
    rare, after = b.label("rare"), b.label("after")
    b.lines[way.position] = f"  {_branch(b, condition, rare, way.label)}"
    b.do(f"br label %{after}")
    b.begin(rare)
    yield
    b.do(f"br label %{after}")
    b.begin(after)


def _branch(b: Builder, condition: Value, rare: str, usual: str) -> str:
    b.module.declare(ODDS)
    return f"br {condition}, label %{rare}, label %{usual}, !prof !1"
