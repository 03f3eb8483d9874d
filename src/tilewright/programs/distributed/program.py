"""Distributed programs: what `ir.compile` and a host function's `compile` give."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.backends.interface import RANKS, Anatomy, Backend, Reach, find
from tilewright.call.binding import Bound
from tilewright.call.device_tensor import DeviceTensor
from tilewright.call.launch import Runner, run_interpreted, runner_on
from tilewright.call.placement import MISSING, placed
from tilewright.call.torch_state import has_shards
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Program
from tilewright.core.serialize import deserialize, serialize
from tilewright.core.verify import verify
from tilewright.forks import computed_once
from tilewright.interpret.hosts import dispatched
from tilewright.passes import chips, control_plane
from tilewright.programs.distributed.agreement import told_to_others
from tilewright.programs.distributed.chips import Chips
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.group import group_size
from tilewright.programs.distributed.ranked import Ranked
from tilewright.programs.folder import path_of
from tilewright.programs.loading import load
from tilewright.programs.platforms import DEFAULT, INTERPRETER, Unsaid, checked_platform, target_of
from tilewright.programs.program import CompiledProgram
from tilewright.programs.stages import Makers

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.programs.distributed.worker import DistributedWorker

META, SOURCE = "distributed_meta.json", "program.twir"
"""What a folder holds of a program of many ranks: its devices, and the program itself."""


class DistributedCompiledProgram(CompiledProgram):
    """A program of many ranks, ready to run: called like any other, it returns once all ranks are done."""

    loaded: Ranked

    @property
    def distributed_config(self) -> DistributedConfig:
        """On which devices it runs."""
        return self.loaded.config

    @property
    def ranks(self) -> int:
        """How many ranks it runs on."""
        return self.loaded.size

    @property
    def backend(self) -> Backend:
        """What computes on each rank."""
        return find(self.loaded.platform)

    @property
    def reach(self) -> Reach:
        """What its dispatches run side by side on."""
        return Reach(self.ranks, RANKS)

    def anatomy(self, lowered: Program) -> Anatomy:
        """Return what is made of all that it dispatches, one behind the other."""
        from tilewright.passes.stages import walked

        chips = self.loaded.chips
        found = [chip.anatomy(walked(chips.program(name)).stages[-1].after) for name, chip in chips.own().items()]
        stages = found[0].texts if found else ()
        texts = {stage: [line for each in found for line in each.texts[stage]] for stage in stages}
        return Anatomy(texts, [m for each in found for m in each.memory], [n for each in found for n in each.notes])

    def configured(self, config: Any) -> CompiledProgram:
        """Return this program: its ranks were settled when it was compiled."""
        return self

    def __call__(self, *args: Any, config: Any = None, **named: Any) -> Any:
        """Run the host function; DTensors are gathered for it, and what it returns of them is sharded again."""
        with told_to_others(self.loaded.config):
            return self._called(args, config, named)

    def _called(self, args: Sequence[Any], config: Any, named: Mapping[str, Any]) -> Any:
        if config is not None:
            self._check(config)
        if not has_shards((*args, *named.values())):
            return super().__call__(*args, config=config, **named)
        from tilewright.programs.distributed.shards import along_axis, mesh_of, on_whole

        if mesh_of((*args, *named.values())).ndim > 1:
            return along_axis(self, self.loaded.config, args, named)
        entry = self.entry
        given = dict(zip(entry.param_names, placed(entry.function, args, named), strict=True))
        given = {name: value for name, value in given.items() if value is not MISSING}
        directions = zip(entry.param_names, entry.directions, strict=True)
        written = [name for name, direction in directions if direction is not ParamDirection.In]
        return on_whole(super().__call__, self.loaded.config, given, written)

    def _check(self, config: Any) -> None:
        """Raise for a configuration that says other ranks, or another platform, than this program was compiled for."""
        if not hasattr(config, "distributed_config"):
            raise TypeError(f"config is a RunConfig, got {config!r}")
        said, own = config.distributed_config, [*self.loaded.config.device_ids]
        if said is not None and [*said.device_ids] != own:
            message = f"config names device_ids {[*said.device_ids]}, and this program was compiled for {own}"
            raise ValueError(f"{message}: compile it for those")
        if not isinstance(config.platform, Unsaid) and config.runs_on != self.loaded.platform:
            message = f"config names platform {config.platform!r}, and this program was compiled for {self.platform!r}"
            raise ValueError(f"{message}: compile it for that")

    def run_bound(self, bound: Bound) -> tuple[Any, ...]:
        """Run a host function on arguments that are bound; TypeError for memory that a worker holds."""
        if any(isinstance(given, DeviceTensor) for given in bound.given):
            raise TypeError("a program of many ranks takes tensors of the host; what prepare() gives takes its own")
        return super().run_bound(bound)

    @computed_once
    def _runner(self) -> Runner:
        return runner_on(self.backend, partial(run_interpreted, self.loaded.run))

    def prepare(self, config: Any = None, *, extra_compiled: Sequence[Any] = (), **options: Any) -> DistributedWorker:
        """Return a worker that keeps this program's ranks ready, and those of others beside it."""
        from tilewright.programs.distributed.worker import DistributedWorker

        return DistributedWorker([self, *extra_compiled], config, **options)

    @classmethod
    def from_dir(
        cls,
        directory: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: Any = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """Return the program of a folder; FileNotFoundError where it holds none, ValueError for a broken one."""
        folder = path_of(directory)
        try:
            said = json.loads((folder / META).read_text(encoding="utf-8"))
            source = deserialize((folder / SOURCE).read_bytes())
            config = distributed_config or DistributedConfig(**said["distributed_config"])
            name = said["platform"] if platform is None else checked_platform(platform)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{META} of {folder} is broken: {error}") from error
        assert isinstance(source, Program)
        chips = Chips(source, partial(_loaded, folder, name))
        ranked = Ranked(source, _placed(config), target_of(name), chips)
        return cls(source, name, ranked, _stages(ranked), output_dir=folder)

    def _files(self) -> dict[str, bytes]:
        """Return what `from_dir` reads besides what every program's folder has."""
        config = self.loaded.config
        said = {"device_ids": list(config.device_ids), "timeout_s": config.timeout_s}
        meta = {"platform": self.platform, "distributed_config": said}
        found = {META: json.dumps(meta, indent=1).encode(), SOURCE: serialize(self.declared)}
        natives = {_file(name, False): chip.artifact for name, chip in self.loaded.chips.own().items()}
        natives |= {_file(name, True): chip.artifact for name, chip in self.loaded.chips.own(is_distant=True).items()}
        found |= {file: artifact.to_bytes() for file, artifact in natives.items() if artifact is not None}
        return super()._files() | found

    def __repr__(self) -> str:
        return f"DistributedCompiledProgram({self.declared.name!r}, device_ids={list(self.loaded.config.device_ids)})"


def _stages(ranked: Ranked) -> Makers:
    return {"ir": lambda: str(ranked.program), "plan": partial(_planned, ranked)}


def _planned(ranked: Ranked) -> str:
    from tilewright.programs.distributed.plan_text import shown

    return shown(ranked.program, ranked.size)


def _file(chip: str, is_distant: bool) -> str:
    """Return the name of the file that holds the code of what is dispatched."""
    return f"{'distant' if is_distant else 'chip'}_{chip}.twar"


def _loaded(folder: Path, platform: str, chips: Chips, chip: str, is_distant: bool) -> CompiledProgram:
    """Return what is dispatched as a folder has it, or made anew: it does so of what ranks run besides."""
    from tilewright.programs.compilation import How, compiled_alone

    file = folder / _file(chip, is_distant)
    if file.exists():
        return load(file.read_bytes())
    return compiled_alone(_chip(chips, chip, is_distant), How.of(platform=platform), None)


def execute_distributed_compiled(
    output_dir: str | os.PathLike[str],
    args: Sequence[Any],
    config: Any = None,
    *,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
) -> Any:
    """Run the program of a folder once."""
    program = DistributedCompiledProgram.from_dir(output_dir, platform=platform, distributed_config=distributed_config)
    return program(*args, config=config)


def compile_distributed(
    source: Program,
    config: DistributedConfig | None,
    platform: str,
    compile: Callable[[Program, Callable[[], bytes]], CompiledProgram],
    directory: Path | None = None,
) -> DistributedCompiledProgram:
    """Return a program with host functions ready to run; `compile` makes what they dispatch, also given as bytes."""
    verify(source, types=False)
    source = chips.run(control_plane.run(source))
    target = target_of(platform)
    is_apart = find(target).rank_devices() is not None
    if target not in (INTERPRETER, target_of(DEFAULT)) and not is_apart:
        raise ValueError(f"programs of many ranks run on processors and GPUs, and platform {platform!r} is none")

    def compiled(chips: Chips, name: str, is_distant: bool) -> CompiledProgram:
        program = _chip(chips, name, is_distant)
        return compile(program, partial(serialize, program) if is_distant else partial(chips.data, name))

    ranked = Ranked(source, _placed(config), target, Chips(source, compiled))
    for name in dispatched(source) if target != INTERPRETER else ():
        ranked.chips.compiled(name)
    made = DistributedCompiledProgram(source, platform, ranked, _stages(ranked), output_dir=directory)
    if directory is not None:
        made.write()
    return made


def _chip(chips: Chips, name: str, is_distant: bool) -> Program:
    """Return the program of a function that is dispatched."""
    program = chips.program(name)
    if not is_distant:
        return program
    from tilewright.passes import distant

    return distant.run(program)


def _placed(config: DistributedConfig | None) -> DistributedConfig:
    """Return on which devices a program runs: where processes were launched together, a rank is each of them."""
    size = group_size(None if config is None else config.process_group)
    if config is None:
        return DistributedConfig(range(size))
    if size > 1 and size != len(config.device_ids):
        message = f"device_ids names {len(config.device_ids)} device(s), and the group has {size} process(es)"
        raise ValueError(f"{message}: start as many, or pass device_ids=range({size})")
    return config
