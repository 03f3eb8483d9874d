"""Torch layout: where in a tensor's memory lie its extents, its strides and its data.

Torch's own ways to a tensor's memory cost more than a small kernel, and some crash on tensors that are not plain. So
the dispatcher reads tensors as they lie. Where everything lies is not taken for granted: it is found out here, once in
a process, from tensors whose extents, strides, offsets and types are known, and each thing must be found at exactly one
place. Whether a tensor is plain torch tells by one word of its own, the set of its dispatch keys: sparse, negated,
quantized, fake and subclassed ones all have others. Whether torch traces or transforms what a thread does it tells by
another such word, of the thread. Where anything is not found, tensors take the way through Python.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from tilewright.arrays import np
from tilewright.call.tables import dtype_word, words
from tilewright.call.words import TORCH_KINDS
from tilewright.dtypes import TORCH_NAMES
from tilewright.imported import imported
from tilewright.records import record

OBJECT_WORDS, STORAGE_WORDS = 8, 10
IMPL_WORDS = range(22, 27)
"""How many words an implementation may have: it grew and shrank over the years, and behind it lies anything."""


@record
class TorchLayout:
    """Byte offsets into a tensor object, its implementation and its storage, and what a plain tensor has there."""

    tensor: int
    parameter: int
    impl: int
    keys: int
    plain: int
    inference: int
    grad: int
    rank: int
    sizes: int
    strides: int
    offset: int
    dtype: int
    dtypes: Any
    """The DLPack word of each element type, by torch's number of it."""
    storage: int
    data: int
    bytes: int
    lazy: int
    """What frees memory that is shared until it is written."""
    requires: int
    """The function that tells whether an implementation requires grad, and whether gradients are recorded; or 0."""
    records: int
    get_thread_local: int
    thread: Any
    """Where a thread's dispatch keys lie, for `get_thread_local`; what they are, and what in inference mode."""
    thread_plain: int
    thread_inference: int
    device: int = 0
    """Where the device lies; what plain tensors of a GPU have for keys, 0 where nobody has used one yet."""
    cuda_plain: int = 0
    cuda_inference: int = 0


def torch_layout() -> TorchLayout | None:
    """Return how torch lays tensors out, None where torch is not imported or does not show."""
    torch = imported("torch")
    return _found(torch, uses_cuda()) if torch is not None and hasattr(torch, "Tensor") else None


def uses_cuda() -> bool:
    """Return whether torch has used a GPU in this process; asking starts none."""
    cuda = getattr(imported("torch"), "cuda", None)
    return cuda is not None and cuda.is_initialized()


@cache
def _found(torch: Any, with_cuda: bool) -> TorchLayout | None:
    """Return the layout as a new thread finds it, in which torch is in no mode, whatever it is in here."""
    found: list[TorchLayout] = []
    thread = threading.Thread(target=lambda: found.extend(islice(_layouts(torch, with_cuda), 1)))
    thread.start()
    thread.join()
    return found[0] if found else None


def _layouts(torch: Any, with_cuda: bool) -> Iterator[TorchLayout]:
    """Yield the layout as it is found within each number of words."""
    for count in IMPL_WORDS:
        try:
            found = _measured(torch, count)
            yield replace(found, **_cuda(torch, found.keys, found.dtype)) if with_cuda else found
        except (RuntimeError, AttributeError, LookupError, OSError, ValueError):
            continue


def _measured(torch: Any, count: int) -> TorchLayout:
    """Return the layout within so many words; LookupError where something is not at exactly one place there."""
    with torch.inference_mode(False):
        plain = _plain(torch)
    inference, odd = _inference(torch), _odd(torch)
    keys = _alike_and_unlike(count, plain, [*odd, inference])
    data = _only(STORAGE_WORDS, [s for t in plain if (s := t.untyped_storage()).nbytes()], lambda s: s.data_ptr())
    return TorchLayout(
        tensor=id(torch.Tensor),
        parameter=id(torch.nn.Parameter),
        impl=_only(OBJECT_WORDS, plain, lambda t: t._cdata, at=id),
        keys=keys,
        plain=_word(plain[0]._cdata + keys),
        inference=_word(inference._cdata + keys),
        grad=_tracked(count, plain, torch.zeros(2, requires_grad=True)),
        rank=_only(count, plain, lambda t: t.dim()),
        sizes=_only(count, plain, lambda t: t.shape[0]),
        strides=_only(count, plain, lambda t: t.stride(0)),
        offset=_only(count, plain, lambda t: t.storage_offset()),
        storage=_only(count, plain, lambda t: t.untyped_storage()._cdata),
        data=data,
        bytes=_only(STORAGE_WORDS, [t.untyped_storage() for t in plain], lambda s: s.nbytes()),
        lazy=_word(torch._lazy_clone(plain[0]).untyped_storage()._cdata + data + 8),
        **_dtypes(torch, count),
        **_recording(torch),
        **_thread(torch),
    )


def _plain(torch: Any) -> list[Any]:
    """Return plain tensors, no two alike in anything but that."""
    long = torch.arange(4000.0)
    views = [
        ((3, 5), (11, 2), 7),
        ((4, 6, 9), (210, 31, 3), 13),
        ((17,), (19,), 23),
        ((2, 3, 4, 5), (300, 71, 8, 1), 29),
    ]
    found = [long.as_strided(*view) for view in views]
    found.append(torch.ones(37, 41, dtype=torch.int8))
    found.append(torch.from_numpy(np.ones(53, np.float32))[6:])  # its memory and whoever frees it are two things
    return [tensor.detach() for tensor in found]


def _odd(torch: Any) -> list[Any]:
    """Return tensors that are not plain."""
    return [torch.zeros(2, device="meta"), torch._neg_view(torch.zeros(3, 4)), torch.eye(2).to_sparse()]


def _inference(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.zeros(2)


def _only(count: int, things: Sequence[Any], fact: Callable[[Any], int], at: Callable[[Any], int] | None = None) -> int:
    """Return the one offset at which every thing has a fact about it; LookupError where there is not exactly one."""
    facts = [(at(thing) if at is not None else thing._cdata, fact(thing)) for thing in things]
    places = [k for k in range(count) if all(_word(address + 8 * k) == word for address, word in facts)]
    if len(places) != 1:
        raise LookupError(f"{len(places)} places qualify")
    return 8 * places[0]


def _alike_and_unlike(count: int, alike: Sequence[Any], unlike: Sequence[Any]) -> int:
    """Return the one offset at which some tensors have one word, and others another."""
    places = [
        8 * k
        for k in range(count)
        if len(common := {_word(t._cdata + 8 * k) for t in alike}) == 1
        and not common & {_word(t._cdata + 8 * k) for t in unlike}
    ]
    if len(places) != 1:
        raise LookupError(f"{len(places)} places qualify")
    return places[0]


def _tracked(count: int, plain: Sequence[Any], followed: Any) -> int:
    """Return the first offset at which only a tensor that autograd follows has something."""
    nothing = [8 * k for k in range(count) if not any(_word(t._cdata + 8 * k) for t in plain)]
    return next(place for place in nothing if _word(followed._cdata + place))


def _recording(torch: Any) -> dict[str, int]:
    """Return the functions that tell what autograd does, nothing where they do not tell the truth."""
    sample, plain = torch.zeros(2, requires_grad=True), torch.zeros(2)[:1]
    result = sample * 2
    try:
        requires, records = (_library(torch)[name] for name in (REQUIRES, RECORDS))
    except (AttributeError, OSError):
        return {"requires": 0, "records": 0}
    requires.restype = records.restype = ctypes.c_bool
    requires.argtypes = (ctypes.c_void_p,)
    told = [requires(sample._cdata), not requires(plain._cdata), requires(result._cdata), records()]
    with torch.no_grad():
        told.append(not records())
    found = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (requires, records)]
    return dict(zip(("requires", "records"), found if all(told) else (0, 0), strict=True))


REQUIRES, RECORDS = "_ZNK3c1010TensorImpl13requires_gradEv", "_ZN3c108GradMode10is_enabledEv"
THREAD = "_ZN3c104impl26raw_local_dispatch_key_setE"
"""What torch calls them in its library: two functions and a variable of each thread."""

_MODULE_OF_HANDLE = 9  # RTLD_DI_TLS_MODID: what dlinfo is asked for


def _library(torch: Any) -> ctypes.CDLL:
    """Return the library that holds torch's tensors, which is loaded already."""
    return ctypes.CDLL(f"{torch.__path__[0]}/lib/libc10.so")


def _thread(torch: Any) -> dict[str, Any]:
    """Return where a thread's dispatch keys lie, and what they are; LookupError where they do not follow torch."""
    library, system = _library(torch), ctypes.CDLL(None)
    module = ctypes.c_size_t()
    if system.dlinfo(ctypes.c_void_p(library._handle), _MODULE_OF_HANDLE, ctypes.byref(module)):
        raise LookupError("the library has no variables of threads")
    get = system["__tls_get_addr"]
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    place = words([module.value, 0])
    own = ctypes.addressof(ctypes.c_char.in_dll(library, THREAD))
    place[1] = own - get(ctypes.addressof(place))
    plain = _word(own)
    with torch.inference_mode():
        inference = _word(own)
    with torch.utils._python_dispatch.TorchDispatchMode():
        traced = _word(own)
    if traced in (plain, inference) or _word(own) != plain:
        raise LookupError("a thread's keys do not tell modes")
    return {
        "get_thread_local": ctypes.cast(get, ctypes.c_void_p).value,
        "thread": place,
        "thread_plain": plain,
        "thread_inference": inference,
    }


def _cuda(torch: Any, keys: int, dtype: int) -> dict[str, int]:
    """Return what tells tensors of GPUs, and where they say of which; nothing where that is not behind their type."""
    place, devices = dtype + 2, [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    with torch.inference_mode(False):
        plain = [torch.zeros(3, device=device) for device in devices]
        host = torch.zeros(3)
    with torch.inference_mode():
        inference = torch.zeros(3, device=devices[0])
    told = [_short(tensor._cdata + place) for tensor in plain]
    words = {_word(tensor._cdata + keys) for tensor in plain}
    if (
        told != [1 | number << 8 for number in range(len(plain))]
        or _short(host._cdata + place) & 0xFF
        or len(words) > 1
    ):
        return {}
    return {"device": place, "cuda_plain": words.pop(), "cuda_inference": _word(inference._cdata + keys)}


def forward_level() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return what must stay for tensors to have no tangents: that forward-mode differentiation is off."""
    forward = imported("torch.autograd.forward_ad")
    return [] if forward is None else [(vars(forward), {"_current_level": -1})]


def _dtypes(torch: Any, count: int) -> dict[str, Any]:
    """Return where torch's number of an element type lies, and the DLPack word of each number."""
    kinds = {name: getattr(torch, name) for name in TORCH_NAMES if hasattr(torch, name)}
    samples = {name: [torch.zeros(3, dtype=kind), torch.zeros(2, 5, dtype=kind)] for name, kind in kinds.items()}
    for place in range(0, 8 * count, 2):
        numbers = {name: {_short(t._cdata + place) for t in tensors} for name, tensors in samples.items()}
        single = {name: min(found) for name, found in numbers.items() if len(found) == 1}
        if len(set(single.values())) == len(kinds) and max(single.values()) < TORCH_KINDS:
            table = [0] * TORCH_KINDS
            for name, number in single.items():
                table[number] = dtype_word(TORCH_NAMES[name].name) or 0
            return {"dtype": place, "dtypes": words(table)}
    raise LookupError("no place tells element types apart")


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _short(address: int) -> int:
    return ctypes.c_uint16.from_address(address).value
