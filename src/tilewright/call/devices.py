"""Devices: whose memory the tensors of a call are, and which back end's programs take it."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.backends.interface import Backend, backend_names, find, serving, takes
from tilewright.call.argument import CPU

_HAS_NO_ELEMENTS = (
    "is on device meta, where tensors have no elements: pass one with data, such as torch.zeros_like(x, device='cpu')"
)


def device_objection(device: str) -> str:
    """Return that no back end takes memory of a device, and what to pass instead; nothing where one does."""
    if device == CPU or serving(device) is not None:
        return ""
    if device.partition(":")[0] == "meta":
        return _HAS_NO_ELEMENTS
    return f"is on device {device}, whose memory no back end takes ({_all_taken()}): pass `x.cpu()`"


def check_one_device(devices: Mapping[str, str]) -> None:
    """Raise ValueError when tensors lie on different devices, each given by its parameter."""
    for name, device in devices.items():
        first, where = next(iter(devices.items()))
        if device != where:
            raise ValueError(f"`{first}` is on {where} and `{name}` on {device}: bring them to one device")


def check_taken(devices: Mapping[str, str], backend: Backend) -> None:
    """Raise ValueError where the tensors of a call, each by its parameter, are none that a back end's programs take."""
    for name, device in devices.items():
        if not takes(backend, device):
            raise ValueError(f"`{name}` is on device {device}, and the program is of back end {_taken(backend)}")
    check_one_device(devices)


def _all_taken() -> str:
    return "; ".join(map(_taken, map(find, backend_names())))


def _taken(backend: Backend) -> str:
    return f"{backend.name}, which takes {' and '.join(backend.devices)}"
