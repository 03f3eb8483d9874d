"""Configurations of programs of many ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

TIMEOUT = 300.0


class _HeldWeakly:
    """A field for a process group, which torch holds until it is destroyed: its threads end with the last reference."""

    def __get__(self, config: DistributedConfig | None, owner: type) -> Any:
        held = None if config is None else vars(config)[_HELD]
        if held is not None and held() is None:
            raise RuntimeError("the process group of this configuration was destroyed")
        return held and held()

    def __set__(self, config: DistributedConfig, group: Any) -> None:
        vars(config)[_HELD] = None if group is None else ref(group)


_HELD = "held_group"


@dataclass
class DistributedConfig:
    """On which devices a program runs, a rank on each; what else it says is about NPUs, and looked at alone.

    `timeout_s` is how long ranks may wait for each other before they are ended. With a `process_group` of torch's the
    ranks are its processes; without one, those that were launched together. `mesh_axis` names the axis along which the
    ranks lie of DTensors on a mesh that has several.
    """

    device_ids: Sequence[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0
    timeout_s: float = TIMEOUT
    process_group: Any = _HeldWeakly()  # noqa: RUF009
    mesh_axis: str | None = None

    def __post_init__(self) -> None:
        self.device_ids = checked_devices(self.device_ids)
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers is 0 or more, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(f"aicpu_thread_num is 0, or 2 or more, got {self.aicpu_thread_num}")
        if not 0 < self.timeout_s < float("inf"):
            raise ValueError(f"timeout_s is a positive number of seconds, got {self.timeout_s}")

    @property
    def key(self) -> tuple[object, ...]:
        """What programs depend on of it."""
        return tuple(self.device_ids), self.timeout_s, vars(self)[_HELD], self.mesh_axis


def checked_devices(device_ids: Sequence[int]) -> list[int]:
    """Return the devices of a program; ValueError unless there are some, each once and none negative."""
    try:
        found = list(device_ids)
    except TypeError:
        message = f"device_ids names devices one by one, got {device_ids!r}: a list or range({device_ids!r})"
        raise TypeError(message) from None
    if not found:
        raise ValueError("device_ids names one device or more, got none")
    if any(type(device) is not int or device < 0 for device in found):
        raise ValueError(f"device_ids are integers of 0 or more, got {found}")
    if len(set(found)) != len(found):
        raise ValueError(f"device_ids names each device once, got {found}")
    return found
