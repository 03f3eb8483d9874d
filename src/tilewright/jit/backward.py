"""Backward kernels: what gives autograd the gradients of another kernel, known by the names of its parameters.

    @layer_norm.backward
    def layer_norm_backward(x, w, mean, rstd, dy, dx: pl.Out, dw: pl.Out): ...

A parameter that has the name of one of the forward kernel's is given what that one was called with, or wrote. `d` and
the name of an output is the gradient that comes in for it, and an output called `d` and the name of an input is the
gradient that is asked for. What has a default, or is tuned, is left to that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

from tilewright.core.enums import ParamDirection
from tilewright.core.types import TensorType
from tilewright.forks import computed_once
from tilewright.frontend.kernels import Kernel, KernelParameter
from tilewright.jit.parameters import Parameters
from tilewright.records import record


@record
class Pair:
    """A kernel and its backward: which arguments of the second are what of the first."""

    forward: Kernel
    backward: Kernel
    parameters: Sequence[KernelParameter]
    """What the forward kernel is called with, in order."""
    outputs: Sequence[str]
    """What it returns, in order."""
    saved: Sequence[str]
    """The parameters of both, which the backward is given again."""
    incoming: Mapping[str, str]
    """The gradients that it is given, and the outputs that they are of."""
    produced: Mapping[str, str]
    """The gradients that it writes, and the inputs that they are of."""
    returned: Sequence[str] = ()
    """The same in the order in which it returns them, where their annotations tell calls what to make."""

    @computed_once
    def inputs(self) -> list[str]:
        """What the forward kernel is called with, by name."""
        return [parameter.name for parameter in self.parameters]

    @computed_once
    def bare(self) -> list[str]:
        """The inputs that gradients are asked for and that are not saved: only what they look like is."""
        return [name for name in self.produced.values() if name not in self.saved]


def pair(forward: Kernel, backward: Kernel) -> Pair:
    """Return what a backward kernel takes of another; TypeError where its names do not say."""
    ahead, back = Parameters(forward), Parameters(backward)
    fail = _failing(forward, backward)
    changed = [n for n, says in ahead.declared.items() if says.direction is ParamDirection.InOut]
    if changed:
        fail(f"`{changed[0]}` is changed in place, and autograd cannot go back through that: make it an output")
    tensors = [n for n, says in ahead.declared.items() if says.is_tensor and n not in ahead.outputs]
    incoming, produced, saved = dict[str, str](), dict[str, str](), list[str]()
    for parameter in backward.parameters:
        name, says = parameter.name, back.declared[parameter.name]
        of = name[1:] if name.startswith("d") else ""
        if says.direction is ParamDirection.Out:
            if of not in tensors:
                wanted = ", ".join(f"d{each}" for each in tensors)
                fail(f"its output `{name}` is the gradient of no input: those are {wanted}")
            produced[name] = of
        elif says.direction is ParamDirection.InOut:
            fail(f"`{name}` is changed in place: gradients are outputs, pl.Out")
        elif of in ahead.outputs and name in ahead.declared:
            fail(f"`{name}` is the gradient of `{of}`, and a parameter of the forward kernel: call that another name")
        elif of in ahead.outputs:
            incoming[name] = of
        elif name in ahead.declared:
            saved.append(name)
        elif not parameter.is_optional:
            known = ", ".join([*ahead.declared, *(f"d{each}" for each in ahead.outputs)])
            fail(f"`{name}` is nothing that it could be given: that is {known}")
    if not produced or not incoming:
        fail("it needs the gradient of an output, and gradients of inputs as pl.Out")
    returned = returned_names(backward, back.declared)
    is_stated = all(isinstance(back.declared[name].type, TensorType) for name in produced)
    found = returned if is_stated and sorted(returned) == sorted(produced) else ()
    return Pair(forward, backward, ahead.inputs, _returned(ahead, fail), saved, incoming, produced, found)


def _returned(ahead: Parameters, fail: Callable[[str], NoReturn]) -> Sequence[str]:
    """Return the outputs in the order in which a call returns them."""
    if len(ahead.outputs) == 1:
        return ahead.outputs
    found = returned_names(ahead.kernel, ahead.declared)
    if {*found} != {*ahead.outputs} or len(found) != len(ahead.outputs):
        fail(f"the forward kernel must return each output by its name: return {', '.join(ahead.outputs)}")
    return found


def _failing(forward: Kernel, backward: Kernel) -> Callable[[str], NoReturn]:
    def fail(message: str) -> NoReturn:
        raise TypeError(f"kernel `{backward.name}`, the backward of `{forward.name}`: {message}")

    return fail


def returned_names(kernel: Kernel, declared: Collection[str]) -> list[str]:
    """Return the parameters that all return statements name, in order; none where they name anything else."""
    found = [node.value for node in ast.walk(kernel.captured.node) if isinstance(node, ast.Return) and node.value]
    names = {ast.unparse(value).strip("()") for value in found}
    parts = [part.strip() for part in names.pop().split(",")] if len(names) == 1 else []
    return parts if all(part in declared for part in parts) else []
