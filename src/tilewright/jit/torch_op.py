"""Torch operators of kernels: one name for all the programs that a kernel becomes.

While torch traces a graph it hands over tensors without elements, whose sizes may be symbols. The kernel is then
specialized for the sizes that these had when tracing began; axes that it takes as they come stay symbols, and the
others torch ties the graph to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.types import ScalarType
from tilewright.dtypes import TORCH_NAMES
from tilewright.frontend.kernels import Declared, Kernel, KernelParameter
from tilewright.frontend.names import Resolver
from tilewright.jit.session import Session
from tilewright.runtime.torch_op import Signature, TorchOp, number_type, registered

NUMBERS = {"int": "SymInt", "float": "float", "bool": "bool"}
"""Python's types of numbers as torch's schemas write them."""


def torch_op(kernel: Kernel, session: Session, run: Any, name: str) -> TorchOp:
    """Return a kernel as an operator that torch knows as `name`; its programs are found as those of calls are.

    TypeError where the annotations do not say which parameters are tensors, and what numbers the others are.
    """
    declared = list(zip(kernel.parameters, kernel.declared(Resolver.of(kernel.function)), strict=True))
    taken = [(p, says) for p, says in declared if says.direction is not ParamDirection.Out]
    mutated = [p.name for p, says in taken if says.direction is ParamDirection.InOut]
    count = len(declared) - len(taken)
    takes = ", ".join(f"{_type(kernel, p, says, mutated)} {p.name}" for p, says in taken)
    gives = ", ".join(["Tensor"] * count)
    fake = _Fake(kernel, session, [p.name for p, _ in taken], mutated, count)
    schema = f"({takes}) -> {gives if count == 1 else f'({gives})'}"
    return registered(name, schema, mutated, run, fake)


class _Fake:
    """What the outputs of a kernel look like, for arguments without elements."""

    def __init__(self, kernel: Kernel, session: Session, names: Sequence[str], mutated: Sequence[str], count: int):
        self.kernel = kernel
        self.session = session
        self.names = names
        self.mutated = mutated
        self.count = count

    def __call__(self, torch: Any, *args: Any) -> Any:
        """Return the outputs."""
        given = dict(zip(self.names, args, strict=True))
        made = self.session.specialized((), {name: _sample(torch, value) for name, value in given.items()})
        signature = Signature.of(made.program)
        if len(signature.returned) != self.count or [*signature.mutated] != [*self.mutated]:
            raise TypeError(
                f"kernel `{self.kernel.name}` gives {len(signature.returned)} tensors and changes "
                f"{', '.join(signature.mutated) or 'none'}, other than its annotations say: "
                "return each output, and annotate what is changed as pl.InOut"
            )
        return signature.fake(torch, *(given[param.name_hint] for param in signature.taken))


def _sample(torch: Any, value: Any) -> Any:
    """Return an argument that has the sizes torch traces with, and neither memory nor symbols."""
    if not isinstance(value, torch.Tensor):
        return value
    dtype = TORCH_NAMES.get(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise TypeError(f"Unsupported torch dtype {value.dtype}; supported: {', '.join(TORCH_NAMES)}")
    return np.broadcast_to(np.zeros((), dtype.numpy), [_hint(size) for size in value.shape])


def _hint(size: Any) -> int:
    """Return what a size was when tracing began, without tying the graph to it where that can be avoided."""
    node = getattr(size, "node", None)
    return int(node.hint) if node is not None and node.has_hint() else int(size)


def _type(kernel: Kernel, parameter: KernelParameter, says: Declared, mutated: Sequence[str]) -> str:
    """Return a parameter's type in a schema."""
    if says.is_tensor:
        return f"Tensor(a{mutated.index(parameter.name)}!)" if parameter.name in mutated else "Tensor"
    if isinstance(says.type, ScalarType):
        return number_type(says.type.dtype)
    annotation = kernel.function.__annotations__.get(parameter.name)
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if written in NUMBERS:
        return NUMBERS[written]
    raise TypeError(
        f"kernel `{kernel.name}`: `{parameter.name}` must say what it is to be part of an operator: "
        "annotate it as a tensor, int, float or bool"
    )
