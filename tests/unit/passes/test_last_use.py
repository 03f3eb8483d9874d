"""Last use: how often a variable is read, and whether the body that reads it made it."""

from __future__ import annotations

from unit.passes.texts import kernel

from tilewright.core.expr import Call, Var
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt
from tilewright.core.visitor import statements
from tilewright.passes.last_use import LastUse, reads

LOOP = """
t = pl.load(x, [0, 0], [16, 8])
for i, (c,) in pl.range(4, init_values=(t,)):
    u = pl.exp(c)
    v = pl.add(u, t)
    r = pl.yield_(v)
pl.store(r, [0, 0], y)
"""


def assigned(program: Program) -> dict[str, tuple[Var, Call]]:
    found = [stmt for stmt in statements(program["main"].body) if isinstance(stmt, AssignStmt)]
    return {stmt.var.name_hint: (stmt.var, stmt.value) for stmt in found if isinstance(stmt.value, Call)}


def test_every_read_is_counted() -> None:
    program = kernel(LOOP)
    counts = reads(program["main"].body)
    assert {name: counts[var] for name, (var, _) in assigned(program).items()} == {"t": 2, "u": 1, "v": 1}


def test_a_body_ends_what_it_made_and_what_it_was_handed() -> None:
    program = kernel(LOOP)
    found = assigned(program)
    last = LastUse(program["main"].body)
    (t, load), (u, exp), (_, add) = found["t"], found["u"], found["v"]
    (carried,) = exp.args
    assert isinstance(carried, Var)
    assert last.ends_at(add, [u]) and last.ends_at(exp, [carried])
    assert not last.ends_at(add, [t])
    assert [stmt.value for stmt in last.body_of(load) if isinstance(stmt, AssignStmt)] == [load]
