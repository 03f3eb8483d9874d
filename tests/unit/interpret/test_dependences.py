"""Dependences: what ranks touch of the caller's memory orders their turns, unless they tell each other by signals."""

from __future__ import annotations

import pytest

from tilewright.interpret.dependences import By, Dependences

HERE, PART, THERE = (0, 100), (40, 60), (100, 200)


def test_what_was_written_comes_before_what_reads_it() -> None:
    order = Dependences()
    assert order.needs(By(0, 1, "a"), [], [HERE]) == ()
    assert order.needs(By(1, 1, "a"), [PART], []) == ((0, 1),)
    assert order.needs(By(1, 2, "a"), [THERE], []) == ()


def test_what_was_read_comes_before_what_writes_it() -> None:
    order = Dependences()
    order.needs(By(0, 1, "a"), [HERE], [])
    order.needs(By(0, 2, "a"), [PART], [])
    order.needs(By(2, 1, "a"), [THERE], [])
    assert order.needs(By(1, 1, "a"), [], [PART]) == ((0, 2),)


def test_turns_of_one_statement_write_parts_of_one_output_side_by_side_and_other_statements_follow() -> None:
    order = Dependences()
    order.needs(By(0, 1, "a"), [], [HERE])
    assert order.needs(By(1, 1, "a"), [], [HERE]) == ()
    assert order.needs(By(1, 2, "b"), [], [HERE]) == ((0, 1),)


@pytest.mark.parametrize("has_windows", [False, True])
def test_two_that_have_windows_may_wait_for_each_other(has_windows: bool) -> None:
    order = Dependences()
    order.needs(By(0, 1, "a", has_windows=True), [HERE], [THERE])
    found = order.needs(By(1, 1, "b", has_windows=has_windows), [], [HERE, THERE])
    assert found == (() if has_windows else ((0, 1),))
    assert order.needs(By(2, 1, "c", has_windows=True), [THERE], [])[0] == (0, 1)


def test_a_rank_needs_nothing_of_its_own_and_many_turns_are_known() -> None:
    order = Dependences()
    for number in range(1, 300):
        assert order.needs(By(0, number, number), [HERE], [HERE]) == ()
    assert order.needs(By(1, 1, "last"), [PART], [PART]) == ((0, 299),)
