"""Traced calls: calls of a kernel that torch traces or transforms, as calls of operators it knows.

A kernel has two of them, made when they are first needed: one takes its inputs and returns the outputs, the other takes
every parameter and writes. Torch's compiler reads the functions of this file as it goes, so they are simple.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tilewright.call.torch_state import check_unrecorded
from tilewright.frontend.kernels import Declared, Kernel, KernelParameter
from tilewright.jit.parameters import Parameters
from tilewright.jit.session import Session
from tilewright.jit.torch_op import torch_op
from tilewright.programs.torch_op import TorchOp
from tilewright.records import record

NAMESPACE = "tilewright"
_numbers = count()


@record
class Form:
    """One way to call a kernel: the operator, the parameters that it takes, and what a call gives back."""

    operator: TorchOp
    positional: Sequence[str]
    names: Sequence[str]
    defaults: Mapping[str, Any]
    gives: Sequence[str] | None
    """The parameters that are given back as they came; None for what the operator makes."""

    def __call__(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return what a call of the kernel does."""
        if len(args) > len(self.positional):
            raise TypeError(f"takes {len(self.positional)} positional argument(s), got {len(args)}")
        values = {**self.defaults, **dict(zip(self.positional, args)), **named}  # noqa: B905 - torch's compiler knows no strict=
        check_unrecorded(values.items())
        made = self.operator(*[values[name] for name in self.names])
        if self.gives is None:
            return made
        given = [values[name] for name in self.gives]
        return given[0] if len(given) == 1 else tuple(given) if given else None


@record
class Traced:
    """A kernel as torch can trace it, called as the kernel is."""

    whole: Form
    returning: Form | None
    """None where there is no output to leave out."""
    place: int
    """Which parameter the first output is, by number and by name, and how many cannot be left out."""
    first: str
    needed: int

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the operator that the arguments are for."""
        if self.returning is None:
            return self.whole(args, named)
        is_given = named.get(self.first) is not None if len(args) <= self.place else hasattr(args[self.place], "dtype")
        if is_given and len(args) + len(named) >= self.needed:
            return self.whole(args, named)
        return self.returning(args, named)


def traced(kernel: Kernel, session: Session) -> Traced:
    """Return a kernel as torch can trace it; TypeError where its parameters do not say what they are."""
    known, parameters = Parameters(kernel), kernel.parameters
    outputs = known.outputs
    whole = _form(kernel, session, parameters, () if outputs else _returned(kernel, known.declared), writes=True)
    if not outputs:
        return Traced(whole, None, 0, "", 0)
    returning = _form(kernel, session, known.inputs, None, writes=False)
    place, needed = (
        [p.name for p in parameters if not p.is_chosen].index(outputs[0]),
        sum(not p.is_optional for p in parameters),
    )
    return Traced(whole, returning, place, outputs[0], needed)


def _form(
    kernel: Kernel, session: Session, taken: Sequence[KernelParameter], gives: Sequence[str] | None, writes: bool
) -> Form:
    word = re.sub(r"\W", "_", kernel.name, flags=re.ASCII)
    operator = torch_op(kernel, session, f"{NAMESPACE}::{word}_{next(_numbers)}", writes)
    defaults = {p.name: p.default for p in taken if p.is_optional}
    return Form(operator, [p.name for p in taken if p.is_positional], [p.name for p in taken], defaults, gives)


def _returned(kernel: Kernel, declared: Mapping[str, Declared]) -> list[str]:
    """Return the parameters that a kernel without outputs gives back, by what its return statements say."""
    found = [node.value for node in ast.walk(kernel.captured.node) if isinstance(node, ast.Return) and node.value]
    names = {ast.unparse(value).strip("()") for value in found}
    parts = [part.strip() for part in names.pop().split(",")] if len(names) == 1 else []
    return parts if all(part in declared for part in parts) else []
