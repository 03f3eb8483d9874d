"""Foreign names: what authors who come from NumPy, torch or Triton call something that the language has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilewright.core.foreign_names import elsewhere
from tilewright.core.operands import usage
from tilewright.dtypes import STORABLE
from tilewright.frontend import directives
from tilewright.ops.registry import OPS, specs

_MADE = "pl.{0}(shape, dtype=pl.FP32) is a tile of {0}"
_FULL = "pl.tile_full(shape, dtype=pl.FP32, value={}) is a tile of one number, pl.full a tensor"
_NEW = "pl.create_tensor(shape, dtype=pl.FP32) is a buffer, pl.create_tile(shape, dtype=pl.FP32) a tile"
_FOLDED = "pl.{0}(x, axis=-1) folds an axis, pl.{0}(x) all elements to a number"
_COMPARED = "write a {0} b, which makes a mask of tiles and tensors"
_CONVERTED = "pl.cast(x, pl.FP16) converts elements"
_BLOCK = "the index of `for i in pl.parallel(...)` says which turn this is, pl.get_block_idx() which block of pl.spmd"
_PRODUCT = "pl.matmul(a, b) is the matrix product"
_RESHAPED = "pl.reshape(x, shape) gives the same elements another shape"
_TURNED = "pl.transpose(x, 0, 1) swaps two axes"
_SPREAD = "operators repeat extents of 1 by themselves; pl.row_expand and pl.col_expand do so by name"
_JOINED = "pl.cat([a, b], axis=-1) puts tiles one after the other, pl.stack([a, b], axis=0) along a new axis"
_RANDOM = "pl.rand(seed, shape, offset) and pl.randn draw numbers; for dropout, pl.where(pl.rand(...) < p, 0.0, x)"
_LEFT = "write a % b, which has the sign of the divisor; pl.fmod(a, b) has that of the dividend"
_COUNTED = "pl.arange(64) counts, pl.iota([64, 1], axis=0) down a column, and pl.tri(0, [64, 64]) is a triangle of ones"
_SCANNED = "pl.scan(lambda a, b: a + b, x, axis=-1) folds each element with all before it; sums are pl.cumsum(x)"
_SHOWN = "pl.print(...) shows values of the running program, pl.static_print what is known while the kernel is read"
_CONSTANT = "a number that is passed to a kernel is a constant of its code: annotate the parameter `n: int`"
_NUMBER = "math.inf, math.nan and math.pi are numbers that a kernel can use"
_EXTENTS = "x.shape is a tuple of the extents, and len(x.shape) their number"
_PLACED = "pl.load(x, offsets, shape) takes the tensor, where to start and how much"

_CHOSEN = "a tile has a fixed shape: pl.where(mask, x, 0.0) keeps it, pl.sum(mask) counts, pl.topk finds places"
_PARTS = "slices are parts: t[:, 0:8], or [t[:, i : i + 8] for i in range(0, 64, 8)]"

_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("T", "mT", "t", "permute", "swapaxes", "swapdims", "moveaxis"), _TURNED),
    "add_": "write x = x + y",
    "addmm": "pl.matmul_acc(acc, a, b) adds a product to an accumulator, pl.matmul_bias(a, b, bias) a row to a product",
    "advance": _PLACED,
    **dict.fromkeys(("amax", "reduce_max"), _FOLDED.format("max")),
    **dict.fromkeys(("amin", "reduce_min"), _FOLDED.format("min")),
    **dict.fromkeys(("linspace", "eye", "indices", "broadcasted_iota"), _COUNTED),
    "divmod": "write a // b and a % b",
    "sorted": "write pl.sort(x)",
    **dict.fromkeys(("nonzero", "argwhere", "flatnonzero", "masked_select", "compress", "extract", "unique"), _CHOSEN),
    **dict.fromkeys(("masked_fill", "masked_fill_", "putmask"), "write pl.where(mask, value, x), or t[mask] = value"),
    **dict.fromkeys(("chunk", "split_with_sizes", "tensor_split", "unbind", "hsplit", "vsplit"), _PARTS),
    **dict.fromkeys(("clone", "copy", "contiguous", "detach"), "a tile is a value: another name for it is a copy"),
    **dict.fromkeys(("astype", "to", "type", "half", "float", "bfloat16_"), _CONVERTED),
    **dict.fromkeys(("index_add", "scatter_add", "bincount"), "pl.atomic_add(x, indices, values) adds at indices"),
    **dict.fromkeys(("bitwise_and", "logical_and"), "write a & b for bits and masks; conditions take `and`"),
    **dict.fromkeys(("bitwise_or", "logical_or"), "write a | b for bits and masks; conditions take `or`"),
    **dict.fromkeys(("bitwise_xor", "logical_xor"), "write a ^ b for bits and masks"),
    **dict.fromkeys(("bitwise_not", "logical_not", "invert"), "write ~x for bits and masks; conditions take `not`"),
    **dict.fromkeys(("broadcast", "broadcast_to", "expand", "expand_as", "repeat", "tile"), _SPREAD),
    **dict.fromkeys(("concatenate", "hstack", "vstack", "join", "column_stack"), _JOINED),
    "constexpr": _CONSTANT,
    "associative_scan": _SCANNED,
    **dict.fromkeys(("debug_barrier", "syncthreads", "barrier"), "pl.system.bar_all() waits; order is kept"),
    **dict.fromkeys(("dot", "mm", "einsum", "linear", "inner", "tensordot", "mv"), _PRODUCT),
    **dict.fromkeys(("device_print", "print"), _SHOWN),
    **dict.fromkeys(("empty", "empty_like", "new_empty"), _NEW),
    "equal": _COMPARED.format("=="),
    **dict.fromkeys(("flatten", "ravel", "squeeze", "unsqueeze", "expand_dims", "view", "newaxis"), _RESHAPED),
    **dict.fromkeys(("full_like", "fill", "fill_", "constant"), _FULL.format("0.0")),
    "greater": _COMPARED.format(">"),
    "greater_equal": _COMPARED.format(">="),
    **dict.fromkeys(("inf", "nan", "pi"), _NUMBER),
    "item": "pl.read(x, [0, 0]) is one element as a number",
    **dict.fromkeys(("len", "ndim", "numel", "size", "dims"), _EXTENTS),
    "less": _COMPARED.format("<"),
    "less_equal": _COMPARED.format("<="),
    **dict.fromkeys(("make_block_ptr", "make_tensor_descriptor"), _PLACED),
    "max": _FOLDED.format("max") + ", pl.maximum takes two tiles",
    "min": _FOLDED.format("min") + ", pl.minimum takes two tiles",
    "not_equal": _COMPARED.format("!="),
    "negative": "write -x",
    "norm": "write pl.sqrt(pl.sum(x * x, axis=-1, keepdims=True))",
    **dict.fromkeys(("num_programs", "cluster_size"), "pl.get_block_num() is the number of blocks of pl.spmd"),
    "outer": "operators repeat extents of 1: a column times a row is their outer product",
    "pad": "pl.fillpad(x) fills what a load did not find",
    **dict.fromkeys(("program_id", "thread_id", "block_idx", "blockIdx"), _BLOCK),
    **dict.fromkeys(("normal", "uniform", "dropout", "rand4x", "randn4x"), _RANDOM),
    **dict.fromkeys(("remainder", "mod"), _LEFT),
    **dict.fromkeys(("static_range", "grid"), "pl.unroll(n) writes a loop's body out, pl.range(n) runs it in order"),
    "std": "write pl.sqrt(pl.var(x, axis=-1, keepdims=True))",
    **dict.fromkeys(("true_divide", "divide"), "write a / b"),
    **{name + like: _MADE.format(name) for name in ("ones", "zeros") for like in ("", "_like")},
    **{dtype.numpy_name: f"the element type is pl.{dtype.symbol}" for dtype in STORABLE if dtype.numpy_name},
}  # fmt: skip
"""What to write for each name; a name that is also one of ours is another thing here."""


@cache
def _found() -> Mapping[str, str]:
    """Return what to write for each name that the declarations say other libraries have."""
    found: dict[str, str] = {}
    for spec in specs():
        for names in elsewhere(spec.function).values():
            for name in names:
                found.setdefault(name.rpartition(".")[2], f"write pl.{usage(spec)}: {spec.doc.partition(chr(10))[0]}")
    for function in vars(directives).values():
        for names in elsewhere(function).values():
            for name in names:
                doc = (function.__doc__ or "").partition("\n")[0]
                found.setdefault(name.rpartition(".")[2], f"write pl.{function.__name__}(...): {doc}")
    return found


def meant(name: str, of: str = "x") -> str:
    """Return a help line for a name of another library: what does it here to the value `of`, or nothing."""
    if name in _MEANT:
        return _MEANT[name]
    if f"tile.{name}" not in OPS:
        return _found().get(name, "")
    return f"write pl.{name}({of}{', ...' if len(OPS[f'tile.{name}'].spec.parameters) > 1 else ''})"
