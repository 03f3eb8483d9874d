"""Torch operators of kernels: one name for all the programs that a kernel becomes.

While torch traces a graph it hands over tensors without elements, whose sizes may be symbols. The kernel is then
specialized for the sizes that these had when tracing began; axes that it takes as they come stay symbols, and the
others torch ties the graph to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.types import ScalarType
from tilewright.dtypes import TORCH_NAMES
from tilewright.frontend.kernels import Declared, Kernel, KernelParameter
from tilewright.frontend.names import Resolver
from tilewright.jit.session import Session
from tilewright.programs.torch_op import TENSOR, Schema, Signature, TorchOp, number_word, registered
from tilewright.records import record

WORDS = {"int": "SymInt", "float": "float", "bool": "bool", "str": "str"}
"""Python's types of numbers and text in torch's words."""


def torch_op(kernel: Kernel, session: Session, name: str, writes: bool = False) -> TorchOp:
    """Return a kernel as an operator that torch knows as `name`; its programs are found as those of calls are.

    It takes the inputs and returns the outputs, or where it `writes`, takes every parameter and returns nothing.
    TypeError where the annotations do not say which parameters are tensors, and what numbers the others are.
    """
    declared = list(zip(kernel.parameters, kernel.declared(Resolver.of(kernel.function)), strict=True))
    taken = [(p, says) for p, says in declared if writes or says.direction is not ParamDirection.Out]
    mutated = [p.name for p, says in taken if says.direction is not ParamDirection.In]
    takes = [(p.name, word(kernel, p, says)) for p, says in taken]
    schema = Schema(takes, mutated, len(declared) - len(taken), {} if writes else _defaults([p for p, _ in taken]))
    known = _Operator(kernel, session, schema, [p for p, _ in declared])
    return registered(name, schema, known.run, known.fake)


@record
class _Operator:
    """A kernel called with its inputs in order, by keyword where an output stands before them."""

    kernel: Kernel
    session: Session
    schema: Schema
    parameters: Sequence[KernelParameter]

    def run(self, *args: Any) -> Any:
        """Return what the kernel does, its program found or made."""
        positional, named = self._placed(self._whole(args))
        return self.kernel(*positional, **named)

    def fake(self, torch: Any, *args: Any) -> Any:
        """Return what the outputs look like, for arguments without elements."""
        whole = self._whole(args)
        positional, named = self._placed([_sample(torch, value) for value in whole])
        signature = Signature(self.session.specialized(positional, named).program)
        if not signature.gives_parameters:  # an output that it makes may be as large as a number says
            whole = [int(value) if isinstance(value, torch.SymInt) else value for value in whole]
        given = dict(zip((name for name, _ in self.schema.takes), whole, strict=True))
        if len(given) == len(self.parameters):
            return signature.check(torch, given)
        self._check(signature.schema)
        return signature.fake(torch, *(given[param.name_hint] for param in signature.taken))

    def _whole(self, args: Sequence[Any]) -> list[Any]:
        """Return arguments with those that torch leaves out, since they are the defaults."""
        defaults = {p.name: p.default for p in self.parameters}
        return [*args, *(defaults[name] for name, _ in self.schema.takes[len(args) :])]

    def _placed(self, args: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        given = dict(zip((name for name, _ in self.schema.takes), args, strict=True))
        for position, parameter in enumerate(self.parameters):
            if parameter.is_chosen and given.get(parameter.name) is None:
                continue
            if parameter.name in given and parameter.is_positional and len(positional) == position:
                positional.append(given[parameter.name])
            elif parameter.name in given:
                named[parameter.name] = given[parameter.name]
        return positional, named

    def _check(self, made: Schema) -> None:
        """Raise where a program gives or changes other tensors than the annotations say."""
        if made.count != self.schema.count or {*made.mutated} != {*self.schema.mutated}:
            changed = ", ".join(made.mutated) or "none"
            raise TypeError(
                f"kernel `{self.kernel.name}` gives {made.count} tensors and changes {changed}, "
                "other than its annotations say: return each output, and annotate what is changed as pl.InOut"
            )


def _defaults(parameters: Sequence[KernelParameter]) -> dict[str, str]:
    """Return the defaults of the last parameters, as torch writes them."""
    found: dict[str, str] = {}
    for parameter in reversed(parameters):
        default = parameter.default
        is_written = (
            default is None
            or isinstance(default, (bool, int, str))
            or (isinstance(default, float) and math.isfinite(default))
        )
        if not parameter.is_optional or not is_written:
            break
        found[parameter.name] = json.dumps(default) if isinstance(default, str) else repr(default)
    return found


def _sample(torch: Any, value: Any) -> Any:
    """Return an argument that has the sizes torch traces with, and neither memory nor symbols."""
    if isinstance(value, torch.SymInt):
        return _hint(value)
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


def word(kernel: Kernel, parameter: KernelParameter, says: Declared) -> str:
    """Return torch's word for what a parameter is."""
    if says.is_tensor:
        return f"{TENSOR}?" if says.is_optional and says.direction is not ParamDirection.Out else TENSOR
    maybe = "?" if parameter.is_chosen else ""
    if isinstance(says.type, ScalarType):
        return number_word(says.type.dtype) + maybe
    annotation = kernel.function.__annotations__.get(parameter.name)
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if written in WORDS:
        return WORDS[written] + maybe
    raise TypeError(
        f"kernel `{kernel.name}`: `{parameter.name}` must say what it is to be part of an operator: "
        "annotate it as a tensor, int, float, bool or str"
    )
