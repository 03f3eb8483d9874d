"""Arguments on a command line: `NAME=VALUE` as the tensors and numbers that a kernel is called with."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.program import Function
from tilewright.core.signature import substituted
from tilewright.core.types import Extent, ScalarType, TensorType, Type
from tilewright.dtypes import ALL, BY_NAME, FP32, DataType
from tilewright.programs.platforms import platforms
from tilewright.tools.command import Takes, option
from tilewright.tools.naming import CommandError, check_known

HOLDS = "a file of @pl.jit kernels and host functions, or of one @pl.program or @pl.function, or of PTO text"
HELP = "a tensor as x=64x128 or x=fp16:64x128, a number as n=4, an axis with a name as M=100"
USUAL = 24
"""The extent of an axis that nobody names."""
_USUALLY = "cpu, cuda, interpret (default: cpu)"
RANKS = 2
"""On how many ranks a host function runs unless somebody says so."""


ARGUMENTS = option("arguments", metavar="NAME=VALUE", nargs="*", default=[], help=HELP)
KERNEL = (option("file", metavar="FILE[:KERNEL]", help=HOLDS), ARGUMENTS)
"""What names a kernel of a file, and what it is called with."""
CALL = (
    *KERNEL,
    option(
        "--ranks", type=int, default=RANKS, metavar="N",
        help=f"on how many ranks a host function runs (default: {RANKS})",
    ),
)  # fmt: skip
"""The same, and on how many ranks."""


def platform(what: str) -> Takes:
    """Return the option that names a platform."""
    return option("--platform", metavar="NAME", help=f"{what}: {_USUALLY}", offers=platforms)


def given(texts: Sequence[str]) -> dict[str, str]:
    """Return values by name; CommandError for what is no `NAME=VALUE`."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, separator, value) in zip(texts, pairs, strict=True):
        if not (name.isidentifier() and separator and value):
            raise CommandError(f"{text!r} is not NAME=VALUE\n    help: {HELP}")
    return {name: value for name, _, value in pairs}


def flat(said: Mapping[str, str]) -> dict[str, str]:
    """Return values by name, those that say a shape as one axis of so many elements."""
    found = {name: text.rpartition(":") for name, text in said.items()}
    return {
        name: f"{kind}{colon}{prod(shape_of(shape))}" if "x" in shape.lower() else said[name]
        for name, (kind, colon, shape) in found.items()
    }


def shape_of(text: str) -> tuple[int, ...]:
    """Return a shape; CommandError for what is none."""
    try:
        shape = tuple(int(extent) for extent in text.lower().split("x"))
    except ValueError:
        raise CommandError(f"{text!r} is no shape\n    help: write it as in 64x128") from None
    if any(extent < 0 for extent in shape):
        raise CommandError(f"extents must not be negative, got {text}")
    return shape


def number_of(name: str, text: str) -> int | float | bool:
    """Return a number; CommandError for what is none."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise CommandError(f"{name}={text} is no number")


def is_number(text: str) -> bool:
    """Return whether a text says a number, as axes have them."""
    try:
        number_of("", text)
    except CommandError:
        return False
    return True


def check_names(said: Mapping[str, str], parameters: Sequence[str], functions: Sequence[Function] = ()) -> None:
    """Raise CommandError for a name that is neither one of some parameters nor of what functions take."""
    known = [*parameters]
    for function in functions:
        known += [*(param.name_hint for param in function.params), *_symbols(function)]
    there = ", ".join(dict.fromkeys(known))
    for name in said:
        check_known(name, known, "parameter or axis", f"there {'are' if ',' in there else 'is'} {there or 'none'}")


def check_fits(said: Mapping[str, str], functions: Sequence[Function]) -> None:
    """Raise CommandError for a tensor that functions do not take as it was said."""
    for function in functions:
        axes = {name: int(number_of(name, said[name])) for name in _symbols(function) if name in said}
        for param in function.params:
            if isinstance(param.type, TensorType) and param.name_hint in said:
                axes |= _fitted(param.name_hint, param.type, said[param.name_hint], axes)


def _fitted(name: str, type_: TensorType, text: str, axes: Mapping[str, Extent]) -> dict[str, int]:
    """Return the axes that a tensor tells by its shape; CommandError for one that is not of its type."""
    given = tensor_of(text, type_.dtype)
    if given.dtype != np.dtype(type_.dtype.numpy):
        raise CommandError(f"`{name}` expects {type_.dtype}, got {text.rpartition(':')[0]}")
    wanted = substituted(type_, axes)
    assert isinstance(wanted, TensorType)
    extents = [*zip(wanted.shape, given.shape, strict=False)]
    if given.ndim != len(wanted.shape) or any(isinstance(a, int) and a != b for a, b in extents):
        raise CommandError(f"`{name}` expects shape [{', '.join(map(str, wanted.shape))}], got {[*given.shape]}")
    return {extent.name: length for extent, length in extents if isinstance(extent, Symbol)}


def tensor_of(text: str, usual: DataType | None = None) -> Any:
    """Return a tensor of zeros as a text describes it: a shape, behind its element type where that is not said."""
    named, separator, shape = text.rpartition(":")
    dtype = usual or FP32
    if separator:
        names = _element_types()
        check_known(named.lower(), names, "element type", f"one of {', '.join(BY_NAME)}")
        dtype = names[named.lower()]
    with _fitting(text):
        return np.zeros(shape_of(shape), dtype.numpy)


@cache
def _element_types() -> Mapping[str, DataType]:
    """Return element types by all that they are called: here, in `pl`, and in NumPy."""
    names: dict[str, DataType] = {}
    for dtype in ALL:
        for name in (dtype.name, dtype.symbol.lower(), dtype.numpy_name or dtype.name):
            names.setdefault(name, dtype)
    return names


@contextmanager
def _fitting(text: str) -> Generator[None]:
    """Raise CommandError for a tensor that is larger than memory."""
    try:
        yield
    except (MemoryError, ValueError) as error:
        raise CommandError(f"a tensor of {text} does not fit into memory: {error}") from None


def inputs(
    function: Function,
    said: Mapping[str, str],
    seed: int = 0,
    usual: int = USUAL,
    numbers: Mapping[str, int | float] | None = None,
) -> dict[str, Any]:
    """Return random arguments for a function of a program; outputs that were not said are left out.

    Numbers are those that were said, or that the program was made for, or one.
    """
    said = {name: str(number) for name, number in (numbers or {}).items()} | {**said}
    axes = {name: int(number_of(name, said[name])) if name in said else usual for name in _symbols(function)}
    rng = np.random.default_rng(seed)
    params = zip(function.params, function.param_directions, strict=True)
    wanted = [param for param, direction in params if direction is not ParamDirection.Out or param.name_hint in said]
    return {p.name_hint: _value(p.name_hint, p.type, axes, said, rng) for p in wanted}


def _symbols(function: Function) -> list[str]:
    return [*function.symbols, *(name for name in function.solutions if name not in function.symbols)]


def _value(name: str, type_: Type, axes: Mapping[str, Extent], said: Mapping[str, str], rng: Any) -> Any:
    if isinstance(type_, ScalarType):
        return number_of(name, said.get(name, "1"))
    if not isinstance(type_, TensorType):
        raise CommandError(f"`{name}` is {type_}, which no command line can say")
    if name in said:
        shape = tensor_of(said[name], type_.dtype).shape
    else:
        whole = substituted(type_, axes)
        assert isinstance(whole, TensorType)
        shape = tuple(extent if isinstance(extent, int) else USUAL for extent in whole.shape)
    with _fitting("x".join(map(str, shape))):
        return _filled(shape, type_.dtype, rng)


def _filled(shape: tuple[int, ...], dtype: DataType, rng: Any) -> Any:
    """Return random elements: floats between -1 and 1, integers that may be indices of a short axis."""
    if dtype.is_float():
        return rng.uniform(-1, 1, shape).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype.bits == 1 else 4, shape).astype(dtype.numpy)
