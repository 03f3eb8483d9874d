"""Artifacts: what comes back is what went in, in any process, and damage is always noticed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, UNDECLARED, program_of, rows

from tilewright import ir
from tilewright.errors import ArtifactError, ExecutionError
from tilewright.native.support import REGIONS, carried, made
from tilewright.native.target import PRESETS, Target
from tilewright.programs.artifact import VERSION, Artifact
from tilewright.programs.loading import load

HEAD = 4 + 1 + 8 + 32


@cache
def artifact(text: str) -> Artifact:
    made = ir.compile(program_of(text)).artifact
    assert made is not None
    return made


@cache
def data(text: str = HALVES) -> bytes:
    return artifact(text).to_bytes()


def with_header(header: object) -> bytes:
    """Return an artifact without objects whose checksum is right."""
    text = json.dumps(header).encode()
    return sealed(len(text).to_bytes(4, "little") + text)


def sealed(body: bytes) -> bytes:
    return b"TWAR" + bytes([VERSION]) + len(body).to_bytes(8, "little") + sha256(body).digest() + body


def made_for(target: Target) -> bytes:
    halves = artifact(HALVES)
    return replace(halves, code=replace(halves.code, target=target)).to_bytes()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_loaded_program_computes_what_the_compiled_one_does(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
    np.testing.assert_array_equal(load(data())(rows(20), 0), rows(20) / 2)


def test_a_loaded_program_writes_in_place() -> None:
    out = np.zeros_like(rows(3))
    assert load(data())(rows(3), 0, out) is None
    np.testing.assert_array_equal(out, rows(3) / 2)


def test_a_loaded_program_has_all_its_entries_and_their_results() -> None:
    loaded, x = load(data(SEVERAL)), np.arange(4, dtype=np.int32)
    by, same = loaded.double(x, 3)
    assert (by, same is x, x.tolist()) == (4, True, [3, 5, 7, 9])
    assert loaded.repeat(np.arange(3, dtype=ml_dtypes.bfloat16)).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_a_loaded_program_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match=r"`x` expects shape \[M, 64\]"):
        load(data())(np.ones((3, 32), np.float32), 0)


def test_a_loaded_program_knows_what_it_writes_undeclared() -> None:
    x, y = np.zeros(4, np.int32), np.arange(4, dtype=np.int32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="`x` is written"):
        load(data(UNDECLARED))(x, y)


def test_an_error_shows_the_same_line_and_caret_as_before() -> None:
    compiled = ir.compile(program_of(HALVES))
    assert compiled.artifact is not None
    messages: list[str] = []
    for program in (compiled, load(compiled.artifact.to_bytes())):
        with pytest.raises(ExecutionError) as caught:
            program(rows(8), 1)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "[row, n], out)\n" in messages[1] and "^^^" in messages[1]


@pytest.mark.parametrize("text", [HALVES, SEVERAL])
def test_what_was_read_is_written_as_the_same_bytes(text: str) -> None:
    assert Artifact.from_bytes(data(text)).to_bytes() == data(text)


def test_a_loaded_program_still_has_its_artifact_and_object() -> None:
    loaded = load(data())
    assert loaded.artifact is not None and loaded.artifact.to_bytes() == data()
    assert "entry_main" in loaded.stages["object"]


LOADING = """
import os, sys, time
import numpy as np
from tilewright.backends.interface import find
from tilewright.programs.loading import load
find("cpu")
data = open(sys.argv[1], "rb").read()
took = []
for _ in range(5):
    start = time.process_time()
    program = load(data)
    took.append(1e3 * (time.process_time() - start))
print(min(took))
x = np.arange(20 * 64, dtype=np.float32).reshape(20, 64)
for threads in ("1", "2"):
    os.environ["TILEWRIGHT_NUM_THREADS"] = threads
    assert (program(x, 0) == x / 2).all()
emitter = {"tilewright.backends.cpu.emit.function", "tilewright.backends.cpu.host.program"}
assert not {"llvmlite", "torch", *emitter} & sys.modules.keys()
"""


def test_a_new_process_loads_one_in_a_millisecond_and_runs_it_without_llvm(tmp_path: Path) -> None:
    path = tmp_path / "halves"
    path.write_bytes(data())
    assert float(python(LOADING, str(path))) < 1, "of a processor's time: the machine may be busy"


COMPILING = f"""
import sys
import tilewright.language as pl
from tilewright import ir
sys.stdout.buffer.write(ir.compile(pl.parse({HALVES!r})).artifact.to_bytes().hex().encode())
"""


def test_every_process_makes_the_same_bytes() -> None:
    first, second = (python(COMPILING, seed=seed) for seed in ("1", "2"))
    assert first == second


def python(code: str, *arguments: str, seed: str = "0") -> str:
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_an_artifact_cut_off_anywhere_is_refused() -> None:
    whole = data()
    for length in range(len(whole)):
        with pytest.raises(ArtifactError, match="not an artifact" if length < 4 else "cut off"):
            Artifact.from_bytes(whole[:length])


def test_an_artifact_with_more_behind_it_is_refused() -> None:
    with pytest.raises(ArtifactError, match="cut off or damaged"):
        Artifact.from_bytes(data() + b"\0")


def test_an_artifact_with_any_byte_changed_is_refused() -> None:
    whole, rng = data(), random.Random(0)
    for position in {*range(HEAD + 64), *rng.sample(range(len(whole)), 2000)}:
        damaged = bytearray(whole)
        damaged[position] ^= rng.randrange(1, 256)
        with pytest.raises(ArtifactError, match="this (is not an )?artifact"):
            Artifact.from_bytes(bytes(damaged))


def test_another_format_is_named() -> None:
    with pytest.raises(ArtifactError, match=rf"has format 99; this version of tilewright reads {VERSION}"):
        load(b"TWAR" + bytes([99]) + data()[5:])


@pytest.mark.parametrize("foreign", [b"", b"T", b"\x7fELF\x02\x01", b"PK\x03\x04", bytes(1000), b"TWIR\x01"])
def test_foreign_bytes_are_refused(foreign: bytes) -> None:
    with pytest.raises(ArtifactError, match="not an artifact|cut off"):
        load(foreign)


HEADER: dict[str, Any] = {
    "backend": "cpu",
    "name": "P",
    "target": {"triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64", "features": "", "l2_bytes": 1},
    "entries": [],
    "symbols": {},
    "filled": {},
    "errors": {"sources": [], "errors": []},
    "origins": [],
    "objects": [["program", 0]],
}


SENSELESS: list[dict[str, Any]] = [
    {"target": None},
    {"target": {"cpu": "x"}},
    {"objects": []},
    {"objects": [["program"]]},
    {"objects": [[1, ""]]},
    {"entries": None},
    {"entries": [{}]},
    {"entries": [{"name": "f", "kind": "Nothing", "params": [], "returns": []}]},
    {"entries": [{"name": "f", "kind": "InCore", "params": [], "returns": [{"dtype": "fp99"}]}]},
    {"errors": 3},
    {"origins": [["kernel.py"]]},
    {"errors": {"sources": [], "errors": [["message", [0, 1, 1, 1, 1, None]]]}},
]


@pytest.mark.parametrize("change", SENSELESS, ids=str)
def test_a_header_that_says_nothing_sensible_is_refused(change: dict[str, Any]) -> None:
    assert Artifact.from_bytes(with_header(HEADER)).program.name == "P"
    with pytest.raises(ArtifactError, match="malformed"):
        Artifact.from_bytes(with_header(HEADER | change))


@pytest.mark.parametrize("body", [b"", b"\xff\xff\xff\xff", b"\x02\0\0\0[]", b"\x01\0\0\0{", b"\x02\0\0\0\xff\xff"])
def test_a_body_that_is_no_header_is_refused(body: bytes) -> None:
    with pytest.raises(ArtifactError, match="malformed"):
        Artifact.from_bytes(sealed(body))


def test_a_back_end_that_is_not_there_is_named() -> None:
    with pytest.raises(ArtifactError, match="is for back end 'quantum', and there are cpu, interpret"):
        load(with_header(HEADER | {"backend": "quantum"}))
    with pytest.raises(ArtifactError, match="is of back end 'interpret', which keeps none"):
        load(with_header(HEADER | {"backend": "interpret"}))


def test_an_object_that_is_none_is_refused() -> None:
    with pytest.raises(ArtifactError, match="broken object"):
        load(with_header(HEADER))


@pytest.mark.parametrize("text", REGIONS, ids=["serial", "team", "pool", "look", "batch"])
def test_whatever_runs_chunks_is_carried_along(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, kept = made(text), Artifact.from_bytes(data()).code.objects
    monkeypatch.setattr("tilewright.native.support.made", None)
    assert carried(kept)(text) == wanted


def test_features_this_processor_lacks_are_named() -> None:
    preset = PRESETS["x86-64-v3"]
    lacking = made_for(replace(preset, cpu="next", features=f"{preset.features},+avx99,+tiles"))
    with pytest.raises(ArtifactError, match="code for next cannot run here: it needs avx99, tiles"):
        load(lacking)


def test_another_architecture_is_named() -> None:
    with pytest.raises(ArtifactError, match=r"it needs aarch64 \(this processor is x86_64\)"):
        load(made_for(PRESETS["aarch64"]))


def test_an_artifact_for_another_machine_can_be_read_anywhere() -> None:
    assert Artifact.from_bytes(made_for(PRESETS["aarch64"])).code.target == PRESETS["aarch64"]
