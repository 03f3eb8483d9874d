from __future__ import annotations

from tilewright.native.interleaving import interleave, interleaved
from tilewright.native.llvm import F32, I64, PTR, Builder, Module, Value, i64, vector

LANES = vector(F32, 16)
START = Value(PTR, "%start")


def squares(registers: int, count: int = 4) -> str:
    """Return the code of a few squares, each of a vector of its own."""
    b = Builder(Module(registers=registers), "squares", [START])
    places = [b.offset(START, i64(16 * at), F32) for at in range(count)]
    starts: list[int] = []
    for place in places:
        starts.append(len(b.lines))
        number = b.load(LANES, place, 4)
        b.store(b.op("fmul", number, number), place, 4)
    interleave(b, starts)
    return " ".join(line.split("=")[-1].split()[0] for line in b.lines[1 + count :])


def chain(name: int, length: int, type_: str = LANES) -> list[str]:
    """Return instructions that wait for each other, and all of them for the first."""
    lines = [f"  %t{name} = load {type_}, ptr %start"]
    numbers = range(name + 1, name + length)
    return [*lines, *(f"  %t{at} = fadd {type_} %t{at - 1}, %t{name}" for at in numbers)]


def held(name: int, count: int, type_: str = LANES) -> list[str]:
    """Return vectors that are all needed at the end."""
    loads = [f"  %t{name + at} = load {type_}, ptr %start" for at in range(count)]
    return [*loads, *(f"  store {type_} %t{name + at}, ptr %start" for at in range(count))]


def test_chains_go_in_step() -> None:
    assert squares(registers=32) == "load load load load fmul fmul fmul fmul store store store store"


def test_chains_stay_one_after_the_other_where_registers_are_few() -> None:
    assert squares(registers=16) == "load fmul store " * 3 + "load fmul store"


def test_as_many_go_in_step_as_registers_hold() -> None:
    stretches = [held(100 * number, 8) for number in range(8)]
    assert interleaved(stretches, 64)[:9] == [s[0] for s in stretches] + [stretches[0][1]]
    assert interleaved(stretches, 32)[:5] == [s[0] for s in stretches[:4]] + [stretches[0][1]]
    assert interleaved(stretches, 8) == [line for lines in stretches for line in lines]


def test_doubles_take_two_registers() -> None:
    stretches = [held(100 * number, 8, vector("double", 16)) for number in range(4)]
    assert interleaved(stretches, 32)[:3] == [stretches[0][0], stretches[1][0], stretches[0][1]]


def test_a_value_is_over_after_its_last_reader() -> None:
    stretches = [chain(100 * number, 40) for number in range(4)]
    assert interleaved(stretches, 12)[:5] == [*(s[0] for s in stretches), stretches[0][1]]


def test_a_stretch_that_needs_another_one_stays_behind_it() -> None:
    first, second = chain(0, 4), [f"  %t{at} = fadd {LANES} %t3, %t3" for at in range(10, 14)]
    assert interleaved([first, second], 32) == [*first, *second]


def test_stretches_with_blocks_or_more_lines_stay_as_they_are() -> None:
    jump, other = ["  br label %a", "a:"], ["  br label %b", "b:"]
    assert interleaved([jump, other], 32) == [*jump, *other]
    assert interleaved([chain(0, 2), chain(10, 3)], 32) == [*chain(0, 2), *chain(10, 3)]


def test_a_mark_keeps_what_is_put_there() -> None:
    b = Builder(Module(registers=32), "marked", [Value(I64, "%n")])
    starts: list[int] = []
    marks: list[int] = []
    for _ in range(2):
        starts.append(len(b.lines))
        marks.append(b.mark())
        b.op("add", Value(I64, "%n"), i64(1))
    interleave(b, starts)
    assert [b.lines[at] for at in marks] == ["", ""]
