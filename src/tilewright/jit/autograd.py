"""Autograd: pairs of kernels as torch differentiates them, by operators that it knows.

The forward kernel's operator is told how gradients flow: by another operator, which takes what was saved and the
gradients that come in, and returns those that are asked for, each as large as the tensor that it is of. That one is
told that it has no gradients.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NoReturn, cast

from tilewright.frontend.kernels import Kernel
from tilewright.jit.backward import Pair
from tilewright.jit.parameters import Parameters
from tilewright.jit.torch_op import word
from tilewright.programs.torch_op import TENSOR, Schema, TorchOp, packed, registered
from tilewright.records import record

NAMESPACE = "tilewright"
_numbers = count()


def operator_name(kernel: Kernel) -> str:
    """Return a name for an operator of a kernel that no other has."""
    plain = re.sub(r"\W", "_", kernel.name, flags=re.ASCII)
    return f"{NAMESPACE}::{plain}_{next(_numbers)}"


def follow(operator: TorchOp, pair: Pair) -> Callable[..., Any]:
    """Let gradients flow back through the operator that a pair's forward kernel is.

    Return the same as a function, which is quicker where torch records and does not trace.
    """
    gradients = _Gradients(pair, *_backward_op(pair))
    operator.register_autograd(gradients.backward, setup_context=gradients.save)
    parts = {"forward": staticmethod(gradients.forward), "backward": staticmethod(gradients.backward_now)}
    made: Any = type(pair.forward.name, (sys.modules["torch"].autograd.Function,), parts)
    return made.apply


@record
class _Gradients:
    """What torch calls on the way forwards, and on the way back."""

    pair: Pair
    operator: TorchOp
    run: Callable[..., Any]
    """What the operator does, for when nobody has to know."""

    def forward(self, ctx: Any, *inputs: Any) -> Any:
        """Return what the forward kernel does, with all kept that its backward is given."""
        given = list(zip(self.pair.parameters, inputs, strict=True))
        named = {p.name: value for p, value in given if not p.is_positional and not (p.is_chosen and value is None)}
        output = self.pair.forward(*[value for p, value in given if p.is_positional], **named)
        self.save(ctx, inputs, output)
        return output

    def save(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Keep what the backward kernel is given."""
        torch: Any = sys.modules["torch"]
        ahead = zip(self.pair.inputs, inputs, strict=True)
        values = {**dict(ahead), **dict(zip(self.pair.outputs, _several(output), strict=True))}
        for name, of in self.pair.produced.items():
            if values[of] is None:
                of_what = f"`{of}` of `{self.pair.forward.name}`"
                raise TypeError(f"`{self.pair.backward.name}` writes `{name}`, and {of_what} is None: pass a tensor")
        ctx.numbers = {n: values[n] for n in self.pair.saved if not isinstance(values[n], torch.Tensor)}
        ctx.tensors = [name for name in self.pair.saved if name not in ctx.numbers]
        ctx.likes = [part for of in self.pair.bare for part in (values[of].shape, values[of].dtype)]
        ctx.save_for_backward(*[values[name] for name in ctx.tensors])
        flowing = self.pair.incoming.values()
        ctx.mark_non_differentiable(*[values[name] for name in self.pair.outputs if name not in flowing])

    def backward_now(self, ctx: Any, *grads: Any) -> Any:
        """Return the gradient of each input; by the operator where these are to be differentiated."""
        is_followed = sys.modules["torch"].is_grad_enabled()
        return self._gradients(self.operator if is_followed else self.run, ctx, grads)

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """Return the gradient of each input, as torch may trace it."""
        return self._gradients(self.operator, ctx, grads)

    def _gradients(self, call: Callable[..., Any], ctx: Any, grads: Sequence[Any]) -> Any:
        """Return the gradient of each input, None where there is none."""
        values = {**ctx.numbers, **dict(zip(ctx.tensors, ctx.saved_tensors, strict=True))}
        coming = dict(zip(self.pair.outputs, grads, strict=True))
        saved = [values[name] for name in self.pair.saved]
        made = call(*saved, *(coming[of] for of in self.pair.incoming.values()), *ctx.likes)
        found = dict(zip(self.pair.produced.values(), _several(made), strict=True))
        wanted = zip(self.pair.inputs, ctx.needs_input_grad, strict=False)  # torch leaves the last defaults out
        return tuple(found.get(name) if is_wanted else None for name, is_wanted in wanted)


def _several(found: Any) -> Sequence[Any]:
    """Return what an operator gives, one tensor too, as several."""
    return cast("Sequence[Any]", found) if isinstance(found, (tuple, list)) else (found,)


def _backward_op(pair: Pair) -> tuple[TorchOp, Callable[..., Any]]:
    """Return the operator that a pair's backward kernel is, and what it does."""
    takes = [*_saved(pair), *((name, TENSOR) for name in pair.incoming), *_shapes(pair)]
    known = _Backward(pair, [name for name, _ in takes])
    operator = registered(operator_name(pair.backward), Schema(takes, (), len(pair.produced)), known.run, known.fake)
    operator.register_autograd(partial(_refused, pair), setup_context=None)
    return operator, known.run


def _saved(pair: Pair) -> list[tuple[str, str]]:
    declared = Parameters(pair.forward).declared
    parameters = {parameter.name: parameter for parameter in pair.forward.parameters}
    return [(name, word(pair.forward, parameters[name], declared[name])) for name in pair.saved]


def _shapes(pair: Pair) -> list[tuple[str, str]]:
    """Return what says how large gradients are whose tensors are not saved: shape and element type."""
    return [part for of in pair.bare for part in ((f"shape_of_{of}", "SymInt[]"), (f"dtype_of_{of}", "ScalarType"))]


@record
class _Backward:
    """A backward kernel called with what was saved, and with gradients."""

    pair: Pair
    takes: Sequence[str]

    def run(self, *args: Any) -> Any:
        """Return the gradients that the kernel writes, zero where it writes nothing."""
        torch: Any = sys.modules["torch"]
        given = dict(zip(self.takes, args, strict=True))
        named = {name: given[name] for name in self.pair.saved}
        named |= {name: given[name].contiguous() for name in self.pair.incoming}
        return packed(self._returned(named, given) or self._written(named, self._made(torch.zeros, given)))

    def _written(self, named: Mapping[str, Any], made: Mapping[str, Any]) -> list[Any]:
        self.pair.backward(**named, **made)
        return list(made.values())

    def _returned(self, named: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
        """Return the gradients that the kernel makes itself, cleared only where it must be; nothing for others.

        One that is not like what it is the gradient of is left to the call that says so.
        """
        if not self.pair.returned:
            return []
        found = dict(zip(self.pair.returned, _several(self.pair.backward(**named)), strict=True))
        made = [found[name] for name in self.pair.produced]
        return made if [(each.shape, each.dtype) for each in made] == list(self._likes(given)) else []

    def fake(self, torch: Any, *args: Any) -> Any:
        """Return what the gradients look like."""
        return packed(list(self._made(torch.empty, dict(zip(self.takes, args, strict=True))).values()))

    def _made(self, make: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
        device = given[next(iter(self.pair.incoming))].device
        likes = zip(self.pair.produced, self._likes(given), strict=True)
        return {name: make(shape, dtype=dtype, device=device) for name, (shape, dtype) in likes}

    def _likes(self, given: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield shape and element type of each gradient: those of what it is of."""
        for of in self.pair.produced.values():
            like = given.get(of)
            yield (given[f"shape_of_{of}"], given[f"dtype_of_{of}"]) if like is None else (like.shape, like.dtype)


def _refused(pair: Pair, *_: object) -> NoReturn:
    raise RuntimeError(
        f"kernel `{pair.backward.name}` is the backward of `{pair.forward.name}`, and has none of its own: "
        "second derivatives cannot be had through it"
    )
