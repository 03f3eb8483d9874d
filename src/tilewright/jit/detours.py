"""Detours: calls that find their program through Python, and why, in words.

A detour costs a hundred times what a direct call does, and gives the same result. The first calls of a kernel, and the
first with arguments of a new kind, are some; the others have a reason in the kernel or in an argument, the same at
every such call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.arrays import np
from tilewright.call.argument import may_share_memory
from tilewright.call.frameworks import is_tensor
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import Known, TensorMeta
from tilewright.imported import imported
from tilewright.jit.calls import Call
from tilewright.named_tuples import NamedTuple

if TYPE_CHECKING:  # the fast path, which a first call does without
    from tilewright.jit.compiled import Compiled

FIRST = "a first call with such arguments"
COMPILED = "a call that made its program"


class CallInfo(NamedTuple):
    """How the calls of a kernel went."""

    direct: int
    """How many found their program without Python."""
    python: int
    """How many went through Python."""
    reasons: Mapping[str, int]
    """Why those did, and how often."""


class Detours:
    """What has sent calls of one kernel through Python, by reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def note(self, reason: str) -> None:
        """Count one."""
        self.reasons[reason] += 1

    def info(self, direct: int) -> CallInfo:
        """Return how calls went, of which so many took no detour."""
        return CallInfo(direct, sum(self.reasons.values()), dict(self.reasons))


def lasting_reason(kernel: Kernel, call: Call, found: Compiled) -> str:
    """Return why every call like one goes through Python, or nothing where later ones do not."""
    named = next((p.name for p in kernel.parameters if not (p.is_positional or p.is_chosen)), None)
    if named is not None:
        return f"`{named}` can only be given by name"
    for name, value in call.values.items():
        if reason := _argument(name, call, value, found):
            return reason
    return found.obstacle or _returned(call, found) or _shared(call, found)


def _argument(name: str, call: Call, value: Any, found: Compiled) -> str:
    """Return why the dispatcher does not read an argument, or nothing."""
    from tilewright.call.tables import is_itself  # the fast path, which a first call does without

    given = call.described[name].given
    if isinstance(value, np.generic):
        return f"`{name}` is a number of NumPy: pass `{name}.item()`"
    if is_tensor(value):
        is_taken = isinstance(given, TensorMeta) and not given.has_rows and found.takes(name, given)
        return _tensor(name, value, is_taken)
    if not isinstance(given, Known) or isinstance(value, (bool, int, float, type(None))) or is_itself(value):
        return ""
    return f"`{name}` is a {type(value).__name__}, and neither a tensor nor a number, a string or an enum's member"


def _tensor(name: str, value: Any, is_taken: bool) -> str:
    torch: Any = imported("torch")
    is_torch = torch is not None and isinstance(value, torch.Tensor)
    plain: tuple[Any, ...] = (np.ndarray, *((torch.Tensor, torch.nn.Parameter) if torch is not None else ()))
    if type(value) not in plain:
        return f"`{name}` is a {type(value).__name__}, and neither a plain torch tensor nor a NumPy array"
    if not is_torch and not value.flags.aligned:
        return f"`{name}` is not aligned"
    if not is_torch and value.dtype.isbuiltin != 1:
        return f"`{name}` has elements of {value.dtype}, a type that is not NumPy's own"
    shape, size = value.shape, value.element_size() if is_torch else value.itemsize
    if not is_torch and 0 in shape:
        return f"`{name}` is a NumPy array without elements"
    steps = [step * size for step in value.stride()] if is_torch else value.strides
    if len(shape) and shape[-1] > 1 and steps[-1] != size and not is_taken:
        return f"`{name}` has gaps along its last axis"
    if any(extent > 1 and step < 0 for extent, step in zip(shape, steps, strict=True)):
        return f"`{name}` runs backwards along an axis"
    return f"`{name}` has {len(shape)} axes" if len(shape) > (5 if is_torch else 8) else ""


def _returned(call: Call, found: Compiled) -> str:
    """Return what keeps outputs that a call leaves out from being made elsewhere, or nothing."""
    left_out = [name for name in call.described if name in found.written and name not in call.values]
    is_known = found.returns is not None and {*left_out} <= {*found.returns}
    return "" if is_known or not left_out else "it does not return each output that was left out"


def _shared(call: Call, found: Compiled) -> str:
    """Return what is written close enough to another tensor to be looked at twice, or nothing."""
    arguments = call.arguments
    for name in arguments.keys() & found.written:
        for other, argument in arguments.items():
            if other != name and may_share_memory(arguments[name], argument):
                return f"`{name}`, which is written, lies between elements of `{other}`"
    return ""
