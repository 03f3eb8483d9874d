"""Disjoint tensors: whether tensors of a function never share memory, whoever calls it.

Callers from outside pass no buffer that is written twice: that is looked at when they call.
"""

from __future__ import annotations

from tilewright.core.expr import Expr, Var
from tilewright.core.program import Program
from tilewright.core.visitor import invocations
from tilewright.passes.aliases import Footprints


class Apart:
    """The tensors of a program's functions."""

    def __init__(self, program: Program) -> None:
        self.program, self.footprints = program, Footprints(program)

    def are(self, function: str, first: Expr, second: Expr) -> bool:
        """Return whether two tensors of a function surely lie in different memory."""
        known = self.footprints.aliases(function)
        return all(self._owners_are(function, a, b) for a in known.owners(first) for b in known.owners(second))

    def _owners_are(self, function: str, first: Var, second: Var) -> bool:
        params = self.program[function].params
        if first is second:
            return False
        if first not in params or second not in params:  # one of them was made inside
            return True
        places = params.index(first), params.index(second)
        calls = [(f.name, call) for f in self.program.function_list for call in invocations(f.body)]
        args = [(caller, *(call.args[at] for at in places)) for caller, call in calls if call.op.name == function]
        return all(self.are(*each) for each in args)
