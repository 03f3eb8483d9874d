"""Tuned kernels: measured once for each key, with nothing of the caller's changed, and fast ever after."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import tilewright.language as pl
from tilewright.backends.cpu.backend import BACKEND
from tilewright.call import launch, memo, tables
from tilewright.errors import DriftError, TuningError
from tilewright.jit.session import Session
from tilewright.native.threads import parallel_address
from tilewright.runtime import RunConfig
from tilewright.tune import measuring

FACTOR = 2.0
M = pl.dynamic("M")


@pl.jit
def scale(x: pl.Tensor, out: pl.Out[pl.Tensor], n: int = 3, *, BLOCK: int):
    for r in pl.parallel(0, x.shape[0], BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [BLOCK, x.shape[1]]) * FACTOR + n * 1.0, [r, 0], out)
    return out


@pl.jit
def bump(BLOCK: int, x: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]):
    for r in pl.parallel(0, M, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [BLOCK, 8]) + 1.0, [r, 0], x)
    return x


@pl.jit
def rated(
    x: pl.Tensor,
    rate: pl.Scalar[pl.FP32, pl.RUNTIME],
    gain: pl.Scalar[pl.FP32, pl.RUNTIME],
    mode: str,
    out: pl.Out[pl.Tensor],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape) * rate * gain
        if mode == "plus":
            t = t + 1.0
        pl.store(t, [0, 0], out)
    return out


class Measured:
    """Counts what is measured, and says how long each configuration takes."""

    def __init__(self) -> None:
        self.times: Sequence[float] = (3.0, 1.0, 2.0)
        self.count = 0
        self.before: Callable[[], object] = lambda: None

    def contest(self, runs: Sequence[Callable[[], float]], watched: object) -> list[list[float]]:
        self.count += 1
        for run in (*runs, *runs):
            run()
        self.before()
        return [[time] for time in self.times[: len(runs)]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Measured:
    made = Measured()
    monkeypatch.setattr(measuring, "contest", made.contest)
    return made


@pytest.fixture(autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is chosen in a test is kept for that test."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=["native", "python"])
def dispatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", request.param)
    return request.param


BLOCKS = [pl.Config(BLOCK=2), {"BLOCK": 4}, pl.Config(BLOCK=1)]


def tuned(kernel: Any = scale, **said: Any) -> Any:
    return pl.autotune(**{"configs": BLOCKS, **said})(pl.jit(kernel.function))


def ones(rows: int = 4) -> torch.Tensor:
    return torch.ones(rows, 8)


def test_the_first_call_measures_and_later_ones_are_direct(clock: Measured, dispatch: str) -> None:
    kernel, x, out = tuned(), ones(), torch.zeros(4, 8)
    for _ in range(5):
        assert kernel(x, out) is None and (out == 5.0).all()
    assert (kernel(x) == 5.0).all() and (kernel(x) == 5.0).all() and (kernel(x, 4) == 6.0).all()
    assert (kernel(x.numpy(), n=1) == 3.0).all() and (kernel(x) == 5.0).all()
    assert clock.count == 1 and kernel.best_config(x) == {"BLOCK": 4}
    before = kernel.call_info().direct
    for n in (1, 4, 3, 3):
        assert (kernel(x, out, n) is None) and (out == 2.0 + n).all()
    for call in (lambda: kernel(x), lambda: kernel(x, out), lambda: kernel(out=out, x=x)):
        call()
    assert kernel.call_info().direct - before >= 3
    assert str(kernel.tuning(x)).splitlines()[1].split() == ["BLOCK=4", "1000000.00", "1.00x", "1"]


def test_a_configured_call_is_direct_and_goes_by_its_own_choice(clock: Measured, dispatch: str) -> None:
    kernel, x, out, config = tuned(), ones(), torch.zeros(4, 8), RunConfig()
    for given in (None, config, RunConfig(), None) * 3:
        out.zero_()
        assert kernel(x, out, config=given) is None and (out == 5.0).all()
        assert (kernel(x, config=given) == 5.0).all()
    before = kernel.call_info().direct
    for given in (None, config, RunConfig()):
        kernel(x, out, config=given)
    assert kernel.call_info().direct == before + 3 and clock.count == 1
    config.platform = "interpret"
    for _ in range(3):
        kernel(x, out, config=config)
        assert (out == 5.0).all()
    assert clock.count == 2 and kernel.call_info().direct == before + 3


def test_what_is_written_is_written_once(clock: Measured, dispatch: str) -> None:
    kernel = tuned(bump, key=["x.shape[0]"])
    wide = np.zeros((4, 16), np.float32)[:, :8]
    for x in (torch.zeros(4, 8), wide, torch.zeros(4, 16)[:, :8]):
        assert kernel(x) is x and (x == 1.0).all()
    clock.times = (1.0, 2.0, 3.0)
    eight = torch.zeros(8, 8)
    assert kernel.best_config(eight) == {"BLOCK": 2} and (eight == 0.0).all() and kernel.best_config(wide)["BLOCK"] == 4
    assert clock.count == 2 and kernel.cache_info().currsize == 3  # rows are no part of programs, but of the key
    for calls in range(1, 5):
        kernel(eight)
        kernel(wide)
        assert (eight == float(calls)).all() and (wide == 1.0 + calls).all()
    assert kernel.call_info().direct >= 4


def test_numbers_that_calls_bring_are_chosen_and_choose(clock: Measured, dispatch: str) -> None:
    said = {"configs": [{"gain": 2.0, "mode": "none"}, {"gain": 3.0, "mode": "plus"}], "key": ["x.dtype"]}
    kernel, x = tuned(rated, **said), ones()
    for rate in (1.0, 2.0, 1.0, 5.0, 6.0, 7.0):
        assert (kernel(x, rate) == 3.0 * rate + 1.0).all()
    assert clock.count == 1
    kernel = tuned(rated, **{**said, "key": ["rate"]})
    for times, rate in (((3.0, 1.0), 1.0), ((1.0, 2.0), 2.0)):
        clock.times = times
        kernel(x, rate)
    for _ in range(5):
        assert (kernel(x, 1.0) == 4.0).all() and (kernel(x, 2.0) == 4.0).all()
        assert (kernel(x, 1.0, torch.empty(4, 8)) is None) and kernel.best_config(x, 2.0)["gain"] == 2.0
    assert clock.count == 3 and kernel.call_info().direct >= (8 if dispatch == "native" else 4)


def test_values_can_be_given_instead(clock: Measured) -> None:
    kernel, x = tuned(), ones()
    assert (kernel(x, BLOCK=1) == 5.0).all() and clock.count == 0
    two = tuned(configs=[{"BLOCK": 2, "n": 5}, {"BLOCK": 4}])
    assert (two(x, BLOCK=1) == 5.0).all() and (two(x) == 5.0).all() and two.best_config(x) == {"BLOCK": 4}
    with pytest.raises(TypeError, match="`BLOCK` is missing: give all of n, BLOCK, or none"):
        two(x, n=1)
    with pytest.raises(TypeError, match="positional"):
        kernel(x, x, 3, 4)


def test_another_session_finds_what_was_kept(clock: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ones()
    tuned()(x)
    clock.times = (1.0, 2.0, 3.0)
    again = tuned()
    assert again.best_config(x)["BLOCK"] == 4 and again.best_config(ones(8))["BLOCK"] == 2
    assert clock.count == 2
    assert tuned(configs=BLOCKS[:2]).best_config(x)["BLOCK"] == 2  # other configurations
    assert tuned(key=["n"]).best_config(x)["BLOCK"] == 2  # another key
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "3")
    assert tuned().best_config(x)["BLOCK"] == 2
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS")
    monkeypatch.setitem(scale.function.__globals__, "FACTOR", 5.0)
    with pytest.raises(DriftError, match="FACTOR"):
        again(x)
    assert tuned().best_config(x)["BLOCK"] == 2 and clock.count == 6
    monkeypatch.undo()


def test_candidates_are_compiled_at_once_where_that_leaves_python_alone(
    clock: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, made = threading.Barrier(3, timeout=60), Session._made

    def waiting(self: Session, *args: Any) -> Any:
        together.wait()
        return made(self, *args)

    monkeypatch.setattr(BACKEND, "compiles_beside", True, raising=False)
    monkeypatch.setattr(Session, "_made", waiting)
    monkeypatch.setattr(measuring.os, "cpu_count", lambda: 3)
    kernel = tuned()
    assert (kernel(ones()) == 5.0).all() and kernel.best_config(ones()) == {"BLOCK": 4}
    assert kernel.cache_info().misses == 3


def test_what_cannot_be_run_is_left_out(clock: Measured) -> None:
    x = ones()
    kernel = tuned(configs=[{"BLOCK": 3}, {"BLOCK": -1}, {"BLOCK": 2}], key=["x"])
    assert (kernel(x) == 5.0).all() and kernel.best_config(x)["BLOCK"] == 2
    assert "BLOCK=-1" in str(kernel.tuning(x)) and "Error" in str(kernel.tuning(x))
    with pytest.raises(TuningError, match=r"none of 2 configurations can be run\n    BLOCK=-1: .*\n    BLOCK='a': "):
        tuned(configs=[{"BLOCK": -1}, {"BLOCK": "a"}])(x)
    with pytest.raises(TypeError, match="`x` is a tensor"):
        kernel(3)


def test_a_setting_takes_the_first_configuration(clock: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = tuned(), ones()
    assert kernel(x)[0, 0] == 5.0 and kernel.best_config(x)["BLOCK"] == 4
    assert torch.equal(kernel(x), kernel(x))
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "0")
    assert kernel(x)[0, 0] == 5.0 and kernel.best_config(x)["BLOCK"] == 2 and kernel.cache_info().currsize == 3
    assert tuned().best_config(ones(8))["BLOCK"] == 2 and clock.count == 1
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "perhaps")
    with pytest.raises(ValueError, match="TILEWRIGHT_AUTOTUNE must be one of"):
        kernel(x)


def test_several_threads_measure_once(clock: Measured) -> None:
    kernel, barrier = tuned(), threading.Barrier(4)
    found: list[Any] = []

    def call() -> None:
        barrier.wait()
        found.append(kernel(ones()))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.count == 1 and all((each == 5.0).all() for each in found) and len(found) == 4


def test_an_interrupt_leaves_nothing_behind(clock: Measured) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    kernel, out, clock.before = tuned(), torch.zeros(4, 8), interrupt
    with pytest.raises(KeyboardInterrupt):
        kernel(ones(), out)
    assert (out == 0.0).all()
    clock.before = lambda: None
    kernel(ones(), out)
    assert (out == 5.0).all() and clock.count == 2


def test_nothing_is_measured_while_torch_traces(clock: Measured) -> None:
    kernel = tuned()
    graph = make_fx(lambda x: kernel(x) + 1.0, tracing_mode="fake")(ones())
    assert clock.count == 0
    assert (graph(ones()) == 6.0).all() and clock.count == 1
    assert (make_fx(lambda x: kernel(x, n=1, BLOCK=1))(ones())(ones()) == 3.0).all() and clock.count == 1
    compiled = torch.compile(lambda x: kernel(x) * 2.0, fullgraph=True, backend="eager")
    assert (compiled(ones()) == 10.0).all() and clock.count == 1


def test_configurations_are_pruned_and_choose_options(clock: Measured) -> None:
    def prune(configs: Sequence[pl.Config], arguments: Any) -> list[pl.Config]:
        return [each for each in configs if each["BLOCK"] <= arguments["x"].shape[0]]

    configs = [{"BLOCK": 8}, {"BLOCK": 2, "platform": "interpret"}, {"BLOCK": 1, "platform": "interpret"}]
    kernel = tuned(configs=configs, prune=prune)
    assert (kernel(ones()) == 5.0).all() and kernel.best_config(ones()) == {"BLOCK": 1, "platform": "interpret"}
    assert kernel.compile(ones()).platform == "interpret"
    assert (kernel(ones(), config=RunConfig()) == 5.0).all()
    with pytest.raises(ValueError, match="left no configuration"):
        tuned(prune=lambda configs, arguments: [])(ones())


def test_configurations_say_how_many_threads(clock: Measured, dispatch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def address(threads: int, *emit: Any) -> int:
        asked.append(threads)
        return parallel_address(threads, *emit)

    for module in (launch, tables, memo):
        monkeypatch.setattr(module, "parallel_address", address)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")
    kernel, x = tuned(configs=[{"BLOCK": 1, "threads": 1}, {"BLOCK": 1, "threads": 3}, {"BLOCK": 2}]), ones()
    assert kernel.best_config(x) == {"BLOCK": 1, "threads": 3} and set(asked) == {1, 2, 3}
    asked.clear()
    for _ in range(5):
        assert (kernel(x) == 5.0).all() and set(asked) <= {3, 2} and 3 in asked
    assert kernel.call_info().direct >= 3
    with pytest.raises(ValueError, match="`threads` of a configuration is a positive number, got 0"):
        tuned(configs=[{"BLOCK": 1, "threads": 0}])


def test_methods_are_tuned_by_instance(clock: Measured) -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @pl.autotune([{"BLOCK": 2}, {"BLOCK": 4}])
        @pl.jit
        def scale(self, x: pl.Tensor, out: pl.Out[pl.Tensor], BLOCK: int = 1):
            for r in pl.parallel(0, x.shape[0], BLOCK):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [r, 0], [BLOCK, x.shape[1]]) * self.factor, [r, 0], out)
            return out

    two, three = Model(2.0), Model(3.0)
    for _ in range(3):
        assert (two.scale(ones()) == 2.0).all() and (three.scale(ones()) == 3.0).all()
    assert two.scale.best_config(ones())["BLOCK"] == 4 and clock.count == 2


def test_compile_and_lower_take_what_is_known(clock: Measured) -> None:
    kernel, x = tuned(), ones(16)
    assert "(0, 16, 2)" in kernel.lower(x).as_python() and clock.count == 0
    assert (kernel(x) == 5.0).all()
    assert "(0, 16, 4)" in kernel.lower(x).as_python() and "(0, 16, 8)" in kernel.lower(x, BLOCK=8).as_python()
    assert kernel.compile(x) is kernel.compile(x) and kernel.explain_miss(x) == "a program is found for these arguments"


def test_what_is_known_is_known_of_tensors_without_elements_too(clock: Measured) -> None:
    kernel, x = tuned(), torch.ones(16, 8)
    assert "(0, 16, 2)" in kernel.lower(x.to("meta")).as_python() and clock.count == 0
    assert (kernel(x) == 5.0).all()
    assert "(0, 16, 4)" in kernel.lower(x.to("meta")).as_python()
    with pytest.raises(ValueError, match="`x` is on device meta"):
        kernel(x.to("meta"))


def test_a_changed_default_is_followed(clock: Measured, dispatch: str) -> None:
    kernel, x = tuned(), ones()
    try:
        for n in (3, 7, 3):
            kernel.function.__defaults__ = (n,)
            for _ in range(4):
                assert (kernel(x) == 2.0 + n).all()
    finally:
        kernel.function.__defaults__ = (3,)
    assert clock.count == 1
