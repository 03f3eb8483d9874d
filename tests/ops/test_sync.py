"""Synchronization and prefetching: what is accepted, what is refused, and that no value changes."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import kernel, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    NotStaticError,
    OperandError,
    ShapeMismatchError,
)

pytestmark = pytest.mark.usefixtures("on_target")

TENSORS = {
    "events": tensor(pl.INT64, 256),
    "words": tensor(pl.INT32, 8),
    "x": tensor(pl.FP32, 4, 8),
    "n": scalar(pl.INDEX),
    "m": scalar(pl.INT32),
}

ARRAYS = [np.zeros(256, np.int64), np.zeros(8, np.int32), np.zeros((4, 8), np.float32)]

ORDERS = [
    "sync_src(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=7)",
    "sync_dst(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=7)",
    "sync_set(13, pipe=pl.PipeType.FIX)",
    'sync_set(n, pipe=pl.PipeType.FIX, ffts_mode=2, core_type="aiv")',
    'sync_wait(0, pipe=pl.PipeType.ALL, core_type="aic")',
    "set_ffts(events)",
    "syncall()",
    'syncall(core_type="aiv_only")',
    'syncall(mode="soft", gm_workspace=words, used_cores=4)',
    'syncall(core_type="aic_only", mode="soft", gm_workspace=words, used_cores=m)',
    "cacheinvalid()",
    "cacheinvalid(x, [2, 2], [n, 0])",
]


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_changes_nothing(order: str) -> None:
    body = f"pl.write(out, [0], 1)\npl.system.{order}\npl.write(out, [1], 2)"
    function = kernel(body, **TENSORS, out=out(pl.INT32, 2))
    assert str(pl.parse(str(function))) == str(function)
    assert run(function, *ARRAYS, 1, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        ('sync_src(set_pipe="V", wait_pipe=pl.PipeType.S, event_id=0)', AttributeValueError, "set_pipe cannot be 'V'"),
        ("sync_dst(set_pipe=pl.PipeType.S, wait_pipe=3, event_id=0)", AttributeValueError, "wait_pipe cannot be 3"),
        ("sync_set(14, pipe=pl.PipeType.S)", AttributeValueError, "event_id cannot be 14"),
        ("sync_set(-1, pipe=pl.PipeType.S)", AttributeValueError, "event_id cannot be -1"),
        ("sync_set(m, pipe=pl.PipeType.S)", OperandError, "event_id must be an index"),
        ("sync_set(0, pipe=pl.PipeType.S, ffts_mode=3)", AttributeValueError, "ffts_mode cannot be 3"),
        ('sync_wait(0, pipe=pl.PipeType.S, core_type="mix")', AttributeValueError, "core_type cannot be 'mix'"),
        ("set_ffts(words)", DTypeMismatchError, "holds int64"),
        ("set_ffts(pl.slice(events, [8], [0]))", ShapeMismatchError, "256 elements or more"),
        ('syncall(core_type="all")', AttributeValueError, "core_type cannot be 'all'"),
        ('syncall(mode="medium")', AttributeValueError, "mode cannot be 'medium'"),
        ("syncall(used_cores=4)", AttributeValueError, "takes no used_cores"),
        ('syncall(mode="soft", used_cores=4)', AttributeValueError, "needs gm_workspace"),
        ('syncall(mode="soft", gm_workspace=x, used_cores=4)', DTypeMismatchError, "holds int32"),
        ('syncall(mode="soft", gm_workspace=words, used_cores=-1)', AttributeValueError, "used_cores cannot be -1"),
        ('syncall(mode="soft", gm_workspace=words, used_cores=n)', OperandError, "used_cores must be an int32"),
        ("cacheinvalid(x)", OperandError, "a tensor with shapes and offsets, or nothing"),
        ("cacheinvalid(x, [2], [0, 0])", ShapeMismatchError, "`shapes` needs one entry per axis"),
    ],
)
def test_what_is_refused(order: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"pl.system.{order}", **TENSORS)


def test_a_prefetch_is_a_hint() -> None:
    body = """
    ctx: pl.PrefetchAsyncContext = pl.prefetch.make_context()
    event: pl.AsyncEvent = pl.prefetch.async_prefetch(pl.slice(x, [1, 8], [n, 0]), ctx)
    session: pl.AsyncSession = pl.prefetch.session(ctx)
    if pl.prefetch.wait(event, session):
        pl.write(out, [0], 1)
    """
    function = kernel(body, **TENSORS, out=out(pl.INT32, 1))
    assert run(function, *ARRAYS, 1, 2).tolist() == [1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("async_prefetch(x, ctx)", ShapeMismatchError, "only one row is prefetched"),
        ("async_prefetch(pl.slice(x, [1, n], [0, 0]), ctx)", NotStaticError, "static extents"),
        ("session(n)", OperandError, "must be a handle of pl.prefetch"),
        ("wait(ctx, 0)", OperandError, "must be a handle of pl.prefetch"),
    ],
)
def test_what_is_no_prefetch(call: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"ctx = pl.prefetch.make_context()\nr = pl.prefetch.{call}", **TENSORS)
