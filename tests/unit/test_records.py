"""Records: what they hold, how they are made, compared and shown."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from tilewright.records import entity, mutable, record


@record
class Point:
    """A place."""

    x: int
    y: int = 0
    shown: str = field(default="", compare=False, repr=False)
    made: ClassVar[int] = 0


@mutable
class Basket:
    """What is carried."""

    owner: str
    held: list[str] = field(default_factory=list[str])
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.held)


@mutable
class Cart(Basket):
    """A basket on wheels."""

    _: KW_ONLY
    wheels: int
    load: list[str] = field(default_factory=list[str])


def test_records_are_compared_by_the_fields_that_count() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") and Point(1) != Point(2)
    assert hash(Point(1, 2, "a")) == hash(Point(1, 2, "b"))


def test_a_record_is_shown_as_the_call_that_makes_it() -> None:
    assert repr(Point(1, y=2)) == "Point(x=1, y=2)"


def test_one_that_is_like_another_has_other_fields() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert [f.name for f in fields(Point)] == ["x", "y", "shown"]


def test_fields_are_known_before_the_first_one_is_made() -> None:
    @record
    class Fresh:
        a: int = field(default=1)
        b: int = 2

    assert [f.name for f in fields(Fresh)] == ["a", "b"]
    assert Fresh() == Fresh(1, 2)


def test_what_nobody_gives_is_made_for_each() -> None:
    first, second = Basket("a"), Basket("b", ["egg"])
    first.held.append("nut")
    assert (first.held, second.held, second.count) == (["nut"], ["egg"], 1)


def test_fields_of_a_base_come_first_and_some_by_name() -> None:
    cart = Cart("a", ["egg"], wheels=4)
    assert (cart.owner, cart.count, cart.wheels, cart.load) == ("a", 1, 4, [])
    with pytest.raises(TypeError, match="wheels"):
        Cart("a")  # pyright: ignore[reportCallIssue]


class Finishing:
    """What has a step of its own to do."""

    def __post_init__(self) -> None:
        self.done = True


@pytest.mark.parametrize("base", [object, Finishing])
@pytest.mark.parametrize("by_name", [0, 2])
@pytest.mark.parametrize("count", range(16))
def test_a_record_of_any_number_of_fields_keeps_each(count: int, by_name: int, base: type) -> None:
    names = [f"x{n}" for n in range(count + by_name)]
    parts = [*names[:count], *(["_"] if by_name else []), *names[count:]]
    annotations = {name: "KW_ONLY" if name == "_" else "int" for name in parts}
    Made: Any = mutable(type("Made", (base,), {"__annotations__": annotations}))
    made = Made(*range(count), **{name: names.index(name) for name in names[count:]})
    assert {name: getattr(made, name) for name in names} == {name: number for number, name in enumerate(names)}
    assert hasattr(made, "done") == (base is Finishing)
    with pytest.raises(TypeError, match=r"Made\.__init__\(\) takes"):
        Made(*range(count + 1))


def test_entities_are_compared_by_identity() -> None:
    @entity
    class One:
        number: int

    assert One(1) != One(1)


def test_a_class_may_keep_its_own_comparison() -> None:
    @record
    class Odd:
        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd) and self.number % 2 == other.number % 2

    assert Odd(1) == Odd(3)
    assert Odd(1) in {Odd(1)}


def test_what_a_plain_subclass_makes_is_a_record() -> None:
    class Named(Point):
        """A place with no fields of its own."""

    assert Named(1, 2) == Named(1, 2) != Point(1, 2)
    assert repr(Named(1)).endswith("Named(x=1, y=0)")


def test_a_dataclass_may_be_derived_from_a_record() -> None:
    @dataclass
    class Coloured(Basket):
        colour: str = "red"

    assert Coloured("a", colour="blue") == Coloured("a", [], "blue")
