"""Choices: what was found to be best for the calls of one kernel, in this process and on disk.

A choice is kept like a program: by everything that is known before the kernel is read, and with what the program that
won has read from outside. Another number of threads, other configurations, an edited helper: each is measured anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.backends.interface import find
from tilewright.call.argument import CPU
from tilewright.call.frameworks import is_tensor
from tilewright.forks import Lock
from tilewright.frontend.kernels import Kernel
from tilewright.jit.arguments import describe
from tilewright.keep.digest import digest, function_bytes
from tilewright.keep.fingerprint import python
from tilewright.keep.manifest import listed
from tilewright.keep.programs import PATIENCE, KeptPrograms
from tilewright.keep.reads import Drift, ReadSet
from tilewright.keep.relocate import FunctionSpans
from tilewright.programs.code_options import code_options
from tilewright.programs.platforms import DEFAULT, platform_for
from tilewright.records import record
from tilewright.settings import CodeSettings
from tilewright.tune.outcome import Outcome, Outcomes
from tilewright.tune.plan import Plan

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig

TUNING = "tuning"
"""The kind of entries in the cache that outcomes are."""

MEASURING = Lock()
"""Held by whoever measures: two at once would disturb each other."""


@record
class Choice:
    """What was found, and what the program that won was compiled from."""

    outcome: Outcome
    reads: ReadSet


@record
class Place:
    """What a choice is found by: what the key has for a call, and everything else that decides how long code takes."""

    key: tuple[object, ...]
    target: str
    options: tuple[object, ...]
    said: CodeSettings
    """What settings say that code depends on."""
    threads: int


class Choices:
    """The choices for one kernel."""

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self._kernel = kernel
        self._plan = plan
        self._known: dict[Place, list[Choice]] = {}

    def place(self, values: Mapping[str, Any], outputs: Collection[str], config: RunConfig | None) -> Place:
        """Return what the choice for some arguments is found by."""
        tensors = (describe(n, v, is_run=False).argument for n, v in values.items() if is_tensor(v))
        device = next((each.device for each in tensors if each is not None), CPU)
        target, *options = code_options(config)
        placed = platform_for(device, target) if target == DEFAULT else target  # where else, whoever runs it asks
        key = self._plan.key.of(values, outputs)
        return Place(key, placed, tuple(options), settings.code_settings(), settings.num_threads())

    def find(self, place: Place, refuse: Callable[[Drift], None]) -> Choice | None:
        """Return what is known, here or on disk, and still holds; `refuse` is told of what has changed since."""
        drifted = None
        for choice in self._known.get(place, ()):
            drift = choice.reads.drift()
            if drift is None:
                return choice
            drifted = drifted or (None if drift.is_own else drift)
        if drifted is not None:
            refuse(drifted)
        kept = self._programs(place)
        found = kept.find(self._key(kept, place), lambda reads: FunctionSpans(reads.resolvers), self._kernel)
        return None if found is None else self._add(place, Choice(found.program, found.reads))

    def made(self, place: Place, measure: Callable[[], Choice]) -> Choice:
        """Return a new choice, kept by now; other processes that want the same wait for a while."""
        kept = self._programs(place)
        key = self._key(kept, place)
        if not key:
            return self._add(place, measure())
        with kept.store.lock(key, timeout=PATIENCE):
            found = kept.find(key, lambda reads: FunctionSpans(reads.resolvers), self._kernel)
            if found is not None:
                return self._add(place, Choice(found.program, found.reads))
            made = measure()
            data = kept.form.dump(made.outcome, list)
            artifact = digest(key, data)
            if data is not None and kept.store.put(TUNING, artifact, data, self._kernel.name):
                kept.list(key, listed(artifact, (), None, made.reads))
            return self._add(place, made)

    def all(self) -> Iterator[tuple[Place, Outcome]]:
        """Yield what is known in this process."""
        for place, choices in list(self._known.items()):
            yield from ((place, choice.outcome) for choice in list(choices))

    def clear(self) -> None:
        """Forget what is known in this process."""
        self._known = {}

    def _add(self, place: Place, choice: Choice) -> Choice:
        self._known.setdefault(place, []).append(choice)
        return choice

    def _programs(self, place: Place) -> KeptPrograms[Outcome]:
        options = [*place.said, place.target, *place.options, place.threads]
        return KeptPrograms(self._kernel.name, find(place.target), options, Outcomes(self._plan.configs), TUNING)

    def _key(self, kept: KeptPrograms[Outcome], place: Place) -> bytes:
        configs = [tuple(config.items()) for config in self._plan.configs]
        facts = [TUNING, configs, str(self._plan.key), self._plan.prune, place.key]
        return kept.key(lambda: [python(), function_bytes(self._kernel.function), *facts])
