"""Torch state: whether torch looks on while a program runs.

A program reads and writes memory by itself. Where torch traces, transforms or differentiates what a thread does, or a
tensor only stands for memory, it would miss that, and go on with wrong numbers. Such calls go by operators, which torch
knows; whoever cannot is refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache
from typing import Any

from tilewright.imported import imported

INSTEAD = "call it as an operator, which `as_torch_op` makes (docs/torch-operators.md)"
BACKWARD = f"give it a backward: {INSTEAD}"

_KINDS = {
    "Functionalize": "a functional tensor of torch, which stands for memory elsewhere",
    "FuncTorchBatched": "a batched tensor of torch.vmap, which stands for many",
    "FuncTorchGradWrapper": "a tensor that torch.func differentiates",
}
"""What tensors without memory of their own are, by the dispatch key that they have."""

_local = threading.local()


@contextmanager
def inside_operator() -> Generator[None, None, None]:
    """Let programs run in this thread though torch looks on: it knows the operator that runs them."""
    before: bool = getattr(_local, "is_inside", False)
    _local.is_inside = True
    try:
        yield
    finally:
        _local.is_inside = before


def is_watched(values: Iterable[Any]) -> bool:
    """Return whether torch has to be told of a call with some arguments, since it traces or transforms the call."""
    torch: Any = imported("torch")
    if torch is None or not hasattr(torch, "compiler"):  # which is then being imported
        return False
    if torch.compiler.is_dynamo_compiling():  # first of all: the compiler of torch reads this text as it goes
        return True
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return bool(tensors) and (is_traced() or not all(map(has_memory, tensors)))


def has_shards(values: Iterable[Any]) -> bool:
    """Return whether there is a DTensor among some values, of which each process holds a part."""
    torch, tensors = imported("torch"), imported("torch.distributed.tensor")
    if torch is None or tensors is None or torch.compiler.is_dynamo_compiling():  # which takes them apart by itself
        return False
    return any(isinstance(value, tensors.DTensor) for value in values)


def is_traced() -> bool:
    """Return whether torch traces or transforms what this thread does, outside of operators."""
    torch: Any = imported("torch")
    if torch is None or getattr(_local, "is_inside", False):
        return False
    return torch._C._dispatch_tls_local_include_set().raw_repr() not in _ordinary(torch)[0]


def has_memory(value: Any) -> bool:
    """Return whether torch takes a tensor of this machine for plain memory, and not for something else to look after.

    Sparse tensors and the like, which other words tell, pass for plain.
    """
    torch: Any = sys.modules["torch"]
    if torch._C._dispatch_keys(value).raw_repr() in _ordinary(torch)[1]:
        return True
    return not (_kind(value) or torch._C._dispatch_keys(value).has(torch._C.DispatchKey.Python))


def is_lazy(value: Any) -> bool:
    """Return whether a strided tensor is a lazy clone, which gets memory of its own when somebody may write it."""
    asked: Any = getattr(sys.modules["torch"]._C, "_is_cow_tensor", None)  # since torch 2.1
    return asked is not None and asked(value)


def address_of(value: Any) -> int:
    """Return where the elements of a strided tensor begin, to be read: a lazy clone stays one."""
    begins = storage_address() if is_lazy(value) else None
    return value.data_ptr() if begins is None else begins(value) + value.storage_offset() * value.element_size()


def storage_address() -> Callable[[Any], int] | None:
    """Return what tells where the storage of a tensor begins, to be read; None where torch cannot."""
    return getattr(sys.modules["torch"]._C, "_data_address", None)


def holds_its_elements(value: Any) -> bool:
    """Return whether a strided tensor has all its memory: a storage can be freed or shrunk."""
    if value.numel() == 0:
        return True
    if not is_lazy(value) and value.untyped_storage().data_ptr() == 0:
        return False
    reach = sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride(), strict=True))
    return (value.storage_offset() + reach + 1) * value.element_size() <= value.untyped_storage().nbytes()


def _kind(value: Any) -> str:
    torch: Any = sys.modules["torch"]
    keys, known = torch._C._dispatch_keys(value), torch._C.DispatchKey
    return next((text for name, text in _KINDS.items() if keys.has(getattr(known, name))), "")


def memory_objection(value: Any, instead: str = INSTEAD) -> str:
    """Return what a tensor is that has no memory of its own, and what to do `instead`, or nothing."""
    if has_memory(value):
        return ""
    return f"is {_kind(value) or f'a {type(value).__name__}, whose memory is its own affair'}: {instead}"


def gradient_objection(value: Any, instead: str = BACKWARD) -> str:
    """Return why derivatives would be lost if a program took a tensor, or nothing; nobody follows other arrays."""
    torch: Any = imported("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return ""
    if value.requires_grad and torch.is_grad_enabled():
        return (
            "requires grad, and gradients do not flow through a call: call under torch.no_grad(), pass "
            f"`x.detach()`, or {instead}"
        )
    forward = imported("torch.autograd.forward_ad")
    if forward is not None and forward._current_level >= 0 and forward.unpack_dual(value).tangent is not None:
        return (
            "carries a tangent of forward-mode differentiation, which does not flow through a call: pass the primal, "
            "as torch.autograd.forward_ad.unpack_dual gives it"
        )
    return ""


def is_recorded(values: Iterable[Any]) -> bool:
    """Return whether autograd records what happens to some values, outside of operators."""
    torch: Any = imported("torch")
    if torch is None or getattr(_local, "is_inside", False) or not torch.is_grad_enabled():
        return False
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)


def check_unrecorded(named: Iterable[tuple[str, Any]], instead: str = BACKWARD) -> None:
    """Raise ValueError where a tensor among arguments would lose its derivatives; `instead` says what to do."""
    torch: Any = imported("torch")
    if torch is None or torch.compiler.is_dynamo_compiling() or getattr(_local, "is_inside", False):
        return  # what torch compiles says by itself, in its backward, that there is none
    for name, value in named:
        if objection := gradient_objection(value, instead):
            raise ValueError(f"`{name}` {objection}")


@cache
def _ordinary(torch: Any) -> tuple[frozenset[int], frozenset[int]]:
    """Return the dispatch keys of a thread that torch leaves alone and of plain tensors, in inference mode too."""
    found: list[tuple[int, int]] = []

    def look() -> None:  # in a thread of its own, which is in no mode
        for is_on in (False, True):
            with torch.inference_mode(is_on):
                around = torch._C._dispatch_tls_local_include_set()
                found.append((around.raw_repr(), torch._C._dispatch_keys(torch.zeros(2)).raw_repr()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return frozenset(around for around, _ in found), frozenset(keys for _, keys in found)
