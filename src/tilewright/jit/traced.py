"""Traced calls: calls of a kernel that torch traces or transforms, as calls of operators it knows.

A kernel has two of them, made when they are first needed: one takes its inputs and returns the outputs, the other takes
every parameter and writes. Torch's compiler reads the functions of this file as it goes, so they are simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.call.torch_state import check_unrecorded
from tilewright.frontend.kernels import Kernel, KernelParameter
from tilewright.jit.autograd import follow, operator_name
from tilewright.jit.backward import pair, returned_names
from tilewright.jit.parameters import Parameters
from tilewright.jit.session import Session
from tilewright.jit.torch_op import torch_op
from tilewright.records import record

LEAVE_OUT = "leave the outputs out: gradients flow to what it returns then"


@record
class Form:
    """One way to call a kernel: what runs it, the parameters that it takes, and what a call gives back."""

    run: Any
    """The operator, or a function that does the same."""
    positional: Sequence[str]
    names: Sequence[str]
    defaults: Mapping[str, Any]
    gives: Sequence[str] | None
    """The parameters that are given back as they came; None for what the operator makes."""
    unfollowed: str
    """What to do about gradients that are to flow through such a call; nothing where they do."""

    def __call__(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return what a call of the kernel does."""
        if len(args) > len(self.positional):
            raise TypeError(f"takes {len(self.positional)} positional argument(s), got {len(args)}")
        values = {**self.defaults, **dict(zip(self.positional, args)), **named}  # noqa: B905 - torch's compiler knows no strict=
        if self.unfollowed:
            check_unrecorded(values.items(), self.unfollowed)
        made = self.run(*[values[name] for name in self.names])
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
    recorded: Form | None = None
    """What returns the outputs where torch records gradients and does not trace."""

    def record(self, *args: Any, **named: Any) -> Any:
        """Call the kernel so that gradients flow back."""
        return replace(self, returning=self.recorded)(*args, **named)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the operator that the arguments are for."""
        if self.returning is None:
            return self.whole(args, named)
        is_given = named.get(self.first) is not None if len(args) <= self.place else hasattr(args[self.place], "dtype")
        if is_given and len(args) + len(named) >= self.needed:
            return self.whole(args, named)
        return self.returning(args, named)


def traced(kernel: Kernel, session: Session, gradient: Kernel | None = None) -> Traced:
    """Return a kernel, with its backward, as torch can trace it; TypeError where parameters are not clear."""
    known, parameters = Parameters(kernel), kernel.parameters
    outputs, known_pair = known.outputs, None if gradient is None else pair(kernel, gradient)
    gives = () if outputs else returned_names(kernel, known.declared)
    whole = _form(kernel, session, parameters, gives, known.needs_backward if gradient is None else LEAVE_OUT)
    if not outputs:
        return Traced(whole, None, 0, "", 0)
    returning = _form(kernel, session, known.inputs, None, known.needs_backward if gradient is None else "")
    recorded = None if known_pair is None else replace(returning, run=follow(returning.run, known_pair))
    place = [p.name for p in parameters if not p.is_chosen].index(outputs[0])
    needed = sum(not p.is_optional for p in parameters)
    return Traced(whole, returning, place, outputs[0], needed, recorded)


def _form(
    kernel: Kernel, session: Session, taken: Sequence[KernelParameter], gives: Sequence[str] | None, unfollowed: str
) -> Form:
    operator = torch_op(kernel, session, operator_name(kernel), writes=gives is not None)
    defaults = {p.name: p.default for p in taken if p.is_optional}
    return Form(
        operator, [p.name for p in taken if p.is_positional], [p.name for p in taken], defaults, gives, unfollowed
    )
