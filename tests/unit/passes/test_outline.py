"""Outlining: kernels written in place become functions, and their scopes calls."""

from __future__ import annotations

from unit.passes.texts import function, gives, main, program

from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.passes import outline

COPY = "t = pl.load(x, [0, 0], [16, 8])\n    pl.store(t, [0, 0], y)\n"
SCOPE = f"with pl.at(level=pl.Level.CORE_GROUP):\n    {COPY}"
X = "x: pl.Tensor[[16, 8], pl.FP32]"
Y = "y: pl.Out[pl.Tensor[[16, 8], pl.FP32]]"


def test_a_scope_becomes_a_function_and_a_call() -> None:
    after = program(
        function("main_incore_0", "t = pl.load(x, [0, 0], [16, 8])\npl.store(t, [0, 0], y)", "InCore", f"{X}, {Y}"),
        function("main", "self.main_incore_0(x, y)"),
    )
    gives(outline.run, main(SCOPE), after)


def test_scopes_become_functions_named_by_hint() -> None:
    hinted = f'with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):\n    {COPY}'
    after = outline.run(main(hinted + hinted + SCOPE))
    assert after.function_names == ["copy", "main_copy", "main_incore_0", "main"]


def test_a_tensor_only_written_is_an_output_and_one_also_read_is_both() -> None:
    body = "t = pl.load(y, [0, 0], [16, 8])\n    u = pl.load(x, [0, 0], [16, 8])\n    pl.store(pl.add(t, u), [0, 0], y)"
    kernel = outline.run(main(f"with pl.at(level=pl.Level.CORE_GROUP):\n    {body}"))["main_incore_0"]
    assert kernel.param_directions == (ParamDirection.InOut, ParamDirection.In)
    assert outline.run(main(SCOPE))["main_incore_0"].param_directions == (ParamDirection.In, ParamDirection.Out)


def test_what_is_read_after_a_scope_is_returned_by_it() -> None:
    before = main("""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 8])
        s = pl.read(t, [0, 0])
        k = n + 1
    pl.write(y, [k, 0], s)
    """)
    after = program(
        function(
            "main_incore_0",
            "t = pl.load(x, [0, 0], [16, 8])\ns = pl.read(t, [0, 0])\nk = n + 1\nreturn s, k",
            "InCore",
            f"{X}, n: pl.Scalar[pl.INDEX]",
        ),
        function("main", "s, k = self.main_incore_0(x, n)\npl.write(y, [k, 0], s)"),
    )
    gives(outline.run, before, after)


def test_symbol_without_tensor_becomes_scalar_parameter() -> None:
    params, write = f"m: pl.Tensor[[M, 8], pl.FP32], {Y}", "pl.write(y, [i, 0], 1.0)"
    scope = f"with pl.at(level=pl.Level.CORE_GROUP):\n    for i in pl.range(M):\n        {write}"
    before = main(scope, params=params)
    kernel = outline.run(before)["main_incore_0"]
    assert [p.name_hint for p in kernel.params] == ["y", "M"]
    after = program(
        function("main_incore_0", f"for i in pl.range(m):\n    {write}", "InCore", f"{Y}, m: pl.Scalar[pl.INDEX]"),
        function("main", "self.main_incore_0(y, M)", params=params),
    )
    gives(outline.run, before, after)


def test_an_extent_made_of_a_symbol_that_no_tensor_carries_is_unknown_inside() -> None:
    params, make = f"m: pl.Tensor[[M, 8], pl.FP32], {Y}", "x = pl.create_tensor([M - 2, 8], dtype=pl.FP32)"
    unknown = "x: pl.Tensor[[None, 8], pl.FP32]"
    after = program(
        function("main_incore_0", COPY.replace("    ", ""), "InCore", f"{unknown}, {Y}"),
        function("main", f"{make}\nself.main_incore_0(x, y)", params=params),
    )
    gives(outline.run, main(f"{make}\n{SCOPE}", params=params), after)


def test_a_grid_becomes_a_function_dispatched_once_per_block() -> None:
    before = main("for i in pl.spmd(4):\n    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)")
    after = outline.run(before)
    assert after["main_spmd_0"].func_type is FunctionType.Spmd
    kernel = function(
        "main_spmd_0",
        "i: pl.Scalar[pl.INDEX, (0, 3)] = pl.tile.get_block_idx()\npl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)",
        "Spmd",
        f"{X}, {Y}",
    )
    dispatch = "_, t = pl.spmd_submit(self.main_spmd_0, x, y, core_num=4)"
    gives(outline.run, before, program(kernel, function("main", dispatch)))


def test_scopes_that_only_group_are_dissolved() -> None:
    before = main("with pl.cluster():\n    with pl.manual_scope():\n        pl.write(y, [n, 0], a)")
    gives(outline.run, before, main("pl.write(y, [n, 0], a)"))


def test_a_kernel_whose_name_was_made_up_is_its_authors() -> None:
    names = ("main", "main_incore_0", "main_main", "k", "main_incore_0_spmd_1", "main_extra")
    assert [outline.author_of(name, names) for name in names] == ["main", "main", "main", "k", "main", "main_extra"]
