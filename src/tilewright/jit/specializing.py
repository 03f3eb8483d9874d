"""Specializing: a kernel through the front end, for one call's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.frontend.kernels import Kernel
from tilewright.frontend.names import Changed
from tilewright.frontend.signature import Alike, TensorMeta, metas_of
from tilewright.jit.calls import Binder, Call
from tilewright.jit.parameters import UntoldOutputError
from tilewright.jit.writes import warn_of_writes

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization

ATTEMPTS = 8
"""How often a kernel is read where other threads change what it reads meanwhile."""


class NotAlike(Exception):
    """An output that was passed is as large as the inputs, and a call that leaves it out could not be given it."""

    def __init__(self, name: str) -> None:
        self.name = name


def specialized(kernel: Kernel, call: Call) -> Specialization:
    """Return a kernel as the front end makes it for a call's arguments."""
    made = _read(kernel, call)
    for name, given in call.given.items():
        if isinstance(given, Alike):
            _check_guess(kernel, made, name, is_passed=name in call.values)
    warn_of_writes(kernel, made)
    tensors = {name: given for name, given in call.given.items() if isinstance(given, TensorMeta)}
    lying = {name: given for name, given in tensors.items() if not given.has_rows and name in made.parameters}
    return _lying(kernel, made, lying, call) if lying else made


def _lying(kernel: Kernel, made: Specialization, lying: Mapping[str, TensorMeta], call: Call) -> Specialization:
    """Return a program that takes tensors which lie on their side, or in steps, as they lie, where it can."""
    from tilewright.frontend.turned_parameters import stepped, turned

    program = turned(made.program, kernel.name, [name for name, given in lying.items() if given.is_turned])
    program = stepped(program, kernel.name, {name: given.step for name, given in lying.items() if given.step > 1})
    metas = metas_of(program[kernel.name], made.parameters, call.given)
    return replace(made, program=program, metas=metas)


def read(kernel: Kernel, binder: Binder, call: Call) -> tuple[Call, Specialization]:
    """Return the kernel as the front end makes it for a call, which may turn out to need another description."""
    try:
        return call, specialized(kernel, call)
    except NotAlike as output:
        call = binder.apart(call, output.name)
        return call, specialized(kernel, call)


def _read(kernel: Kernel, call: Call) -> Specialization:
    from tilewright.frontend.entries import specialize

    for _ in range(ATTEMPTS - 1):
        try:
            return specialize(kernel, call.given)
        except Changed:
            continue
    return specialize(kernel, call.given)


def returned(kernel: Kernel, made: Specialization) -> tuple[str, ...] | None:
    """Return which parameters a program gives back, None where that is not certain."""
    from tilewright.frontend.outputs import returned_parameters

    found = returned_parameters(made.program[kernel.name])
    return None if found is None else tuple(made.parameters[position] for position in found)


def _check_guess(kernel: Kernel, made: Specialization, name: str, *, is_passed: bool) -> None:
    """Raise where an output that was taken to be like the inputs cannot be."""
    from tilewright.frontend.outputs import is_written, unreached

    output = made.program, made.program[kernel.name], made.parameters.index(name)
    written, short = is_written(*output), unreached(*output)
    if is_passed and (not written or short is not None):
        raise NotAlike(name)
    if not written:
        raise TypeError(
            f"@pl.jit function '{kernel.name}': nothing is written into the output `{name}`: "
            f"pl.store(tile, [0, 0], {name}) or `{name}[:] = tile` does, and `{name} = ...` only rebinds the name"
        )
    if short is not None:
        axis, reach, dtype = short
        shape = f"[{', '.join('N' if extent is None else str(extent) for extent in reach)}]"
        raise UntoldOutputError(
            kernel.name,
            name,
            ", which is not "
            f"written as far as the inputs go along axis {axis}, but to {shape}: pass it, or annotate it, "
            f"for example {name}: pl.Out[pl.Tensor[{shape}, pl.{dtype.symbol}]]",
        )
