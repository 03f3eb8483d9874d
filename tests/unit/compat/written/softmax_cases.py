"""Tests as PyPTO's users write them: kernels of `@pl.jit` against torch, shapes by parameter, mistakes by class."""

import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.runtime import RunConfig

M = pl.dynamic("M")


@pl.jit
def softmax(x: pl.Tensor[[M, 64], pl.FP32], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for i in pl.parallel(rows // 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows_of_softmax"):
            tile = pl.load(x, [i * 16, 0], [16, 64])
            tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            shifted = pl.row_expand_sub(tile, pl.row_max(tile, tmp))
            powers = pl.exp(shifted)
            out = pl.store(pl.row_expand_div(powers, pl.row_sum(powers, tmp)), [i * 16, 0], out)
    return out


@pytest.fixture
def config():
    return RunConfig(platform="a5sim", rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [16, 48, 128])
def test_softmax(rows, config):
    x, out = torch.randn(rows, 64), torch.zeros(rows, 64)
    softmax(x, out, config=config)
    torch.testing.assert_close(out, torch.softmax(x, dim=-1), rtol=config.rtol, atol=config.atol)


def test_one_program_serves_all_sizes():
    first = softmax.compile(torch.zeros(16, 64), torch.zeros(16, 64))
    assert softmax.compile(torch.zeros(32, 64), torch.zeros(32, 64)) is first


def test_lowered_kernels_are_on_the_execution_plane():
    program = softmax.lower(torch.zeros(16, 64), torch.zeros(16, 64))
    assert any(ir.is_incore_type(function.func_type) for function in program.functions.values())


def test_unknown_platforms_are_refused():
    with pytest.raises(ValueError, match="platform"):
        RunConfig(platform="a9")


@pl.jit.incore
def copy_rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)


@pl.jit(auto_scope=False)
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = copy_rows(x, out)
    return out


def test_kernels_can_be_looked_into():
    assert (copied._func_type, copied._auto_scope, copy_rows._func_type) == ("orchestration", False, "incore")
    assert copied._param_names() == ["x", "out"] and copied._get_deps() == [copy_rows]
    assert copied._func.__name__ == copied.__name__ == "copied" and len(copied._cache) == 0
    x, out = torch.randn(16, 64), torch.zeros(16, 64)
    copied(x, out)
    copied(x, out)
    assert list(copied._cache.values()) == [copied.compile(x, out)] and torch.equal(out, x)
