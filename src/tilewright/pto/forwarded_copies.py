"""Forwarded copies: local memory that only holds a piece of global memory, seen where that lies.

A vector kernel copies a piece of its input, computes in a loop from it into another buffer, and copies that out. Where
nobody writes the input, or looks at the output, both buffers can be the pieces themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Absent, Call, Expr, Var
from tilewright.core.op import Kind
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.visitor import defined, statements, used, variables
from tilewright.dtypes import UINT8
from tilewright.ops.builder import Statements, known
from tilewright.passes.covered_buffers import dense_bytes, is_covered, named, place
from tilewright.records import record

VIEW, LOAD, STORE = "tensor.as_strided", "tile.load", "tile.store"


def forwarded(stmts: Sequence[Stmt], local: Mapping[Var, int], around: Sequence[Var]) -> list[Stmt]:
    """Return statements in which local buffers, of so many bytes, are pieces of the ones around them where they can."""
    copies = _Copies(stmts, {*around})
    found = {buffer: copy for buffer, nbytes in local.items() if (copy := copies.of(buffer, nbytes)) is not None}
    if not found:
        return list(stmts)
    gone = {id(stmt) for copy in found.values() for stmt in copy.gone}
    made: list[Stmt] = []
    for stmt in stmts:
        for buffer in [buffer for buffer in found if buffer in copies.names[id(stmt)]]:
            copy = found.pop(buffer)
            before = [each for each in copy.before if id(each) not in gone]
            gone |= {id(each) for each in before}
            made += [*before, _piece(buffer, local[buffer], copy)]
        if id(stmt) not in gone:
            gone.add(id(stmt))
            made.append(stmt)
    return made


@record
class _Copy:
    """A load and a store that copy all of a local buffer, and the view of global memory that they copy."""

    load: AssignStmt
    store: EvalStmt
    seen: AssignStmt
    fills: bool
    """Whether the copy fills the buffer, or empties it."""
    before: tuple[Stmt, ...] = ()
    """What computes where the piece lies, and may do so earlier."""

    @property
    def gone(self) -> list[Stmt]:
        """What nobody needs any more."""
        return [self.load, self.store, *([] if self.fills else [self.seen])]


def _piece(buffer: Var, nbytes: int, copy: _Copy) -> Stmt:
    """Return the statement that lets a buffer be a piece of global memory."""
    given = _given(copy.seen)
    view = Statements(copy.store.span).op(
        VIEW, buffer=given["buffer"], shape=(nbytes,), strides=(1,), offset=given["offset"], dtype=UINT8
    )
    buffer.type = view.type
    return AssignStmt(buffer, view, copy.seen.span)


class _Copies:
    """Where the buffers of some statements are read and written."""

    def __init__(self, stmts: Sequence[Stmt], around: set[Var]) -> None:
        self.stmts, self.around = stmts, around
        self.names = {id(stmt): named(stmt) for stmt in stmts}
        """The variables that each statement mentions."""
        every = list(statements(SeqStmts(tuple(stmts))))
        self.views = {s.var: s for s in every if isinstance(s, AssignStmt) and _is(s.value, VIEW)}
        self.uses = Counter(var for s in every for var in variables(used(s)))
        self.defined = Counter(var for s in every for var in defined(s))
        self.reads: dict[Var, list[Stmt]] = {}
        self.writes: dict[Var, list[Stmt]] = {}
        for stmt in every:
            self._note(stmt)
        self.numbers = {s.var: s for s in stmts if isinstance(s, AssignStmt) and _is_number(s.value)}
        self.copies = self._found()

    def _note(self, stmt: Stmt) -> None:
        """Note what a statement does to the buffers whose views it names."""
        if isinstance(stmt, AssignStmt) and stmt.var in self.views:
            return
        value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        for var in dict.fromkeys(variables(used(stmt))):
            if var in self.views or var in self.around:
                owner = self._owner(var)
                stores = _is(value, STORE) and _given(stmt)["output_tensor"] is var and var is not _given(stmt)["tile"]
                if not _is(value, LOAD):
                    self.writes.setdefault(owner, []).append(stmt)
                if not stores:
                    self.reads.setdefault(owner, []).append(stmt)

    def _owner(self, var: Var) -> Var:
        """Return the buffer that a view is of."""
        owner = _given(self.views[var])["buffer"] if var in self.views else var
        assert isinstance(owner, Var)
        return owner

    def _found(self) -> dict[Var, list[_Copy]]:
        """Return the copies between local and global memory, by the local buffer."""
        loads = {s.var: s for s in self.stmts if isinstance(s, AssignStmt) and _is(s.value, LOAD)}
        found: dict[Var, list[_Copy]] = {}
        for store in self.stmts:
            tile = _given(store)["tile"] if isinstance(store, EvalStmt) and _is(store.expr, STORE) else None
            if not isinstance(store, EvalStmt) or not isinstance(tile, Var) or tile not in loads:
                continue
            source, target = _given(loads[tile])["tensor"], _given(store)["output_tensor"]
            if isinstance(source, Var) and isinstance(target, Var) and {source, target} <= self.views.keys():
                fills = self._owner(source) in self.around
                local, outer = (target, source) if fills else (source, target)
                copy = _Copy(loads[tile], store, self.views[outer], fills)
                if self.uses[tile] == 1 and self._owner(outer) in self.around and self._is_plain(copy, local):
                    found.setdefault(self._owner(local), []).append(copy)
        return found

    def _is_plain(self, copy: _Copy, local: Var) -> bool:
        """Return whether a copy moves all of both views, element by element."""
        inner, outer, load, store = (_given(s) for s in (self.views[local], copy.seen, copy.load, copy.store))
        alike = inner["shape"] == outer["shape"] and inner["dtype"] == outer["dtype"]
        dense = inner["strides"] == outer["strides"] or _extent(inner["shape"]) == 1
        whole = load["shapes"] == inner["shape"] and not any(_is_there(load, n) for n in ("valid_shape", "mask", "pad"))
        return alike and dense and whole and store.get("atomic") in (None, AtomicType.None_)

    def of(self, buffer: Var, nbytes: int) -> _Copy | None:
        """Return the copy that all there is to a buffer is made by, None where there is none."""
        for copy in self.copies.get(buffer, []):
            outside = self._owner(copy.seen.var)
            own, others = (self.writes, self.reads) if copy.fills else (self.reads, self.writes)
            sole = copy.store if copy.fills else copy.load
            is_sole = len(own.get(buffer, [])) == 1 and own[buffer][0] is sole
            written = self.writes.get(outside, [])
            is_free = (
                not written
                if copy.fills
                else (len(written) == 1 and written[0] is copy.store and not self.reads.get(outside))
            )
            if is_sole and is_free and others.get(buffer) and self._is_whole(copy, buffer, nbytes):
                before = self._before(copy, buffer)
                return None if before is None else replace(copy, before=before)
        return None

    def _is_whole(self, copy: _Copy, buffer: Var, nbytes: int) -> bool:
        """Return whether a copy moves all of a buffer, which is written before it is read."""
        view = self.views[self._local(copy)]
        assert isinstance(view.value, Call)
        target = _given(copy.store)["output_tensor"]
        assert isinstance(target, Var)
        stored = self.views[target].value
        size = dense_bytes(copy.store, {target: stored}) if isinstance(stored, Call) else None
        return size == nbytes and place(view.value, {}) == 0 and is_covered(self.stmts, buffer, nbytes)

    def _before(self, copy: _Copy, buffer: Var) -> tuple[Stmt, ...] | None:
        """Return what must be computed before a buffer is first named, None where that cannot be."""
        offset = _given(copy.seen)["offset"]
        assert isinstance(offset, Expr)
        there: set[Var] = set(self.around)
        for stmt in self.stmts:
            if buffer in self.names[id(stmt)]:
                break
            there |= {var for var in defined(stmt) if self.defined[var] == 1}
        needed: dict[int, Stmt] = {}
        return tuple(reversed(needed.values())) if self._reaches(variables([offset]), there, needed) else None

    def _reaches(self, wanted: Sequence[Var], there: set[Var], needed: dict[int, Stmt]) -> bool:
        """Note what computes some numbers of others that are there; return whether that is all it takes."""
        for var in wanted:
            stmt = self.numbers.get(var)
            if var in there:
                continue
            if stmt is None or self.defined[var] != 1:
                return False
            needed.pop(id(stmt), None)
            needed[id(stmt)] = stmt
            if not self._reaches(variables(used(stmt)), there, needed):
                return False
        return True

    def _local(self, copy: _Copy) -> Var:
        var = _given(copy.store)["output_tensor"] if copy.fills else _given(copy.load)["tensor"]
        assert isinstance(var, Var)
        return var


def _is_number(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.kind is Kind.SCALAR


def _is(value: object, name: str) -> bool:
    return isinstance(value, Call) and value.op.name == name


def _given(stmt: Stmt) -> Mapping[str, object]:
    """Return the arguments of the op that a statement applies."""
    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
    assert isinstance(value, Call)
    return arguments(value)


def _is_there(given: Mapping[str, object], name: str) -> bool:
    return not isinstance(given.get(name) or Absent(), Absent)


def _extent(shape: object) -> int | None:
    """Return the first extent of a shape."""
    elements: tuple[Expr, ...] = getattr(shape, "elements", ())
    return known(elements[0]) if elements else None
