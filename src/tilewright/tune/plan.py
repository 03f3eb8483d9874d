"""Plans: what an author says about tuning a kernel, checked against its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tilewright.frontend.kernels import Kernel
from tilewright.records import record
from tilewright.tune.config import Config
from tilewright.tune.key import Key, item

THREADS = "threads"
"""The option that says how many threads a program runs on."""

Prune = Callable[[Sequence[Config], Mapping[str, Any]], Sequence[Config]]
"""Returns which of some configurations are worth measuring for a call's arguments, given by parameter."""


@record
class Plan:
    """The configurations of a kernel, what they are chosen by, and the parameters that they set."""

    configs: Sequence[Config]
    key: Key
    prune: Prune | None
    names: Sequence[str]

    def values(self, config: Config, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a configuration has for every parameter that some set: its `own` default where it sets none."""
        return {name: config[name] if name in config else own[name] for name in self.names}

    def options(self, config: Config) -> dict[str, Any]:
        """Return the fields of a run configuration that a configuration sets."""
        return {name: value for name, value in config.items() if name not in (*self.names, THREADS)}

    def threads(self, config: Config) -> int:
        """Return how many threads a configuration runs on, 0 where it does not say."""
        return 0 if THREADS in self.names else config.get(THREADS, 0)

    def worthwhile(self, arguments: Mapping[str, Any]) -> Sequence[Config]:
        """Return the configurations to be measured for a call; ValueError where none is left."""
        if self.prune is None:
            return self.configs
        given = {name: value for name, value in arguments.items() if name not in self.names}
        kept = list(self.prune(self.configs, given))
        found = [config for config in self.configs if any(config is each or config == each for each in kept)]
        if not found:
            raise ValueError("prune= left no configuration to be measured")
        return found


def plan(kernel: Kernel, configs: Sequence[Any], key: Sequence[str] | None, prune: Prune | None) -> Plan:
    """Return what was said about a kernel; TypeError or ValueError for what does not fit it."""
    parameters = {parameter.name: parameter for parameter in kernel.parameters}
    made = [_config(each) for each in configs]
    if not made:
        raise ValueError("@pl.autotune needs a configuration or more, as in configs=[pl.Config(BLOCK=64)]")
    names = [name for name in parameters if any(name in config for config in made)]
    for config in made:
        for name in config:
            if name not in parameters:
                _check_option(kernel, name, config[name])
        for name in names:
            if name not in config and not parameters[name].is_optional:
                raise TypeError(f"{config!r} says nothing about `{name}`, which has no default and others set")
    if isinstance(key, str):
        raise TypeError(f"key= takes a list of parameters, as in key=[{key!r}], got {key!r}")
    items = None if key is None else [item(each) for each in key]
    for each in items or ():
        if each.name not in parameters or each.name in names:
            what = "is what configurations set" if each.name in names else "is no parameter"
            raise ValueError(f"the tuning key `{each}` of kernel `{kernel.name}`: `{each.name}` {what}")
    return Plan(tuple(made), Key(items), prune, names)


def _config(given: Any) -> Config:
    if isinstance(given, Config):
        return given
    if isinstance(given, Mapping):
        return Config(**{str(name): value for name, value in given.items()})  # pyright: ignore
    raise TypeError(f"configs= takes pl.Config or dicts, got {type(given).__name__}")


def _check_option(kernel: Kernel, name: str, value: object) -> None:
    from tilewright.programs.config import RunConfig

    if name == THREADS:
        if type(value) is not int or value < 1:
            raise ValueError(f"`{THREADS}` of a configuration is a positive number, got {value!r}")
        return
    if name not in {field.name for field in fields(RunConfig)}:
        raise TypeError(
            f"kernel `{kernel.name}` has no parameter `{name}`, nor has a RunConfig: "
            f"its parameters are {', '.join(parameter.name for parameter in kernel.parameters)}"
        )
