"""Configurations and warm calls: told apart by what a configuration holds when the call is made, whichever it is."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from unit.call.subjects import STYLES, SUBJECTS, frames, outcome
from unit.call.warming import FEW, K, Unread, add, cold, fresh, native_only, ones, outside, took, values, warm

from tilewright import errors, ir
from tilewright.programs.config import OPTIONS
from tilewright.runtime import RunConfig

OTHERS: dict[str, Any] = {"platform": "interpret", "checked": True}


class Followed(RunConfig):
    """A configuration that knows which of its fields were looked at."""

    seen: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in {field.name for field in dataclasses.fields(RunConfig)}:
            type(self).seen.add(name)
        return super().__getattribute__(name)

    def __copy__(self) -> Followed:
        return self


def test_a_call_with_a_configuration_is_warm_and_so_is_one_with_another_like_it(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    config = RunConfig()
    warm(kernel, x, x, out, config=config)
    warm(kernel, x, x, config=config)
    for same in (config, RunConfig(), RunConfig(device_id=1, rtol=1e-3)):
        out.zero_()
        assert took(kernel, x, x, out, config=same) and (out == 3.0).all()
    warm(kernel, x, x, out, config=None)
    assert kernel.cache_info().misses == 1


@pytest.mark.parametrize("subject", ["kernel", "program"])
@pytest.mark.parametrize("style", STYLES)
def test_a_configured_call_does_what_a_plain_one_does(subject: str, style: str, dispatch: str) -> None:
    call, config, wanted = SUBJECTS[subject](), RunConfig(), cold(subject, style, "dense", "x")
    for _ in range(8):
        args, named = STYLES[style](values())
        found = outcome(call, args, {**named, "config": config})
        assert found[:-1] == wanted


@native_only
@pytest.mark.parametrize("subject", ["kernel", "program"])
def test_a_configured_call_runs_no_python(subject: str) -> None:
    call, config = SUBJECTS[subject](), RunConfig()
    args, _ = STYLES["in place"](values())
    for _ in range(120):
        call(*args, config=config)
    assert frames(lambda *a: call(*a, config=config), *args) <= FEW


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_configuration_is_another_one(name: str, dispatch: str) -> None:
    kernel, x, out, config = fresh(add), ones(), torch.zeros(4, 8), RunConfig()
    warm(kernel, x, x, out, config=config)
    before, plain = kernel.cache_info().misses, getattr(config, name)
    setattr(config, name, OTHERS[name])
    assert not took(kernel, x, x, out, config=config) and kernel.cache_info().misses == before + 1
    setattr(config, name, plain)
    assert took(kernel, x, x, out, config=config) and (out == 3.0).all()


def test_what_has_python_look_is_looked_at_at_every_call(tmp_path: Path, dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    config = RunConfig()
    warm(kernel, x, x, out, config=config)
    config.save_kernels_dir = str(tmp_path / "kept")
    for _ in range(4):
        assert not took(kernel, x, x, out, config=config)
    assert (tmp_path / "kept").is_dir()
    assert [text for text in kernel.call_info().reasons if text.startswith("its config= has a folder written")]


def test_drift_and_settings_are_seen_by_configured_calls(monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    kernel, x, out, config = fresh(add), ones(), torch.zeros(4, 8), RunConfig()
    warm(kernel, x, x, out, config=config)
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "off")
    assert not took(kernel, x, x, out, config=config) and kernel.cache_info().misses == 2
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    outside(kernel)["K"] = K + 1
    with pytest.raises(errors.DriftError):
        kernel(x, x, out, config=config)


def test_a_class_of_its_own_is_for_python(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    warm(kernel, x, x, out, config=RunConfig())
    for _ in range(4):
        assert not took(kernel, x, x, out, config=Unread())
    with pytest.raises(TypeError, match="`config` takes a RunConfig"):
        kernel(x, x, out, config=3)


def test_many_configurations_are_not_all_kept(monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    monkeypatch.setattr("tilewright.call.dispatcher.LIMIT", 4)
    monkeypatch.setattr("tilewright.call.memo.LIMIT", 4)
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    warm(kernel, x, x, out)
    for number in range(20):
        config = RunConfig()
        config.platform = "".join(["c", "pu"])  # a new object each time
        kernel(x, x, out, config=config)
        assert took(kernel, x, x, out, config=config) or number == 0
    assert took(kernel, x, x, out) or dispatch == "python"
    config = RunConfig()
    warm(kernel, x, x, out, config=config)


def test_every_field_that_a_call_looks_at_tells_calls_apart(tmp_path: Path) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    program = ir.compile(kernel.specialize(x, x).program)
    config = Followed()
    for way in (kernel, program):
        way(x, x, out, config=config)
        Followed.seen = set()
        way(x, x, out, config=config)
        assert {*OPTIONS} == Followed.seen
