"""The public names: what we mean to offer, and what scripts of the PTO family look for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from types import ModuleType

import pytest
from conftest import Golden

import tilewright.language as pl
from tilewright import backend, debug, ir, pto, runtime
from tilewright.core.op import Kind, spec_of, specs
from tilewright.dtypes import DataType
from tilewright.ir import compiled_program, pass_manager, passes

LISTING = [ir, runtime, backend, debug, compiled_program, pass_manager, passes, pto]
"""The modules that list their names."""
FACES = [pl, pl.array, pl.system, pl.tensor, pl.tile, *LISTING]


def public(face: ModuleType) -> list[str]:
    """Return the names a module offers: those it lists, or all without an underscore."""
    listed: list[str] | None = getattr(face, "__all__", None) if face in (ir, runtime, pto) else None
    return sorted(listed or [name for name in dir(face) if not name.startswith("_") and not hidden(face, name)])


def hidden(face: ModuleType, name: str) -> bool:
    """Return whether a name is only a file of a package."""
    value = getattr(face, name)
    return inspect.ismodule(value) and face is not pl


def described(face: ModuleType, name: str) -> str:
    return f"{face.__name__}.{name}: {kind(getattr(face, name))}"


def kind(value: object) -> str:
    """Return what sort of thing a name is."""
    if isinstance(value, type):
        return "enum" if issubclass(value, Enum) else "class"
    if inspect.ismodule(value):
        return "namespace"
    return "function" if inspect.isroutine(value) else type(value).__name__


def test_the_names_are_those_we_mean(golden: Golden) -> None:
    names = [(face, name) for face in FACES for name in public(face) if spec_of(getattr(face, name)) is None]
    golden("public_api.txt", "".join(sorted(f"{described(face, name)}\n" for face, name in names)))


@pytest.mark.parametrize("face", LISTING, ids=lambda face: face.__name__)
def test_listed_names_exist_and_are_sorted(face: ModuleType) -> None:
    assert face.__all__ == sorted(face.__all__)
    assert not [name for name in face.__all__ if not hasattr(face, name)]


def test_every_op_is_a_name_where_its_kind_says() -> None:
    spaces = {kind: pl if kind is Kind.SCALAR else getattr(pl, kind.value) for kind in Kind}
    declared = [(spec, space) for spec in specs() if spec.has_a_name for space in map(spaces.get, spec.kinds)]
    assert not [spec.name for spec, space in declared if getattr(space, spec.name, None) is not spec.function]


def test_every_op_of_the_language_is_declared() -> None:
    declared = {spec.function for spec in specs()}
    named = {spec.function for name in public(pl) if (spec := spec_of(getattr(pl, name)))}
    assert named <= declared


def documentable() -> Iterator[object]:
    for face in FACES:
        values = (getattr(face, name) for name in public(face))
        yield from (value for value in values if inspect.isroutine(value) or isinstance(value, type))


def test_everything_public_has_a_docstring_of_its_own() -> None:
    for value in dict.fromkeys(documentable()):
        doc = value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__
        assert doc and not doc.startswith(f"{getattr(value, '__name__', '')}("), value


UPSTREAM = {
    "kernels": "jit jit.incore jit.inline jit.opaque jit.host jit.extern RUNTIME",
    "decorators and text": "function inline InlineFunction loads loads_program parse parse_program parser program",
    "types": "Array DynVar InOut IntLike MemRef MemRefType Out Ptr PtrType "
    "Scalar TaskId Tensor TensorView Tile TileView Tuple dynamic",
    "dtypes": "BF16 BOOL DataType FP16 FP32 FP4 FP8E4M3FN FP8E5M2 FP8E8M0 HF4 HF8 INDEX INT16 INT32 INT4 INT64 INT8 "
    "TASK_ID UINT16 UINT32 UINT4 UINT64 UINT8",
    "layouts": "DN MX_A_ZZ MX_B_NN ND NZ",
    "scopes": "at cluster cross_core_slot func_attr manual_scope no_dep dump_tag scope split split_aiv spmd "
    "spmd_submit submit",
    "loops": "cond parallel pipeline range unroll while_ yield_",
    "directives": "const static_assert static_print",
    "namespaces": "adir array optimizations system tensor tile",
    "tasks": "system.task_dummy system.task_invalid system.available_cluster_count system.available_aiv_count",
    "arrays": "array.create array.get_element array.update_element",
    "blocks": "tile.get_block_idx tile.get_block_num tile.get_subblock_idx tensor.get_block_idx tensor.dim",
}
"""The names of PyPTO's language, from the specification's sections 1.1 to 1.6."""

ENUMS = {
    "FunctionType": "Opaque Orchestration InCore AIC AIV Group Spmd Inline Graph",
    "Level": "AIV AIC CORE_GROUP CHIP_DIE L2CACHE CHIP PROCESSOR UMA HOST NODE CLUSTER_0 POD CLUSTER_1 CLOS1 "
    "CLUSTER_2 CLOS2 GLOBAL",
    "Role": "Orchestrator SubWorker",
    "MemorySpace": "DDR Vec Mat Left Right Acc Bias LeftScale RightScale ScalarLocal",
    "Mem": "DDR Vec Mat Left Right Acc Bias LeftScale RightScale ScalarLocal",
    "PadValue": "null zero max min",
    "SplitMode": "NONE UP_DOWN LEFT_RIGHT",
    "AtomicType": "None_ Add",
    "TensorLayout": "ND DN NZ MX_A_ZZ MX_B_NN",
    "TileLayout": "none_box row_major col_major",
    "CompactMode": "null normal row_plus_one",
    "PipeType": "MTE1 MTE2 MTE3 M V S FIX ALL",
    "ForKind": "Sequential Parallel Unroll Pipeline",
    "ScopeMode": "AUTO MANUAL",
}


def test_the_names_of_the_pto_family_exist() -> None:
    for name in (name for names in UPSTREAM.values() for name in names.split()):
        space, _, last = name.rpartition(".")
        assert hasattr(getattr(pl, space) if space else pl, last), name


@pytest.mark.parametrize("name", ENUMS)
def test_an_enum_of_the_pto_family_has_its_members(name: str) -> None:
    assert list(getattr(pl, name).__members__) == ENUMS[name].split()


def test_numbered_enums_keep_their_numbers() -> None:
    assert [mode.value for mode in pl.SplitMode] == [0, 1, 2]
    assert [kind.value for kind in pl.AtomicType] == [0, 1]
    assert {m.name: m.value for m in pl.tile.MaskPattern} == {
        "P0101": 1, "P1010": 2, "P0001": 3, "P0010": 4, "P0100": 5, "P1000": 6, "P1111": 7,
    }  # fmt: skip


def test_data_types_answer_what_the_pto_family_asks() -> None:
    methods = "get_bit get_byte to_string to_c_type_string is_float is_int is_signed_int is_unsigned_int code"
    assert not [name for name in methods.split() if not callable(getattr(DataType, name, None))]
    assert (pl.BF16.to_string(), pl.FP32.to_string(), pl.INT4.get_byte()) == ("bfloat16", "fp32", 1)
