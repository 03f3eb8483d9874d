"""Turns: what they hand on to each other, or all write, is seen before a program runs."""

from __future__ import annotations

import warnings

import pytest
from unit.passes.texts import leaves, main

from tilewright.errors import DependentBlocksError, DependentTurnsWarning
from tilewright.passes import independence

HANDED_ON = {
    "a scalar that is counted up": """
        k = n
        for i in {loop}:
            k = k + 1
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
    "a scalar that is set after it is read": """
        k = n
        for i in {loop}:
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
            k = i
        """,
    "a scalar that only one branch sets first": """
        k = n
        for i in {loop}:
            if i > 1:
                k = i
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
    "a scalar that an inner loop counts up": """
        k = n
        for i in {loop}:
            for j in pl.range(3):
                k = k + j
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
}

PRIVATE = {
    "a scalar that each turn sets first": """
        k = n
        for i in {loop}:
            k = i
            k = k + 1
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
    "a scalar that both branches set": """
        k = n
        for i in {loop}:
            if i > 1:
                k = i
            else:
                k = n
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
    "a tensor that is bound anew by writing it": """
        for i in {loop}:
            y = pl.write(y, [i, 0], a)
        """,
    "what an inner loop carries": """
        for i in {loop}:
            for (k, c) in pl.while_(init_values=(0, a)):
                pl.cond(k < 3)
                k_end, c_end = pl.yield_(k + 1, c * 2.0)
            for j, (d,) in pl.range(3, init_values=(c_end,)):
                d_end = pl.yield_(d + 1.0)
            pl.write(y, [i, 0], d_end)
        """,
    "what an inner loop leaves": """
        for i in {loop}:
            for j in pl.range(n):
                k = j + i
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        """,
    "what only the turns read": """
        k = n
        for i in {loop}:
            pl.write(y, [i, 0], pl.cast(k, pl.FP32))
        k = 3
        """,
}


@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON.keys())
def test_a_value_that_turns_hand_on_gives_a_warning(body: str) -> None:
    with pytest.warns(DependentTurnsWarning, match="turns of pl.parallel go on from the 'k' of others"):
        independence.run(main(body.format(loop="pl.parallel(4)")))


@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON.keys())
def test_a_value_that_blocks_hand_on_is_an_error(body: str) -> None:
    with pytest.raises(DependentBlocksError, match="none can go on from the 'k' of another") as caught:
        independence.run(main(body.format(loop="pl.spmd(4)")))
    assert caught.value.place.is_known and caught.value.function == "main"


@pytest.mark.parametrize("loop", ["pl.parallel(4)", "pl.spmd(4)"])
@pytest.mark.parametrize("body", PRIVATE.values(), ids=PRIVATE.keys())
def test_what_a_turn_binds_itself_is_its_own(body: str, loop: str) -> None:
    leaves(independence.run, main(body.format(loop=loop)))


def test_a_loop_of_one_turn_hands_nothing_on() -> None:
    leaves(independence.run, main(HANDED_ON["a scalar that is counted up"].format(loop="pl.parallel(1)")))


SAME = {
    "an element": "pl.write(y, [0, 0], a)",
    "an element that the call names": "pl.write(y, [n, 0], a)",
    "a tile": "with pl.at(level=pl.Level.CORE_GROUP):\n    pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], y)",
    "a tensor bound anew": "y = pl.assemble(y, pl.slice(x, [1, 8], [i, 0]), [3, 0])",
}


@pytest.mark.parametrize("write", SAME.values(), ids=SAME.keys())
def test_turns_that_all_write_one_place_give_a_warning(write: str) -> None:
    lines = "\n".join(f"    {line}" for line in write.splitlines())
    with pytest.warns(DependentTurnsWarning, match="every turn of pl.parallel writes the same place of 'y'"):
        independence.run(main(f"for i in pl.parallel(n):\n{lines}"))


def test_a_warning_is_given_once_however_often_somebody_looks() -> None:
    program = main("for i in pl.parallel(n):\n    pl.write(y, [0, 0], a)")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        for _ in range(3):
            independence.run(program)
    assert [each.category for each in given] == [DependentTurnsWarning]


APART = {
    "a place that depends on the turn": "pl.write(y, [i, 0], a)",
    "a place computed from the turn": "k = i * 2\npl.write(y, [k, 0], a)",
    "a window of the turn": "w = pl.slice(y, [1, 8], [i, 0])\npl.write(w, [0, 0], a)",
    "one turn": "if i == 0:\n    pl.write(y, [0, 0], a)",
    "a tensor of the turn": "z = pl.create_tensor([4, 4], dtype=pl.FP32)\npl.write(z, [0, 0], a)",
    "an atomic add": "with pl.at(level=pl.Level.CORE_GROUP):\n"
    "    pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], y, atomic=pl.AtomicType.Add)",
}


@pytest.mark.parametrize("write", APART.values(), ids=APART.keys())
def test_turns_that_write_places_of_their_own_give_none(write: str) -> None:
    lines = "\n".join(f"    {line}" for line in write.splitlines())
    leaves(independence.run, main(f"for i in pl.parallel(n):\n{lines}"))
