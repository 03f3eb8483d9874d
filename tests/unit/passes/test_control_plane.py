"""The control plane: an orchestration function dispatches, and computes only inside kernels."""

from __future__ import annotations

import pytest
from unit.passes.texts import function, kernel, leaves, main, program

from tilewright.errors import ControlPlaneComputeError
from tilewright.passes import control_plane


def test_compute_outside_a_kernel_is_an_error_at_its_line() -> None:
    before = main("z = pl.create_tensor([16, 8], dtype=pl.FP32)\nw = pl.add(x, x)")
    with pytest.raises(ControlPlaneComputeError, match="Misplaced tensor op `add`") as error:
        control_plane.run(before)
    assert error.value.place.line == 8
    assert error.value.function == "main"


def test_compute_in_a_loop_outside_a_kernel_is_an_error() -> None:
    before = main("for i in pl.range(n):\n    t = pl.load(x, [0, 0], [16, 8])")
    with pytest.raises(ControlPlaneComputeError, match="Misplaced tile op `load`"):
        control_plane.run(before)


def test_views_allocations_and_element_access_stay_on_the_control_plane() -> None:
    leaves(
        control_plane.run,
        main("""
        z = pl.create_tensor([8, 16], dtype=pl.FP32, init_value=0)
        w = pl.slice(x, [4, 8], [n, 0])
        s = pl.read(w, [0, 0])
        pl.write(z, [0, 0], s)
        v = pl.transpose(z, 0, 1)
        u = pl.assemble(y, w, [0, 0])
        """),
    )


def test_a_kernel_scope_a_grid_and_a_kernel_function_compute() -> None:
    scopes = """
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 8])
        pl.store(t, [0, 0], y)
    for i in pl.spmd(2):
        u = pl.load(x, [i * 8, 0], [8, 8])
        pl.store(u, [i * 8, 0], y)
    """
    leaves(control_plane.run, main(scopes))
    leaves(control_plane.run, kernel("t = pl.load(x, [0, 0], [16, 8])\npl.store(t, [0, 0], y)"))


def test_opaque_functions_may_compute_anywhere() -> None:
    leaves(control_plane.run, program(function("helper", "z = pl.add(x, x)", "Opaque"), function("main", "pass")))
