"""Simplification: known branches taken, loops that do nothing dropped, every value under its oldest name."""

from __future__ import annotations

from unit.passes.texts import Program, gives, kernel, main

from tilewright.passes import simplify, ssa


def simplified(program: Program) -> Program:
    return simplify.run(ssa.run(program))


def test_a_store_in_a_parallel_loop_carries_nothing() -> None:
    before = main("""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(4):
            t = pl.load(x, [i, 0], [1, 8])
            y = pl.store(t, [i, 0], y)
    return y
    """)
    after = main("""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(4):
            t = pl.load(x, [i, 0], [1, 8])
            pl.store(t, [i, 0], y)
    return y
    """)
    gives(simplified, before, after)


def test_a_known_branch_is_taken() -> None:
    before = kernel("""
    if pl.const(3, pl.INT32) < 2:
        r = pl.yield_(n + 1)
    else:
        r = pl.yield_(n + 2)
    pl.write(y, [r, 0], a)
    """)
    gives(simplify.run, before, kernel("pl.write(y, [n + 2, 0], a)"))


def test_a_branch_that_yields_one_value_either_way_has_not_chosen() -> None:
    before = kernel("""
    if b:
        pl.write(y, [0, 0], a)
        r = pl.yield_(n)
    else:
        r = pl.yield_(n)
    pl.write(y, [r, 0], a)
    """)
    gives(simplify.run, before, kernel("if b:\n    pl.write(y, [0, 0], a)\nelse:\n    pass\npl.write(y, [n, 0], a)"))


def test_an_empty_loop_is_dropped_with_what_it_carried() -> None:
    before = kernel("""
    for i, (c,) in pl.range(3, 3, init_values=(n,)):
        r = pl.yield_(c + i)
    pl.write(y, [r, 0], a)
    """)
    gives(simplify.run, before, kernel("pl.write(y, [n, 0], a)"))


def test_a_while_that_never_turns_is_dropped() -> None:
    before = kernel("""
    for (c,) in pl.while_(init_values=(n,)):
        pl.cond(pl.const(False, pl.BOOL))
        r = pl.yield_(c + 1)
    pl.write(y, [r, 0], a)
    """)
    gives(simplify.run, before, kernel("pl.write(y, [n, 0], a)"))


def test_what_follows_an_exit_is_dropped() -> None:
    before = kernel("for i in pl.range(4):\n    pl.write(y, [i, 0], a)\n    break\n    pl.write(y, [0, i], a)")
    gives(simplify.run, before, kernel("for i in pl.range(4):\n    pl.write(y, [i, 0], a)\n    break"))


def test_a_value_handed_round_unchanged_goes_by_its_first_name() -> None:
    before = kernel("""
    for i, (c, d) in pl.range(4, init_values=(n, n)):
        pl.write(y, [c, 0], a)
        r, q = pl.yield_(c, d + 1)
    pl.write(y, [r, q], a)
    """)
    after = kernel("""
    for i, (d,) in pl.range(4, init_values=(n,)):
        pl.write(y, [n, 0], a)
        q = pl.yield_(d + 1)
    pl.write(y, [n, q], a)
    """)
    gives(simplify.run, before, after)


def test_nothing_follows_a_scope_that_always_leaves_its_turn() -> None:
    before = main("""
    for i in pl.range(4):
        with pl.cluster():
            if pl.const(3, pl.INT32) < 4:
                continue
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)
    return y
    """)
    after = main("""
    for i in pl.range(4):
        with pl.cluster():
            continue
    return y
    """)
    gives(simplified, before, after)
