"""Laws of pipes: what the verifier asks of the pipes of a function, and of the buffers that two functions agree on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import prod

from tilewright.pto.elements import A5
from tilewright.pto.errors import PtoAttributeError, PtoOperandError
from tilewright.pto.machine.cores import CUBE, PIPED, POPS, PUSHES, SECTIONS, VECTOR, number, refuse_larger
from tilewright.pto.module import Func, Op, Region, SymbolRef, word_of
from tilewright.pto.text.free import words_of
from tilewright.pto.types import SPACES, Dims, Space, TensorView, TileBuf

RESERVE, IMPORT = "pto.reserve_buffer", "pto.import_reserved_buffer"
MET = frozenset((*PIPED, RESERVE, IMPORT))
"""The ops that are held to these rules."""
_CALLED = {CUBE: "the cube", VECTOR: "a vector core"}
_MASKS = {"aiv": 1, "aic": 2}
_BUFFERS = ("c2v_consumer_buf", "v2c_consumer_buf")


def refuse_pipes(func: Func, kind: str, functions: Mapping[str, Func], arch: str) -> None:
    """Raise where the pipes of a function, or its buffers, contradict each other."""
    assert func.body is not None
    placed = list(_placed(func.body, kind))
    for op, own in placed:
        if own and op.name in PIPED and PIPED[op.name][0] != own:
            wanted = _CALLED[PIPED[op.name][0]]
            message = f"`{op.name}` is for {wanted}, and this runs on {_CALLED[own]}"
            raise _at(op, message, f"move it to a function or section of {wanted}")
    for own in (CUBE, VECTOR):
        mine = [op for op, _ in placed if op.name in PIPED and PIPED[op.name][0] == own]
        if mine:
            _refuse_ids(mine, arch)
    _refuse_buffers([op for op, _ in placed if op.name in (RESERVE, IMPORT)], functions)


def _placed(region: Region, kind: str) -> Iterator[tuple[Op, str]]:
    """Yield the ops of a region that are about pipes, with the core that runs them."""
    for op in region.ops:
        if op.name in MET:
            yield op, kind
        for inner in op.regions:
            yield from _placed(inner, SECTIONS.get(op.name, kind))


def _at(op: Op, message: str, help: str) -> PtoOperandError:
    return PtoOperandError(message, spans=(op.span,), help=help)


def _refuse_ids(ops: Sequence[Op], arch: str) -> None:
    """Refuse a pipe that is made twice, one that nobody made, and one that is split two ways."""
    made: dict[int, Op] = {}
    for op in ops:
        if op.name.endswith("_initialize_pipe"):
            _refuse_initialized(op, arch)
            id = number(op, "id")
            if made.setdefault(id, op) is not op:
                raise _at(op, f"pipe {id} is initialized twice", "give each pipe an id of its own")
    splits: dict[tuple[int, str], int] = {}
    for op in ops if made else ():
        towards = PIPED[op.name][1]
        if not towards:
            continue
        id, split = number(op, "id"), number(op, "split")
        _refuse_unmade(op, made.get(id), towards, id, split)
        if bool(splits.setdefault((id, towards), split)) != bool(split):
            message = f"pipe {id} is split here, and is not elsewhere" if split else f"pipe {id} is split elsewhere"
            raise _at(op, message, "split all its entries or none: use a pipe for each")


def _refuse_unmade(op: Op, made: Op | None, towards: str, id: int, split: int) -> None:
    if made is None:
        raise _at(op, f"`{op.name}` is about pipe {id}, and nobody initialized it", f"initialize one with `id = {id}`")
    _refuse_entry(op, made)
    refuse_larger(op, id, _bytes(op), number(made, "slot_size"))
    mask = number(made, "dir_mask")
    if not mask & _MASKS[towards]:
        message = f"`{op.name}` is about a pipe with `dir_mask` {_MASKS[towards]} or 3, pipe {id} has {mask}"
        raise _at(op, message, "initialize it for that direction, or for both")
    nosplit = made.attributes.get("nosplit")
    if isinstance(nosplit, bool) and nosplit == bool(split):
        wanted = "0" if nosplit else "1 or 2"
        raise _at(op, f"pipe {id} has nosplit = {str(nosplit).lower()}: split is {wanted}, got {split}", "change one")


def _refuse_initialized(op: Op, arch: str) -> None:
    words = words_of(op)
    given = [name for name in _BUFFERS if name in words]
    if len(given) == 1:
        other = next(name for name in _BUFFERS if name not in given)
        raise _at(op, f"`{op.name}` has `{given[0]}` and no `{other}`", "give both consumer buffers, or none")
    if "gm_slot_tensor" not in words:
        return
    beside = next((name for name in (*_BUFFERS, "gm_slot_buffer") if name in words), None)
    if beside is not None:
        raise _at(op, f"`{op.name}` has `gm_slot_tensor` and `{beside}`", "leave one out")
    if arch == A5:
        raise _at(op, "A5 has no slots in global memory: `gm_slot_tensor` is A2/A3's", "push tiles instead")
    view, size = _slots(op), number(op, "slot_size")
    known = [extent for extent in view.shape if extent is not None] if view is not None else []
    if view is None or len(known) < len(view.shape):
        return
    nbytes = prod(known) * view.element.nbytes
    if nbytes not in (size, size / 2):
        message = f"`gm_slot_tensor` of `{op.name}` has {nbytes} bytes, and a slot {size}"
        raise _at(op, message, f"write slot_size = {nbytes}, or {2 * nbytes} where two vector cores have a half each")


def _slots(made: Op) -> TensorView | None:
    """Return what a slot of global memory looks like, None where a pipe has none."""
    return next((value.type for value in made.operands if isinstance(value.type, TensorView)), None)


def _shapes(slot: TensorView, split: int) -> list[Dims]:
    """Return the shapes that an entry has: a slot's, or that of its upper or left half where two cores share it."""
    axis = len(slot.shape) - 3 + split
    halves = [n // 2 if n is not None and place == axis else n for place, n in enumerate(slot.shape)]
    return [slot.shape, tuple(halves)] if split else [slot.shape]


def _agree(one: Dims, other: Dims) -> bool:
    return len(one) == len(other) and all(None in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True))


def _refuse_entry(op: Op, made: Op) -> None:
    """Refuse an entry in global memory that is no slot of its pipe."""
    slot = _slots(made)
    for value in (*op.operands, *op.results):
        entry = value.type
        if slot is None or not isinstance(entry, TensorView):
            continue
        fits = any(_agree(entry.shape, shape) for shape in _shapes(slot, number(op, "split")))
        if not fits or entry.element != slot.element:
            message = f"`%{value.name}` of `{op.name}` is {entry}, and a slot of pipe {number(op, 'id')} {slot}"
            raise _at(op, message, f"write {slot} for it, as its `gm_slot_tensor` is")


def _bytes(op: Op) -> int:
    """Return the bytes of the tile that an op takes or pushes; none where who takes it says as what."""
    value = op.results[0] if op.name in POPS else op.operands[0] if op.name in PUSHES else None
    tile = value.type if value is not None else None
    if not isinstance(tile, TileBuf) or (op.name in PUSHES and tile.space is Space.ACC):
        return 0
    return tile.nbytes


def _refuse_buffers(ops: Sequence[Op], functions: Mapping[str, Func]) -> None:
    """Refuse two buffers of one name, one without a place, and one that the other function does not have."""
    seen: set[tuple[str, str]] = set()
    for op in ops:
        name, peer = str(op.attributes.get("name", "")), op.attributes.get("peer_func")
        key = name, peer.name if isinstance(peer, SymbolRef) else ""
        if key in seen or not name:
            what = f"buffer `{name}` stands here twice" if name else f"`{op.name}` has no name"
            raise _at(op, what, "give each buffer a name of its own")
        seen.add(key)
        if op.name == RESERVE:
            _refuse_reserved(op, name)
        elif not isinstance(peer, SymbolRef) or name not in _reserved(functions.get(peer.name)):
            shown = f"`@{peer.name}`" if isinstance(peer, SymbolRef) else "no function"
            raise _at(op, f"{shown} reserves no buffer `{name}`", "name the function that reserves it, as `peer_func`")


def _refuse_reserved(op: Op, name: str) -> None:
    location = word_of(op.attributes.get("location", ""))
    if SPACES.get(str(location)) not in (Space.VEC, Space.MAT):
        message = f"buffer `{name}` lies in {location or 'no memory'}"
        raise PtoAttributeError(message, spans=(op.span,), help="location is vec or mat")
    is_placed, is_auto = "base" in op.attributes, op.attributes.get("auto", True) is not False
    if is_placed == is_auto:
        message = f"buffer `{name}` has {'a' if is_placed else 'no'} `base` and auto = {str(is_auto).lower()}"
        raise PtoAttributeError(message, spans=(op.span,), help="auto = false takes a base, auto = true none")


def _reserved(func: Func | None) -> set[str]:
    """Return the names of the buffers that a function reserves."""
    ops = func.body.ops if func is not None and func.body is not None else ()
    every = chain.from_iterable(op.walk() for op in ops)
    return {str(op.attributes.get("name")) for op in every if op.name == RESERVE}
