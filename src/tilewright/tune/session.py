"""Tuned sessions: the life of a kernel whose calls leave some of its parameters to be chosen.

A choice belongs to a key, which follows from the arguments. It is found in this process, in the cache on disk, or by
measuring; then the call goes on as if it had given the values itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.backends.interface import find
from tilewright.call.frameworks import is_tensor
from tilewright.call.thread_limit import on_threads
from tilewright.call.written_calls import Written, taken
from tilewright.forks import computed_once
from tilewright.frontend.kernels import Kernel
from tilewright.jit.session import Session, placed, untold
from tilewright.jit.warm_calls import WarmCalls
from tilewright.tune.choices import MEASURING, Choice, Choices
from tilewright.tune.config import Config, applied
from tilewright.tune.measuring import Tried, measured
from tilewright.tune.outcome import Outcome
from tilewright.tune.plan import Plan
from tilewright.tune.warm_calls import TunedWarmCalls

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization
    from tilewright.jit.steps import Steps
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram


class TunedSession(Session):
    """The programs of a tuned kernel, and what was chosen for its calls."""

    def __init__(
        self,
        kernel: Kernel,
        drift: str | None,
        plan: Plan,
        own: Callable[[], Mapping[str, Any]],
        slow: Callable[..., Any],
        enter: Callable[[Any], None],
    ) -> None:
        """`own` gives the defaults that the author gave parameters which configurations set."""
        self.plan = plan
        super().__init__(kernel, drift, slow, enter)
        self.choices = Choices(kernel, plan)
        self._own = own

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Any:
        """Run the kernel on a call's arguments, with what is best for them."""
        if settings.debug():
            return self.steps.run(self.binder, args, kwargs)
        config, told = taken(config)
        written, given = Written(args, kwargs, told), self._given(kwargs)
        if given:
            call = self.binder.call(args, {**kwargs, **given})
            return self._run(call, config, written, f"`{min(given)}` was given, which is otherwise tuned")
        tried = self._tried(args, kwargs, config, self.choice(args, kwargs, config))
        with on_threads(tried.threads):
            return self._run(tried.call, tried.options, written, untold(config, told))

    @computed_once
    def steps(self) -> Steps:
        """What runs the kernel line by line, with the best configuration that is known."""
        from tilewright.jit.steps import Steps

        return Steps(self.kernel, lambda args, kwargs: self._filled(kwargs, self._known(args, kwargs, None)))

    def program(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> CompiledProgram:
        """Return the program for some arguments, with the best configuration that is known; nothing is measured."""
        chosen = self._known(args, kwargs, config)
        options = config if self._given(kwargs) else applied(self.plan.options(chosen), config)
        return super().program(args, self._filled(kwargs, chosen), options)

    def specialized(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Specialization:
        """Return the kernel as the front end makes it for some arguments, with what is known to be best."""
        return super().specialized(args, self._filled(kwargs, self._known(args, kwargs, None)))

    def explain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return why no program is found for some arguments, or that one is."""
        return super().explain(args, self._filled(kwargs, self._known(args, kwargs, None)))

    def clear(self) -> None:
        """Forget every program, and what was chosen."""
        super().clear()
        self.choices.clear()

    # choosing

    def choice(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Config:
        """Return the best configuration for a call, measured now where nobody has; of several threads, one does."""
        if settings.run_only() or not settings.autotune():
            return self._known(args, kwargs, config)
        return self.outcome(args, kwargs, config).best

    def outcome(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Outcome:
        """Return what measuring has found for a call, now where nobody has."""
        values = self.binder.parameters.placed(args, kwargs)
        place = self.choices.place(values, self.binder.outputs, config)
        known = self.choices.find(place, self._refuse)
        if known is not None:
            return known.outcome
        with MEASURING:
            known = self.choices.find(place, self._refuse)
            if known is None:
                attempt = partial(self._tried, args, kwargs, config)
                known = self.choices.made(place, lambda: self._measured(values, attempt, place.target))
            return known.outcome

    def _measured(self, values: Mapping[str, Any], attempt: Callable[[Config], Tried], target: str) -> Choice:
        configs = self.plan.worthwhile(values)
        return measured(self.kernel.name, configs, attempt, is_beside=find(target).compiles_beside)

    def _known(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Config:
        """Return the best configuration that is known for a call, or the first of all."""
        first = self.plan.configs[0]
        if self._given(kwargs) or not settings.autotune() or not any(map(is_tensor, (*args, *kwargs.values()))):
            return first
        values = self.binder.parameters.placed(args, kwargs)
        known = self.choices.find(self.choices.place(values, self.binder.outputs, config), self._refuse)
        return first if known is None else known.outcome.best

    def _tried(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None, chosen: Config) -> Tried:
        """Return a call with a configuration."""
        call = self.binder.call(args, self._filled(kwargs, chosen))
        options = applied(self.plan.options(chosen), config)
        return Tried(call, options, self.plan.threads(chosen), partial(self._compiled, call, placed(call, options)))

    def _given(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter that is otherwise tuned, where a call gives one; TypeError where one is missing."""
        given = {name: kwargs[name] for name in self.plan.names if kwargs.get(name) is not None}
        if not given:
            return {}
        whole = {**self._own(), **given}
        missing = [name for name in self.plan.names if name not in whole]
        if missing:
            raise self.binder.parameters.error(
                f"`{missing[0]}` is missing: give all of {', '.join(self.plan.names)}, or none to have them tuned"
            )
        return {name: whole[name] for name in self.plan.names}

    def _filled(self, kwargs: Mapping[str, Any], chosen: Config) -> dict[str, Any]:
        values = self._given(kwargs) or self.plan.values(chosen, self._own())
        return {**kwargs, **values}

    def _new_warm_calls(self, slow: Callable[..., Any], enter: Callable[[Any], None]) -> WarmCalls:
        return TunedWarmCalls(self.kernel, self.plan, slow, enter)
