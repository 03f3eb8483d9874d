"""Views: parts of tensors where they lie, and what is known of them."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.planes import chosen
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tensor
from tilewright.core.expr import Call


@recipe("tensor.slice")
def _slice(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Return a window; one that does not fit is an error and empty, a clamped one ends where its source does."""
    source: Tensor = bound["x"]
    t, starts, sizes = k.t, k.indices(bound["offset"]), k.indices(bound["shape"])
    wanted = k.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else sizes
    if bound["clamp"]:
        starts = [extents.most(t, 0, extents.least(t, s, n)) for s, n in zip(starts, source.shape, strict=True)]
        sizes = [
            extents.least(t, size, extents.minus(t, have, start))
            for size, have, start in zip(sizes, source.shape, starts, strict=True)
        ]
    valid: list[Extent] = [
        extents.most(t, 0, extents.least(t, extents.least(t, want, size), extents.minus(t, have, start)))
        for want, size, have, start in zip(wanted, sizes, source.valid, starts, strict=True)
    ]
    fit = None
    if not bound["clamp"]:
        fit = checked(k, call, offsets_of(call, "offset"), "a slice does not fit its tensor", sizes, source.shape)
    if fit is not None:
        valid = [t.select(fit, extents.held(t, extent), t.integer(0)) for extent in valid]
        starts = [start if start == 0 else t.select(fit, extents.held(t, start), t.integer(0)) for start in starts]
    dropped = {axis % len(sizes) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(sizes)) if axis not in dropped]
    shape, strides, live = (tuple(each[axis] for axis in kept) for each in (sizes, source.strides, valid))
    planes = None if bound["clamp"] else chosen(source, starts, sizes, wanted, dropped)
    return Tensor(place(k, source, starts), shape, strides, live, source.dtype, source.root, planes)


@recipe("tensor.strided")
def _strided(k: Kernel, call: Call, bound: Bound) -> Tensor:
    source, steps = bound["x"], bound["steps"]
    strides = tuple(extents.times(k.t, stride, step) for stride, step in zip(source.strides, steps, strict=True))
    shape, valid = (
        tuple(extents.counted(k.t, extent, step) for extent, step in zip(each, steps, strict=True))
        for each in (source.shape, source.valid)
    )
    return Tensor(source.pointer, shape, strides, valid, source.dtype, source.root)


@recipe("tensor.dim")
def _dim(k: Kernel, call: Call, bound: Bound) -> Scalar:
    tensor: Tensor = bound["tensor"]
    return k.counted((tensor.valid if bound["valid"] else tensor.shape)[int(bound["axis"])])
