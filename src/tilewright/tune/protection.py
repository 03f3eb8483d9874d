"""Protection: copies of what a kernel writes, so that trying it changes nothing of its caller's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from tilewright.arrays import np
from tilewright.call.argument import Argument
from tilewright.call.frameworks import argument_of
from tilewright.imported import imported
from tilewright.jit.calls import Call
from tilewright.records import record


@record
class Protected:
    """A call on copies of the tensors that it writes."""

    call: Call
    copies: Mapping[str, Any]
    originals: Mapping[str, Any]

    def restored(self, names: Collection[str]) -> Callable[[], None]:
        """Return what brings the copies of some tensors back to what their originals hold."""
        pairs = [(copy, self.originals[name]) for name, copy in self.copies.items() if name in names]

        def restore() -> None:
            for copy, original in pairs:
                _fill(copy, original)

        return restore


def protected(call: Call, written: Collection[str]) -> Protected:
    """Return a call on copies, laid out in memory as the originals are; all else is the caller's own."""
    originals = {name: call.values[name] for name in written if name in call.values and name in call.arguments}
    copies = {name: _copied(call.arguments[name], value) for name, value in originals.items()}
    described = {
        name: replace(one, argument=argument_of(copies[name], name)) if name in copies else one
        for name, one in call.described.items()
    }
    return Protected(Call({**call.values, **copies}, described), copies, originals)


def _copied(argument: Argument, value: Any) -> Any:
    torch: Any = imported("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    else:
        made = _like(argument)
    _fill(made, value)
    return made


def _like(argument: Argument) -> Any:
    """Return an array with the strides of another, as well aligned as a page is."""
    low, high = argument.reach
    room = np.zeros(high - low + 4096, np.uint8)
    start = (low - room.__array_interface__["data"][0]) % 4096 + argument.address - low
    return np.ndarray(argument.shape, argument.dtype.numpy, room.data, start, argument.strides)


def _fill(copy: Any, original: Any) -> None:
    torch: Any = imported("torch")
    if torch is not None and isinstance(original, torch.Tensor):
        with torch.no_grad():
            copy.copy_(original)
    else:
        copy[...] = argument_of(original, "tensor").array
