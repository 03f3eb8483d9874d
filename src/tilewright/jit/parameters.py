"""Parameters: those of one kernel, and which of them the arguments of a call go to.

A caller passes everything and outputs are written in place, or leaves out all pure outputs and gets them back. Which of
the two a call means follows from what it passes: positional arguments go to every parameter when that gives each output
a tensor, and to the inputs alone otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.call.frameworks import is_tensor
from tilewright.core.enums import ParamDirection
from tilewright.frontend.kernels import Kernel, KernelParameter, bind
from tilewright.frontend.names import Resolver
from tilewright.keep.reads import ReadSet


class UntoldOutputError(TypeError):
    """A call that leaves out an output of whose shape nothing tells."""

    def __init__(self, kernel: str, output: str, message: str) -> None:
        super().__init__(f"@pl.jit function '{kernel}': cannot tell the shape of the output `{output}`{message}")
        self.output = output


class Parameters:
    """What one kernel declares, and from which reads that follows."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        resolver = Resolver.of(kernel.function)
        self.declared = dict(zip((p.name for p in kernel.parameters), kernel.declared(resolver), strict=True))
        self.reads = ReadSet([resolver])
        self.outputs = [name for name, says in self.declared.items() if says.direction is ParamDirection.Out]

    @property
    def written(self) -> list[str]:
        """The parameters that a call changes."""
        return [name for name, says in self.declared.items() if says.direction is not ParamDirection.In]

    @property
    def inputs(self) -> list[KernelParameter]:
        """The parameters that a call gives which leaves its outputs out."""
        return [p for p in self.kernel.parameters if p.name not in self.outputs]

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as Python itself would sort them."""
        try:
            return self.kernel.bind(args, kwargs)
        except TypeError as error:
            raise self.error(str(error)) from None

    def placed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by parameter, without the outputs that it leaves out."""
        try:
            values = self.kernel.bind(args, kwargs)
        except TypeError as error:
            if all(is_tensor(kwargs.get(name)) for name in self.outputs):
                raise self.error(str(error)) from None
            values = None
        if values is None or not self._is_in_place(values, args, kwargs):
            values = self._inputs_only(args, kwargs)
        if missing := self._missing(values):
            raise self.error(f"missing argument `{missing[0]}`: it takes {self._counts()}{self._unnamed(missing)}")
        return values

    def _unnamed(self, missing: Sequence[str]) -> str:
        """Return what makes the last tensor an output that may be left out, where there is none and it is missing."""
        is_last = missing == [[*self.declared][-1]] and self.declared[missing[0]].is_tensor
        return "" if self.outputs or not is_last else "; pl.Out[...] around its annotation makes it an output to return"

    def _missing(self, values: Mapping[str, Any]) -> list[str]:
        """Return the inputs that a call has not given."""
        return [name for name in self.declared if name not in values and name not in self.outputs]

    def _is_in_place(self, values: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether a call gives every output a tensor, and does not make better sense as one of the inputs."""
        if not all(name in values and is_tensor(values[name]) for name in self.outputs):
            return False
        if self._fits(values):
            return True
        try:
            return not self._fits(bind(self.inputs, args, kwargs))
        except TypeError:
            return True

    def _fits(self, values: Mapping[str, Any]) -> bool:
        """Return whether every input is there, tensors where there must be some."""
        needed = [name for name, says in self.declared.items() if says.is_tensor and not says.is_optional]
        tensors = (name for name in needed if name not in self.outputs)
        return not self._missing(values) and all(is_tensor(values[name]) for name in tensors)

    def _inputs_only(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call that leaves its outputs to us; TypeError where it passes some of them."""
        for name in kwargs:
            if name not in self.declared:
                raise self.error(f"has no parameter `{name}`")
        named = [name for name in self.outputs if kwargs.get(name) is not None]
        if named:
            missing = [name for name in self.outputs if name not in kwargs]
            raise self.error(
                f"`{missing[0]}` is missing: pass every output, or none to have them returned"
                if missing
                else self._no_output(named[0], kwargs[named[0]])
            )
        try:
            return bind(self.inputs, args, {name: value for name, value in kwargs.items() if name not in self.outputs})
        except TypeError as error:
            raise self.error(self._misplaced(args) or str(error)) from None

    def _misplaced(self, args: Sequence[Any]) -> str:
        """Return what is wrong with too many positional arguments."""
        positional = [p.name for p in self.kernel.parameters if p.is_positional]
        inputs = [name for name in positional if name not in self.outputs]
        if len(args) <= len(inputs):
            return ""
        if len(args) <= len(positional):
            for name, value in zip(positional, args, strict=False):
                if name in self.outputs and not is_tensor(value):
                    return self._no_output(name, value)
        return f"takes {len(positional)} (in-place) or {len(inputs)} (return) positional arguments, got {len(args)}"

    def _no_output(self, name: str, value: Any) -> str:
        return f"`{name}` is an output: pass a tensor, or leave it out to have it returned; got {type(value).__name__}"

    def _counts(self) -> str:
        total, outputs = len(self.declared), len(self.outputs)
        return f"{total} (in-place) or {total - outputs} (return) arguments" if outputs else f"{total} argument(s)"

    @property
    def needs_backward(self) -> str:
        """What to do about gradients that are to flow through a call."""
        return f"give it a backward, with `@{self.kernel.name}.backward` (docs/training.md)"

    def error(self, message: str) -> TypeError:
        """Return a mistake in a call of the kernel."""
        return TypeError(f"@pl.jit function '{self.kernel.name}': {message}")
