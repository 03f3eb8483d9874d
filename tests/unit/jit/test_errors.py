"""Mistakes in kernels: reported in the author's own source, by the class of the mistake."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import linecache
from typing import Any

import pytest
from unit.jit.kernels import numbers, scaled, tripled

import tilewright.language as pl
from tilewright import errors

X = numbers(4, 8)

HEAD = "@pl.jit\ndef kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n"
FAULTS: list[tuple[str, str, str]] = [
    ("UndefinedNameError", "y = nothing", "Undefined variable 'nothing'"),
    ("UnknownOpError", "y = pl.lod(x, [0, 0], [4, 8])", "did you mean `pl.load`?"),
    ("OutOfBoundsError", "y = x.shape[2]", "it holds 2 value(s), counted from 0"),
    ("OperandError", "rows, columns, depth = x.shape", "3 name(s) for 2 value(s)"),
    ("UnknownAttributeError", "y = x.sizes", "tensor[4, 8, fp32] has no attribute 'sizes'"),
    ("ShapeMismatchError", "y = pl.add(pl.load(x, [0, 0], [4, 8]), pl.load(x, [0, 0], [4, 4]))", "[4, 8] and [4, 4]"),
    ("OutOfBoundsError", "y = pl.load(x, [4, 0], [4, 8])", "axis 0: elements 4 to 8 lie outside 0 to 4"),
    ("MixedKindsError", "y = pl.add(x, pl.load(x, [0, 0], [4, 8]))", "cannot mix Tensor and Tile"),
    ("PlainRangeError", "for i in x: pass", "count with `range` and index it"),
    ("ConditionError", "if x: pass", "condition must be a Bool-typed scalar"),
    ("UncallableError", "y = print(x)", "pl.static_print"),
    ("UncallableError", "y = plain(x)", "decorate `plain` with @pl.jit.inline or @pl.jit.incore"),
    ("PlainRangeError", "y = [i for i in x]", "count with `range` and index it"),
    ("UnsupportedFeatureError", "try: pass\n    except: pass", "a kernel has no exceptions"),
    ("OperandError", "y = scaled(*x)", "only several values can be spread"),
    ("LoopExitError", "for i in pl.parallel(4): break", "the innermost one here is a pl.parallel loop"),
    ("ElementWriteError", "out[0, 0] = 1.0", "pl.write(out, [0, 0], 1.0)"),
    ("SubscriptError", "y = x[::-1]", "a view of a tensor goes forward"),
    ("NotStaticError", "pl.static_assert(pl.read(x, [0, 0]) > 0.0)", "is not known before the program runs"),
    ("StaticAssertionError", "pl.static_assert(x.shape[0] == 8)", "static_assert failed"),
    ("AnnotationMismatchError", "y: pl.Tensor[[4, 4], pl.FP32] = pl.create_tensor([4, 8], dtype=pl.FP32)", "'y' is"),
    ("MisplacedDirectiveError", "pl.at(level=pl.Level.CORE_GROUP)", "`pl.at` means nothing here"),
    ("ArgumentCountError", "y = tripled(x)", "help: tripled(x, out): `out` is missing"),
    ("ArgumentCountError", "y = tripled(x, out, x)", "`tripled` takes 2 positional argument(s), got 3"),
    ("ArgumentCountError", "y = tripled(x, oot=out)", "`tripled` has no parameter `oot`"),
    ("ArgumentCountError", "y = tripled(x, x=x)", "`tripled` got `x` twice"),
    ("OperandError", "y = tripled(x, 3.0)", "`out` is a tensor, got 3.0"),
    ("OperandError", "y = tripled(x, None)", "`out` is not optional, got None"),
    ("OperandError", "y = tripled(x, pl.read(x, [0, 0]))", "`out` is a tensor, got scalar[fp32]"),
    ("OperandError", "y = scaled(x, x, out)", "`factor` is scalar[fp32], got a tensor"),
    ("OperandError", "y = scaled(x, 'a', out)", "`factor` is scalar[fp32], got 'a'"),
    ("DTypeMismatchError", "y = scaled(x, True, out)", "`factor` is scalar[fp32], which cannot be True"),
    ("OperandError", "y = listed((x, out), out)", "is a tuple of values the program computes"),
    ("ShapeMismatchError", "y = stated(pl.reshape(x, [8, 4]), out)", "axis 0 of `x` is 4, got 8"),
    ("OperandError", "x.bind_dynamic(0, 'M')", "bind_dynamic takes an axis and a pl.dynamic name"),
    ("OutOfScopeError", "if pl.read(x, [0, 0]) > 0.0:\n        y = 1\n    z = y", "not bound on every path"),
]


def plain(x: Any) -> Any:
    return x


@pl.jit.incore
def listed(xs, out: pl.Out[pl.Tensor]):
    return out


@pl.jit.incore
def stated(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor]):
    return out


@pytest.mark.parametrize(("kind", "line", "message"), FAULTS, ids=[f"{kind}-{line[:24]}" for kind, line, _ in FAULTS])
def test_a_mistake_is_shown_at_its_line(kind: str, line: str, message: str) -> None:
    text = f"{HEAD}    {line}\n    return out\n"
    filename = f"<kernel of {kind}: {line}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict[str, Any] = {**globals(), "pl": pl}
    exec(compile(text, filename, "exec", dont_inherit=True), names)
    with pytest.raises(errors.KernelError) as caught:
        names["kernel"](X)
    error = caught.value
    assert type(error).__name__ == kind, error
    assert message in str(error)
    assert error.function == "kernel"
    assert error.place.filename == filename and error.place.line == (5 if "z = y" in line else 3)
    assert names["kernel"].cache_info().currsize == 0


def test_recursion_is_reported_with_its_cycle() -> None:
    @pl.jit.opaque
    def again(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        return other(x, n - 1, out)

    @pl.jit.opaque
    def other(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
        return again(x, n, out)

    @pl.jit.inline
    def inlined(x: pl.Tensor, out: pl.Tensor):
        return inlined(x, out)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return again(x, 3, out)

    @pl.jit
    def through_inline(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return inlined(x, out)

    with pytest.raises(errors.RecursiveCallError, match="`again` calls itself: kernel -> again -> other -> again"):
        kernel(X)
    with pytest.raises(errors.RecursiveCallError, match="`inlined` calls itself: inlined -> inlined"):
        through_inline(X)


def test_a_mistake_at_an_argument_names_the_caller_and_the_declaration() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return scaled(x, out, out)

    with pytest.raises(errors.OperandError) as caught:
        kernel(X)
    assert "in kernel `kernel`: `factor` is scalar[fp32], got a tensor" in str(caught.value)
    assert caught.value.place.filename == __file__
    assert f"`factor` is declared at {scaled.function.__code__.co_filename}" in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("nowhere.Tensor", "cannot evaluate the annotation `nowhere.Tensor`"),
        ("str.join", "is not a type of the language"),
        ("pl.dynamic('M')", "a dynamic dim is an extent, not a type"),
        ("pl.Tensor[[4, 8], pl.FP32, pl.TensorView(stride=[8, 1])]", "does not yet support pl.TensorView"),
        ("pl.Out[pl.Scalar[pl.FP32]]", "a scalar cannot be written"),
    ],
)
def test_an_annotation_that_says_nothing_is_shown_at_its_parameter(annotation: str, message: str) -> None:
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return out

    kernel.__annotations__["x"] = annotation
    with pytest.raises(errors.AnnotationError) as caught:
        pl.jit(kernel)(X)
    assert message in str(caught.value)
    assert "^" * len("x: pl.Tensor") in str(caught.value)


def test_parameters_are_written_out() -> None:
    @pl.jit
    def starred(*xs: pl.Tensor):
        return xs

    @pl.jit
    def named(x: pl.Tensor, **options: Any):
        return x

    with pytest.raises(errors.AnnotationError, match=r"a kernel's parameters are plain names, got `\*xs"):
        starred(X)
    with pytest.raises(errors.AnnotationError, match=r"a kernel's parameters are plain names, got `\*\*options"):
        named(X)


def test_a_failed_call_writes_nothing() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = tripled(x, out)
        pl.static_assert(x.shape[0] == 8)
        return out

    out = numbers(4, 8)
    with pytest.raises(errors.StaticAssertionError):
        kernel(X, out)
    assert out.equal(numbers(4, 8))
