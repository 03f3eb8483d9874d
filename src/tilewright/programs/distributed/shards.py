"""Shards: tensors that processes hold a part of each, as arguments of host functions.

A host function sees whole tensors. Torch gathers a DTensor where a call takes it, and what the call gives back becomes
one again: sharded by the leading axis where that counts the ranks, otherwise whole on each. Torch does both, so that
gradients flow through it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tilewright.programs.distributed.config import DistributedConfig

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig


def mesh_of(values: Iterable[Any]) -> Any:
    """Return the device mesh that all DTensors are on; ValueError where there are several, or one with many axes."""
    tensors: Any = sys.modules["torch.distributed.tensor"]
    found = [value.device_mesh for value in values if isinstance(value, tensors.DTensor)]
    if found[0].ndim != 1 or any(mesh != found[0] for mesh in found):
        shown = ", ".join(map(str, found))
        raise ValueError(f"DTensors of a host function lie on one mesh of one axis, that of its ranks, got {shown}")
    return found[0]


def ranked(config: RunConfig | None, mesh: Any) -> RunConfig:
    """Return a configuration that says which ranks run: its own, or without any the processes of a mesh."""
    from tilewright.programs.config import RunConfig

    config = RunConfig() if config is None else config
    if config.distributed_config is not None:
        return config
    ranks = DistributedConfig(range(mesh.size()), process_group=mesh.get_group())
    return replace(config, distributed_config=ranks)


def on_whole(call: Callable[..., Any], given: Mapping[str, Any], written: Collection[str]) -> Any:
    """Return what a call with whole tensors instead of DTensors returns, as DTensors; those it has `written` change."""
    tensors: Any = sys.modules["torch.distributed.tensor"]
    shards = {name: value for name, value in given.items() if isinstance(value, tensors.DTensor)}
    mesh, whole = mesh_of(shards.values()), {name: value.full_tensor().contiguous() for name, value in shards.items()}
    made = call(**{**given, **whole})
    for name in shards.keys() & written:
        _put_back(tensors, whole[name], shards[name])
    origin = {id(each): shards[name] for name, each in whole.items() if name in written}
    several: tuple[Any, ...] = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
    back = tuple(origin[id(each)] if id(each) in origin else _sharded(tensors, each, mesh) for each in several)
    return back if isinstance(made, tuple) else back[0]


def _sharded(tensors: Any, value: Any, mesh: Any) -> Any:
    """Return a tensor that every process has as a DTensor; what is no tensor as it is."""
    if not hasattr(value, "data_ptr"):
        return value
    whole = tensors.DTensor.from_local(value, mesh, [tensors.Replicate()], run_check=False)
    is_ranked = value.ndim > 0 and value.shape[0] == mesh.size()
    return whole.redistribute(placements=[tensors.Shard(0)]) if is_ranked else whole


def _put_back(tensors: Any, whole: Any, shard: Any) -> None:
    """Write this process's part of a tensor into the DTensor that it was gathered from."""
    replicated = tensors.DTensor.from_local(whole, shard.device_mesh, [tensors.Replicate()], run_check=False)
    with sys.modules["torch"].no_grad():
        shard.to_local().copy_(replicated.redistribute(placements=shard.placements).to_local())
