"""Dead code: what neither writes memory nor reaches a return goes away."""

from __future__ import annotations

from unit.passes.texts import gives, kernel, leaves, main

from tilewright.passes import dce

LOAD = "pl.load(x, [0, 0], [16, 8])"


def test_a_value_nobody_reads_goes_away_with_what_it_needed() -> None:
    before = kernel(f"t = {LOAD}\nu = pl.exp(t)\nv = pl.log(u)\npl.store(t, [0, 0], y)")
    gives(dce.run, before, kernel(f"t = {LOAD}\npl.store(t, [0, 0], y)"))


def test_an_unused_carried_value_is_dropped() -> None:
    before = kernel("""
    for i, (c, d) in pl.range(4, init_values=(n, n)):
        pl.write(y, [c, 0], a)
        r, q = pl.yield_(c + 1, d * 2)
    """)
    after = kernel("""
    for i, (c,) in pl.range(4, init_values=(n,)):
        pl.write(y, [c, 0], a)
        r = pl.yield_(c + 1)
    """)
    gives(dce.run, before, after)


def test_a_carried_value_that_only_feeds_itself_is_dropped() -> None:
    before = kernel(
        "for i, (c,) in pl.range(4, init_values=(n,)):\n    pl.write(y, [i, 0], a)\n    r = pl.yield_(c + 1)"
    )
    gives(dce.run, before, kernel("for i in pl.range(4):\n    pl.write(y, [i, 0], a)"))


def test_a_branch_result_nobody_reads_is_dropped() -> None:
    before = kernel("""
    if b:
        pl.write(y, [0, 0], a)
        r, q = pl.yield_(n, n + 1)
    else:
        r, q = pl.yield_(n + 2, n)
    pl.write(y, [q, 0], a)
    """)
    after = kernel("""
    if b:
        pl.write(y, [0, 0], a)
        q = pl.yield_(n + 1)
    else:
        q = pl.yield_(n)
    pl.write(y, [q, 0], a)
    """)
    gives(dce.run, before, after)


def test_a_loop_without_effect_goes_away() -> None:
    gives(dce.run, kernel("for i in pl.range(4):\n    t = pl.load(x, [i, 0], [1, 8])"), kernel("pass"))


def test_an_exit_that_decides_how_often_a_write_happens_stays() -> None:
    leaves(dce.run, kernel("for i in pl.range(4):\n    if n == i:\n        break\n    pl.write(y, [i, 0], a)"))


def test_writes_into_a_buffer_nobody_reads_go_away() -> None:
    before = main("""
    z = pl.create_tensor([4, 4], dtype=pl.FP32)
    pl.write(z, [0, 0], a)
    pl.write(y, [0, 0], a)
    """)
    gives(dce.run, before, main("pl.write(y, [0, 0], a)"))


def test_a_write_through_a_view_of_a_buffer_that_is_read_stays() -> None:
    leaves(
        dce.run,
        main("""
        z = pl.create_tensor([4, 4], dtype=pl.FP32, init_value=0)
        w = pl.slice(z, [2, 2], [0, 0])
        pl.write(w, [0, 0], a)
        pl.write(y, [0, 0], pl.read(z, [0, 0]))
        """),
    )
