"""Torch operators: programs that torch knows by name, so that its compiler and its exporter leave them whole.

A program that writes its outputs becomes a function that returns them: torch can reorder, keep and differentiate that.
Only what a program changes in place stays an argument that it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Protocol, cast

from tilewright.backends.interface import taken_devices
from tilewright.call.devices import check_one_device
from tilewright.call.torch_state import inside_operator
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Var
from tilewright.core.program import Program
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.frontend.outputs import returned_parameters
from tilewright.passes.aliases import actual_directions
from tilewright.programs.metadata import entry_of
from tilewright.programs.torch_shapes import check_shapes, extents_of, shape_of, torch_dtype
from tilewright.records import record

TENSOR = "Tensor"
EMPTY: Mapping[str, str] = {}
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_TORCHS = ("aten", "prim", "prims", "torch")
"""The namespaces whose operators torch's own code calls."""
_anchors: dict[str, object] = {}
"""What keeps torch's record of each operator, by name."""


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


@record
class Schema:
    """An operator's type: what it takes, by name and by torch's word for it, what it changes and how much it gives."""

    takes: Sequence[tuple[str, str]]
    mutated: Sequence[str]
    count: int
    defaults: Mapping[str, str] = EMPTY
    """What the last ones of those that it takes are where they are left out, as torch writes that."""

    def __str__(self) -> str:
        """Return the type as torch writes it."""
        takes = ", ".join(f"{self._marked(name, type_)} {name}{self._default(name)}" for name, type_ in self.takes)
        gives = ", ".join([TENSOR] * self.count)
        return f"({takes}) -> {gives if self.count == 1 else f'({gives})'}"

    def _marked(self, name: str, type_: str) -> str:
        return type_.replace(TENSOR, f"{TENSOR}(a{self.mutated.index(name)}!)") if name in self.mutated else type_

    def _default(self, name: str) -> str:
        return f"={self.defaults[name]}" if name in self.defaults else ""

    def outputs(self, results: Any, given: Sequence[Any]) -> Any:
        """Return the results of a call on `given`; where one is an argument, a copy, as torch wants of operators."""
        several = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
        found = [each for each in several if each is not None]
        new = [not any(each is one for one in given) for each in found]
        if any(new) if self.count == 0 else len(found) != self.count:
            raise TypeError(
                f"this operator returns {self.count} tensors, the program {len(found)}: declare them pl.Out"
            )
        return packed(
            [each if is_new else each.clone() for each, is_new in zip(found[: self.count], new, strict=False)]
        )


class Signature:
    """What an operator takes and gives, from the declaration of a program's entry."""

    def __init__(self, program: Program) -> None:
        self._entry = entry = entry_of(program)
        declared = list(zip(entry.params, actual_directions(program, entry), strict=True))
        self.taken = [param for param, direction in declared if direction is not ParamDirection.Out]
        self.mutated = [param.name_hint for param, direction in declared if direction is ParamDirection.InOut]
        outputs = [param.type for param, direction in declared if direction is ParamDirection.Out]
        self.gives_parameters = returned_parameters(entry) is not None
        """Whether its outputs are parameters, of which annotations and tensors tell the shapes, and numbers do not."""
        returned = [_tensor(type_) for type_ in entry.return_types or outputs]
        self.returned = [] if self.mutated and not outputs else returned

    @property
    def schema(self) -> Schema:
        """The operator's type."""
        return Schema([(param.name_hint, _word(param.type)) for param in self.taken], self.mutated, len(self.returned))

    def check(self, torch: Any, given: Mapping[str, Any]) -> None:
        """Raise where an argument, an output too, is not what the program declares."""
        pairs = [(param, given[param.name_hint]) for param in self._entry.params]
        _check_devices(torch, pairs)
        check_shapes(torch, pairs, extents_of(torch, pairs))

    def fake(self, torch: Any, *args: Any) -> Any:
        """Return outputs without elements, for arguments that have none either; errors are those of a call."""
        given = list(zip(self.taken, args, strict=True))
        _check_devices(torch, given)
        extents = extents_of(torch, given)
        check_shapes(torch, given, extents)
        device = next((value.device for value in args if isinstance(value, torch.Tensor)), "cpu")
        shapes = [(shape_of(torch, type_.shape, extents), torch_dtype(torch, type_.dtype)) for type_ in self.returned]
        return packed([torch.empty(shape, dtype=dtype, device=device) for shape, dtype in shapes])


def _check_devices(torch: Any, given: Sequence[tuple[Var, Any]]) -> None:
    """Raise ValueError where tensors, which may have no elements, are on several devices."""
    check_one_device({param.name_hint: str(value.device) for param, value in given if isinstance(value, torch.Tensor)})


def torch_op(program: Program, run: Callable[..., Any], name: str) -> TorchOp:
    """Return a program that `run` runs as an operator that torch knows as `name`, as in `"mine::softmax"`.

    The same name means the newest program that was given it. TypeError where the program gives more than tensors,
    ImportError without torch.
    """
    signature = Signature(program)
    return registered(name, signature.schema, run, signature.fake)


def registered(name: str, schema: Schema, run: Callable[..., Any], fake: Callable[..., Any]) -> TorchOp:
    """Return a new operator of torch; `fake` says what its outputs look like, handed torch before the arguments."""
    torch: Any = import_module("torch")
    _check_name(torch, name)

    def call(*args: Any) -> Any:
        with inside_operator():
            return schema.outputs(run(*args), args)

    made = torch.library.custom_op(
        name, call, mutates_args=schema.mutated, schema=str(schema), device_types=taken_devices()
    )
    made.register_fake(partial(fake, torch))
    if name not in _anchors:
        _anchors[name] = _anchored(torch, *name.split("::"))
    return made


def _check_name(torch: Any, name: str) -> None:
    """Raise ValueError for what is no name of an operator, or is one that somebody else has made."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"an operator's name is a namespace and a name, as in 'mine::softmax', got {name!r}")
    namespace, _, word = name.partition("::")
    if namespace in _TORCHS:
        raise ValueError(f"the operators of {namespace!r} are torch's own, got {name!r}: choose another namespace")
    if name not in _anchors and hasattr(getattr(torch.ops, namespace), word):
        raise ValueError(f"torch has an operator {name!r} already, which is not of a kernel: choose another name")


def _anchored(torch: Any, namespace: str, word: str) -> object:
    """Return what keeps torch's record of an operator where it is, whoever is given its name next.

    Torch frees the record with the last registration, and whoever holds the old operator would call into freed memory;
    with a registration that never goes, for a device that nobody has, they call the newest.
    """
    anchor = torch.library.Library(namespace, "FRAGMENT")
    anchor.impl(word, _nowhere, "PrivateUse3")
    return anchor


def _nowhere(*_: object) -> None:
    """Run nothing, on the device that nobody has."""


def packed(outputs: Sequence[Any]) -> Any:
    """Return outputs as an operator returns them."""
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def number_word(dtype: DataType) -> str:
    """Return torch's word for a number's type."""
    return "bool" if dtype == BOOL else "float" if dtype.is_float() else "SymInt"


def _word(type_: Type) -> str:
    return number_word(type_.dtype) if isinstance(type_, ScalarType) else TENSOR


def _tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise TypeError(f"an operator of torch gives tensors, and this program returns {type_}")
    return type_
