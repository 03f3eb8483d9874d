"""Groups: pointers that reach into the same memory share a buffer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.pto.groups import END, UNKNOWN, Reach, grouped


def reach(address: int, nbytes: int, itemsize: int = 4) -> Reach:
    return Reach(address, nbytes, itemsize)


def test_separate_pointers_are_in_no_group() -> None:
    assert grouped([reach(64, 64), reach(128, 64), reach(0, 64)]) is None


def test_neighbours_do_not_overlap() -> None:
    assert grouped([reach(64, 64), reach(128, 4)]) is None


def test_pointers_that_overlap_share_a_buffer_from_the_lowest() -> None:
    groups = grouped([reach(100, 20), reach(400, 8), reach(96, 8)])
    assert groups is not None
    assert (groups.shared, groups.buffers, groups.pieces) == (
        (0, 1, 0),
        ((96, 24), (400, 8)),
        ((4, 20), (0, 8), (0, 8)),
    )


def test_pointers_overlap_through_others() -> None:
    groups = grouped([reach(0, 40), reach(60, 40), reach(30, 40), reach(200, 4)])
    assert groups is not None
    assert (groups.shared, groups.pieces) == ((0, 0, 0, 1), ((0, 40), (60, 40), (30, 40), (0, 4)))


def test_the_same_pointer_twice_is_one_group() -> None:
    groups = grouped([reach(64, 64), reach(64, 64)])
    assert groups is not None and groups.shared == (0, 0)


def test_a_pointer_between_elements_has_a_buffer_of_bytes() -> None:
    groups = grouped([reach(64, 64), reach(129, 64)])
    assert groups is not None
    assert (groups.shared, groups.buffers, groups.pieces) == ((0, 1), ((64, 64), (129, 64)), ((0, 64), (0, 64)))


def test_empty_pointers_overlap_nothing() -> None:
    assert grouped([reach(64, 64), reach(80, 0), reach(0, 0)]) is None


def test_an_address_puts_everything_into_one_group() -> None:
    groups = grouped([reach(4096, 64), reach(1024, UNKNOWN), reach(0, 0)])
    assert groups is not None
    assert (groups.shared, groups.buffers) == ((0, 0, 0), ((1024, END - 1024),))
    assert groups.pieces == ((3072, 64), (0, END - 1024), (0, 0))


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 12), st.sampled_from([1, 2, 4])), min_size=1, max_size=6))
def test_every_pointer_lies_in_its_buffer_and_buffers_are_apart(given: list[tuple[int, int, int]]) -> None:
    reaches = [Reach(address, count * size, size) for address, count, size in given]
    groups = grouped(reaches)
    if groups is None:
        apart = sorted((r.address, r.end) for r in reaches if r.nbytes)
        assert all(a[1] <= b[0] for a, b in zip(apart, apart[1:], strict=False))
        return
    for pointer, group, (offset, size) in zip(reaches, groups.shared, groups.pieces, strict=True):
        start, nbytes = groups.buffers[group]
        assert start + offset == pointer.address and offset + pointer.nbytes <= nbytes and size == pointer.nbytes
    full = sorted((start, start + nbytes) for start, nbytes in groups.buffers if nbytes)
    assert all(a[1] <= b[0] for a, b in zip(full, full[1:], strict=False))
    assert list(dict.fromkeys(groups.shared)) == list(range(len(groups.buffers)))
