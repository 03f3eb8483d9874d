"""Loops that are written out while a kernel is read: those over what is known, turn after turn.

A `for` over a tuple, a list or `zip` of such has no loop in the program: its body is translated once per element, with
the element known. One over Python's `range` is a loop of the program like `pl.range`, unless its body asks for the
number itself: to index a list or `x.shape`, or to build a list up.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tilewright.core.expr import Expr
from tilewright.errors import DirectiveError, LoopExitError, NotStaticError, PlainRangeError
from tilewright.frontend.scope import assigned_names
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.statements import bind_target
from tilewright.frontend.walk.walker import Listed, Value

UNROLL_LIMIT = 4096
"""How often a body may be written out: beyond this, programs are too large to compile in any useful time."""

WORD = "written-out"
"""What such a loop is called among those that are being translated."""


class _Exit(Exception):
    """A `break` or `continue` on its way to the loop that it leaves."""

    def __init__(self, is_break: bool) -> None:
        self.is_break = is_break


def elements(t: Translator, node: ast.expr) -> Sequence[Value]:
    """Return what a `for` goes through; PlainRangeError where that is no sequence the compiler knows."""
    value = t.operand(node)
    if isinstance(value, dict):
        return tuple(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (tuple, list)):
        return sequence(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, range):
        check_turns(t, node, len(value))
        return tuple(value)
    message = "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_() or pl.spmd()"
    what = str(value.type) if isinstance(value, Expr) else f"a {type(value).__name__}"
    help = f"Python's range, tuples and lists do as well; {what} is none: count with `range` and index it"
    raise t.error(PlainRangeError, node, message, help=help)


def check_turns(t: Translator, node: ast.expr, turns: int) -> None:
    """Raise where a body would be written out too often."""
    if turns > UNROLL_LIMIT:
        message = f"this body would be written out {turns} times, more than {UNROLL_LIMIT}"
        raise t.error(DirectiveError, node, message, help="use pl.range, or write out an inner loop of fewer turns")


def write_out(t: Translator, node: ast.For, values: Sequence[Value]) -> None:
    """Translate the body of a loop once for each of some values."""
    check_turns(t, node.iter, len(values))
    t.written.append(t.stmts)
    t.loops.append(WORD)
    depth = len(t.yields)
    for value in values:
        bind_target(t, node.target, value, node.iter)
        try:
            t.execute(node.body)
        except _Exit as left:
            del t.yields[depth:]
            if left.is_break:
                break
    t.loops.pop()
    t.written.pop()


def exit_written(t: Translator, node: ast.stmt, is_break: bool) -> None:
    """Leave a loop that is being written out, or its turn; LoopExitError where the running program decides that."""
    if t.written[-1] is not t.stmts:
        word = "break" if is_break else "continue"
        message = f"`{word}` leaves a loop that is written out, and only the running program knows when"
        raise t.error(LoopExitError, node, message, help="count with pl.range, or put the rest under an `if`")
    raise _Exit(is_break)


def asks_for_numbers(t: Translator, node: ast.For) -> bool:
    """Return whether a loop's body takes something out of a Python sequence by what the loop decides, or builds one."""
    decided = {name for target in ast.walk(node.target) if isinstance(target, ast.Name) for name in (target.id,)}
    decided |= assigned_names(node.body)
    return any(_asks(t, inner, decided) for stmt in node.body for inner in ast.walk(stmt))


def _asks(t: Translator, node: ast.AST, decided: set[str]) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return _mentions(index, decided)
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return _mentions(index, decided) and _is_sequence(t, name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return method in Listed.CHANGED_BY and _is_sequence(t, name)
        case _:
            return False


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))


def _is_sequence(t: Translator, name: str) -> bool:
    """Return whether a name stands for a Python container, here or outside the kernel."""
    binding = t.find(name)
    if binding is not None:
        return isinstance(binding.value, (tuple, list, dict))
    try:
        found = isinstance(t.resolver.lookup(name), (tuple, list, dict))
    except KeyError:
        return False
    t.resolver.pass_through()
    return found


def comprehension(t: Translator, node: ast.ListComp | ast.GeneratorExp) -> Listed:
    """Return the list that a comprehension over known values gives; its names end with it."""
    names = {name for each in node.generators for name in _names(each.target)}
    found: list[Value] = []
    with names_of_its_own(t, names):
        _generate(t, node.generators, lambda: found.append(t.operand(node.elt)))
    return Listed(found)


@contextmanager
def names_of_its_own(t: Translator, names: Iterable[str]) -> Generator[None]:
    """Let names stand for something else inside, and afterwards for what they stood for before."""
    frame = t.scope.frames[-1]
    outer = {name: frame.get(name) for name in names}
    yield
    for name, binding in outer.items():
        if binding is None:
            frame.pop(name, None)
        else:
            frame[name] = binding


def _names(target: ast.expr) -> Iterator[str]:
    yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))


def _generate(t: Translator, generators: Sequence[ast.comprehension], make: Callable[[], None]) -> None:
    if not generators:
        make()
        return
    first, *rest = generators
    values = elements(t, first.iter)
    check_turns(t, first.iter, len(values))
    for value in values:
        _bind_known(t, first.target, value, first.iter)
        if all(_holds(t, test) for test in first.ifs):
            _generate(t, rest, make)


def _bind_known(t: Translator, target: ast.expr, value: Value, source: ast.expr) -> None:
    """Let the names of a comprehension stand for an element, whatever the function calls by them."""
    if isinstance(target, ast.Name):
        t.scope.bind(target.id, value, t.span(target))
    elif isinstance(target, (ast.Tuple, ast.List)) and len(parts := sequence(value)) == len(target.elts):
        for inner, part in zip(target.elts, parts, strict=True):
            _bind_known(t, inner, part, source)
    else:
        bind_target(t, target, value, source)  # which says what is wrong


def _holds(t: Translator, test: ast.expr) -> bool:
    condition = t.condition(test)
    if not isinstance(condition, bool):
        help = "choose with pl.where, or make every element and use some of them"
        raise t.error(NotStaticError, test, "a comprehension picks by what the compiler knows", help=help)
    return condition
