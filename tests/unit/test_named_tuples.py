"""Named tuples: as those of `typing`, made sooner."""

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Sequence
from inspect import signature

import pytest

from tilewright.named_tuples import NamedTuple


class Place(NamedTuple):
    """A place on a line."""

    line: int
    names: Sequence[str] = ()
    caller: Place | None = None

    @property
    def is_named(self) -> bool:
        """Whether it has a name."""
        return bool(self.names)


class Peer(typing.NamedTuple):
    """The same, by the book."""

    line: int
    names: Sequence[str] = ()
    caller: Place | None = None


class Home(Place):
    """A place that is somebody's."""


def test_a_named_tuple_is_a_tuple() -> None:
    line, names, caller = place = Place(3, names=("a",))
    assert (line, names, caller) == place == (3, ("a",), None)
    assert isinstance(place, tuple) and hash(place) == hash((3, ("a",), None)) and place[0] == place.line == 3


def test_it_is_made_like_one_of_typing() -> None:
    ours, theirs = (signature(each).parameters.values() for each in (Place, Peer))
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs]
    assert typing.get_type_hints(Place) == typing.get_type_hints(Peer)
    shared = ("_fields", "_field_defaults", "__match_args__", "__slots__")
    assert [getattr(Place, name) for name in shared] == [getattr(Peer, name, ()) for name in shared]


def test_what_is_missing_or_too_much_is_a_type_error() -> None:
    for arguments in ((), (1, (), None, 4)):
        with pytest.raises(TypeError, match="__new__"):
            Place(*arguments)  # pyright: ignore


def test_fields_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Place(1).line = 2  # pyright: ignore
    assert not hasattr(Place(1), "__dict__")


def test_one_like_another_has_other_fields() -> None:
    place = Place(1)._replace(line=2)
    assert place == Place(2) and type(place) is Place and place._asdict() == Peer(2)._asdict()
    assert Place._make([4, ("b",), None]) == Place(4, ("b",))


def test_it_is_shown_as_the_call_that_makes_it() -> None:
    assert repr(Place(1)) == "Place(line=1, names=(), caller=None)"


def test_it_is_matched_by_place() -> None:
    match Place(7, ("x",)):
        case Place(line, names):
            assert (line, names) == (7, ("x",))


def test_it_is_the_same_after_a_journey() -> None:
    place = Place(1, ("a",), Place(2))
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place
    assert type(copy.copy(place)) is Place


def test_methods_and_derived_classes_are_as_usual() -> None:
    home = Home(1, ("a",))
    assert home.is_named and isinstance(home, Place) and repr(home) == "Home(line=1, names=('a',), caller=None)"
