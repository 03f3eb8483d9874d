"""Given tensors: which ones loops and branches hand on, and room for those that are made inside of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright import dtypes as dt
from tilewright.core.expr import Var
from tilewright.core.stmt import EMPTY, AssignStmt, IfStmt, SeqStmts, YieldStmt
from tilewright.core.types import TensorType, is_static, static_shape
from tilewright.core.visitor import statements
from tilewright.passes.aliases import Aliases, Owners
from tilewright.programs.pto_text.handed_parts import Parts
from tilewright.programs.pto_text.memory import room_for
from tilewright.programs.pto_text.values import Choice, NoPtoError, Number, Tensor, Value, kept
from tilewright.programs.pto_text.writer import Writer


class GivenTensors:
    """What says which tensors variables may be."""

    def __init__(self, writer: Writer, uses: Mapping[Var, int]) -> None:
        self.w = writer
        self.uses = uses
        """How often the program's variables are operands."""
        self.values: dict[Var, Value] = {}
        """What the program's variables are in the text."""
        self.aliases = Aliases(EMPTY)
        """Whose memory the tensors of the function that is being written may lie in."""
        self.parts: Parts | None = None
        """Which of those may be parts of others, where somebody has asked."""
        self.rooms: dict[Var, Tensor] = {}
        """The tensors that it makes inside of a loop or a branch, and hands on from there."""

    def has_parts(self, var: Var) -> bool:
        """Return whether a variable may be a part of a tensor."""
        if self.parts is None or self.parts.body is not self.aliases.body:
            self.parts = Parts(self.aliases.body, self.aliases.footprints)
        return self.parts.has(var)

    def tensor_of(self, var: Var, owners: Owners) -> Value | None:
        """Return what stands for one of several tensors, None where those are not all there yet."""
        found = [self.values.get(owner) for owner in owners if owner in self.values or not self._is_given(owner)]
        return None if None in found else self._one_of(var, found)

    def _one_of(self, var: Var, found: Sequence[Value | None]) -> Value | None:
        tensors = {each.view: each for each in found if isinstance(each, Tensor)}
        may_be = _may_be_part if self.has_parts(var) else _may_be
        tensors = {view: each for view, each in tensors.items() if may_be(var, each)} or tensors
        options = tuple(tensors[view] for view in sorted(tensors))
        if len(options) < 2:
            return options[0] if options else None
        numbers = tuple(self.w.constant(number) for number in range(len(options)))
        return Choice(Number(self.w.name(f"which_{var.name_hint}"), dt.INDEX), options, numbers)

    def forget(self, body: SeqStmts) -> None:
        """Forget what a loop made when it was written before: in its first turn nobody has made that yet."""
        for stmt in statements(body) if self.rooms else ():
            if isinstance(stmt, AssignStmt) and stmt.var in self.rooms:
                self.values.pop(stmt.var, None)

    def _is_given(self, var: Var) -> bool:
        """Return whether a variable is what some branch gives, of which one side may leave instead."""
        return any(var in stmt.return_vars for stmt in statements(self.aliases.body) if isinstance(stmt, IfStmt))

    def made_first(self, var: Var) -> Value:
        """Return what stands for a tensor that a loop carries and nobody has made before it."""
        yields = [stmt for stmt in statements(self.aliases.body) if isinstance(stmt, YieldStmt)]
        is_only_handed_on = self.uses.get(var, 0) == sum(value is var for stmt in yields for value in stmt.values)
        place = self.made_within(var, self.aliases.owners(var)) if is_only_handed_on else None
        if place is None or not fits(var, place):  # but a view of one
            what = "tensors of fixed extents that each turn makes anew"
            message = f"this export carries {what}, and `{var.name_hint}` is none of them"
            raise NoPtoError(message, help="make it before the loop, and let the turns write to it")
        return place

    def made_within(self, var: Var, owners: Owners) -> Value | None:
        """Return what stands for one of several tensors, where room is brought for those that are not there yet."""
        found = list[Value | None]()
        for owner in owners:
            if owner in self.values or not self._is_given(owner):
                found.append(self.values.get(owner) or self._room(owner))
        return None if None in found else self._one_of(var, found)

    def _room(self, owner: Var) -> Tensor | None:
        """Return the tensor that a statement further in makes, None where nobody knows its extents here."""
        call = self.aliases.made.get(owner)
        if owner in self.rooms or call is None or not isinstance(owner.type, TensorType):
            return self.rooms.get(owner)
        if call.op.name not in ("tensor.create", "tensor.full") or not is_static(owner.type.shape):
            return None
        with self.w.at_start():
            shape = [self.w.constant(extent) for extent in static_shape(owner.type.shape)]
            self.rooms[owner] = room_for(self.w, owner.type.dtype, shape)
        return self.rooms[owner]


def _may_be(var: Var, tensor: Tensor) -> bool:
    """Return whether a variable may be a whole tensor: what a call gives may lie in any that it is given."""
    assert isinstance(var.type, TensorType)
    return tensor.dtype == kept(var.type.dtype) and fits(var, tensor)


def _may_be_part(var: Var, tensor: Tensor) -> bool:
    """Return whether a variable may be a part of a tensor."""
    assert isinstance(var.type, TensorType)
    return tensor.dtype == kept(var.type.dtype) and len(var.type.shape) == len(tensor.shape)


def fits(var: Var, value: Value) -> bool:
    """Return whether a tensor, or one that is chosen, has the extents of a variable, as far as they are known."""
    tensor = value.options[0] if isinstance(value, Choice) else value
    assert isinstance(var.type, TensorType) and isinstance(tensor, Tensor)
    pairs = zip(var.type.shape, tensor.shape, strict=False)
    is_so = all(not isinstance(want, int) or have.known in (None, want) for want, have in pairs)
    return is_so and len(var.type.shape) == len(tensor.shape)
