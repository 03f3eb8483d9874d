"""Structural equality: whether two pieces of IR say the same thing.

Spans, names of variables and their bounds, the names of functions and programs and the order of functions do not count;
everything else does, to the bit. The functions of two programs are paired by name. Variables are paired: a definition
on one side with the definition in the same place on the other, one to one and for the whole function. Free variables
are paired the same way with auto mapping, and must be the very same objects without it. A call is compared by the name
it calls.

`_parts` takes any node apart, in the order a program evaluates it. The comparison pairs parts of the same label; the
hash feeds them to BLAKE2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias, get_args

from tilewright.core.expr import Call, Const, Expr, GlobalVar, Invoke, Submit, Symbol, Var
from tilewright.core.op import Op
from tilewright.core.printer import python_print
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ForStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import Type
from tilewright.dtypes import DataType
from tilewright.named_tuples import NamedTuple

Node: TypeAlias = Program | Function | SeqStmts | Stmt | Expr | Type


def structural_equal(a: Node, b: Node, enable_auto_mapping: bool = False) -> bool:
    """Return whether `a` and `b` say the same thing; with auto mapping, up to the identity of free variables."""
    return _first_difference(a, b, enable_auto_mapping) is None


def assert_structural_equal(a: Node, b: Node, enable_auto_mapping: bool = False) -> None:
    """Raise ValueError with the place and both sides of the first difference between `a` and `b`, if there is one."""
    difference = _first_difference(a, b, enable_auto_mapping)
    if difference is not None:
        raise ValueError(_message(difference))


def structural_hash(node: Node) -> int:
    """Return a 64-bit number that structurally equal nodes share, in this process and in every other."""
    return int.from_bytes(_digest(node, {}, {}), "big")


class _Part(NamedTuple):
    """Something inside a node; `defines` says that a variable here is bound rather than read."""

    value: Any
    defines: bool = False


class _Pair(NamedTuple):
    """Two parts that must be equal, and the way to them."""

    left: Any
    right: Any
    defines: bool = False
    label: str = ""
    outer: _Pair | None = None


class _Nothing:
    """What one side has where only the other has something."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Part(_Nothing())


def _first_difference(a: Node, b: Node, auto: bool) -> _Pair | None:
    """Return the first two parts that differ, in program order."""
    pairing = _Pairing(auto)
    stack = [_Pair(a, b)]
    while stack:
        pair = stack.pop()
        if isinstance(pair.left, Function):
            pairing = _Pairing(auto)  # variables are local: the parts of a function leave the stack before the next one
        if pairing.has_met(pair):
            continue
        if _head(pair.left) != _head(pair.right) or not pairing.admits(pair):
            return pair
        lefts, rights = dict(_parts(pair.left)), dict(_parts(pair.right))
        for label in reversed({**lefts, **rights}):
            (left, defines), (right, _) = lefts.get(label, _NOTHING), rights.get(label, _NOTHING)
            stack.append(_Pair(left, right, defines, label, pair))
    return None


class _Pairing:
    """Which variables of one function stand for each other, and which pairs were compared already."""

    def __init__(self, auto: bool) -> None:
        self.auto = auto
        self.partner: dict[int, Var] = {}
        self.taken: set[int] = set()
        self.met: set[tuple[int, int]] = set()

    def has_met(self, pair: _Pair) -> bool:
        """Return whether this very pair came before; a subexpression that is shared is compared once."""
        if not isinstance(pair.left, _VALUES):
            return False
        key = id(pair.left), id(pair.right)
        known = key in self.met
        self.met.add(key)
        return known

    def admits(self, pair: _Pair) -> bool:
        """Return whether two variables may stand for each other, and remember that they do."""
        left, right = pair.left, pair.right
        if not isinstance(left, Var):
            return True
        if id(left) in self.partner or id(right) in self.taken:
            return self.partner.get(id(left)) is right
        self.partner[id(left)] = right
        self.taken.add(id(right))
        return pair.defines or self.auto or left is right


_VALUES = (Expr, *get_args(Type))
_STMTS: tuple[type[Stmt], ...] = get_args(Stmt)
_LEAVES = (Const, DataType, GlobalVar, Op, Symbol)
_IGNORED = {"span", "again", "bounds", "callees", "op"}  # an `op` is the head of its call
_NAMES = {Var: "name_hint", Function: "name", Program: "name"}  # and these names are for people

_DEFINITIONS = {"params", "var", "loop_var", "task", "return_vars"}
_ORDER = (("iter_args",), (), ("var", "loop_var", "task"), ("body", "then_body", "else_body"), ("return_vars",))
"""The order of evaluation: what is read, then what is bound, what sees it, and what remains."""

_ELEMENTS = {
    "args": "operand",
    "deps": "dependency",
    "dumps": "dumped value",
    "elements": "element",
    "iter_args": "carried value",
    "no_dep_args": "value that orders nothing",
    "param_directions": "direction of parameter",
    "params": "parameter",
    "return_types": "return type",
    "return_vars": "result",
    "shape": "extent",
    "stmts": "statement",
    "valid": "valid extent",
    "values": "value",
}
"""What a path calls one element of a field."""


@cache
def _fields(cls: type[Any]) -> tuple[str, ...] | None:
    """Return the fields that count in a class of nodes, in the order of evaluation; None for anything else."""
    if not is_dataclass(cls) or issubclass(cls, _LEAVES):
        return None
    names = [f.name for f in fields(cls) if f.name not in _IGNORED and f.name != _NAMES.get(cls)]
    ranks = {name: rank for rank, group in enumerate(_ORDER) for name in group}
    return tuple(sorted(names, key=lambda name: ranks.get(name, _ORDER.index(()))))


def _parts(node: object) -> Iterator[tuple[str, _Part]]:
    """Yield what is directly inside a node, each under a label of its own."""
    for name in _fields(type(node)) or ():
        value: Any = getattr(node, name)
        if name in ("attrs", "attributes"):
            yield from ((f"attribute {key}", _Part(item)) for key, item in sorted(dict(value).items()))
        elif name == "function_list":
            yield from ((f"function {f.name}", _Part(f)) for f in sorted(value, key=lambda f: f.name))
        elif name in _ELEMENTS:
            for number, item in enumerate(value, start=1):
                yield f"{_ELEMENTS[name]} {number}", _Part(item, name in _DEFINITIONS)
        else:
            yield _label(node, name), _Part(value, name in _DEFINITIONS)


def _label(node: object, name: str) -> str:
    if name != "body":
        return name.replace("_", " ")
    return "for body" if isinstance(node, ForStmt) else "while body" if isinstance(node, WhileStmt) else ""


def _head(node: object) -> str:
    """Return what a node is apart from its parts; for values, which have none, all they are."""
    if isinstance(node, (Call, Invoke, Submit)):
        return f"{type(node).__name__} {node.op.name}"
    if isinstance(node, Const):
        return f"Const {node.value!r} {node.dtype}"
    if isinstance(node, Symbol):
        return f"Symbol {node.name}"
    return repr(node) if _fields(type(node)) is None else type(node).__name__


def _digest(node: object, numbers: dict[int, int], memo: dict[int, bytes]) -> bytes:
    """Return the hash of a node, its variables numbered in the order they first appear."""
    if isinstance(node, Function):
        numbers, memo = {}, {}
    if id(node) in memo:
        return memo[id(node)]
    state = blake2b(_head(node).encode(), digest_size=8)
    if isinstance(node, Var):
        state.update(b"%d" % numbers.setdefault(id(node), len(numbers)))
    for label, part in _parts(node):
        state.update(label.encode() + b"\0" + _digest(part.value, numbers, memo))
    memo[id(node)] = state.digest()
    return state.digest()


def _message(difference: _Pair) -> str:
    """Return where two nodes differ, how, and the lines it happens on."""
    chain = [difference]
    while chain[-1].outer is not None:
        chain.append(chain[-1].outer)
    root = chain[-1].left
    start = f"{type(root).__name__.lower()} {root.name}" if isinstance(root, (Program, Function)) else ""
    path = " / ".join(filter(None, [start, *(pair.label for pair in reversed(chain))])) or type(root).__name__
    around = next((pair for pair in chain if isinstance(pair.left, (Function, *_STMTS))), chain[-1])
    is_missing = isinstance(root, Program) and any(isinstance(f, Function) for f in difference[:2])
    mismatch = "Map key mismatch: " if is_missing and difference.label.startswith("function ") else ""
    return (
        f"{mismatch}{path}: expected {_expected(difference)}, got {_show(difference.right)}\n"
        f"    expected: {_line(around.left)}\n"
        f"    got:      {_line(around.right)}"
    )


def _expected(pair: _Pair) -> str:
    is_renaming = isinstance(pair.left, Var) and isinstance(pair.right, Var)
    return f"the counterpart of {_show(pair.left)}" if is_renaming else _show(pair.left)


def _show(node: object) -> str:
    if isinstance(node, (Call, Invoke, Submit)):
        return node.op.name
    return f"{type(node).__name__}.{node.name}" if isinstance(node, Enum) else _line(node)


def _line(node: object) -> str:
    """Return a node on one line: a statement by its head, a function by its signature."""
    if isinstance(node, Function):
        return next(line for line in python_print(node).split("\n") if line.startswith("def "))
    if isinstance(node, (Const, *_STMTS)):
        return python_print(node).split("\n")[0]
    if isinstance(node, (Program, SeqStmts)):
        return type(node).__name__
    return str(node) if isinstance(node, _VALUES) else repr(node)
