"""Torch operators: programs that torch knows by name, so that its compiler and its exporter leave them whole.

A program that writes its outputs becomes a function that returns them: torch can reorder, keep and differentiate that.
Only what a program changes in place stays an argument that it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Var
from tilewright.core.program import Function, Program
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.runtime.metadata import entry_of
from tilewright.runtime.torch_shapes import check_shapes, extents_of, shape_of, torch_dtype
from tilewright.runtime.writes import actual_directions

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class TorchOp(Protocol):
    """An operator of torch, as `torch.library.custom_op` gives them.

    It takes the program's inputs and returns what a call with them returns: one tensor, or a tuple of several. Tensors
    that the program changes in place are changed; one that does nothing else returns nothing.
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

    def __init__(self, entry: Function, directions: Sequence[ParamDirection]) -> None:
        declared = list(zip(entry.params, directions, strict=True))
        self.taken = [param for param, direction in declared if direction is not ParamDirection.Out]
        self.mutated = [param.name_hint for param, direction in declared if direction is ParamDirection.InOut]
        outputs = [param.type for param, direction in declared if direction is ParamDirection.Out]
        returned = [_tensor(type_) for type_ in entry.return_types or outputs]
        self.returned = [] if self.mutated and not outputs else returned

    @staticmethod
    def of(program: Program) -> Signature:
        """Return the signature of a program's only entry."""
        entry = entry_of(program)
        return Signature(entry, actual_directions(program, entry))

    @property
    def schema(self) -> str:
        """The operator's type, as torch writes it."""
        return schema([(param.name_hint, self._type(param)) for param in self.taken], self.mutated, len(self.returned))

    def _type(self, param: Var) -> str:
        return number_type(param.type.dtype) if isinstance(param.type, ScalarType) else TENSOR

    def fake(self, torch: Any, *args: Any) -> Any:
        """Return outputs without elements, for arguments that have none either; errors are those of a call."""
        given = list(zip(self.taken, args, strict=True))
        extents = extents_of(given)
        check_shapes(torch, given, extents)
        device = next((value.device for value in args if isinstance(value, torch.Tensor)), "cpu")
        return packed([
            torch.empty(shape_of(torch, type_.shape, extents), dtype=torch_dtype(torch, type_.dtype), device=device)
            for type_ in self.returned
        ])  # fmt: skip


def torch_op(program: Program, run: Callable[..., Any], name: str) -> TorchOp:
    """Return a program that `run` runs as an operator that torch knows as `name`, as in `"mine::softmax"`.

    The same name means the newest program that was given it. TypeError where the program gives more than tensors,
    ImportError without torch.
    """
    signature = Signature.of(program)
    return registered(name, signature.schema, signature.mutated, partial(called, run), signature.fake)


def registered(
    name: str, schema: str, mutated: Sequence[str], run: Callable[..., Any], fake: Callable[..., Any]
) -> TorchOp:
    """Return a new operator of torch: `run` gives its outputs, as many as the schema has, `fake` what they look like.

    The latter is handed torch itself before the arguments.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"an operator's name is a namespace and a name, as in 'mine::softmax', got {name!r}")
    torch: Any = import_module("torch")
    custom_op = torch.library.custom_op
    made = custom_op(name, run, mutates_args=mutated, schema=schema, device_types="cpu")
    made.register_fake(partial(fake, torch))
    return made


def called(run: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what a program gives for its inputs; where that is one of them, a copy, as torch wants of operators."""
    results: Any = run(*args, **named)
    if results is None:
        return None
    given = (*args, *named.values())
    return packed([_own(each, given) for each in (results if isinstance(results, tuple) else (results,))])


def _own(output: Any, given: Sequence[Any]) -> Any:
    return output.clone() if any(output is each for each in given) else output


def packed(outputs: Sequence[Any]) -> Any:
    """Return outputs as an operator returns them."""
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def _tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise TypeError(f"an operator of torch gives tensors, and this program returns {type_}")
    return type_


def number_type(dtype: DataType) -> str:
    """Return how torch's schemas write a number's type."""
    return "bool" if dtype == BOOL else "float" if dtype.is_float() else "SymInt"
