"""Common subexpressions: equal computations are made once, as long as memory has not changed in between."""

from __future__ import annotations

from unit.passes.texts import gives, kernel, leaves, main

from tilewright.passes import cse

LOAD = "pl.load(x, [0, 0], [16, 8])"


def test_an_op_on_the_same_operands_is_merged() -> None:
    before = kernel(f"t = {LOAD}\nu = pl.exp(t)\nv = pl.exp(t)\npl.store(pl.add(u, v), [0, 0], y)")
    gives(cse.run, before, kernel(f"t = {LOAD}\nu = pl.exp(t)\npl.store(pl.add(u, u), [0, 0], y)"))


def test_a_load_after_a_store_is_not_merged_with_one_before() -> None:
    leaves(cse.run, kernel(f"t = {LOAD}\npl.store(t, [0, 0], y)\nu = {LOAD}\npl.store(u, [0, 0], y)"))


def test_two_loads_with_nothing_written_between_are_one() -> None:
    before = kernel(f"t = {LOAD}\nu = {LOAD}\npl.store(pl.add(t, u), [0, 0], y)")
    gives(cse.run, before, kernel(f"t = {LOAD}\npl.store(pl.add(t, t), [0, 0], y)"))


def test_a_load_in_a_loop_that_writes_is_not_the_one_before_it() -> None:
    leaves(cse.run, kernel(f"t = {LOAD}\nfor i in pl.range(2):\n    u = {LOAD}\n    pl.store(pl.add(t, u), [0, 0], y)"))


def test_options_that_compare_equal_but_differ_keep_ops_apart() -> None:
    leaves(
        cse.run,
        kernel(f"t = {LOAD}\nu = pl.log(t)\nv = pl.log(t, high_precision=True)\npl.store(pl.add(u, v), [0, 0], y)"),
    )


def test_what_one_branch_computes_is_unknown_outside() -> None:
    leaves(
        cse.run,
        kernel(f"t = {LOAD}\nif b:\n    pl.store(pl.exp(t), [0, 0], y)\npl.store(pl.exp(t), [0, 0], y)"),
    )


def test_kernels_share_nothing_with_each_other() -> None:
    scope = f"with pl.at(level=pl.Level.CORE_GROUP):\n    {{0}} = {LOAD}\n    pl.store({{0}}, [0, 0], y)\n"
    leaves(cse.run, main(scope.format("t") + scope.format("u")))


def test_two_new_buffers_stay_two() -> None:
    leaves(
        cse.run,
        main("""
        p = pl.create_tensor([4, 4], dtype=pl.FP32, init_value=0)
        q = pl.create_tensor([4, 4], dtype=pl.FP32, init_value=0)
        pl.write(p, [0, 0], 1.0)
        pl.write(y, [0, 0], pl.read(q, [0, 0]))
        """),
    )


def test_computed_tensors_are_buffers_of_their_own() -> None:
    leaves(cse.run, kernel("z = pl.exp(x)\nw = pl.exp(x)\npl.write(z, [0, 0], a)\npl.assemble(y, w, [0, 0])"))


def test_a_tensor_computed_after_a_write_is_not_the_one_before() -> None:
    leaves(
        cse.run, kernel("z = pl.exp(y)\npl.write(y, [0, 0], a)\nw = pl.exp(y)\npl.assemble(y, pl.add(z, w), [0, 0])")
    )


def test_two_views_of_one_tensor_are_one() -> None:
    view = "pl.slice(y, [4, 8], [n, 0])"
    before = main(f"v = {view}\npl.write(v, [0, 0], a)\nw = {view}\npl.write(w, [1, 0], a)")
    gives(cse.run, before, main(f"v = {view}\npl.write(v, [0, 0], a)\npl.write(v, [1, 0], a)"))
