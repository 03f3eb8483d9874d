"""Control flow: loops that carry values, branches that merge them, exits."""

from __future__ import annotations

from dataclasses import replace

from property.values import Value, is_static_tensor, is_tensor
from property.writer import Plane, Writer, inside

from tilewright import dtypes as dt
from tilewright.core.types import ScalarType


def trips(w: Writer) -> tuple[str, range | None]:
    """Return the bounds of a counted loop, and its turns where they are known."""
    counts = w.all(lambda v: v.type == ScalarType(dt.INDEX))
    if counts and w.chance(35):
        name = w.pick(counts).name
        return w.pick([f"{name} % 4", f"pl.min({name}, 3)", f"0, pl.min(pl.max({name}, 0), 4), 2"]), None
    turns = w.pick([range(2), range(3), range(1, 4), range(0, 5, 2), range(0), range(3, 0, -1), range(1)])
    return f"{turns.start}, {turns.stop}, {turns.step}", turns


def loop(w: Writer) -> None:
    """Write a loop whose turns follow each other."""
    w.pick([counted, counted, carrying, natural_while, carrying_while])(w)


def counted(w: Writer) -> None:
    """Write a counted loop whose body may bind outer names anew."""
    kind = w.pick(["range", "range", "range", "unroll", "pipeline"])
    bounds, turns = trips(w)
    if kind == "unroll" and turns is None:
        kind = "range"
    name, exits = w.fresh("i"), w.exits
    stage = ", stage=2" if kind == "pipeline" else ""
    with inside(w, loop=kind, carried=()), w.block(f"for {name} in pl.{kind}({bounds}{stage}):") as made:
        w.values[name] = _index(w, name, turns)
        w.body(4)
    if turns and w.exits == exits and w.chance(40):
        made.pop(name)
        w.values.update(made)


def _index(w: Writer, name: str, turns: range | None) -> Value:
    """Return a loop variable."""
    reach = (min(turns), max(turns)) if turns else (0, 4)
    return Value(name, ScalarType(dt.INDEX), w.depth, reach, fixed=True, known=bool(turns))


def _carriable(w: Writer) -> list[Value]:
    """Return values whose type a loop can carry."""
    tensors = [] if w.plane is Plane.KERNEL else [t for t in w.targets() if is_static_tensor(t)]
    scalars = w.all(lambda v: v.is_scalar and not v.fixed and v.type != ScalarType(dt.TASK_ID))
    return [*w.tiles(), *scalars, *tensors]


def carrying(w: Writer) -> None:
    """Write a counted loop that carries values by name, and yields them."""
    found = _carriable(w)
    if not found:
        return
    starts = [w.pick(found) for _ in range(w.number(1, min(2, len(found))))]
    starts = [v for i, v in enumerate(starts) if not any(v.roots & u.roots for u in starts[:i])]
    kind = w.pick(["range", "range", "pipeline"])
    name, args = w.fresh("i"), [w.fresh("c") for _ in starts]
    stage = ", stage=2" if kind == "pipeline" else ""
    bounds, turns = trips(w)
    inits = ", ".join(v.name for v in starts)
    head = f"for {name}, ({', '.join(args)},) in pl.{kind}({bounds}{stage}, init_values=({inits},)):"
    with inside(w, loop=kind, carried=tuple(args)), w.block(head):
        w.values[name] = _index(w, name, turns)
        results = _yielding(w, starts, args)
    w.values.update({r.name: r for r in results})


def _yielding(w: Writer, starts: list[Value], args: list[str]) -> list[Value]:
    """Write the body of a carrying loop up to its yield; return what it carries out."""
    shared = frozenset[int]().union(*(v.roots for v in starts))
    for start, arg in zip(starts, args, strict=True):
        w.values[arg] = replace(
            start, name=arg, depth=w.depth, fixed=True, reach=None, roots=shared if start.roots else start.roots
        )
    w.body(4)
    yielded: list[str] = []
    for start, arg in zip(starts, args, strict=True):
        same = [v for v in w.values.values() if v.type == start.type and not is_tensor(v)]
        tensors = [
            a for a, s in zip(args, starts, strict=True) if s.type == start.type and s.readable == start.readable
        ]
        yielded.append(w.pick(tensors) if is_tensor(start) else w.pick([arg, *(v.name for v in same)]))
    names: list[str] = []
    for start in starts:
        names.append(w.name_for(start.type, "r", [*names, *args]))
    w.line(f"{', '.join(names)} = pl.yield_({', '.join(yielded)})")
    facts = zip(starts, names, strict=True)
    return [
        replace(s, name=n, depth=w.depth, fixed=False, reach=None, roots=shared if s.roots else s.roots)
        for s, n in facts
    ]


def natural_while(w: Writer) -> None:
    """Write a `while` that counts."""
    name, limit = w.fresh("k"), w.index(3)[0]
    w.line(f"{name} = 0")
    early = w.chance(50)
    w.values[name] = Value(name, ScalarType(dt.INDEX), w.depth, (0, 4), fixed=True)
    with inside(w, loop="while" if early else "counting", carried=()), w.block(f"while {name} < {limit}:"):
        if early:
            w.line(f"{name} = {name} + 1")
        w.body(4)
        if not early:
            w.line(f"{name} = {name} + 1")


def carrying_while(w: Writer) -> None:
    """Write a `pl.while_` loop that counts and carries one more value."""
    found = _carriable(w)
    if not found:
        return
    start, count, arg = w.pick(found), w.fresh("k"), w.fresh("c")
    with inside(w, loop="counting", carried=()):
        with w.block(f"for ({count}, {arg}) in pl.while_(init_values=(0, {start.name})):"):
            w.line(f"pl.cond({count} < {w.index(3)[0]})")
            w.values[count] = Value(count, ScalarType(dt.INDEX), w.depth, (0, 4), fixed=True)
            results = _yielding(w, [start], [arg])
            w.lines[-1] = (
                w.lines[-1]
                .replace(results[0].name, f"{count}_end, {results[0].name}", 1)
                .replace("yield_(", f"yield_({count} + 1, ")
            )
    w.values[results[0].name] = results[0]


def branch(w: Writer) -> None:
    """Write a branch: one that only acts, one that binds names anew, or one that yields."""
    condition = w.condition()
    found = _carriable(w)
    # A name bound anew in a branch that the front end takes itself is one variable there, and two in the printed text:
    # such a branch leaves outer names alone, and hands its value on by a yield.
    with inside(w, depth=w.depth + w.knows(condition)):
        merged = _merging(w, condition, w.pick(found)) if found and w.chance(35) else None
        if merged is None:
            _acting(w, condition)
    if merged is not None:
        w.values[merged.name] = replace(merged, depth=w.depth)


def _acting(w: Writer, condition: str) -> None:
    with w.block(f"if {condition}:"):
        w.body(3)
        leave(w)
    if w.chance(60):
        with w.block("else:"):
            w.body(3)


def _merging(w: Writer, condition: str, start: Value) -> Value:
    """Write a branch both of whose sides give one new name a value, and return that."""
    yields = w.knows(condition) or w.chance(50)
    name = w.name_for(start.type, "r") if yields else w.fresh("r")
    is_new = name not in w.values
    roots: frozenset[int] = frozenset()
    readable = True
    for head in (f"if {condition}:", "else:"):
        with w.block(head):
            w.body(2)
            same = [v for v in w.values.values() if v.type == start.type]
            same = [v for v in same if not is_tensor(v) or (v.writable and v.depth == start.depth)]
            chosen = w.pick([w.values[start.name], *same])
            roots, readable = roots | chosen.roots, readable and chosen.readable
            w.line(f"{name} = pl.yield_({chosen.name})" if yields else f"{name} = {chosen.name}")
    return Value(
        name, start.type, w.depth, fixed=is_new, roots=roots, readable=readable, writable=start.writable, packed=False
    )


def leave(w: Writer) -> None:
    """Write an exit where one may stand."""
    if w.returns is not None and not w.loop and w.chance(10):
        w.line(f"return {w.returns}".rstrip())
        w.exits += 1
    elif w.loop in ("range", "while") and w.chance(75):
        if w.carried and w.chance(50):
            w.line(f"pl.yield_({', '.join(w.carried)})")
        w.line(w.pick(["break", "continue"]))
        w.exits += 1
