"""The language reference."""

from __future__ import annotations

import tilewright.language as pl
from tilewright.core.op import OpSpec, spec_of, specs
from tilewright.ops.declare import ANY, FLOATS, INTEGERS, NUMBERS
from tilewright.tools.reference import element_types, entry, language_page
from tilewright.tools.signatures import directive, other_names, signatures

PAGE = language_page()


def spec(function: object) -> OpSpec:
    found = spec_of(function)
    assert found is not None
    return found


def test_every_op_has_an_entry_and_every_operator_a_row() -> None:
    assert not [spec.name for spec in specs() if spec.has_a_name and entry(spec).strip() not in PAGE]
    assert not [spec.name for spec in specs() if spec.symbol and spec.doc not in PAGE]


def test_a_signature_has_types_and_defaults() -> None:
    assert signatures(spec(pl.log)) == {"pl.log": "pl.log(x: X, high_precision: bool = False) -> X"}


def test_a_scalar_form_is_a_second_signature() -> None:
    assert list(signatures(spec(pl.mul))) == ["pl.mul", "pl.muls"]


def test_another_name_for_the_same_op_is_no_second_signature() -> None:
    assert list(signatures(spec(pl.create_tile))) == ["pl.create_tile"]
    assert other_names(spec(pl.create_tile)) == ["pl.tile.create"]


def test_a_long_signature_takes_a_line_per_parameter() -> None:
    lines = signatures(spec(pl.load))["pl.load"].splitlines()
    assert lines[1] == "    tensor: Tensor,"
    assert "    target_memory: MemorySpace = pl.MemorySpace.Vec," in lines


def test_a_directive_marks_what_must_be_named() -> None:
    assert (
        directive("pl.while_", pl.while_) == "pl.while_(*, init_values: Sequence[Any] | None = None) -> Iterable[Any]"
    )


def test_accuracy_is_stated() -> None:
    assert "Within 2 ulp of the exact result, 6 as a double." in entry(spec(pl.exp))
    assert "ulp" not in entry(spec(pl.add))


def test_element_types_go_by_their_collective_names() -> None:
    assert [element_types(group) for group in (ANY, NUMBERS, FLOATS, INTEGERS)] == [
        "any", "numbers", "floats", "integers",
    ]  # fmt: skip
    assert element_types(FLOATS | {pl.INT16}) == "floats, `int16`"
