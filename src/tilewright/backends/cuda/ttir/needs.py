"""Needs: how exact the values of a kernel have to be, seen from what is made of them.

What is only scaled, added up without losing digits, and rounded to half precision in the end is as good to seven digits
as to eight. Beside products there is no time for the eighth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, statements, used, variables
from tilewright.dtypes import BF16, FP16, FP32, DataType
from tilewright.ops.product_types import SMALL_FLOATS
from tilewright.records import mutable

EXPONENTIALS = frozenset(("tile.exp", "tile.row_expand_expdif", "tile.col_expand_expdif"))
QUOTIENTS = frozenset(("tile.div", "tile.row_expand_div", "tile.col_expand_div"))
_SCALED = QUOTIENTS | {"tile.mul", "tile.row_expand_mul", "tile.col_expand_mul"}
"""Ops whose results are off by as much as their operands are, relatively."""
_ADDED = frozenset(("tile.add", "tile.row_sum"))
"""Ops of which that is true where nothing that they add is below zero."""
_PRODUCTS = ("tile.matmul", "tile.gemv")
_SHORT = {FP16, BF16, *SMALL_FLOATS}


LONGEST = 4096
"""Products of 8-bit floats that the matrix units add up as exactly as bfloat16 is rounded."""


def coarse(body: SeqStmts) -> Iterator[Call]:
    """Yield the products of 8-bit floats in statements of which nothing but bfloat16 is made, and that are not long."""
    uses = _Uses(halves=(BF16,))
    uses.gather(body)
    whole = uses.largest(_is_float, uses.is_rounded)
    short = {call for call, length in _lengths(body, 1) if 0 < length <= LONGEST}
    yield from (call for var, call in uses.made.items() if var in whole and call in short)


def _lengths(body: SeqStmts, turns: int) -> Iterator[tuple[Call, int]]:
    """Yield products of 8-bit floats, and how many are added up at most, 0 where nobody knows."""
    for stmt in body:
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name.startswith(_PRODUCTS):
            left = arguments(stmt.value)["lhs"]
            if isinstance(left, Expr) and isinstance(left.type, TileType) and left.type.dtype in SMALL_FLOATS:
                yield stmt.value, turns * left.type.shape[-1]
        reach = _turns_of(stmt) if isinstance(stmt, ForStmt) else int(not isinstance(stmt, WhileStmt))
        for inner in bodies(stmt):
            yield from _lengths(inner, turns * reach)


def _turns_of(stmt: ForStmt) -> int:
    """Return how many turns a loop has, 0 where nobody knows."""
    ends = [end.value for end in (stmt.start, stmt.stop, stmt.step) if isinstance(end, Const)]
    return len(range(*map(int, ends))) if len(ends) == 3 and ends[2] else 0


def rough(body: SeqStmts) -> Iterator[Call]:
    """Yield the calls in statements whose results need not be exact to fp32."""
    uses = _Uses()
    uses.gather(body)
    whole = uses.largest(_is_float, uses.is_rounded)
    for var, call in uses.made.items():
        if var in whole and (call.op.name in EXPONENTIALS | QUOTIENTS or uses.adds_up(call)):
            yield call


def summed(body: SeqStmts) -> Iterator[Call]:
    """Yield the exponentials in statements of which nothing but sums of rows of floats is made."""
    uses = _Uses()
    for stmt in statements(body):
        uses.look(stmt)
    for var, call in uses.made.items():
        if call.op.name == "tile.exp" and _is_float(var) and var not in uses.lost and var not in uses.handed:
            if all(user.op.name == "tile.row_sum" for user, _ in uses.users.get(var, ())):
                yield call


def _is_float(var: Var) -> bool:
    return isinstance(var.type, TileType) and var.type.dtype == FP32


@mutable
class _Uses:
    """What is made of the variables of a kernel."""

    halves: tuple[DataType, ...] = (FP16, BF16)
    """What they may be rounded to."""
    made: dict[Var, Call] = field(default_factory=dict[Var, Call])
    """The calls that give variables their values."""
    users: dict[Var, list[tuple[Call, Var]]] = field(default_factory=dict[Var, list[tuple[Call, Var]]])
    """The calls that take variables, and what their results are called."""
    handed: dict[Var, list[Var]] = field(default_factory=dict[Var, list[Var]])
    """The variables that they are handed on to, by loops and branches."""
    given: dict[Var, list[Expr]] = field(default_factory=dict[Var, list[Expr]])
    """The values that variables of loops and branches are given."""
    lost: set[Var] = field(default_factory=set[Var])
    """The variables that something else is made of."""
    positive: set[Var] = field(default_factory=set[Var])

    def gather(self, body: SeqStmts) -> None:
        """Look at statements, and find which values are never below zero."""
        for stmt in statements(body):
            self.look(stmt)
        self.positive = self.largest(_is_float, self._is_positive)

    def largest(self, among: Callable[[Var], bool], holds: Callable[[Var, set[Var]], bool]) -> set[Var]:
        """Return the largest set of variables for each of which something holds, if it does for the others."""
        found = {var for var in (*self.made, *self.given) if among(var)}
        while wrong := {var for var in found if not holds(var, found)}:
            found -= wrong
        return found

    def look(self, stmt: Stmt) -> None:
        """Note what a statement makes of variables."""
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
            self.made[stmt.var] = stmt.value
            for arg in stmt.value.args:
                if isinstance(arg, Var):
                    self.users.setdefault(arg, []).append((stmt.value, stmt.var))
                else:
                    self.lost.update(variables([arg]))
            return
        if isinstance(stmt, (ForStmt, WhileStmt)):
            seen = [arg.var for arg in stmt.iter_args]
            self._hand(seen, [arg.init for arg in stmt.iter_args])
            self._hand(stmt.return_vars, seen)
            self._yields(stmt, seen)
            return
        if isinstance(stmt, IfStmt):
            self._yields(stmt, stmt.return_vars)
        elif not isinstance(stmt, YieldStmt):
            self.lost.update(variables(used(stmt)))

    def _yields(self, stmt: Stmt, targets: Sequence[Var]) -> None:
        for body in bodies(stmt):
            last = tuple(body)[-1:]
            values = last[0].values if last and isinstance(last[0], YieldStmt) else ()
            if len(values) == len(targets):
                self._hand(targets, values)
            else:
                self.lost.update(targets)
            self.lost.update(v for each in body for v in _left_early(each))

    def _hand(self, targets: Sequence[Var], values: Sequence[Expr]) -> None:
        for target, value in zip(targets, values, strict=False):
            self.given.setdefault(target, []).append(value)
            if isinstance(value, Var):
                self.handed.setdefault(value, []).append(target)

    def is_rounded(self, var: Var, others: set[Var]) -> bool:
        """Return whether nothing but half floats is made of a variable, if that is so of others."""
        if var in self.lost or not all(target in others for target in self.handed.get(var, ())):
            return False
        return all(self._rounds(call, var, result in others) for call, result in self.users.get(var, ()))

    def _rounds(self, call: Call, var: Var, is_rough: bool) -> bool:
        name = call.op.name
        if name == "tile.cast":
            return isinstance(call.type, TileType) and call.type.dtype in self.halves
        if name.startswith(_PRODUCTS):
            return is_rough and arguments(call).get("acc") is var and _is_short(call)
        return is_rough and (name in _SCALED or (name in _ADDED and self.adds_up(call)))

    def adds_up(self, call: Call) -> bool:
        """Return whether a call adds up without losing digits: nothing below zero, or a product of halves."""
        if call.op.name not in _ADDED:
            return False
        terms = [arg for arg in call.args if isinstance(arg, Var)]
        sources = [self.made.get(arg) for arg in terms]
        if any(each is not None and each.op.name.startswith(_PRODUCTS) and _is_short(each) for each in sources):
            return True
        return all(self._is_up(arg, self.positive) for arg in call.args if isinstance(arg, (Var, Const)))

    def _is_positive(self, var: Var, others: set[Var]) -> bool:
        if var in self.given:
            return all(self._is_up(value, others) for value in self.given[var])
        call = self.made.get(var)
        if call is None:
            return False
        name, given = call.op.name, [arg for arg in call.args if isinstance(arg, (Var, Const))]
        if name == "tile.full":
            value = arguments(call)["value"]
            return isinstance(value, Expr) and self._is_up(value, others)
        if name in EXPONENTIALS:
            return True
        return name in _SCALED | _ADDED and all(self._is_up(arg, others) for arg in given)

    def _is_up(self, value: Expr, others: set[Var]) -> bool:
        return value in others if isinstance(value, Var) else isinstance(value, Const) and value.value >= 0


def _is_short(product: Call) -> bool:
    """Return whether a product is of half floats, or of shorter ones."""
    left = arguments(product)["lhs"]
    return isinstance(left, Expr) and isinstance(left.type, TileType) and left.type.dtype in _SHORT


def _left_early(stmt: Stmt) -> Iterator[Var]:
    """Yield what leaves a loop or a function before its end."""
    if not isinstance(stmt, (AssignStmt, YieldStmt, ForStmt, WhileStmt, IfStmt)):
        yield from variables(used(stmt))
