"""Torch layout: where in a tensor's memory lies what tells a plain one from the rest.

Torch hands the memory of any tensor to C code that asks, of a sparse or negated one too, and may crash on it. Whether a
tensor is plain, torch itself tells by one word of its own, the set of its dispatch keys. Where that word lies is found
out here, from tensors that must agree and tensors that must differ in it; if exactly one place qualifies it is used,
otherwise tensors take the way through Python.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilewright.arrays import np

OBJECT_WORDS, IMPL_WORDS, STORAGE_WORDS = 8, 22, 10


@dataclass(frozen=True)
class TorchLayout:
    """Byte offsets into a tensor object and its implementation, and what a plain tensor has there."""

    tensor: int
    parameter: int
    exchange: int
    impl: int
    keys: int
    plain: int
    inference: int
    grad: int
    storage: int
    data: int
    """Where in a storage its memory lies, and how many bytes there are."""
    bytes: int


def torch_layout() -> TorchLayout | None:
    """Return how torch lays tensors out, None where torch is not imported or does not say."""
    torch = sys.modules.get("torch")
    return _found(torch) if torch is not None and hasattr(torch, "Tensor") else None


@cache
def _found(torch: Any) -> TorchLayout | None:
    exchange = _exchange(torch)
    samples = _samples(torch) if exchange else None
    if samples is None:
        return None
    plain, odd, inference, followed = samples
    objects = [(_words(id(t), OBJECT_WORDS), t._cdata) for t in plain]
    impl = [place for place in range(OBJECT_WORDS) if all(words[place] == cdata for words, cdata in objects)]
    like = [_words(t._cdata, IMPL_WORDS) for t in plain]
    unlike = [_words(t._cdata, IMPL_WORDS) for t in (*odd, inference)]
    keys = [
        place
        for place in range(IMPL_WORDS)
        if len({words[place] for words in like}) == 1 and all(words[place] != like[0][place] for words in unlike)
    ]
    tracked = _words(followed._cdata, IMPL_WORDS)
    grad = [place for place in range(IMPL_WORDS) if tracked[place] and not any(words[place] for words in like)]
    borrowed = torch.from_numpy(np.ones(5, np.float32))  # its memory and whoever frees it are two things
    storage = _storage([*plain, borrowed])
    if len(impl) != 1 or len(keys) != 1 or not grad or storage is None:
        return None
    return TorchLayout(
        id(torch.Tensor),
        id(torch.nn.Parameter),
        exchange,
        8 * impl[0],
        8 * keys[0],
        like[0][keys[0]],
        _words(inference._cdata, IMPL_WORDS)[keys[0]],
        8 * grad[0],
        *storage,
    )


def _storage(plain: list[Any]) -> tuple[int, int, int] | None:
    """Return where an implementation has its storage, and where that has its memory and its size."""
    held = [t.untyped_storage() for t in plain]
    facts = list(zip(plain, held, strict=True))
    found = (
        _only(IMPL_WORDS, [(t._cdata, s._cdata) for t, s in facts]),
        _only(STORAGE_WORDS, [(s._cdata, s.data_ptr()) for s in held if s.nbytes()]),
        _only(STORAGE_WORDS, [(s._cdata, s.nbytes()) for s in held]),
    )
    first, second, third = found
    return None if first is None or second is None or third is None else (first, second, third)


def _only(count: int, facts: list[tuple[int, int]]) -> int | None:
    """Return the one offset at which each address has its word, None where there is not exactly one."""
    places = [k for k in range(count) if all(_words(address, count)[k] == word for address, word in facts)]
    return 8 * places[0] if len(places) == 1 else None


def _samples(torch: Any) -> tuple[list[Any], list[Any], Any, Any] | None:
    """Return tensors that are plain, that are not, one of inference mode, and one that autograd follows."""
    base = torch.zeros(3, 4)
    with torch.inference_mode(False):
        plain = [torch.zeros(0), torch.ones(3, 4), torch.zeros(2, 2, 2, dtype=torch.int8), torch.zeros(1, 9)]
    try:
        odd = [torch.zeros(2, device="meta"), torch._neg_view(base), torch.eye(2).to_sparse()]
        with torch.inference_mode():
            inference = torch.zeros(2)
        followed = torch.zeros(2, requires_grad=True)
    except (RuntimeError, AttributeError):
        return None
    return plain, odd, inference, followed


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))


def _exchange(torch: Any) -> int:
    """Return the function that fills in a DLTensor from a tensor object without a capsule, 0 where there is none."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return 0
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = _words(get(capsule, b"dlpack_exchange_api"), 6)
    return table[5] if table[0] & 0xFFFFFFFF == 1 else 0  # the first word is the version, the sixth `from_py_object`
