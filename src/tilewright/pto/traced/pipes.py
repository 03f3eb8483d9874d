"""Pipes by name: `pto.pipe.c2v(id=0, slot_size=1024, consumer_buf=near)`, whose methods are the ops on it.

`init_cube()` and `init_simd()` make the two ends. What the cube sends goes to the vector cores on a `c2v` pipe and back
on a `v2c` one; a `bidirectional` one has both as `.c2v` and `.v2c`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.errors import OperandError
from tilewright.pto.module import Value
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.ops import handles
from tilewright.pto.traced.phrases import emit_phrase
from tilewright.pto.traced.scalars import constant
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import Handle
from tilewright.pto.types import SCALARS, TensorView

_ENDS = {"c2v": ("aiv", "aic"), "v2c": ("aic", "aiv")}
"""Where each way leads, and where it comes from."""
_MASKS = {"c2v": 1, "v2c": 2, "bidirectional": 3}
_BUFFERS = ("c2v_consumer_buf", "v2c_consumer_buf")
_OPTIONAL = ("slot_size", "gm_slot_buffer", "gm_slot_tensor", "local_slot_num", "nosplit")


@dataclass(eq=False)
class CorePipe(Handle):
    """A pipe between cores: what its ends are made of."""

    way: str
    made_of: Mapping[str, Argument]

    def init_cube(self, t: Tracer, given: Arguments) -> None:
        """Make the end of the cube."""
        self._init(t, given, "aic")

    def init_simd(self, t: Tracer, given: Arguments) -> None:
        """Make the end of the vector cores."""
        self._init(t, given, "aiv")

    def _init(self, t: Tracer, given: Arguments, core: str) -> None:
        given.bind(t)
        mask = Argument(_MASKS[self.way], given.node)
        made = {"id": self.made_of["id"], "dir_mask": mask, **self.made_of}
        emit_phrase(t, f"pto.{core}_initialize_pipe", Arguments(given.name, given.node, kwargs=made))

    @property
    def c2v(self) -> CorePipe:
        """The way to the vector cores."""
        return CorePipe("c2v", self.made_of)

    @property
    def v2c(self) -> CorePipe:
        """The way to the cube."""
        return CorePipe("v2c", self.made_of)

    def alloc(self, t: Tracer, given: Arguments) -> Any:
        """Return the next slot of global memory, to be written and pushed."""
        bound = given.bind(t, optional=("split",))
        return self._emit(
            t, given, f"talloc_to_{self._ends(t, given)[0]}", {**bound, "result_type": self._slot(t, given)}
        )

    def push(self, t: Tracer, given: Arguments) -> Any:
        """Send a tile, or a slot that has been written."""
        bound = given.bind(t, "entry", optional=("split",))
        return self._emit(t, given, f"tpush_to_{self._ends(t, given)[0]}", bound)

    def pop(self, t: Tracer, given: Arguments) -> Any:
        """Return the oldest tile that was sent, of a type, or a slot that was written."""
        bound = given.bind(t, optional=("split", "result_type", "valid_shape"))
        if "result_type" not in bound or bound["result_type"].value is None:
            bound["result_type"] = self._slot(t, given)
        return self._emit(t, given, f"tpop_from_{self._ends(t, given)[1]}", bound)

    def free(self, t: Tracer, given: Arguments) -> Any:
        """Let a slot be used again."""
        bound = given.bind(t, optional=("entry", "split"))
        return self._emit(t, given, f"tfree_from_{self._ends(t, given)[1]}", bound)

    def _ends(self, t: Tracer, given: Arguments) -> tuple[str, str]:
        if self.way not in _ENDS:
            message = f"`{given.name}` is of a pipe that leads both ways"
            raise t.error(
                OperandError, given.node, message, help="say which: `pipe.c2v.push(...)`, `pipe.v2c.push(...)`"
            )
        return _ENDS[self.way]

    def _slot(self, t: Tracer, given: Arguments) -> Argument:
        """Return the type of a slot."""
        if "gm_slot_tensor" in self.made_of:
            return self.made_of["gm_slot_tensor"]
        help = "pass `result_type=pto.tile_type(shape=[16, 16], dtype=pto.f32)`, or a tile of that type"
        raise t.error(OperandError, given.node, "this pipe does not say what its entries are", help=help)

    def _emit(self, t: Tracer, given: Arguments, op: str, bound: Mapping[str, Argument]) -> Any:
        more = {"split": Argument(0, given.node), **bound}
        return emit_phrase(t, f"pto.{op}", Arguments(given.name, given.node, kwargs={"id": self.made_of["id"], **more}))


@handles("pipe.c2v", "pipe.v2c")
def _pipe(t: Tracer, given: Arguments) -> CorePipe:
    bound = given.bind(t, "id", optional=("consumer_buf", *_OPTIONAL))
    made = _said(bound, ("id", *_OPTIONAL))
    if "consumer_buf" in _said(bound, ("consumer_buf",)):
        other = Argument(constant(t, 0, SCALARS["i32"], given.node), given.node)
        made |= {**dict.fromkeys(_BUFFERS, other), f"{given.word}_consumer_buf": bound["consumer_buf"]}
    return CorePipe(given.word, _sized(t, given, made))


@handles("pipe.bidirectional")
def _both_ways(t: Tracer, given: Arguments) -> CorePipe:
    bound = given.bind(t, "id", "slot_size", optional=(*_BUFFERS, *_OPTIONAL[1:]))
    return CorePipe(given.word, _said(bound, ("id", *_OPTIONAL, *_BUFFERS)))


def _said(bound: Mapping[str, Argument], names: tuple[str, ...]) -> dict[str, Argument]:
    return {name: bound[name] for name in names if name in bound and bound[name].value is not None}


def _sized(t: Tracer, given: Arguments, made: dict[str, Argument]) -> dict[str, Argument]:
    """Return what a pipe is made of with the size of its slots, which one that is not split has from its tensor."""
    if "slot_size" in made:
        return made
    slot, is_whole = made.get("gm_slot_tensor"), "nosplit" in made and made["nosplit"].value
    type_ = slot.value.type if slot is not None and isinstance(slot.value, Value) else None
    if not is_whole or not isinstance(type_, TensorView) or None in type_.shape:
        help = "pass `slot_size`, or a `gm_slot_tensor` of known extents with `nosplit=True`"
        raise t.error(OperandError, given.node, "the size of this pipe's slots does not follow", help=help)
    size = prod(extent or 0 for extent in type_.shape) * type_.element.nbytes
    return {"slot_size": Argument(size, given.node), **made}
