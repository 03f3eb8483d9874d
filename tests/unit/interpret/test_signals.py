"""Signals: which notifies a wait must have come after."""

from __future__ import annotations

import numpy as np

from tilewright.interpret.signals import Cell, Told


def told(*notifies: tuple[int, int, int, bool]) -> Cell:
    """Return a cell of rank 0 that other ranks told something: by rank, time, value and whether it is set."""
    cell = Cell(0, 0)
    for rank, time, value, is_set in notifies:
        cell.tell(cell.value, Told(rank, clock(rank, time), value, is_set))
    return cell


def clock(rank: int, time: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([time if each == rank else 0 for each in range(3)], np.int32)


def awaited(cell: Cell, expected: range) -> list[int]:
    return cell.awaited(cell.value, expected, clock(0, 1)).tolist()


def test_of_values_that_were_set_the_first_that_is_enough_is_known() -> None:
    assert awaited(told((1, 1, 1, True), (1, 2, 2, True)), range(1, 100)) == [1, 1, 0]
    assert awaited(told((1, 1, 1, True), (1, 2, 2, True)), range(2, 3)) == [1, 2, 0]


def test_what_sets_a_cell_knows_nothing_of_what_was_told_before() -> None:
    assert awaited(told((1, 1, 1, True), (2, 1, 5, True)), range(5, 6)) == [1, 0, 1]


def test_what_adds_to_a_cell_leaves_what_it_was_told_before() -> None:
    assert awaited(told((1, 1, 1, True), (2, 1, 1, False)), range(2, 3)) == [1, 1, 1]


def test_counts_come_down_to_nothing() -> None:
    cell = told((0, 0, 2, True), (1, 1, -1, False), (2, 1, -1, False))
    assert awaited(cell, range(1)) == [1, 1, 1]


def test_what_signals_have_not_written_is_told_by_nobody() -> None:
    cell = told((1, 1, 1, False))
    assert cell.awaited(7, range(1, 100), clock(0, 1)).tolist() == [1, 0, 0]
