"""Settings and warm calls: variables, threads and configurations are looked at at every one."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import pytest
import torch
from unit.call.subjects import IS_NATIVE, STYLES, SUBJECTS, frames, outcome
from unit.call.warming import (
    FEW,
    add,
    cold,
    fresh,
    moved,
    ones,
    took,
    values,
    warm,
)

from tilewright.runtime import RunConfig

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


def test_settings_are_looked_at_at_every_call(monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    warm(kernel, x, x, out)
    warm(kernel, x, x)
    for name, value, programs in [
        ("TILEWRIGHT_CHECKED", "off", 2), ("TILEWRIGHT_CHECKED", "on", 2), ("TILEWRIGHT_CHECKED", "0", 2),
        ("TILEWRIGHT_CHECKED", "1", 2), ("TILEWRIGHT_NUM_THREADS", "3", 2), ("TILEWRIGHT_NUM_THREADS", "1", 2),
        ("TILEWRIGHT_CHECKED", "off", 2), ("TILEWRIGHT_TILES", "written", 3), ("TILEWRIGHT_SMALL_WORK", "alone", 4),
        ("TILEWRIGHT_CUDA_SCHEDULE", "warps=8", 5), ("TILEWRIGHT_AMX", "off", 6),
    ]:  # fmt: skip
        monkeypatch.setenv(name, value)
        assert not took(kernel, x, x, out)
        warm(kernel, x, x, out)
        assert (warm(kernel, x, x) == 3.0).all() and kernel.cache_info().currsize == programs
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "maybe")
    for args in ((x, x, out), (x, x)):
        with pytest.raises(ValueError, match="TILEWRIGHT_CHECKED must be one of"):
            kernel(*args)
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS")
    warm(kernel, x, x, out)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_change_of_threads_is_followed(subject: str, monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    call, wanted = SUBJECTS[subject](), cold(subject, "in place", "dense", "x")

    def works(times: int = 5) -> None:
        assert all(outcome(call, *STYLES["in place"](values())) == wanted for _ in range(times))

    works()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        works()
    finally:
        torch.set_num_threads(before)
    for count in ("3", "1"):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", count)
        works(100)
        if dispatch == "native" and IS_NATIVE:
            assert frames(call, *STYLES["in place"](values())[0]) <= FEW
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="TILEWRIGHT_NUM_THREADS must be a positive number, got 'none'"):
        call(*values().values())


def test_configurations_count_by_what_changes_code(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    same = [None, RunConfig(), RunConfig(), RunConfig(device_id=1, rtol=1e-3)]
    for count, configs in enumerate([same, [RunConfig(platform="interpret")] * 2]):
        for config in (*configs, *configs):
            out.zero_()
            kernel(x, x, out, config=config)
            assert (out == 3.0).all() and kernel.cache_info().misses == count + 1
            assert (kernel(x, x, config=config) == 3.0).all()
    warm(kernel, x, x, out)
    assert took(kernel, x, x, out, config=RunConfig())
    assert not took(kernel, x, x, out, config=RunConfig(platform="interpret"))


def test_hits_of_all_ways_are_counted_and_forgotten_together(dispatch: str) -> None:
    kernel, x, out = fresh(moved), ones(), torch.zeros(4, 8)
    for _ in range(2):
        for calls in range(1, 10):
            kernel(x, out)
            assert kernel.cache_info()[:2] == (calls - 1, 1) and kernel.cache_info().currsize == 1
        kernel.cache_clear()
        assert kernel.cache_info() == (0, 0, 0, 0)
