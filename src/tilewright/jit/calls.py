"""Calls: what is known about the arguments of a kernel's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tilewright.arrays import np
from tilewright.call.argument import CPU, Argument
from tilewright.call.devices import check_one_device
from tilewright.call.frameworks import is_tensor
from tilewright.call.torch_state import check_unrecorded
from tilewright.core.annotations import RUNTIME
from tilewright.core.expr import Symbol, literal_type
from tilewright.core.types import Extent, ScalarType, TensorType
from tilewright.dtypes import BOOL, FP32, objection, show_number
from tilewright.frontend.kernels import Declared, Kernel
from tilewright.frontend.signature import Alike, DynDim, Given, Known, TensorMeta
from tilewright.jit.arguments import Described, built, describe, runtime_scalar
from tilewright.jit.parameters import Parameters, UntoldOutputError
from tilewright.records import record


@record
class Call:
    """A call's arguments by parameter; outputs that the caller left out are not among the values."""

    values: Mapping[str, Any]
    described: Mapping[str, Described]

    @property
    def given(self) -> dict[str, Given]:
        """What is known about each argument."""
        return {name: described.given for name, described in self.described.items()}

    @property
    def arguments(self) -> dict[str, Argument]:
        """Where the tensors lie."""
        return {name: one.argument for name, one in self.described.items() if one.argument is not None}

    @property
    def device(self) -> str:
        """The device that all tensors are on."""
        return next((argument.device for argument in self.arguments.values()), CPU)

    @property
    def kinds(self) -> tuple[object, ...]:
        """Everything about the arguments but their extents."""
        return tuple(described.kind for described in self.described.values())

    def as_it_lies(self) -> Call:
        """Return the call with tensors that lie on their side, or in steps, described as such."""
        return Call(self.values, {name: _lying(one) for name, one in self.described.items()})

    def passed(self, name: str) -> Given:
        """Return what is known about an argument, an output that is like an input by its own shape."""
        given = self.described[name].given
        source = self.described[given.source].given if isinstance(given, Alike) else given
        if not isinstance(source, TensorMeta) or source is given:
            return given
        return TensorMeta(source.shape, source.dtype, source.layout)  # in the order of its axes

    @property
    def extents(self) -> tuple[int | None, ...]:
        """The extents of all tensors, one after the other."""
        return tuple(extent for described in self.described.values() for extent in described.extents)


def _lying(one: Described) -> Described:
    argument = one.argument
    if argument is None or not (argument.is_turned or argument.step > 1):
        return one
    meta = TensorMeta(argument.shape, argument.dtype, is_turned=argument.is_turned, step=argument.step)
    how = "on its side" if argument.is_turned else f"in steps of {argument.step}"
    return Described(meta, (f"{argument.dtype.name} {how}", len(argument.shape)), argument.shape, argument)


class Binder:
    """Describes the arguments of one kernel's calls."""

    def __init__(self, kernel: Kernel) -> None:
        self.parameters = Parameters(kernel)
        self.declared = self.parameters.declared
        self.outputs = self.parameters.outputs
        self._alone: set[str] = set()
        """The outputs that were not written as far as the inputs go, and are what they are when they are passed."""

    def apart(self, call: Call, name: str) -> Call:
        """Return a call with an output described by itself, from now on: it is not written as an input is large."""
        self._alone.add(name)
        return Call(call.values, {**call.described, name: self._described(name, call.values[name])})

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], is_run: bool = True) -> Call:
        """Return a call's arguments, every one checked to be something a kernel can take, or be compiled for."""
        values = self.parameters.placed(args, kwargs)
        open_ = {name for name, value in values.items() if value is RUNTIME}
        if is_run and open_:
            raise self.parameters.error(f"'{min(open_)}' received pl.RUNTIME, which only compile() and lower() take")
        if is_run:
            check_unrecorded(values.items(), self.parameters.needs_backward)
        described = {name: self._described(name, values[name], is_run) for name in self.declared if name in values}
        check_one_device({name: d.argument.device for name, d in described.items() if d.argument is not None})
        for name in self.outputs:
            if name not in values:
                described[name] = self._left_out(name, described)
            elif not isinstance(self.declared[name].type, TensorType):
                described[name] = self._as_left_out(name, described)
        passed = {name: value for name, value in values.items() if name not in open_}
        return Call(passed, {name: described[name] for name in self.declared})

    def described(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """Return what to compile for: the arguments of a call, or where there is no tensor what annotations say."""
        is_call = any(map(is_tensor, (*args, *kwargs.values())))
        return self.call(args, kwargs, is_run=False) if is_call else self.signature(args, kwargs)

    def signature(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """Return the arguments that annotations alone describe, with values for scalars."""
        values = self.parameters.named(args, kwargs)
        described = {name: self._stated(name, says, values) for name, says in self.declared.items()}
        return Call({name: value for name, value in values.items() if value is not RUNTIME}, described)

    def _described(self, name: str, value: Any, is_run: bool = True) -> Described:
        says = self.declared[name]
        if value is RUNTIME:
            return self._left_open(name, says)
        if says.built is not None:
            return describe(name, built(name, says.built, value))
        described = describe(name, value, is_run)
        is_tensor = isinstance(described.given, TensorMeta)
        if value is None and not says.is_optional:
            kind = "a tensor" if says.is_tensor else says.type or "a number"
            raise TypeError(f"`{name}` is {kind} and not optional, got None")
        if says.is_tensor and not is_tensor and value is not None:
            raise TypeError(f"`{name}` is a tensor: pass a torch tensor or a NumPy array, got {type(value).__name__}")
        if is_tensor and isinstance(says.type, ScalarType):
            raise TypeError(f"`{name}` is a scalar, got a tensor")
        if isinstance(says.type, TensorType) and isinstance(described.given, TensorMeta):
            _check_stated(name, says.type, described.given)
        if isinstance(described.given, Known) and value is not None:
            _check_scalar(name, says, described.given.value)
            return self._left_open(name, says) if _is_open(says) else described
        return described

    def _left_open(self, name: str, says: Declared) -> Described:
        if not isinstance(says.type, ScalarType):
            raise self.parameters.error(
                f"'{name}' received pl.RUNTIME, but its annotation does not say which kind of number"
            )
        return runtime_scalar(says.type.dtype)

    def _left_out(self, name: str, others: Mapping[str, Described]) -> Described:
        """Return an output that the caller wants made: as annotated, or like the inputs where those are alike."""
        says = self.declared[name]
        if isinstance(says.type, TensorType):
            return _open_tensor(name, says.type)
        source = self._model(others)
        if source is None:
            raise UntoldOutputError(
                self.parameters.kernel.name,
                name,
                ": pass it, or annotate it, "
                f"for example {name}: pl.Out[pl.Tensor[{self._example(others)}]], where M = pl.dynamic('M') may stand "
                f"for an extent that the annotation of an input names, too{self._unlike(others)}",
            )
        return Described(Alike(source), ("like", source), others[source].extents)

    def _as_left_out(self, name: str, others: Mapping[str, Described]) -> Described:
        """Return an output that was passed; one like the inputs as if it had been left out, to share its program."""
        source = self._model(others)
        if name in self._alone or source is None or others[source].given != others[name].given:
            return others[name]
        return Described(Alike(source), ("like", source), others[source].extents, others[name].argument)

    def _model(self, others: Mapping[str, Described]) -> str | None:
        """Return the input that an output without a stated shape is like: any, where all are alike."""
        tensors = [n for n, d in others.items() if isinstance(d.given, TensorMeta) and n not in self.outputs]
        same = all(others[n].given == others[tensors[0]].given for n in tensors)
        return tensors[0] if tensors and same else None

    def _example(self, others: Mapping[str, Described]) -> str:
        """Return what an output may be: what the inputs broadcast to, or of extents that one alone has, as products."""
        inputs = [d.given for n, d in others.items() if isinstance(d.given, TensorMeta) and n not in self.outputs]
        shapes = [[extent for extent in given.shape if isinstance(extent, int)] for given in inputs]
        extents = [extent for given in inputs for extent in given.shape]
        shape = [extent for known in shapes for extent in known if extents.count(extent) == 1] or [64, 1]
        if shapes and len(extents) == sum(map(len, shapes)):
            with suppress(ValueError):  # those of products, say, do not broadcast
                shape = [*np.broadcast_shapes(*map(tuple, shapes))]
        dtype = inputs[0].dtype if inputs else FP32
        return f"{shape}, pl.{dtype.symbol}"

    def _unlike(self, others: Mapping[str, Described]) -> str:
        """Return why no input is a model for outputs: the first two that differ."""
        tensors = [(n, d.given) for n, d in others.items() if isinstance(d.given, TensorMeta) and n not in self.outputs]
        for name, given in tensors[1:]:
            first, model = tensors[0]
            if given != model:
                return (
                    f"; a bare pl.Tensor is made like the inputs where all are alike, and here `{first}` is "
                    f"{_shown(model)} and `{name}` {_shown(given)}"
                )
        return ""

    def _stated(self, name: str, says: Declared, values: Mapping[str, Any]) -> Described:
        value = values.get(name, RUNTIME)
        if says.is_tensor:
            return self._stated_tensor(name, says, value)
        if name not in values and _is_open(says):
            return self._left_open(name, says)
        if name not in values:
            raise self.parameters.error(
                f"scalar parameter '{name}' has no value: pass one by keyword, or pl.RUNTIME to leave it open"
            )
        if is_tensor(value) or (isinstance(says.type, ScalarType) and not _is_number(value)):
            shown = type(value).__name__
            raise self.parameters.error(f"scalar parameter '{name}' needs a number or pl.RUNTIME, got {shown}")
        return self._described(name, value)

    def _stated_tensor(self, name: str, says: Declared, value: Any) -> Described:
        if value is None and name not in self.outputs:
            return self._described(name, None)
        if value is not None and value is not RUNTIME:
            raise TypeError(
                f"`{name}` is a tensor: pass one, or leave it to its annotation, got {type(value).__name__}"
            )
        if isinstance(says.type, TensorType):
            return _open_tensor(name, says.type)
        kernel = self.parameters.kernel.name
        raise self.parameters.error(
            f"bare 'pl.Tensor' of `{name}` says neither shape nor dtype: annotate it, or give sample tensors, "
            f"as in {kernel}.compile(*sample_tensors) or {kernel}.lower(*sample_tensors)"
        )


def _is_open(says: Declared) -> bool:
    return says.is_runtime and isinstance(says.type, ScalarType)


def _shown(given: TensorMeta) -> str:
    return f"{list(given.shape)} of {given.dtype}"


def _check_stated(name: str, stated: TensorType, given: TensorMeta) -> None:
    if stated.dtype != given.dtype:
        raise TypeError(f"`{name}` expects dtype {stated.dtype}, got {given.dtype}")
    if len(stated.shape) != len(given.shape):
        raise ValueError(f"`{name}` expects rank {len(stated.shape)}, got {len(given.shape)}")
    for want, have in zip(stated.shape, given.shape, strict=True):
        if isinstance(want, int) and want != have:
            shape = "[" + ", ".join(map(str, stated.shape)) + "]"
            raise ValueError(f"`{name}` expects shape {shape}, got {list(given.shape)}")


def _check_scalar(name: str, says: Declared, value: Any) -> None:
    dtype = says.type.dtype if isinstance(says.type, ScalarType) else literal_type(value)
    is_number = isinstance(value, (bool, int, float)) or not isinstance(says.type, ScalarType)
    if dtype == BOOL and isinstance(value, int):
        return
    if isinstance(value, bool) or dtype == BOOL or (dtype.is_int() and isinstance(value, float)) or not is_number:
        raise TypeError(f"`{name}` is a scalar of {dtype}, got {type(value).__name__}")
    if isinstance(says.type, ScalarType) or isinstance(value, (bool, int, float)):
        if reason := objection(value, dtype):
            raise TypeError(f"`{name}` is a scalar of {dtype}, which cannot hold {show_number(value)}: {reason}")
    if says.bounds is not None and not says.bounds[0] <= value <= says.bounds[1]:
        raise ValueError(f"`{name}` must lie within {says.bounds[0]} to {says.bounds[1]}, got {value}")


def _is_number(value: Any) -> bool:
    return value is RUNTIME or value is None or isinstance(value, (bool, int, float, np.generic))


def _open_tensor(name: str, stated: TensorType) -> Described:
    """Return a tensor of which the annotation alone is known."""
    shape = tuple(_dim(name, axis, extent) for axis, extent in enumerate(stated.shape))
    extents = tuple(d if isinstance(d, int) else None for d in shape)
    return Described(TensorMeta(shape, stated.dtype, stated.layout), (stated.dtype.name, len(shape)), extents)


def _dim(name: str, axis: int, extent: Extent) -> int | DynDim:
    if isinstance(extent, int):
        return extent
    symbol = extent.name if isinstance(extent, Symbol) else f"{name}_{axis}"
    return DynDim(symbol, symbol)
