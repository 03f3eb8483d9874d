"""The pass manager: passes in order, watched, checked and dumped as asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.passes.texts import main

import tilewright.language as pl
from tilewright.core.equality import assert_structural_equal
from tilewright.core.expr import Var, integer
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, SeqStmts
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX
from tilewright.errors import InternalError, VerificationError
from tilewright.passes.choices import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    RuntimeKind,
)
from tilewright.passes.context import (
    CallbackInstrument,
    PassContext,
    ReportInstrument,
    VerificationInstrument,
    VerificationLevel,
)
from tilewright.passes.manager import OptimizationStrategy, PassDumpLevel, PassManager
from tilewright.passes.pipeline import DEFAULT, Pass

NONE, BASIC, ROUNDTRIP = VerificationLevel.NONE, VerificationLevel.BASIC, VerificationLevel.ROUNDTRIP


def example() -> Program:
    return main("with pl.at(level=pl.Level.CORE_GROUP):\n    pl.store(pl.load(x, [0, 0], [16, 8]), [0, 0], y)")


def broken(program: Program) -> Program:
    """Return a program that reads a variable nobody defines."""
    (first, *rest) = program.function_list
    stray = AssignStmt(Var("s", ScalarType(INDEX)), Var("stray", ScalarType(INDEX)))
    return program.with_functions([first.with_body(SeqStmts((stray, *first.body.stmts))), *rest])


def retyped(program: Program) -> Program:
    """Return a program that keeps every rule but whose text reads back as another: a number under a name."""
    (first, *rest) = program.function_list
    hidden = AssignStmt(Var("s", ScalarType(INDEX)), integer(1))
    return program.with_functions([first.with_body(SeqStmts((hidden, *first.body.stmts))), *rest])


def test_the_default_strategy_runs_every_pass_in_order() -> None:
    manager = PassManager.get_strategy(OptimizationStrategy.Default)
    assert manager.pass_names == [p.name for p in DEFAULT] == manager.get_pass_names()
    assert len(set(manager.pass_names)) == len(manager.pass_names)


def test_each_pass_gets_what_the_one_before_returned() -> None:
    seen: list[tuple[str, Program]] = []
    watch = CallbackInstrument(
        lambda name, p: seen.append((f"before {name}", p)), lambda name, p: seen.append((name, p))
    )
    with PassContext(instruments=[watch]):
        result = PassManager(DEFAULT).run_passes(example())
    names = [name for name, _ in seen]
    assert names == [word for p in DEFAULT for word in (f"before {p.name}", p.name)]
    assert all(a[1] is b[1] for a, b in zip(seen[1::2], seen[2::2], strict=False))
    assert seen[-1][1] is result


def test_a_report_has_a_line_per_pass(tmp_path: Path) -> None:
    with PassContext(instruments=[ReportInstrument(tmp_path)]):
        PassManager(DEFAULT).run_passes(example())
    lines = (tmp_path / "passes.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == [p.name for p in DEFAULT]
    assert lines[-1].endswith(" lines")


def test_dumps_hold_the_program_after_every_pass(tmp_path: Path) -> None:
    result = PassManager(DEFAULT).run_passes(example(), dump_ir=True, output_dir=tmp_path)
    files = sorted((tmp_path / "passes_dump").iterdir())
    assert [f.name for f in files] == [
        "00_frontend.py",
        *(f"{i:02}_after_{p.name}.py" for i, p in enumerate(DEFAULT, 1)),
    ]
    assert_structural_equal(pl.parse(files[0].read_text()), example())
    assert_structural_equal(pl.parse(files[-1].read_text()), result)


def test_concise_dumps_leave_out_types_of_locals(tmp_path: Path) -> None:
    PassManager(DEFAULT[:1]).run_passes(example(), dump_ir=PassDumpLevel.CONCISE, output_dir=tmp_path / "concise")
    PassManager(DEFAULT[:1]).run_passes(example(), dump_ir=PassDumpLevel.EXPLICIT, output_dir=tmp_path / "explicit")
    concise, explicit = ((tmp_path / d / "passes_dump/00_frontend.py").read_text() for d in ("concise", "explicit"))
    assert "pl.Tile[" in explicit and "pl.Tile[" not in concise


def test_nothing_is_dumped_unless_asked(tmp_path: Path) -> None:
    PassManager(DEFAULT).run_passes(example(), dump_ir=PassDumpLevel.NONE, output_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="output_dir"):
        PassManager(DEFAULT).run_passes(example(), dump_ir=True)


@pytest.mark.parametrize("level", [BASIC, ROUNDTRIP])
def test_a_pass_that_breaks_a_rule_is_named(level: VerificationLevel) -> None:
    with (
        PassContext(verification_level=level),
        pytest.raises(InternalError, match="pass Culprit left a broken program") as error,
    ):
        PassManager((Pass("Culprit", broken),)).run_passes(example())
    assert "'stray' is used before it is defined" in str(error.value)
    assert "this is a bug in Tilewright" in str(error.value)
    assert "class P:" in str(error.value)


def test_only_round_trip_checks_look_between_passes() -> None:
    def mended(program: Program) -> Program:
        return example()

    manager = PassManager((Pass("Culprit", broken), Pass("Mender", mended)))
    with PassContext(verification_level=BASIC):
        manager.run_passes(example())
    with PassContext(verification_level=ROUNDTRIP), pytest.raises(InternalError, match="pass Culprit"):
        manager.run_passes(example())


def test_without_verification_a_broken_program_passes() -> None:
    with PassContext(verification_level=NONE):
        PassManager((Pass("Culprit", broken),)).run_passes(example())


def test_a_program_whose_text_reads_back_differently_is_caught() -> None:
    with (
        PassContext(verification_level=ROUNDTRIP),
        pytest.raises(InternalError, match="pass Culprit left a program whose text"),
    ):
        PassManager((Pass("Culprit", retyped),)).run_passes(example())


def test_a_program_that_is_broken_from_the_start_is_no_bug_of_ours() -> None:
    with pytest.raises(VerificationError, match="'stray' is used before it is defined"):
        PassManager(DEFAULT).run_passes(broken(example()))


def test_contexts_nest_and_end() -> None:
    outer, inner = PassContext(verification_level=NONE), PassContext(verification_level=ROUNDTRIP)
    before = PassContext.current()
    with outer:
        with inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current().verification_level is before.verification_level


def test_the_environment_sets_the_verification_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY_LEVEL", "roundtrip")
    assert PassContext.current().verification_level is ROUNDTRIP
    monkeypatch.setenv("TILEWRIGHT_VERIFY_LEVEL", "nonsense")
    with pytest.raises(ValueError, match="TILEWRIGHT_VERIFY_LEVEL"):
        PassContext.current()


def test_a_context_says_what_it_was_given() -> None:
    context = PassContext([], memory_planner=MemoryPlanner.PTOAS, diagnostic_phase=DiagnosticPhase.NONE)
    with context:
        current = PassContext.current()
        assert current.get_memory_planner() is MemoryPlanner.PTOAS
        assert current.get_diagnostic_phase() is DiagnosticPhase.NONE
        assert current.get_runtime() is RuntimeKind.TENSORMAP_AND_RINGBUFFER
        assert not current.get_enable_pypto_l0c_double_buffer() and current.get_instruments() == []
        assert current.get_disabled_diagnostics() == DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult])
    assert PassContext.current().get_memory_planner() is MemoryPlanner.PYPTO


def test_sets_of_checks_are_sets() -> None:
    checks = DiagnosticCheckSet()
    checks.insert(DiagnosticCheck.UnusedVariable)
    assert checks.contains(DiagnosticCheck.UnusedVariable) and not checks.empty()
    assert checks.difference(checks).empty()
    checks.remove(DiagnosticCheck.UnusedVariable)
    assert checks.empty() and repr(checks) == "DiagnosticCheckSet([])"


def test_callbacks_are_told_of_passes_that_have_names() -> None:
    seen: list[str] = []
    watch = CallbackInstrument(before_pass=lambda each, _: seen.append(each.get_name()), name="watch")
    with PassContext([watch, VerificationInstrument()]):
        PassManager.get_strategy().run_passes(example())
    assert seen == PassManager.get_strategy().pass_names
