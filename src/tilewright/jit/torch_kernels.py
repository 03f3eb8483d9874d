"""Followed kernels: those that torch knows as operators, host functions on DTensors and on ranks among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tilewright.frontend.kernels import KernelKind
from tilewright.jit.inside import Inside

if TYPE_CHECKING:
    from typing_extensions import Self

    from tilewright.programs.config import RunConfig
    from tilewright.programs.torch_op import TorchOp


class Followed(Inside):
    """A kernel as torch follows its calls, which have gradients where it has a backward."""

    drift: str | None
    gradient: Any
    _check_entry: Any
    _make_traceable: Any
    traced: Any

    def as_torch_op(self, name: str, config: RunConfig | None = None) -> TorchOp:
        """Return the kernel as an operator of torch, known there as `name`, as in `"mine::softmax"`.

        A host function runs on the ranks of a `config`, or without one on those that were launched together.
        """
        from tilewright.jit.torch_op import torch_op

        self._check_entry()
        if config is not None:
            return self.on(config).as_torch_op(name)
        operator = torch_op(self, self._session, name)
        if self.gradient is not None:
            from tilewright.jit.autograd import follow
            from tilewright.jit.backward import pair

            follow(operator, pair(self, self.gradient))
        return operator

    def on(self, config: RunConfig) -> Self:
        """Return a host function whose calls, and those of its backward, run as a configuration says.

        It is the same one for the same ranks. TypeError for other kernels.
        """
        from tilewright.jit.hosts import ranks_of

        if self.kind is not KernelKind.HOST:
            raise TypeError(f"kernel `{self.name}`: only a host function is on the ranks of a config=")
        key, found = (config.code_options, ranks_of(config), self.gradient), self.__dict__.setdefault("_ranked", {})
        if key not in found:
            found[key] = self._made_for(config)
        return found[key]

    def _made_for(self, config: RunConfig) -> Self:
        gradient, make = self.gradient, cast("Any", type(self))
        if gradient is not None and gradient.kind is KernelKind.HOST:
            gradient = gradient.on(config)
        made = make(self.function, self.kind, self.level, self.auto_scope, self.owner, self.drift, gradient, config)
        made.__dict__["_held"] = self._session  # its programs are those of the function
        return made

    def _on_shards(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Any:
        """Run a host function on DTensors, and on the processes of their mesh unless a configuration names others."""
        from tilewright.jit.backward import pair
        from tilewright.programs.distributed.shards import along_axis, flow_in_place, mesh_of, on_whole, ranked

        mesh = mesh_of((*args, *kwargs.values()))
        if mesh.ndim > 1:
            said = None if config is None else config.distributed_config
            return along_axis(partial(self, config=config), said, args, kwargs)
        parameters, ranks = self._session.binder.parameters, ranked(config, mesh)
        given = parameters.placed(args, kwargs)
        gradient = None if given.keys() & parameters.written else self.gradient
        if gradient is not None and flow_in_place(given.values()) and pair(self, gradient).returned:
            made = self.on(ranks)
            made._make_traceable()
            return made.traced.record(*args, **kwargs)  # whose forward and backward come here again, and record nothing
        assert ranks.distributed_config is not None
        return on_whole(partial(self, config=ranks), ranks.distributed_config, given, parameters.written)
