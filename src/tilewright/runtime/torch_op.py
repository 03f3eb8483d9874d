"""Torch operators: programs that torch knows by name, so that its compiler and its exporter leave them whole.

A program that writes its outputs becomes a function that returns them: torch can reorder, keep and differentiate that.
Only what a program changes in place stays an argument that it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Var
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.runtime.buffers import TorchBuffer
from tilewright.runtime.metadata import entry_of
from tilewright.runtime.torch_shapes import check_shapes, extents_of, shape_of

if TYPE_CHECKING:
    from tilewright.runtime.program import CompiledProgram

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class TorchOp(Protocol):
    """An operator of torch, as `torch.library.custom_op` gives them.

    It is called with the program's inputs and returns its outputs, in the order of the parameters: one tensor, or a
    tuple of several. Tensors that the program changes in place are changed.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, or take part in a graph that torch is tracing."""
        ...

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None) -> None:
        """Say how gradients flow: see torch.library.register_autograd."""
        ...

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say otherwise what the outputs look like."""
        ...


class Signature:
    """What an operator takes and gives, from the declaration of a program's entry."""

    def __init__(self, params: Sequence[Var], directions: Sequence[ParamDirection], returns: Sequence[Type]) -> None:
        declared = list(zip(params, directions, strict=True))
        self.taken = [param for param, direction in declared if direction is not ParamDirection.Out]
        self.mutated = [param.name_hint for param, direction in declared if direction is ParamDirection.InOut]
        outputs = [param.type for param, direction in declared if direction is ParamDirection.Out]
        self.returned = [_tensor(type_) for type_ in outputs or returns]

    @property
    def schema(self) -> str:
        """The operator's type, as torch writes it."""
        takes = ", ".join(f"{self._type(param)} {param.name_hint}" for param in self.taken)
        gives = ", ".join(["Tensor"] * len(self.returned))
        return f"({takes}) -> {gives if len(self.returned) == 1 else f'({gives})'}"

    def _type(self, param: Var) -> str:
        if isinstance(param.type, ScalarType):
            return _number(param.type.dtype)
        if param.name_hint not in self.mutated:
            return "Tensor"
        return f"Tensor(a{self.mutated.index(param.name_hint)}!)"

    def fake(self, torch: Any, *args: Any) -> Any:
        """Return outputs without elements, for arguments that have none either; errors are those of a call."""
        values = list(zip(self.taken, args, strict=True))
        extents = extents_of(values)
        check_shapes(torch, values, extents)
        buffer = TorchBuffer()
        outputs = [torch.empty(shape_of(torch, t.shape, extents), dtype=buffer.torch_dtype(t.dtype)) for t in self.returned]
        return packed(outputs)


def torch_op(compiled: CompiledProgram, name: str) -> TorchOp:
    """Return a program as an operator that torch knows as `name`, a namespace and a name: `"mine::softmax"`.

    The same name means the newest program that was given it. TypeError where the program gives more than tensors,
    ImportError without torch.
    """
    entry = entry_of(compiled.program)
    signature = Signature(entry.params, compiled.directions(), entry.return_types)
    return registered(name, signature, partial(_run, compiled), signature.fake)


def registered(name: str, signature: Signature, run: Callable[..., Any], fake: Callable[..., Any]) -> TorchOp:
    """Return a new operator of torch; `fake` is handed torch itself before the arguments."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"an operator's name is a namespace and a name, as in 'mine::softmax', got {name!r}")
    torch = import_module("torch")
    library: Any = torch.library
    made = library.custom_op(name, run, mutates_args=signature.mutated, schema=signature.schema, device_types="cpu")
    made.register_fake(partial(fake, torch))
    return made


def _run(compiled: CompiledProgram, *args: Any) -> Any:
    """Return what a program gives for its inputs, as tensors of their own."""
    entry = entry_of(compiled.program)
    bound = compiled[entry.name].bound(args, {})
    ...


def packed(outputs: Sequence[Any]) -> Any:
    """Return outputs as an operator returns them."""
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def _tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise TypeError(f"an operator of torch gives tensors, and this program returns {type_}")
    return type_


def _number(dtype: DataType) -> str:
    return "bool" if dtype == BOOL else "float" if dtype.is_float() else "SymInt"
