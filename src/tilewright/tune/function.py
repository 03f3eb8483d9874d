"""Tuned kernels: what `@pl.autotune` makes of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.frontend.kernels import UNBOUND, KernelKind, KernelParameter
from tilewright.frontend.tracebacks import brief
from tilewright.jit.function import JITFunction
from tilewright.tune.config import Config
from tilewright.tune.plan import Plan, Prune, plan

if TYPE_CHECKING:
    from tilewright.jit.session import Session
    from tilewright.tune.outcome import Outcome
    from tilewright.tune.session import TunedSession


class TunedFunction(JITFunction):
    """A kernel that finds out, at the first call for each tuning key, which of its configurations is fastest.

    The parameters that configurations set are given by name, all of them or none: then they are chosen.
    """

    def __init__(self, kernel: JITFunction, plan: Plan, owner: object = UNBOUND) -> None:
        gradient = kernel.gradient if owner is UNBOUND else kernel._gradient_of(owner)
        super().__init__(kernel.function, kernel.kind, kernel.level, kernel.auto_scope, owner, kernel.drift, gradient)
        self.plan = plan
        self._untuned = kernel
        self._chosen: tuple[Any, tuple[KernelParameter, ...]] = (None, ())

    def __repr__(self) -> str:
        return f"TunedFunction({self.name!r}, {len(self.plan.configs)} configs)"

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """The parameters a caller passes; those that configurations set by name, where at all."""
        known = super().parameters
        if self._chosen[0] is not known:
            chosen = {"default": None, "is_positional": False, "is_keyword": True, "is_chosen": True}
            self._chosen = known, tuple(replace(p, **chosen) if p.name in self.plan.names else p for p in known)
        return self._chosen[1]

    def _own_defaults(self) -> Mapping[str, Any]:
        """The defaults that the author gave parameters which configurations set."""
        return {p.name: p.default for p in super().parameters if p.name in self.plan.names and p.is_optional}

    @brief
    def best_config(self, *args: Any, config: Any = None, **kwargs: Any) -> Config:
        """Return the configuration that a call with these arguments runs, measured now where that is not known."""
        return self._tuned_session.choice(args, kwargs, config)

    @brief
    def tuning(self, *args: Any, config: Any = None, **kwargs: Any) -> Outcome:
        """Return how long each configuration takes for these arguments, measured now where that is not known.

        It prints as a table. Nothing that the arguments hold is changed.
        """
        return self._tuned_session.outcome(args, kwargs, config)

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> TunedFunction:
            """Return the kernel as a method of `instance`, the same one each time."""
            ...

    def _bound(self, instance: object) -> TunedFunction:
        return TunedFunction(self._untuned, self.plan, instance)

    @property
    def _tuned_session(self) -> TunedSession:
        self._check_entry()
        session: Any = self._session
        return session

    def _new_session(self) -> Session:
        from tilewright.tune.session import TunedSession

        return TunedSession(
            self, self.drift, self.plan, self._own_defaults, partial(JITFunction.__call__, self), self._enter
        )


def autotune(
    configs: Sequence[Config | Mapping[str, Any]], key: Sequence[str] | None = None, *, prune: Prune | None = None
) -> Callable[[JITFunction], TunedFunction]:
    """Let a kernel find out by measuring which of some configurations is fastest for its arguments.

    `key` names what of the arguments decides that, as in `["n", "x.shape[0]", "x.dtype"]`: for the first call with
    another key they are measured, and the winner is kept in the cache on disk. Without it, that is the shapes and
    element types of all tensors. `prune(configs, arguments)` returns those worth measuring.
    """

    def tuned(kernel: Any) -> TunedFunction:
        if not isinstance(kernel, JITFunction):
            raise TypeError(f"@pl.autotune decorates a kernel, got {type(kernel).__name__}: put it above @pl.jit")
        if kernel.kind is not KernelKind.ENTRY:
            raise TypeError(f"@pl.autotune decorates a @pl.jit kernel, got {kernel!r}, which others call")
        if isinstance(kernel, TunedFunction):
            raise TypeError(f"kernel `{kernel.name}` is tuned already: give one @pl.autotune all configurations")
        return TunedFunction(kernel, plan(kernel, configs, key, prune))

    return tuned
