"""The native way in: what it takes, what it leaves to Python, and what it survives."""

# pyright: basic, reportInvalidTypeForm=false, reportPrivateUsage=false
from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import resource
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tilewright.language as pl
from tilewright import errors
from tilewright.call.builtin import is_available
from tilewright.jit.function import JITFunction

pytestmark = pytest.mark.skipif(not is_available(), reason="there is no native dispatcher here")

K = 2.0
CFG = types.SimpleNamespace(k=2.0)
VALUES = [2.0]


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape), [0, 0], out)
    return out


@pl.jit
def scale(x: pl.Tensor, n: pl.FP32, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


@pl.jit
def counted(x: pl.Tensor, n: pl.INT64, flag: bool, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if flag:
            t = t * 2.0
        pl.store(t * pl.cast(n, pl.FP32), [0, 0], out)
    return out


def made(text: str, **names: Any) -> Any:
    """Return a kernel of its own, so that a test does not share programs with others."""
    kernel = pl.jit(types.FunctionType(text_functions[text].__code__, {**globals(), **names}, text))
    kernel.function.__annotations__ = text_functions[text].__annotations__
    return kernel


def global_(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * K, [0, 0], out)
    return out


def mixed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * K * CFG.k * VALUES[0] * 0.25, [0, 0], out)
    return out


def configured(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * CFG.k, [0, 0], out)
    return out


text_functions = {f.__name__: f for f in (global_, mixed, configured)}


def hits(kernel: Any) -> int:
    """Return how many calls the dispatcher has taken."""
    return kernel.call_info().direct


def warm(kernel: Any, *args: Any) -> None:
    """Call a kernel until the dispatcher takes such calls."""
    for _ in range(3):
        kernel(*args)
    assert type(type(kernel).__call__) is types.BuiltinFunctionType
    assert took(kernel, *args)


def took(kernel: Any, *args: Any, **kwargs: Any) -> bool:
    """Call a kernel and return whether the dispatcher took the call."""
    before = hits(kernel)
    kernel(*args, **kwargs)
    return hits(kernel) > before


def ones(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    global K
    yield
    K, CFG.k, VALUES[0] = 2.0, 2.0, 2.0


# nothing is made on a hit


def test_a_hit_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = ones(4, 8), ones(4, 8), torch.zeros(4, 8)
    a, b, c = (np.ones((4, 8), np.float32) for _ in range(3))
    warm(add, x, y, out)
    warm(scale, x, 2.0, out)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("made something on a hit")

    from tilewright.call import argument, frameworks, launch
    from tilewright.core import program
    from tilewright.jit import arguments, calls, session
    from tilewright.keep import reads

    for place, name in [
        (np, "asarray"), (np, "from_dlpack"), (np, "array"), (torch.Tensor, "__dlpack__"), (torch.Tensor, "numpy"),
        (torch.Tensor, "detach"), (torch.Tensor, "__dlpack_device__"), (frameworks, "argument_of"),
        (argument.Argument, "of_array"),
        (calls, "Call"), (calls.Binder, "call"), (arguments, "describe"), (reads.ReadSet, "drift"),
        (session.Session, "run"), (launch, "run_native"), (program.Program, "__init__"),
        (ctypes, "addressof"), (JITFunction, "__call__"), (gc, "collect"),
    ]:  # fmt: skip
        monkeypatch.setattr(place, name, refuse)
    add(x, y, out)
    add(a, b, c)
    scale(x, 2.0, out)
    monkeypatch.undo()
    assert out[0, 0] == 2.0 and c[0, 0] == 2.0


def test_a_hit_leaves_no_garbage() -> None:
    x, y, out = ones(4, 8), ones(4, 8), torch.zeros(4, 8)
    warm(add, x, y, out)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        add(x, y, out)
    assert sys.getallocatedblocks() - before < 50


# layouts


def frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array


def unaligned(*shape: int) -> Any:
    data = np.ndarray(shape, np.float32, bytearray(4 * int(np.prod(shape)) + 1), 1)
    data[...] = 1.0
    return data


LAYOUTS: dict[str, tuple[Callable[[], Any], bool]] = {
    "dense": (lambda: ones(4, 8), True),
    "strided rows": (lambda: ones(4, 16)[:, :8], True),
    "every second row": (lambda: ones(8, 8)[::2], True),
    "an offset": (lambda: ones(6, 8)[2:], True),
    "broadcast rows": (lambda: ones(1, 8).expand(4, 8), True),
    "broadcast columns": (lambda: ones(4, 1).expand(4, 8), False),
    "transposed": (lambda: ones(8, 4).t(), False),
    "every second column": (lambda: ones(4, 16)[:, ::2], False),
    "overlapping rows": (lambda: torch.as_strided(ones(64), (4, 8), (4, 1)), True),
    "a parameter": (lambda: torch.nn.Parameter(ones(4, 8)), True),
    "one that requires grad": (lambda: torch.ones(4, 8, requires_grad=True), True),
    "a result of autograd": (lambda: torch.ones(4, 8, requires_grad=True) * 1, True),
    "an array": (lambda: np.ones((4, 8), np.float32), True),
    "a read-only array": (lambda: frozen(np.ones((4, 8), np.float32)), True),
    "rows backwards": (lambda: np.ones((4, 8), np.float32)[::-1], False),
    "columns backwards": (lambda: np.ones((4, 8), np.float32)[:, ::-1], False),
    "column-major": (lambda: np.asfortranarray(np.ones((4, 8), np.float32)), False),
    "unaligned": (lambda: unaligned(4, 8), False),
    "strides of odd bytes": (lambda: np.ones((4, 8), [("a", "<f4"), ("b", "i1")])["a"], False),
    "a broadcast array": (lambda: np.broadcast_to(np.ones((1, 8), np.float32), (4, 8)), True),
    "an ndarray subclass": (lambda: np.ones((4, 8), np.float32).view(np.matrix), False),
    "a tensor subclass": (lambda: ones(4, 8).as_subclass(type("Sub", (torch.Tensor,), {})), False),
    "a view of an array": (lambda: torch.from_numpy(np.ones((4, 8), np.float32)), True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_of_an_input_gives_the_same(name: str) -> None:
    make, is_native = LAYOUTS[name]
    out = torch.zeros(4, 8)
    warm(add, ones(4, 8), ones(4, 8), out)
    out.zero_()
    with torch.no_grad():
        assert took(add, make(), ones(4, 8), out) == is_native
    assert (out == 2.0).all()


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(4, 8)


def freed(tensor: torch.Tensor, size: int = 0) -> torch.Tensor:
    tensor.untyped_storage().resize_(size)
    return tensor


@pytest.mark.parametrize("name", [n for n in LAYOUTS if "grad" not in n and "parameter" not in n])
def test_any_layout_of_an_output_is_written_or_refused(name: str) -> None:
    make, _ = LAYOUTS[name]
    warm(add, ones(4, 8), ones(4, 8), torch.zeros(4, 8))
    out = make()
    if any(word in name for word in ("broadcast", "overlapping", "read-only")):
        with pytest.raises(ValueError, match="`out` is written, but"):
            add(ones(4, 8), ones(4, 8), out)
        assert (np.asarray(out) == 1.0).all()
    else:
        add(ones(4, 8), ones(4, 8), out)
        assert (np.asarray(out.detach() if isinstance(out, torch.Tensor) else out) == 2.0).all()


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "meta": (lambda: torch.ones(4, 8, device="meta"), ValueError, "is on device meta"),
    "sparse": (lambda: torch.eye(4, 8).to_sparse(), ValueError, "is a sparse_coo tensor"),
    "compressed": (lambda: torch.eye(4, 8).to_sparse_csr(), ValueError, "is a sparse_csr tensor"),
    "negated": (lambda: torch._neg_view(ones(4, 8)), ValueError, "torch negates"),  # pyright: ignore[reportPrivateImportUsage]
    "freed": (lambda: freed(ones(4, 8)), ValueError, "has no memory"),
    "shrunk": (lambda: freed(ones(4, 8), 64), ValueError, "has no memory"),
    "double": (lambda: ones(4, 8).double(), TypeError, "float64"),
    "complex": (lambda: ones(4, 8).to(torch.complex64), TypeError, "complex64"),
    "quantized": (lambda: torch.quantize_per_tensor(ones(4, 8), 1.0, 0, torch.qint8), TypeError, "qint8"),
    "big-endian": (lambda: np.ones((4, 8), ">f4"), ValueError, "byte order"),
    "masked": (lambda: np.ma.ones((4, 8), np.float32), ValueError, "masked array"),
    "text": (lambda: np.full((4, 8), "a"), TypeError, "`x`"),
    "objects": (lambda: np.full((4, 8), None), TypeError, "`x`"),
    "dates": (lambda: np.zeros((4, 8), "datetime64[s]"), TypeError, "`x`"),
    "records": (lambda: np.zeros((4, 8), [("a", "f4")]), TypeError, "`x`"),
    "a list": (lambda: [[1.0] * 8] * 4, TypeError, "`x` is"),
    "a number": (lambda: 1.0, TypeError, "`x` is a tensor"),
    "None": (lambda: None, TypeError, "`x` is a tensor and not optional"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about some of these
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_memory_is_refused_as_python_refuses_it(name: str) -> None:
    make, kind, message = REFUSED[name]
    warm(add, ones(4, 8), ones(4, 8), torch.zeros(4, 8))
    for call in (add, lambda *args: JITFunction.__call__(add, *args)):
        with pytest.raises(kind, match=message):
            call(make(), ones(4, 8), torch.zeros(4, 8))


def test_a_tensor_that_autograd_follows_is_refused_unless_nobody_looks() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8, requires_grad=True)
    warm(add, x, x, torch.zeros(4, 8))
    for tensor in (out, torch.nn.Parameter(torch.zeros(4, 8)), out * 1):
        with pytest.raises(ValueError, match="`out` requires grad"):
            add(x, x, tensor)
        with pytest.raises(ValueError, match=r"`x` requires grad.*torch.no_grad.*detach.*as_torch_op"):
            add(tensor, x, torch.zeros(4, 8))
    with torch.no_grad():
        assert took(add, x, x, out)
    with torch.inference_mode():
        assert took(add, out, x, inference())
    assert (out == 2.0).all()


def test_inference_tensors_are_taken() -> None:
    x, out = inference(), inference()
    warm(add, ones(4, 8), ones(4, 8), torch.zeros(4, 8))
    assert took(add, x, x, out) and (out == 2.0).all()


def test_batched_tensors_are_refused() -> None:
    warm(add, ones(4, 8), ones(4, 8), torch.zeros(4, 8))
    with pytest.raises((ValueError, RuntimeError)):
        torch.vmap(lambda x: add(x, ones(4, 8), torch.zeros(4, 8)) or x)(ones(2, 4, 8))


def test_overlapping_arguments_are_refused_and_interleaved_ones_are_not() -> None:
    x, both = ones(4, 8), torch.ones(4, 16)
    warm(add, x, x, torch.zeros(4, 8))
    assert took(add, x, x, torch.zeros(4, 8))
    with pytest.raises(ValueError, match="`out` is written and shares memory with `x`"):
        add(x, ones(4, 8), x)
    with pytest.raises(ValueError, match="shares memory"):
        add(both[:, :8], x, both[:, 4:12])
    assert not took(add, both[:, :8], x, both[:, 8:])  # as ranges they overlap: Python looks closer
    assert (both[:, 8:] == 2.0).all()


@pl.jit
def moved(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape), [0, 0], out)
    return out


TYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_has_a_program_of_its_own(dtype: torch.dtype) -> None:
    x, out = ones(4, 32, dtype=dtype), torch.zeros(4, 32, dtype=dtype)
    try:
        warm(moved, x, out)
    except errors.KernelError:
        pytest.skip("tiles do not hold it")
    assert torch.equal(x, out)
    with pytest.raises((TypeError, ValueError, errors.KernelError)):
        moved(x, torch.zeros(4, 32, dtype=torch.float32 if dtype is not torch.float32 else torch.int32))


@pytest.mark.parametrize("name", ["int64", "longlong", "uint64", "ulonglong", "intp", "float32", "float16", "int16"])
def test_types_of_numpy_that_are_as_wide_are_the_same(name: str) -> None:
    plain = np.dtype(name).name
    x = np.arange(32, dtype=plain).reshape(1, 32)
    out: Any = np.zeros((1, 32), name)
    warm(moved, x, np.zeros((1, 32), plain))
    moved(x.astype(name), out)
    assert (out == x).all()


# shapes


@pl.jit
def flat(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0], [x.shape[0]]) * 2.0, [0], out)
    return out


@pl.jit
def deep(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x
    return out


@pytest.mark.parametrize("rank", range(0, 10))
def test_every_rank_is_taken_or_left_as_python_has_it(rank: int) -> None:
    x, out = ones(*[2] * rank), torch.zeros([2] * rank)
    outcomes = []
    for call in (deep, deep, deep, deep, lambda *args: JITFunction.__call__(deep, *args)):
        try:
            call(x, out)
            outcomes.append(torch.equal(x, out))
        except Exception as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    assert len(set(outcomes)) == 1


def test_axes_of_one_and_of_none_may_have_any_stride() -> None:
    column, empty = torch.as_strided(ones(64), (4, 1), (3, 7)), torch.as_strided(ones(64), (0, 8), (5, 3))
    out = torch.zeros(4, 1)
    for _ in range(4):
        add(column, column, out)
        deep(empty, torch.zeros(0, 8))
    assert (out == 2.0).all()
    assert took(add, column, column, torch.as_strided(torch.zeros(64), (4, 1), (2, 9)))


M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def rows(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [4, 8]) + pl.load(y, [row, 0], [4, 8]), [row, 0], out)
    return out


def test_dynamic_axes_share_a_program_and_have_to_agree() -> None:
    warm(rows, ones(4, 8), ones(4, 8), torch.zeros(4, 8))
    for count in (1, 3, 8, 13, 64):
        out = torch.zeros(count, 8)
        assert took(rows, ones(count, 8), ones(count, 8), out) and (out == 2.0).all()
    assert rows.cache_info().compiles == 1
    for shapes in ((4, 5, 4), (5, 4, 4), (4, 4, 5)):
        with pytest.raises(ValueError) as native:
            rows(*(ones(n, 8) for n in shapes))
        with pytest.raises(ValueError) as python:
            JITFunction.__call__(rows, *(ones(n, 8) for n in shapes))
        assert str(native.value) == str(python.value)
    with pytest.raises(ValueError, match="expects shape"):
        rows(ones(4, 9), ones(4, 9), ones(4, 9))


# numbers


def test_numbers_are_told_apart_by_type_and_bits() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    values = [2.0, 0.0, -0.0, float("nan"), float("inf"), 1e30]
    for value in values:
        warm(scale, x, value, out)
    compiles = scale.cache_info().compiles
    for value in values:
        assert took(scale, x, value, out)
        expected = torch.full((4, 8), value)
        assert torch.equal(out.view(torch.int32), expected.view(torch.int32)) or value != value
    assert took(scale, x, float("nan"), out) and out.isnan().all()
    assert scale.cache_info().compiles == compiles
    scale(x, 2, out)
    assert (out == 2.0).all() and scale.cache_info().compiles == compiles + 1


def test_integers_of_any_size_are_taken_or_refused() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    for n in (3, -3, 2**31, 2**62):
        warm(counted, x, n, False, out)
        assert (out == float(n)).all()
    for n in (2**63, -(2**63) - 1, 2**64, 10**30):
        with pytest.raises(TypeError, match="cannot hold"):
            counted(x, n, False, out)
    for wrong in (True, 3.0, "3", None, [3], 3j):
        with pytest.raises(TypeError, match="`n` is"):
            counted(x, wrong, False, out)
    assert not took(counted, x, np.int64(3), False, out) and (out == 3.0).all()


def test_bools_are_no_integers() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    warm(counted, x, 1, True, out)
    assert (out == 2.0).all()
    warm(counted, x, 1, False, out)
    assert (out == 1.0).all()


@pl.jit
def optional(x: pl.Tensor, y: pl.Tensor | None, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if y is not None:
            t = t + pl.load(y, [0, 0], y.shape)
        pl.store(t, [0, 0], out)
    return out


def test_none_is_a_kind_of_its_own() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    warm(optional, x, None, out)
    assert (out == 1.0).all()
    warm(optional, x, x, out)
    assert (out == 2.0).all()
    assert took(optional, x, None, out) and (out == 1.0).all()


# counts and names


def test_names_are_taken_in_any_order_and_counts_are_left_to_python() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    warm(add, x, x, out)
    assert took(add, x, x, out=out) and (out == 2.0).all()
    assert took(add, y=2.0 * x, out=out, x=x) and (out == 3.0).all()
    compiles = add.cache_info().compiles
    add(out=out, x=x, y=x)
    assert (add(x, x) == 2.0).all() and add.cache_info().compiles == compiles
    for args in ((), (x,), (x, x, out, out)):
        with pytest.raises(TypeError, match="@pl.jit function 'add'"):
            add(*args)
    with pytest.raises(TypeError, match="@pl.jit function 'add'"):
        add(x, x, out, z=1)


def many(count: int) -> Any:
    """Return a kernel of so many inputs, which adds them up."""
    import linecache

    names = [f"x{n}" for n in range(count)]
    loads = " + ".join(f"pl.load({name}, [0, 0], [4, 8])" for name in names)
    text = (
        f"@pl.jit\ndef total({', '.join(f'{name}: pl.Tensor' for name in names)}, out: pl.Out[pl.Tensor]):\n"
        f"    with pl.at(level=pl.Level.CORE_GROUP):\n        pl.store({loads}, [0, 0], out)\n    return out\n"
    )
    file = f"<many {count}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names_ = {"pl": pl, "__name__": "many"}
    exec(compile(text, file, "exec"), names_)
    return names_["total"]


@pytest.mark.parametrize("count", [8, 15, 23, 24, 30])
def test_many_tensors_are_added(count: int) -> None:
    kernel, tensors, out = many(count), [ones(4, 8) for _ in range(count)], torch.zeros(4, 8)
    for _ in range(5):
        kernel(*tensors, out)
    assert (out == float(count)).all()
    assert (hits(kernel) > 0) == (count < 24)


# drift


@pytest.mark.parametrize("policy", ["raise", "recompile"])
def test_everything_that_was_read_is_looked_at(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DRIFT", policy)
    kernel, x, out = made("mixed", VALUES=[2.0], CFG=types.SimpleNamespace(k=2.0)), ones(4, 8), torch.zeros(4, 8)
    outside = kernel.function.__globals__
    warm(kernel, x, out)

    def set_list(value: float) -> None:
        outside["VALUES"][0] = value

    changes = [lambda v: outside.update(K=v), lambda v: setattr(outside["CFG"], "k", v), set_list]
    for change in changes:
        change(4.0)
        if policy == "raise":
            with pytest.raises(errors.DriftError):
                kernel(x, out)
        else:
            warm(kernel, x, out)
            assert (out == 4.0).all()
        change(2.0)
        warm(kernel, x, out)
        assert (out == 2.0).all()


def test_two_programs_for_the_same_arguments_are_both_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DRIFT", "recompile")
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    one, other = 2.0, 3.0  # the same objects each time
    for value in (one, other):
        kernel.function.__globals__["K"] = value
        warm(kernel, x, out)
    for value in (one, other) * 5:
        kernel.function.__globals__["K"] = value
        assert took(kernel, x, out) and (out == value).all()


def test_values_that_are_replaced_by_equal_ones_cost_no_memory() -> None:
    kernel, x, out = made("configured", CFG=types.SimpleNamespace(k=2.0)), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)

    def replace(times: int) -> None:
        for _ in range(times):
            kernel.function.__globals__["CFG"] = types.SimpleNamespace(k=float("2.0"))
            kernel(x, out)

    replace(300)
    gc.collect()
    before = sys.getallocatedblocks()
    replace(1000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
    for _ in range(100):
        kernel(x, out)
    assert took(kernel, x, out) and kernel.cache_info().compiles == 1


class Odd:
    """An object whose attribute is made anew at each access, by code that calls the kernel itself."""

    def __init__(self) -> None:
        self.kernel: Any = None
        self.calls = 0

    @property
    def k(self) -> float:
        if self.kernel is not None and self.calls < 30:
            self.calls += 1
            kernel, self.kernel = self.kernel, None
            kernel(ones(4, 8), torch.zeros(4, 8))
            self.kernel = kernel
            gc.collect(1)
        return float("2.0")


def test_reading_may_run_code_that_calls_the_kernel() -> None:
    odd = Odd()
    kernel, x, out = made("configured", CFG=odd), ones(4, 8), torch.zeros(4, 8)
    for _ in range(5):
        kernel(x, out)
    odd.kernel = kernel
    for _ in range(20):
        kernel(x, out)
        assert (out == 2.0).all()
    assert odd.calls >= 20 and hits(kernel) == 0 and kernel.cache_info().compiles == 1


def test_an_attribute_that_becomes_a_property_is_noticed() -> None:
    class Config:
        k = 2.0

    kernel, x, out = made("configured", CFG=Config()), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    Config.k = property(lambda self: 3.0)  # type: ignore
    with pytest.raises(errors.DriftError, match="CFG.k"):
        kernel(x, out)


# what a program writes


@pl.jit
def either(x: pl.Tensor, y: pl.Tensor, which: bool, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if which:
            pl.store(t * 2.0, [0, 0], y)
        pl.store(t, [0, 0], out)
    return out


def test_what_one_program_writes_is_checked_for_all() -> None:
    x, y, out = (np.ones((4, 8), np.float32) for _ in range(3))
    warm(either, x, y, False, out)
    warm(either, x, y, True, out)
    sealed = frozen(np.ones((4, 8), np.float32))
    with pytest.raises(ValueError, match="`y` is written, but the array given is read-only"):
        either(x, sealed, True, out)
    assert (sealed == 1.0).all()
    either(x, sealed, False, out)
    with pytest.raises(ValueError, match="shares memory"):
        either(x, x, True, out)


def test_an_error_of_a_running_program_is_raised_the_native_way_too() -> None:
    @pl.jit
    def picked(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            i = pl.cast(pl.read(index, [0]), pl.INDEX)
            pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], out)
        return out

    x, out = ones(4, 8), torch.zeros(1, 8)
    warm(picked, x, torch.tensor([1], dtype=torch.int32), out)
    for call in (picked, lambda *args: JITFunction.__call__(picked, *args)):
        with pytest.raises(errors.ExecutionError, match="in kernel `picked`: axis 0: a load starts outside the tensor"):
            call(x, torch.tensor([9], dtype=torch.int32), out)
    assert took(picked, x, torch.tensor([2], dtype=torch.int32), out)


# settings


def test_settings_are_looked_at_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    for name, value, compiles in [
        ("TILEWRIGHT_CHECKED", "off", 2), ("TILEWRIGHT_CHECKED", "on", 2), ("TILEWRIGHT_CHECKED", "0", 2),
        ("TILEWRIGHT_CHECKED", "1", 2), ("TILEWRIGHT_NUM_THREADS", "3", 2), ("TILEWRIGHT_NUM_THREADS", "1", 2),
        ("TILEWRIGHT_CHECKED", "off", 2),
    ]:  # fmt: skip
        monkeypatch.setenv(name, value)
        assert not took(kernel, x, out)
        warm(kernel, x, out)
        assert kernel.cache_info().compiles == compiles
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "maybe")
    with pytest.raises(ValueError, match="TILEWRIGHT_CHECKED must be one of"):
        kernel(x, out)
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS")
    warm(kernel, x, out)


def test_torchs_threads_are_looked_at_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        kernel(x, out)
        warm(kernel, x, out)
    finally:
        torch.set_num_threads(before)
    warm(kernel, x, out)
    assert kernel.cache_info().compiles == 1


def test_configurations_count_by_what_changes_code() -> None:
    from tilewright.programs.config import RunConfig

    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    same = [None, RunConfig(), RunConfig(), RunConfig(device_id=1, rtol=1e-3)]
    for count, configs in enumerate([same, [RunConfig(platform="interpret")] * 2]):
        for config in (*configs, *configs):
            out.zero_()
            kernel(x, out, config=config)
            assert (out == 2.0).all() and kernel.cache_info().misses == count + 1
    warm(kernel, x, out)


# counts of the cache


def test_hits_of_both_ways_are_counted_and_forgotten_together() -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    for _ in range(10):
        kernel(x, out)
    assert kernel.cache_info() == (9, 1, 1, 1)
    kernel.cache_clear()
    assert kernel.cache_info() == (0, 0, 0, 0)
    assert type(kernel) is JITFunction
    for _ in range(5):
        kernel(x, out)
    assert kernel.cache_info() == (4, 1, 1, 1)


# threads, forks, the collector


def running(threads: int, work: Callable[[int], None]) -> None:
    """Run some work in threads, and raise what any of them raised."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=guarded, args=(n,)) for n in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(120)
    assert not any(thread.is_alive() for thread in started)
    if failures:
        raise failures[0]


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_of_many_threads_one_compiles(busy: None) -> None:
    kernel = made("global_")
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(20):
            out = torch.zeros(4, 8)
            kernel(ones(4, 8), out)
            assert (out == 2.0).all()

    running(8, work)
    assert kernel.cache_info().compiles == 1
    assert kernel.cache_info().misses == 1


@pytest.mark.parametrize("policy", ["raise", "recompile"])
@pytest.mark.parametrize("what", ["global", "attribute", "list"])
def test_a_value_that_other_threads_change_is_never_mixed_up(
    busy: None, policy: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a call writes was computed with one of the values; the one before or after it where they are known."""
    monkeypatch.setenv("TILEWRIGHT_DRIFT", policy)
    values = [1.0]
    config = types.SimpleNamespace(k=1.0)
    kernel = made("mixed", K=1.0, CFG=config, VALUES=values)
    outside = kernel.function.__globals__
    stop = threading.Event()

    def change(value: float) -> None:
        if what == "global":
            outside["K"] = value
        elif what == "attribute":
            config.k = value
        else:
            values[0] = value

    def flip() -> None:
        value = 1.0
        while not stop.is_set():
            value = 3.0 - value
            change(float(str(value)))

    def work(number: int) -> None:
        x, out, raised = ones(4, 8), torch.zeros(4, 8), 0
        for _ in range(300):
            try:
                kernel(x, out)
                assert float(out[0, 0]) in (0.25, 0.5) and (out == out[0, 0]).all()
            except errors.DriftError:
                raised += 1
        assert policy == "raise" or not raised

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        running(4, work)
    finally:
        stop.set()
        flipper.join()
    for value in (1.0, 2.0, 1.0, 2.0):  # and nothing was left in a state where old code passes for new
        change(value)
        for _ in range(6):
            out = torch.zeros(4, 8)
            try:
                kernel(ones(4, 8), out)
            except errors.DriftError:
                assert policy == "raise"
            else:
                assert (out == value / 4).all()
    assert kernel.cache_info().compiles <= (1 if policy == "raise" else 2)


@pytest.mark.parametrize("what", ["global", "attribute", "list"])
def test_what_changes_while_a_kernel_runs_is_not_taken_for_what_it_was_compiled_from(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at everything and the guards, other threads have all the time they want."""
    from tilewright.jit.compiled import Compiled

    values, config = [1.0], types.SimpleNamespace(k=1.0)
    kernel, x, out = made("mixed", K=1.0, CFG=config, VALUES=values), ones(4, 8), torch.zeros(4, 8)

    def change(value: float) -> None:
        if what == "global":
            kernel.function.__globals__["K"] = value
        elif what == "attribute":
            config.k = value
        else:
            values[0] = value

    inner = Compiled.run

    def run(self: Compiled, given: Any) -> Any:
        result = inner(self, given)
        change(2.0)
        return result

    monkeypatch.setattr(Compiled, "run", run)
    for _ in range(3):
        change(1.0)
        kernel(x, out)
    monkeypatch.undo()
    for _ in range(3):
        with pytest.raises(errors.DriftError):
            kernel(x, out)
    change(1.0)
    warm(kernel, x, out)


def test_tables_that_a_call_may_look_at_are_kept_until_it_ends() -> None:
    from tilewright.call.words import State

    kernel, x, out = made("configured", CFG=types.SimpleNamespace(k=2.0)), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    dispatcher = kernel._session._warm._dispatcher

    def replace() -> None:
        kernel.function.__globals__["CFG"] = types.SimpleNamespace(k=2.0)
        for _ in range(20):
            kernel(x, out)
        assert took(kernel, x, out)

    assert dispatcher.state[State.ACTIVE] == 0
    dispatcher.state[State.ACTIVE] = 1
    replace()
    replace()
    assert len(dispatcher._lookup.aside) == 4
    dispatcher.state[State.ACTIVE] = 0
    replace()
    assert dispatcher._lookup.aside == []


def test_a_kernel_may_be_dropped_while_it_runs(busy: None) -> None:
    """The code lives as long as any call of it."""
    alive: list[Any] = []

    def work(number: int) -> None:
        big, out = torch.ones(64, 1024), torch.zeros(64, 1024)
        for _ in range(2):
            kernel = made("global_")
            alive.append(weakref.ref(kernel))
            for _ in range(4):
                kernel(big, out)
            call = type(kernel).__call__
            del kernel
            gc.collect()
            call(big, out)
            assert (out == 2.0).all()
            del call

    running(3, work)
    gc.collect()
    assert not any(reference() is not None for reference in alive)


def test_the_cache_may_be_cleared_while_kernels_run(busy: None) -> None:
    kernel = made("global_")

    def work(number: int) -> None:
        x = torch.ones(64, 1024)
        for n in range(30):
            out = torch.zeros(64, 1024)
            kernel(x, out)
            assert (out == 2.0).all()
            if number == 0 and n % 5 == 0:
                kernel.cache_clear()
                gc.collect()

    running(4, work)


def test_a_forked_child_runs_and_compiles(busy: None) -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    with kernel._session.lock:  # as a thread would hold it that the child does not have
        child = os.fork()
        if not child:
            status = 1
            try:
                locked = threading.Thread(target=lambda: kernel(ones(2, 8), torch.zeros(2, 8)))
                locked.start()
                locked.join(60)
                result = torch.zeros(4, 8)
                kernel(x, result)
                status = 0 if not locked.is_alive() and (result == 2.0).all() else 2
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_hundred_thousand_calls_take_no_memory() -> None:
    x, y, out = ones(4, 8), ones(4, 8), torch.zeros(4, 8)
    warm(add, x, y, out)
    for _ in range(1000):
        add(x, y, out)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000):
        add(x, y, out)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # kilobytes


def test_ten_thousand_calls_that_fall_back_take_no_memory() -> None:
    x, y, out = ones(4, 8), ones(4, 8), torch.zeros(4, 8)
    warm(add, x, y, out)
    for _ in range(500):
        add(x, y=y, out=out)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(2000):
        add(x, y=y, out=out)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300


class Layer:
    def __init__(self, k: float) -> None:
        self.k = k

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * self.k, [0, 0], out)
        return out


def test_instances_live_no_longer_than_anybody_needs_them() -> None:
    layer, x, out = Layer(2.0), ones(4, 8), torch.zeros(4, 8)
    warm(layer.run, x, out)
    reference, run = weakref.ref(layer), layer.run
    del layer
    gc.collect()
    assert took(run, x, out) and reference() is not None
    del run
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_an_instance_has_programs_of_its_own(copied: Callable[[Layer], Layer]) -> None:
    layer, x, out = Layer(2.0), ones(4, 8), torch.zeros(4, 8)
    warm(layer.run, x, out)
    other = copied(layer)
    other.k = 3.0
    warm(other.run, x, out)
    assert (out == 3.0).all() and other.run is other.run is not layer.run
    assert took(layer.run, x, out) and (out == 2.0).all()


def test_instances_have_programs_of_their_own() -> None:
    first, second, x, out = Layer(2.0), Layer(3.0), ones(4, 8), torch.zeros(4, 8)
    for layer in (first, second):
        warm(layer.run, x, out)
        assert (out == layer.k).all()
    first.k = 5.0
    warm(first.run, x, out)
    assert (out == 5.0).all() and first.run.cache_info().compiles == 2
    assert took(second.run, x, out) and (out == 3.0).all() and second.run.cache_info().compiles == 1
    first.k = 2.0
    assert took(first.run, x, out) and (out == 2.0).all() and first.run.cache_info().compiles == 2
