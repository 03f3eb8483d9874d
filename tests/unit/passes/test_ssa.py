"""SSA: names assigned many times become values that loops carry and branches yield."""

from __future__ import annotations

from unit.passes.texts import gives, kernel, leaves, main

from tilewright.core.verify import verify
from tilewright.passes import ssa


def test_a_name_bound_again_in_a_loop_is_carried() -> None:
    before = kernel("""
    s = n + 1
    for i in pl.range(4):
        s = s + i
    y = pl.store(pl.load(x, [s, 0], [1, 8]), [0, 0], y)
    """)
    after = kernel("""
    s = n + 1
    for i, (c,) in pl.range(4, init_values=(s,)):
        t = c + i
        r = pl.yield_(t)
    z = pl.store(pl.load(x, [r, 0], [1, 8]), [0, 0], y)
    """)
    gives(ssa.run, before, after)


def test_a_name_nobody_reads_after_a_loop_is_not_carried_out() -> None:
    before = kernel("""
    for i in pl.range(4):
        s = i * 2
        for j in pl.range(2):
            t = s + j
            pl.write(y, [t, 0], a)
    """)
    leaves(ssa.run, before)


def test_a_name_bound_in_both_branches_is_yielded() -> None:
    before = kernel("""
    if b:
        s = n + 1
    else:
        s = n + 2
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    if b:
        s = n + 1
        r = pl.yield_(s)
    else:
        t = n + 2
        r = pl.yield_(t)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)


def test_a_name_bound_in_one_branch_keeps_its_old_value_in_the_other() -> None:
    before = kernel("""
    s = n + 1
    if b:
        s = n + 2
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    s = n + 1
    if b:
        t = n + 2
        r = pl.yield_(t)
    else:
        r = pl.yield_(s)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)


def test_exits_hand_on_what_the_loop_carries() -> None:
    before = kernel("""
    s = n + 1
    for i in pl.range(4):
        if b:
            break
        s = s + i
        if s > 3:
            continue
        s = s * 2
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    s = n + 1
    for i, (c,) in pl.range(4, init_values=(s,)):
        if b:
            pl.yield_(c)
            break
        t = c + i
        if t > 3:
            pl.yield_(t)
            continue
        u = t * 2
        r = pl.yield_(u)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)
    verify(ssa.run(before), ssa=True)


def test_a_counting_while_tests_what_it_carries() -> None:
    before = kernel("""
    k = n + 0
    while k < 4:
        pl.write(y, [k, 0], a)
        k = k + 1
    """)
    after = kernel("""
    for (c,) in pl.while_(init_values=(n,)):
        pl.cond(c < 4)
        pl.write(y, [c, 0], a)
        k = c + 1
        r = pl.yield_(k)
    """)
    gives(ssa.run, before, after)


def test_a_copy_disappears() -> None:
    before = kernel("""
    s = n
    if b:
        s = 3
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    if b:
        r = pl.yield_(3)
    else:
        r = pl.yield_(n)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)


def test_a_name_first_bound_in_a_loop_starts_as_nothing() -> None:
    before = kernel("""
    for i in pl.range(3):
        s = n + i
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    for i, (c,) in pl.range(3, init_values=(None,)):
        s = n + i
        r = pl.yield_(s)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)


def test_what_an_inner_loop_binds_first_is_not_carried_round_the_outer_one() -> None:
    before = kernel("""
    for i in pl.range(3):
        for j in pl.range(n):
            s = n + j
        pl.write(y, [s, i], a)
    """)
    after = kernel("""
    for i in pl.range(3):
        for j, (c,) in pl.range(n, init_values=(None,)):
            s = n + j
            r = pl.yield_(s)
        pl.write(y, [r, i], a)
    """)
    gives(ssa.run, before, after)


def test_a_loop_that_surely_turns_needs_no_start_for_what_it_binds_first() -> None:
    before = kernel("""
    for i in pl.range(n):
        for j in pl.range(2):
            s = n + j
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    for i, (c,) in pl.range(n, init_values=(None,)):
        for j, (d,) in pl.range(2, init_values=(None,)):
            s = n + j
            q = pl.yield_(s)
        r = pl.yield_(q)
    pl.write(y, [r, 0], a)
    """)
    gives(ssa.run, before, after)


def test_what_follows_an_exit_is_dropped() -> None:
    before = kernel("pl.write(y, [0, 0], a)\nreturn\npl.write(y, [1, 0], a)")
    gives(ssa.run, before, kernel("pl.write(y, [0, 0], a)\nreturn"))


def test_a_task_named_in_a_loop_can_be_waited_for_after_it() -> None:
    before = main("""
    for i in pl.range(3):
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            pl.write(y, [i, 0], a)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
        pl.write(y, [0, 0], a)
    """)
    after = main("""
    for i, (c,) in pl.range(3, init_values=(None,)):
        with pl.at(level=pl.Level.CORE_GROUP) as tid:
            pl.write(y, [i, 0], a)
        r = pl.yield_(tid)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[r]):
        pl.write(y, [0, 0], a)
    """)
    gives(ssa.run, before, after)
    verify(ssa.run(before), ssa=True)
