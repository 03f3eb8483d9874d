"""Loading ahead: a loop over the parts of a row has its next part on the way while it computes with this one.

The part waits in registers, which is less work than a ring of blocks in shared memory. Nothing that such a kernel loads
may be what it writes.
"""

from __future__ import annotations

import re

LEAST, SMALL, PER_THREAD = 1 << 12, 2, 64
"""Bytes of a part, at least, and of an element, at most: of larger ones there is less to compute while the next part
comes. How many elements a thread has: the fewer warps a block has, the less they wait for each other."""
ONCE = "evictionPolicy = evict_first"
"""Tells the cache that what is loaded is not looked at again."""
_LOOP = re.compile(
    r"^    (?P<made>%[^=\n]*) = scf\.for (?P<turn>%\d+) = (?P<low>%\d+) to (?P<high>%\d+) step (?P<step>%\d+) "
    r"iter_args\((?P<args>[^)\n]*)\) -> \((?P<types>[^)\n]*)\) : i64 \{\n"
    r"(?P<places>(?:      %\d+ = (?:arith\.(?:extsi|addi|muli)|tt\.(?:make_range|expand_dims|addptr|splat)) [^\n]*\n)+)"
    r"      (?P<name>%\d+) = tt\.load (?P<at>%\d+) : "
    r"tensor<(?P<shape>1x\d+x)!tt\.ptr<(?P<element>\w+)>>(?P<where>[^\n]*)\n"
    r"(?P<body>(?:      [^\n]*\n)+?)"
    r"      scf\.yield (?P<handed>[^:\n]*) : (?P<kinds>[^\n]*?)(?P<last> loc\([^\n]*)\n    \}",
    re.MULTILINE,
)
"""A loop that carries something, and loads a part of a row before all else."""


def loaded_ahead(text: str) -> str:
    """Return the text of a kernel whose first such loop loads one turn ahead."""
    return _LOOP.sub(_rotated, text, count=1)


def _rotated(found: re.Match[str]) -> str:
    turn, low, high, step, name, at, where = found.group("turn", "low", "high", "step", "name", "at", "where")
    shape, type_ = found["shape"], f"tensor<{found['shape']}{found['element']}>"
    pointers = f"tensor<{shape}!tt.ptr<{found['element']}>>"
    lines = [
        *_placed(found["places"], "begun", turn, low, "    "),
        f"    %begins = arith.cmpi slt, {low}, {high} : i64{where}",
        f"    %begins_all = tt.splat %begins : i1 -> tensor<{shape}i1>{where}",
        f"    %begun = tt.load {_named(at, 'begun')}, %begins_all {ONCE} : {pointers}{where}",
        f"    {found['made']}, %left = scf.for {turn} = {low} to {high} step {step} "
        f"iter_args({found['args']}, {name} = %begun) -> ({found['types']}, {type_}) : i64 {{",
        f"      %following = arith.addi {turn}, {step} : i64{where}",
        f"      %goes_on = arith.cmpi slt, %following, {high} : i64{where}",
        *_placed(found["places"], "next", turn, "%following", "      "),
        f"      %goes_on_all = tt.splat %goes_on : i1 -> tensor<{shape}i1>{where}",
        f"      %next = tt.load {_named(at, 'next')}, %goes_on_all {ONCE} : {pointers}{where}",
        found["places"] + found["body"].rstrip("\n"),
        f"      scf.yield {found['handed']}, %next : {found['kinds']}, {type_}{found['last']}",
        "    }",
    ]
    return "\n".join(lines)


def _placed(places: str, kind: str, turn: str, at: str, pad: str) -> list[str]:
    """Return where a part lies, written for another turn and under other names."""
    own = set(re.findall(r"^ *(%\d+) =", places, re.MULTILINE))

    def other(name: re.Match[str]) -> str:
        return at if name[0] == turn else _named(name[0], kind) if name[0] in own else name[0]

    return [pad + re.sub(r"%\w+", other, line.strip()) for line in places.splitlines()]


def _named(name: str, kind: str) -> str:
    return f"%{kind}{name[1:]}"
