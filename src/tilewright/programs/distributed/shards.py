"""Shards: tensors that processes hold a part of each, as arguments of host functions.

A host function sees whole tensors. A DTensor of which each process has the row of its rank stays where it is, see
`rows.py`. Torch gathers others where a call takes them, so that gradients flow through that. What the call gives back
becomes one again: sharded by the leading axis where that counts the ranks, otherwise whole on each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from tilewright.programs.distributed.agreement import agreed, known_to_all
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.group import group_of
from tilewright.programs.distributed.rows import ROWS, SHARDS, NotRows, Rows

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig


def mesh_of(values: Iterable[Any]) -> Any:
    """Return the device mesh that all DTensors are on; ValueError where there are several."""
    tensors: Any = sys.modules["torch.distributed.tensor"]
    found = [value.device_mesh for value in values if isinstance(value, tensors.DTensor)]
    if any(mesh != found[0] for mesh in found):
        raise ValueError(f"DTensors of a host function lie on one mesh, got {', '.join(map(str, found))}")
    return found[0]


def ranked(config: RunConfig | None, mesh: Any) -> RunConfig:
    """Return a configuration that says which ranks run: its own, or without any the processes of a mesh."""
    from tilewright.programs.config import RunConfig

    config = RunConfig() if config is None else config
    said = config.distributed_config
    if said is not None and (said.mesh_axis is None or said.process_group is not None):
        return config
    dist, group = sys.modules["torch.distributed"], mesh.get_group()
    is_all = dist.get_process_group_ranks(group) == [*range(dist.get_world_size())]
    ranks = replace(said or DistributedConfig(), device_ids=range(mesh.size()), process_group=None if is_all else group)
    return replace(config, distributed_config=ranks)


def along_axis(
    call: Callable[..., Any], config: DistributedConfig | None, args: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """Return what a call gives whose DTensors lie on a mesh of several axes, its ranks being along one of them.

    They are the same along all other axes, and so is what the call returns.
    """
    tensors: Any = sys.modules["torch.distributed.tensor"]
    mesh = mesh_of((*args, *named.values()))
    axis = _axis(mesh, config)
    origin: dict[int, Any] = {}

    def narrowed(value: Any) -> Any:
        if not isinstance(value, tensors.DTensor):
            return value
        found = _along(tensors, value, axis)
        origin[id(found)] = value
        return found

    def widened(value: Any) -> Any:
        if id(value) in origin or not isinstance(value, tensors.DTensor):
            return origin.get(id(value), value)
        placements = [tensors.Replicate()] * mesh.ndim
        placements[mesh.mesh_dim_names.index(axis)] = value.placements[0]
        return tensors.DTensor.from_local(value.to_local(), mesh, placements, run_check=False)

    given = [narrowed(value) for value in args], {name: narrowed(value) for name, value in named.items()}
    made = call(*given[0], **given[1])
    return tuple(map(widened, cast("tuple[Any, ...]", made))) if isinstance(made, tuple) else widened(made)


def _axis(mesh: Any, config: DistributedConfig | None) -> str:
    """Return the axis of a mesh that a configuration names, by itself or by its processes."""
    names: tuple[str, ...] = mesh.mesh_dim_names or ()
    group = None if config is None else config.process_group
    ranks = group and sys.modules["torch.distributed"].get_process_group_ranks
    found = [
        name for name in names
        if (config is not None and config.mesh_axis == name) or (ranks and ranks(group) == ranks(mesh.get_group(name)))
    ]  # fmt: skip
    if len(found) != 1:
        shown = ", ".join(names) or f"{mesh.ndim} without names"
        raise ValueError(
            f"DTensors lie on a mesh with axes {shown}, and ranks are along one of them: say which, as in "
            f"RunConfig(distributed_config=DistributedConfig(mesh_axis={(*names, 'ranks')[0]!r}))"
        )
    return found[0]


def _along(tensors: Any, shard: Any, axis: str) -> Any:
    """Return a DTensor along one axis of its mesh; ValueError where it is not the same along the others."""
    mesh, number = shard.device_mesh, shard.device_mesh.mesh_dim_names.index(axis)
    others = [each for k, each in enumerate(shard.placements) if k != number]
    if not all(placement.is_replicate() for placement in others):
        raise ValueError(f"a DTensor is the same along all axes of its mesh but {axis!r}, got {shard.placements}")
    return tensors.DTensor.from_local(shard.to_local(), mesh[axis], [shard.placements[number]], run_check=False)


def on_whole(
    call: Callable[..., Any], config: DistributedConfig, given: Mapping[str, Any], written: Collection[str]
) -> Any:
    """Return what a call with whole tensors instead of DTensors returns, as DTensors; those it has `written` change.

    A DTensor of which each process has one row stays where it is, where the call needs no more of it.
    """
    tensors: Any = sys.modules["torch.distributed.tensor"]
    shards = {name: value for name, value in given.items() if isinstance(value, tensors.DTensor)}
    mesh = mesh_of(shards.values())
    may_stay = _may_stay(shards.values())
    local = _local(shards) if may_stay else {}
    rows = {name for name in local if _is_row(tensors, shards[name], local[name])}
    while True:
        told = partial(_told, shards, frozenset(rows))
        if rows != shards.keys():
            _agree(config, told())
        whole = {name: _whole(name, value, name in rows) for name, value in shards.items()}
        held = _held(mesh, given.keys(), {name: local[name] for name in rows})
        token, told_token = ROWS.set(held if may_stay else None), SHARDS.set(told)
        try:
            made = call(**{**given, **whole})
            break
        except NotRows as needed:
            rows -= {*needed.names}
        finally:
            ROWS.reset(token)
            SHARDS.reset(told_token)
    for name in (shards.keys() & written) - rows:
        _put_back(tensors, whole[name], shards[name])
    origin = {id(each): shards[name] for name, each in whole.items() if name in written}
    several: tuple[Any, ...] = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
    back = tuple(origin[id(each)] if id(each) in origin else _sharded(tensors, each, mesh, held) for each in several)
    return back if isinstance(made, tuple) else back[0]


def _agree(config: DistributedConfig, told: Mapping[str, str]) -> None:
    """Raise unless all processes have such DTensors: torch would wait for those that gather others, or none."""
    group = group_of(config.process_group, config.timeout_s)
    group.limit = min(config.timeout_s, group.patience)
    group.leave(True)
    known_to_all()
    agreed(told, None, group, ())
    known_to_all(False)
    group.leave(False)


def _told(shards: Mapping[str, Any], rows: Collection[str]) -> dict[str, str]:
    """Return what a process passes, some of it as rows, as errors have it."""
    return {name: _told_of(shard, name in rows) for name, shard in shards.items()}


def _told_of(shard: Any, is_row: bool) -> str:
    placed = ", ".join(map(str, shard.placements))
    kind = f"a DTensor {[*shard.shape]} {shard.dtype}".replace("torch.", "")
    return f"{kind} placed {placed}, {'a row' if is_row else 'gathered'}"


def flow_in_place(values: Iterable[Any]) -> bool:
    """Return whether gradients flow through a call on DTensors that are rows, or whole in every process."""
    tensors: Any = sys.modules["torch.distributed.tensor"]
    shards = [value for value in values if isinstance(value, tensors.DTensor)]
    whole = [shard for shard in shards if all(placement.is_replicate() for placement in shard.placements)]
    if _may_stay(shards):
        return False
    return len(whole) + sum(_is_row(tensors, shard, shard.to_local()) for shard in shards) == len(shards)


def _may_stay(shards: Iterable[Any]) -> bool:
    """Return whether no gradient flows through a call, which it would through what torch gathers."""
    torch: Any = sys.modules["torch"]
    return not (torch.is_grad_enabled() and any(shard.requires_grad for shard in shards))


def _local(shards: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this process has of tensors through which no gradient flows."""
    with sys.modules["torch"].no_grad():  # where torch gives what it has, and records nothing around it
        return {name: shard.to_local() for name, shard in shards.items()}


def _is_row(tensors: Any, shard: Any, local: Any) -> bool:
    """Return whether a process has one packed row of a tensor that has as many as there are processes."""
    mesh = shard.device_mesh
    is_ranked = tuple(shard.placements) == (tensors.Shard(0),) and shard.ndim > 0 and shard.shape[0] == mesh.size() > 1
    return is_ranked and local.shape[0] == 1 and local.is_contiguous() and local.device.type == "cpu"


def _whole(name: str, shard: Any, is_row: bool) -> Any:
    return _stand_in(name, tuple(shard.shape), shard.dtype) if is_row else shard.full_tensor().contiguous()


@lru_cache(128)
def _stand_in(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a tensor whose elements nobody touches."""
    return sys.modules["torch"].empty(shape, dtype=dtype)


def _held(mesh: Any, given: Collection[str], rows: Mapping[str, Any]) -> Rows:
    """Return which tensors of a call are rows of whole ones, given what this process has of each."""
    rank, starts = int(mesh.get_local_rank()), dict[str, int]()
    for name, local in rows.items():
        starts[name] = local.data_ptr() - rank * local.numel() * local.element_size()
    return Rows(rank, starts, frozenset(given) - rows.keys())


def _sharded(tensors: Any, value: Any, mesh: Any, held: Rows) -> Any:
    """Return a tensor that every process has, or its row of one, as a DTensor; what is no tensor as it is."""
    if not hasattr(value, "data_ptr"):
        return value
    if value.data_ptr() in held.taken:
        own = value[held.rank : held.rank + 1]
        return tensors.DTensor.from_local(own, mesh, [tensors.Shard(0)], run_check=False)
    whole = tensors.DTensor.from_local(value, mesh, [tensors.Replicate()], run_check=False)
    is_ranked = value.ndim > 0 and value.shape[0] == mesh.size()
    return whole.redistribute(placements=[tensors.Shard(0)]) if is_ranked else whole


def _put_back(tensors: Any, whole: Any, shard: Any) -> None:
    """Write this process's part of a tensor into the DTensor that it was gathered from."""
    replicated = tensors.DTensor.from_local(whole, shard.device_mesh, [tensors.Replicate()], run_check=False)
    with sys.modules["torch"].no_grad():
        shard.to_local().copy_(replicated.redistribute(placements=shard.placements).to_local())
