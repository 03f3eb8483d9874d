"""The zoo: arguments of all kinds, each made several times over.

`Maker`s give equal arguments that share no memory, so that one call can be made several ways and compared.
"""

# pyright: basic, reportInvalidTypeForm=false, reportPrivateUsage=false
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

Maker = Callable[[], Any]

DTYPES = [torch.float16, torch.int32, torch.float64, torch.bool]
SHAPES = [(4, 9), (3, 8), (1, 8), (4, 1), (0, 8), (4,), (4, 8, 1), ()]
NUMBERS = [
    *[2.0] * 20, 3, True, False, None, 0.0, -0.0, float("nan"), float("inf"), 2**70, -1,
    "2", np.float32(2.0), np.int64(3), 2j,
]  # fmt: skip


def dense(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    count = int(np.prod(shape))
    return (torch.arange(count) % 5 + 1).to(dtype).reshape(tuple(shape))


def layouts(shape: Sequence[int], dtype: torch.dtype) -> dict[str, Maker]:
    """Return ways to lay a tensor out, or to spoil one."""
    wide = [*shape[:-1], 2 * shape[-1]] if shape else []

    def strided() -> torch.Tensor:
        out = torch.zeros(wide, dtype=dtype)[..., : shape[-1]] if shape else dense(shape, dtype)
        return out.copy_(dense(shape, dtype))

    def every_second() -> torch.Tensor:
        out = torch.zeros(wide, dtype=dtype)[..., ::2] if shape else dense(shape, dtype)
        return out.copy_(dense(shape, dtype))

    def transposed() -> torch.Tensor:
        return dense(shape, dtype).t().contiguous().t() if len(shape) == 2 else dense(shape, dtype)

    def broadcast() -> torch.Tensor:
        return dense([1, *shape[1:]], dtype).expand(*shape) if shape else dense(shape, dtype)

    def overlapping() -> torch.Tensor:
        flat = dense([256], dtype)
        return torch.as_strided(flat, tuple(shape), tuple([3] * (len(shape) - 1) + [1]) if shape else ())

    def followed() -> torch.Tensor:
        tensor = dense(shape, dtype)
        return tensor.requires_grad_() if dtype.is_floating_point else tensor

    def inference() -> torch.Tensor:
        with torch.inference_mode():
            return dense(shape, dtype).clone()

    return {
        "dense": lambda: dense(shape, dtype), "strided": strided, "every second": every_second,
        "transposed": transposed, "broadcast": broadcast, "overlapping": overlapping,
        "freed": lambda: freed(dense(shape, dtype)),
        "followed": followed, "inference": inference,
        "parameter": lambda: torch.nn.Parameter(dense(shape, dtype), False),
        "subclass": lambda: dense(shape, dtype).as_subclass(Sub), "meta": lambda: dense(shape, dtype).to("meta"),
        "negated": lambda: torch._neg_view(dense(shape, dtype)), "sparse": lambda: dense(shape, dtype).to_sparse(),  # pyright: ignore[reportPrivateImportUsage]
        "array": lambda: dense(shape, dtype).numpy().copy(),
        "sealed": lambda: sealed(dense(shape, dtype).numpy().copy()),
        "backwards": lambda: dense(shape, dtype).numpy().copy()[::-1] if shape else dense(shape, dtype).numpy(),
        "column-major": lambda: np.asfortranarray(dense(shape, dtype).numpy()),
        "unaligned": lambda: unaligned(dense(shape, dtype).numpy()),
        "swapped": lambda: swapped(dense(shape, dtype).numpy()),
        "view": lambda: torch.from_numpy(dense(shape, dtype).numpy().copy()),
    }  # fmt: skip


class Sub(torch.Tensor):
    """A tensor of one's own."""


class Producer:
    """Something that hands its memory over by DLPack."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


def freed(tensor: torch.Tensor, size: int = 0) -> torch.Tensor:
    """Return a tensor whose memory is gone, but for some bytes."""
    tensor.untyped_storage().resize_(size)
    return tensor


def oddities(shape: Sequence[int]) -> dict[str, Maker]:
    """Return more that may be given for a tensor of floats: rare layouts, other types, and what is no tensor."""
    rows, columns = shape
    tensor, array = lambda *s: dense(s or shape, torch.float32), lambda: dense(shape, torch.float32).numpy().copy()  # noqa: E731
    return {
        "every second row": lambda: tensor(2 * rows, columns)[::2], "an offset": lambda: tensor(rows + 2, columns)[2:],
        "broadcast columns": lambda: tensor(rows, 1).expand(rows, columns),
        "columns backwards": lambda: array()[:, ::-1],
        "a result of autograd": lambda: tensor().requires_grad_() * 1,
        "a parameter that is followed": lambda: torch.nn.Parameter(tensor()),
        "strides of odd bytes": lambda: np.ones(tuple(shape), [("a", "<f4"), ("b", "i1")])["a"],
        "a broadcast array": lambda: np.broadcast_to(array()[:1], tuple(shape)),
        "a matrix": lambda: array().view(np.matrix), "a producer": lambda: Producer(array()),
        "shrunk": lambda: freed(tensor(), 64), "compressed": lambda: tensor().to_sparse_csr(),
        "double": lambda: tensor().double(), "complex": lambda: tensor().to(torch.complex64),
        "quantized": lambda: torch.quantize_per_tensor(tensor(), 1.0, 0, torch.qint8),
        "half": lambda: tensor().half(), "integers": lambda: tensor().int(), "bools": lambda: tensor().bool(),
        "masked": lambda: np.ma.ones(tuple(shape), np.float32), "text": lambda: np.full(tuple(shape), "a"),
        "objects": lambda: np.full(tuple(shape), None), "dates": lambda: np.zeros(tuple(shape), "datetime64[s]"),
        "records": lambda: np.zeros(tuple(shape), [("a", "f4")]), "a list": lambda: [[1.0] * columns] * rows,
        "a number": lambda: 1.0, "None": lambda: None,
        "fewer rows": lambda: tensor(rows // 2, columns), "more rows": lambda: tensor(2 * rows, columns),
        "more columns": lambda: tensor(rows, columns + 1), "no rows": lambda: tensor(0, columns),
        "one axis": lambda: tensor(rows * columns), "three axes": lambda: tensor(rows, columns, 1),
    }  # fmt: skip


def sealed(array: Any) -> Any:
    array.setflags(write=False)
    return array


def unaligned(array: Any) -> Any:
    out = np.ndarray(array.shape, array.dtype, bytearray(array.nbytes + 1), 1)
    out[...] = array
    return out


def swapped(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder())


PLAIN = ["dense", "array", "strided", "view", "parameter", "inference"]


def tensor(rng: random.Random, shape: Sequence[int] = (4, 8)) -> Maker:
    """Return a maker of some tensor, mostly one that kernels take."""
    found = shape if rng.random() < 0.96 else rng.choice(SHAPES)
    made = layouts(found, torch.float32 if rng.random() < 0.96 else rng.choice(DTYPES))
    return made[rng.choice(PLAIN) if rng.random() < 0.8 else rng.choice(list(made))]


def chosen(rng: random.Random, values: Sequence[Any]) -> Maker:
    """Return a maker of one of some values."""
    value = rng.choice(values)
    return lambda: value


def number(rng: random.Random) -> Maker:
    """Return a maker of some number, or of something that is none."""
    return chosen(rng, NUMBERS)


def anything(rng: random.Random) -> Maker:
    """Return a maker of whatever comes."""
    return number(rng) if rng.random() < 0.5 else tensor(rng)


def shared(makers: list[Maker], rng: random.Random) -> Callable[[], list[Any]]:
    """Return a maker of all arguments; now and then two of them are one, or lie in the same memory."""
    if len(makers) < 2 or rng.random() > 0.1:
        return lambda: [make() for make in makers]
    first, second = rng.sample(range(len(makers)), 2)
    is_view = rng.random() < 0.5

    def together() -> list[Any]:
        made = [make() for make in makers]
        can_be_viewed = getattr(made[first], "ndim", 0) and not getattr(made[first], "is_sparse", False)
        made[second] = made[first][:] if is_view and can_be_viewed else made[first]
        return made

    return together
