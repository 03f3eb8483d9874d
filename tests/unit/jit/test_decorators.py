"""Decorators: `@pl.jit` and its kinds, with and without parentheses."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from unit.jit.kernels import numbers, scaled, tripled

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import OutsideKernelError, UncallableError
from tilewright.jit.function import JITFunction

KINDS = [
    (pl.jit, "orchestration"),
    (pl.jit.incore, "incore"),
    (pl.jit.inline, "inline"),
    (pl.jit.opaque, "opaque"),
    (pl.jit.host, "host"),
    (functools.partial(pl.jit.extern, source=__file__), "extern"),
]
each_kind = pytest.mark.parametrize(("decorator", "kind"), KINDS, ids=[kind for _, kind in KINDS])


def negated(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Minus `x`."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(-pl.load(x, [0, 0], [4, 8]), [0, 0], out)
    return out


@each_kind
def test_a_decorator_takes_a_function_with_and_without_parentheses(decorator: Any, kind: str) -> None:
    for made in (decorator(negated), decorator()(negated)):
        assert isinstance(made, JITFunction)
        assert repr(made) == f"JITFunction('negated', func_type='{kind}')"


def test_a_kernel_looks_like_its_function() -> None:
    kernel = pl.jit(negated)
    assert (kernel.__name__, kernel.__doc__, kernel.__module__) == ("negated", "Minus `x`.", __name__)
    assert inspect.signature(kernel) == inspect.signature(negated)
    assert kernel.__wrapped__ is negated


def test_a_kernel_runs_at_once_with_options_and_without() -> None:
    x = numbers(4, 8)
    assert torch.equal(pl.jit(negated)(x), -x)
    assert torch.equal(pl.jit(auto_scope=False)(negated)(x), -x)


def test_an_incore_function_has_the_level_it_was_given() -> None:
    assert pl.jit.incore(level=pl.Level.AIC)(negated).level is pl.Level.AIC
    assert pl.jit.incore(negated).level is None


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (lambda: pl.jit(level=pl.Level.AIC), "@pl.jit does not accept a level= argument"),
        (lambda: pl.jit.inline(level=pl.Level.AIC), "@pl.jit.inline does not accept a level= argument"),
        (lambda: pl.jit.incore(auto_scope=False), "@pl.jit.incore does not accept an auto_scope= argument"),
        (lambda: pl.jit.opaque(auto_scope=True), "@pl.jit.opaque does not accept an auto_scope= argument"),
        (lambda: pl.jit.incore(level=3)(negated), "level= takes a pl.Level, got int"),
    ],
)
def test_an_option_of_another_decorator_is_refused(decorate: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        decorate()
    assert str(caught.value) == message


async def sleepy(x: pl.Tensor) -> None: ...


class Plain:
    def method(self, x: pl.Tensor) -> None: ...


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        (3, "int"),
        (Plain, "type"),
        (print, "builtin_function_or_method"),
        (Plain().method, "method"),
        (lambda x: x, "a lambda, which has no statements"),
        (sleepy, "an async one"),
        (tripled, "JITFunction('tripled', func_type='incore')"),
    ],
    ids=["number", "class", "builtin", "method", "lambda", "async", "kernel"],
)
def test_only_a_plain_function_becomes_a_kernel(thing: Any, shown: str) -> None:
    with pytest.raises(TypeError) as caught:
        pl.jit(thing)
    assert str(caught.value) == f"@pl.jit decorates a Python function, got {shown}"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def test_a_wrapper_is_not_skipped_in_silence() -> None:
    with pytest.raises(TypeError) as caught:
        pl.jit(logged(negated))
    assert str(caught.value) == (
        "@pl.jit decorates a Python function, got a wrapper of `negated`, whose own code would not run: "
        "put @pl.jit right above the `def`, below the other decorator"
    )
    with pytest.raises(TypeError, match="wrapper of `negated`.*: drop the other decorator"):
        pl.jit.incore(logged(negated))


def test_other_decorators_stand_above() -> None:
    x = numbers(4, 8)
    assert torch.equal(logged(pl.jit(negated))(x), -x)


def test_a_function_that_was_renamed_is_still_found() -> None:
    def original(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return tripled(x, out)

    original.__name__ = "other"
    kernel = pl.jit(original)
    assert kernel.name == "other"
    assert torch.equal(kernel(numbers(4, 8)), 3 * numbers(4, 8))


def test_what_is_not_there_yet_decorates_and_says_so_when_it_is_used() -> None:
    later = pl.jit.extern(source=__file__)(negated)
    for use in (later, later.compile, later.lower):
        with pytest.raises(NotImplementedError, match="kernels written in C.. cannot be compiled yet"):
            use(numbers(4, 8))

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return later(x, out)

    with pytest.raises(UncallableError, match="cannot be compiled yet"):
        kernel(numbers(4, 8))


def test_extern_takes_its_sources(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.touch()
    stub = pl.jit.extern(source=str(source), core_type="aiv", include_dirs=[str(tmp_path)])(negated)
    assert repr(stub) == "JITFunction('negated', func_type='extern')"


def test_a_sub_function_does_nothing_on_its_own() -> None:
    with pytest.raises(OutsideKernelError):
        scaled(numbers(4, 8), 2.0, numbers(4, 8))
    for use in (scaled.compile, scaled.lower):
        with pytest.raises(TypeError, match=r"only a @pl\.jit function can be compiled on its own"):
            use(numbers(4, 8), 2.0, numbers(4, 8))


def test_a_grid_is_not_what_a_kernel_is_called_with() -> None:
    with pytest.raises(TypeError, match=r"called without a grid, as negated\(\.\.\.\): it says itself"):
        pl.jit(negated)[4](numbers(4, 8))


def test_a_kernel_is_no_program_and_compiles_itself() -> None:
    with pytest.raises(TypeError, match=r"got the kernel `negated`: .* compiles itself, negated\.compile\("):
        ir.compile(pl.jit(negated))
    with pytest.raises(TypeError, match="decorated with @pl.function, got function"):
        ir.compile(negated)


def test_an_entry_cannot_be_called_by_a_kernel() -> None:
    inner = pl.jit(negated)

    @pl.jit
    def outer(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return inner(x, out)

    with pytest.raises(UncallableError, match="`negated` is an entry"):
        outer(numbers(4, 8))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"source": "k.cpp", "core_type": "gpu"}, ValueError, "core_type= takes one of aic, aiv, mixed, got 'gpu'"),
        ({"source": "k.cpp", "dual_aiv_dispatch": True}, ValueError, "dual_aiv_dispatch= is for core_type='mixed'"),
        ({"core_type": "mixed", "aic_source": "k.cpp"}, ValueError, "needs aiv_source="),
        ({"core_type": "aic"}, ValueError, "needs source="),
        ({"source": "missing.cpp"}, ValueError, "source= names a file that is not there: missing.cpp"),
        ({"source": __file__, "include_dirs": ["missing"]}, ValueError, "a folder that is not there: missing"),
        ({"source": __file__, "include_dirs": "include"}, TypeError, "include_dirs= takes a list of folders"),
    ],
)
def test_extern_checks_its_sources(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pl.jit.extern(**options)(negated)
