"""Collectives on GPUs: what one rank does for all of a domain, with torch's operations on the parts of all.

Elements are reduced in the order of ranks and rounded after each, as `ops/collectives.py` says: the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.backends.devices import Seat
from tilewright.call.argument import Argument
from tilewright.call.launch import Bytes
from tilewright.dtypes import to_torch
from tilewright.errors import ExecutionError
from tilewright.imported import imported
from tilewright.interpret.hosts import Collective, Window
from tilewright.ops.collectives import MEANINGS
from tilewright.programs.distributed.torch_reductions import reduced_by_torch, settled

Parts = Sequence[Mapping[str, Any]]
"""The windows of each rank as tensors of torch, by the names of parameters."""


def performed(action: Collective, place: Callable[[int, Window], tuple[int, int]], seat: Seat) -> Callable[[], None]:
    """Return what the rank of a seat does for all; `place` tells the address and the GPU of a rank's window."""
    torch = _torch(action)

    def perform() -> None:
        stream = torch.cuda.ExternalStream(seat.stream, device=seat.device)
        with torch.cuda.device(seat.device), torch.cuda.stream(stream), torch.no_grad():
            meaning(action.name)(parts, **action.options)

    parts = [
        {name: window.live(_tensor(torch, window, *place(rank, window))) for name, window in action.windows.items()}
        for rank in action.domain
    ]
    return perform


def meaning(name: str) -> Callable[..., None]:
    """Return what a collective does to parts that are tensors of torch."""
    return _MEANINGS.get(name, MEANINGS[name])


def _torch(action: Collective) -> Any:
    torch: Any = imported("torch")
    if torch is None:
        message = f"`{action.name}` of windows on GPUs is done by torch, which is not loaded"
        raise ExecutionError(message, spans=[action.span], help="import torch, or do it in a kernel")
    return torch


def _tensor(torch: Any, window: Window, address: int, gpu: int) -> Any:
    """Return a part of a window as a tensor of torch, in the same memory."""
    size = window.dtype.get_byte()
    strides = [size]
    for extent in reversed(window.shape[1:]):
        strides.insert(0, strides[0] * extent)
    held = Argument(address, window.shape, tuple(strides), window.dtype, f"cuda:{gpu}", None)
    if 0 in window.shape:
        return torch.zeros(window.shape, dtype=to_torch(window.dtype), device=f"cuda:{gpu}")
    return torch.as_tensor(Bytes(held), device=f"cuda:{gpu}").view(to_torch(window.dtype)).reshape(window.shape)


def _reduced(elements: Sequence[Any], op: int) -> Any:
    """Return what elements of all ranks make, rounded after each of them."""
    return settled(reduced_by_torch([elements[0], *(each.to(elements[0].device) for each in elements[1:])], op))


def _all_reduced(parts: Parts, op: int, **_: Any) -> None:
    result = _reduced([part["target"] for part in parts], op)
    for part in parts:
        part["target"].copy_(result)


def _scattered(parts: Parts, op: int) -> None:
    for rank, part in enumerate(parts):
        part["target"][rank] = _reduced([other["target"][rank] for other in parts], op)


def _counted(parts: Parts) -> None:
    MEANINGS["all_to_all"](parts)
    for rank, part in enumerate(parts):
        rows = part["target"].shape[0] // len(parts)
        for peer, other in enumerate(parts):
            part["recv_counts"].view(-1)[peer] = other["send_counts"].reshape(-1)[rank].clamp(max=rows)


_MEANINGS: Mapping[str, Callable[..., None]] = {
    "allreduce": _all_reduced,
    "reduce_scatter": _scattered,
    "all_to_all_v": _counted,
}
"""Those that compute; the others move rows, which tensors of torch do as arrays of NumPy do."""
