"""Host functions compiled: what they dispatch is kept between processes, and how they do so is not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tilewright import settings
from tilewright.backends.interface import find
from tilewright.keep.programs import KeptPrograms
from tilewright.keep.reads import ReadSet
from tilewright.keep.relocate import FunctionSpans
from tilewright.programs import loading
from tilewright.programs.code_options import code_options
from tilewright.programs.platforms import DEFAULT

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.frontend.entries import Specialization
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram


def ranks_of(config: RunConfig | None) -> tuple[object, ...]:
    """Return what a program is found by of its ranks; nothing for what says nothing of any."""
    return () if config is None or config.distributed_config is None else config.distributed_config.key


def rank_count(config: RunConfig | None) -> int:
    """Return on how many ranks a host function runs."""
    return 1 if config is None or config.distributed_config is None else len(config.distributed_config.device_ids)


def is_one_process(config: RunConfig | None) -> bool:
    """Return whether all ranks of a host function run in this process."""
    from tilewright.programs.distributed.group import group_size

    ranks = None if config is None else config.distributed_config
    return group_size(None if ranks is None else ranks.process_group) == 1


def beside_others(config: RunConfig | None) -> AbstractContextManager[None]:
    """Return what a call of a host function runs in: the other processes that make it are told what goes wrong here."""
    from tilewright.programs.distributed.agreement import told_to_others

    return told_to_others(config)


def host_program(made: Specialization, config: RunConfig | None, reads: ReadSet) -> CompiledProgram:
    """Return the program of a host function, what it dispatches being compiled or found."""
    from tilewright.programs.distributed.program import compile_distributed

    kwargs = {} if config is None else config.compile_kwargs()
    ranks, platform = kwargs.pop("distributed_config", None), kwargs.get("platform", DEFAULT)

    def compiled(program: Program) -> CompiledProgram:
        from tilewright.programs.compiler import compile, on_ranks

        with on_ranks():
            return compile(program, **kwargs)

    def chip(program: Program, data: Callable[[], bytes]) -> CompiledProgram:
        return _kept(program.name, data, config, made, reads, lambda: compiled(program))

    return compile_distributed(made.program, ranks, platform, chip)


def _kept(
    chip: str, data: Callable[[], bytes], config: RunConfig | None, made: Specialization, reads: ReadSet,
    compile: Callable[[], CompiledProgram],
) -> CompiledProgram:  # fmt: skip
    """Return what a host function dispatches, kept by now: of several processes that want it one compiles."""
    options = code_options(config)
    programs = KeptPrograms(chip, find(options[0]), [*settings.code_settings(), *options], loading)
    key = programs.key(lambda: [data(), list(made.syntax)])
    return programs.made(key, FunctionSpans(reads.resolvers), compile)
