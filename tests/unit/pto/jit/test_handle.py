"""Handles: what they are compiled to, and what they say about themselves."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false
from __future__ import annotations

import inspect
from typing import Any

import pytest
from unit.pto.jit.kernels import TEXT, copy_from

from tilewright import pto

pytestmark = pytest.mark.usefixtures("lowering")

NESTED = f"""module attributes {{pto.backend = "vpto"}} {{
  func.func private @copy(!pto.ptr<f32>, !pto.ptr<f32>, index)
  module @vector {{
    {TEXT}
  }}
}}
"""


def test_the_same_text_is_the_same_object() -> None:
    handle = copy_from(TEXT)
    assert handle.compile() is handle.compile()
    assert handle.cached_specializations() == (handle.compile(),)


def test_kernels_of_the_same_text_do_not_share_objects() -> None:
    assert copy_from(TEXT).compile() is not copy_from(TEXT).compile()


def test_keys_mean_the_same_for_the_same_declaration() -> None:
    key = copy_from(TEXT).specialization_key
    assert key == copy_from(TEXT).specialization_key
    assert key.abi[0] == ("pointer", "x", "!pto.ptr<f32, gm>")


@pytest.mark.parametrize(
    "options",
    [{"target": "a3"}, {"backend": "emitc"}, {"mode": "explicit"}, {"insert_sync": False}, {"kernel_kind": "vector"}],
    ids=str,
)
def test_every_option_is_part_of_the_key(options: dict[str, Any]) -> None:
    assert copy_from(TEXT, **options).specialization_key != copy_from(TEXT).specialization_key


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("vpto", "default", True)),
        ({"mode": "explicit"}, ("vpto", "level3", False)),
        ({"mode": "explicit", "insert_sync": True}, ("vpto", "level3", True)),
        ({"backend": "emitc", "insert_sync": False}, ("emitc", "default", False)),
    ],
)
def test_mode_and_backend_select_level_and_synchronization(options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    metadata = copy_from(TEXT, **options).build_metadata()
    assert (metadata["backend"], metadata["level"], metadata["insert_sync"]) == expected


def test_the_entry_is_found_in_nested_modules_past_declarations() -> None:
    assert copy_from(NESTED).compile().ir_function_name == "copy"


def test_the_name_says_which_function_it_is() -> None:
    text = TEXT.replace("@copy", "@duplicate")
    handle = copy_from(text, name="duplicate")
    assert handle.name == handle.ir_function_name == handle.build_metadata()["name"] == "duplicate"


def test_spellings_of_one_type_are_one_type() -> None:
    text = TEXT.replace("!pto.ptr<f32>", "!pto.ptr<f32, gm>").replace("f32, gm>,", "f32>,")
    assert copy_from(text).verify()


def test_a_handle_looks_like_its_function() -> None:
    handle: Any = copy_from(TEXT)
    assert handle.__name__ == "copy" and list(inspect.signature(handle).parameters) == ["x", "out", "n"]


def test_a_kernel_shows_its_program() -> None:
    compiled = copy_from(TEXT).compile()
    assert [function.name for function in compiled.lowered().function_list] == ["copy"]
    assert "ir" in compiled.program().stages


def test_kernels_merge_into_one_module() -> None:
    other = copy_from(TEXT.replace("@copy", "@other"), name="other")
    merged = pto.merge_jit_modules(copy_from(TEXT), other.compile())
    assert [func.name for func in merged.funcs()] == ["copy", "other"]
    assert all(isinstance(item, pto.Module) for item in merged.items)
    assert str(merged).startswith("module {\n  module {\n    func.func @copy(")


def test_annotations_may_be_text() -> None:
    element = pto.f32

    @pto.jit(source=TEXT)
    def copy(x: pto.ptr(element, "gm"), out: "pto.ptr(element, 'gm')", n: pto.index) -> "None": ...  # noqa: UP037

    assert copy.verify()
