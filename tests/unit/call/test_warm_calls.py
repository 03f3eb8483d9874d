"""Warm calls: a call like an earlier one does what the first one did, whatever is called, however, and with what.

A *cold* call is the first one of something made anew; a *warm* one finds what an earlier call left. Kernels say which
calls went directly (`call_info()`); for the rest, the functions of Python that a call runs are counted.
"""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import gc
import resource
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from unit.call.subjects import ROWS, SHAPE, STYLES, SUBJECTS, compiled_program, frames, outcome
from unit.call.warming import (
    FEW,
    KINDS,
    PLACES,
    REFUSED,
    cold,
    in_a_child,
    native_only,
    running,
    values,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


@pytest.mark.parametrize(("subject", "style"), [pair for pair in product(SUBJECTS, STYLES) if pair not in REFUSED])
def test_a_warm_call_does_what_a_cold_one_does(subject: str, style: str, dispatch: str) -> None:
    call = SUBJECTS[subject]()
    plain = cold(subject, style, "dense", "x")
    for kind in KINDS:
        for places in PLACES:
            for _ in range(3):
                given = outcome(call, *STYLES[style](values(kind, places)))
                assert given == cold(subject, style, kind, places), f"{kind} for {places}"
        assert outcome(call, *STYLES[style](values())) == plain, f"after {kind}"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_followed_by_autograd_is_taken_where_nobody_looks(subject: str, dispatch: str) -> None:
    call = SUBJECTS[subject]()
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        for kind in ("followed", "a result of autograd", "a parameter that is followed", "inference"):
            for places in PLACES:
                with mode():
                    wanted = outcome(SUBJECTS[subject](), *STYLES["in place"](values(kind, places)))
                    for _ in range(3):
                        assert outcome(call, *STYLES["in place"](values(kind, places))) == wanted
                    assert (wanted[0] == "gives") == (mode is not torch.enable_grad or kind == "inference")


@native_only
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("array", [torch.as_tensor, np.asarray], ids=["torch", "NumPy"])
def test_a_warm_call_hardly_runs_python(subject: str, style: str, array: Any) -> None:
    given = {name: array(value) if name != "rows" else value for name, value in values().items()}
    given = {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
    call = SUBJECTS[subject]() if subject != "program" else compiled_program()
    args, named = STYLES[style](given)
    if cold(subject, style, "dense", "x")[0] == "raises":
        pytest.skip("such calls are refused")
    first = frames(call, *values().values())
    for _ in range(4):
        call(*given.values())
    for _ in range(20):
        call(*args, **named)
    again = frames(call, *args, **named)
    returns = style.startswith(("returning", "None"))
    assert first > 10 * FEW and again <= (FEW if subject == "PTO kernel" or returns else 0)


@native_only
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_warm_call_leaves_nothing_behind(subject: str) -> None:
    call, (args, _) = SUBJECTS[subject](), STYLES["in place"](values())
    for _ in range(1000):
        call(*args)
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        call(*args)
    assert sys.getallocatedblocks() - blocks < 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2048  # kilobytes


@pytest.mark.parametrize("subject", SUBJECTS)
def test_threads_get_results_of_their_own(subject: str, busy: None, dispatch: str) -> None:
    call = SUBJECTS[subject]()

    def work(number: int) -> None:
        x, out = torch.full(SHAPE, float(number)), torch.zeros(SHAPE)
        for _ in range(50):
            out.zero_()
            call(x, x, ROWS, out)
            assert (out == 2.0 * number).all()
            if subject != "PTO kernel":
                assert (call(x, x, ROWS) == 2.0 * number).all() and (call(rows=ROWS, y=x, x=x) == 2.0 * number).all()

    running(6, work)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_forked_child_makes_warm_calls_and_cold_ones(subject: str) -> None:
    call, given = SUBJECTS[subject](), values()
    for _ in range(4):
        call(*given.values())

    def child() -> bool:
        wanted = cold(subject, "in place", "dense", "x")
        each = [outcome(one, *STYLES["in place"](values())) for one in (call, call, SUBJECTS[subject]())]
        return each == [wanted] * 3

    assert in_a_child(child)
