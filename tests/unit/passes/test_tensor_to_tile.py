"""Tensor ops to tile ops: compute on whole tensors inside a kernel becomes load, compute, store."""

from __future__ import annotations

from unit.passes.texts import gives, kernel, leaves, main

from tilewright.passes import tensor_to_tile

WHOLE = "[0, 0], [16, 8]"


def test_a_tensor_op_loads_computes_and_stores() -> None:
    after = kernel(f"""
    t = pl.load(x, {WHOLE})
    u = pl.exp(t)
    z = pl.create_tensor([16, 8], dtype=pl.FP32)
    pl.store(u, [0, 0], z)
    pl.assemble(y, pl.slice(z, [4, 8], [0, 0]), [0, 0])
    """)
    gives(tensor_to_tile.run, kernel("z = pl.exp(x)\npl.assemble(y, pl.slice(z, [4, 8], [0, 0]), [0, 0])"), after)


def test_a_computed_tensor_is_at_hand_as_a_tile() -> None:
    after = kernel(f"""
    t = pl.load(x, {WHOLE})
    u = pl.exp(t)
    z = pl.create_tensor([16, 8], dtype=pl.FP32)
    pl.store(u, [0, 0], z)
    v = pl.log(u)
    w = pl.create_tensor([16, 8], dtype=pl.FP32)
    pl.store(v, [0, 0], w)
    """)
    gives(tensor_to_tile.run, kernel("z = pl.exp(x)\nw = pl.log(z)"), after)


def test_an_assembled_result_is_stored_directly() -> None:
    after = kernel(f"""
    t = pl.load(x, {WHOLE})
    u = pl.exp(t)
    z = pl.create_tensor([16, 8], dtype=pl.FP32)
    pl.store(u, [0, 0], z)
    pl.store(u, [0, 0], y)
    """)
    gives(tensor_to_tile.run, kernel("z = pl.exp(x)\npl.assemble(y, z, [0, 0])"), after)


def test_a_tensor_written_in_between_is_loaded_again() -> None:
    text = str(tensor_to_tile.run(kernel("z = pl.exp(y)\npl.write(y, [0, 0], a)\nw = pl.exp(y)")))
    assert text.count("pl.tile.load") == 2


def test_tensors_of_unknown_extent_keep_their_ops() -> None:
    leaves(tensor_to_tile.run, kernel("z = pl.exp(x)", "x: pl.Tensor[[M, 8], pl.FP32]"))


def test_functions_that_are_no_kernels_are_left_alone() -> None:
    leaves(tensor_to_tile.run, main("z = pl.exp(x)", "Opaque"))
