"""The pass manager: runs the passes of a strategy in order, checking and dumping as asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.collector import paused_collection
from tilewright.core.equality import assert_structural_equal
from tilewright.core.program import Function, Program
from tilewright.core.verify import verify
from tilewright.errors import InternalError, KernelError, NestingError
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import parse
from tilewright.passes.context import PassContext, VerificationLevel
from tilewright.passes.pipeline import DEFAULT, Pass
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.records import record


@record
class PassManager:
    """An ordered list of passes."""

    passes: Sequence[Pass]

    @staticmethod
    def get_strategy(strategy: OptimizationStrategy = OptimizationStrategy.Default) -> PassManager:
        """Return the passes of a strategy."""
        return {OptimizationStrategy.Default: PassManager(DEFAULT)}[strategy]

    @property
    def pass_names(self) -> list[str]:
        """The names of the passes, in order."""
        return [p.name for p in self.passes]

    def get_pass_names(self) -> list[str]:
        """Return the names of the passes, in order."""
        return self.pass_names

    def run_passes(
        self, program: Program | Function, dump_ir: bool | PassDumpLevel = False, output_dir: str | Path | None = None
    ) -> Program:
        """Return the program after every pass; dumps go to `passes_dump` below `output_dir`."""
        try:
            with paused_collection():
                return self._run(as_program(program), _Dump.of(dump_ir, output_dir), PassContext.current())
        except RecursionError:
            raise NestingError(f"program `{program.name}` nests too deeply", spans=[program.span]) from None

    def _run(self, current: Program, dump: _Dump, context: PassContext) -> Program:
        verify(current, types=False)
        dump.write(0, "frontend", current)
        is_ssa = False
        for number, each in enumerate(self.passes, start=1):
            for instrument in context.instruments:
                instrument.before_pass(each.name, current)
            current = each.run(current)
            is_ssa = is_ssa or each.gives_ssa
            self._check(current, each, is_ssa, context.verification_level)
            for instrument in context.instruments:
                instrument.after_pass(each.name, current)
            dump.write(number, f"after_{each.name}", current)
        return current

    def _check(self, program: Program, after: Pass, is_ssa: bool, level: VerificationLevel) -> None:
        """Check the rules of the IR at the end, or after every pass where round trips are checked too."""
        thorough = level is VerificationLevel.ROUNDTRIP
        if thorough or (level is VerificationLevel.BASIC and after is self.passes[-1]):
            check_rules(program, f"pass {after.name}", ssa=is_ssa, types=thorough)
        if thorough:
            check_text(program, f"pass {after.name}")


@record
class _Dump:
    """Where and how pass results are written, if at all."""

    folder: Path | None
    concise: bool

    @staticmethod
    def of(level: bool | PassDumpLevel, output_dir: str | Path | None) -> _Dump:
        if level in (False, PassDumpLevel.NONE):
            return _Dump(None, False)
        if output_dir is None:
            raise ValueError("dumping passes needs an output_dir")
        return _Dump(Path(output_dir) / "passes_dump", level is PassDumpLevel.CONCISE)

    def write(self, number: int, name: str, program: Program) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        text = program.as_python(concise=self.concise)
        (self.folder / f"{number:02}_{name}.py").write_text(text, encoding="utf-8")


def check_rules(program: Program, after: str, *, ssa: bool, types: bool) -> None:
    """Raise InternalError, with the program at hand, when a pass has broken a rule of the IR."""
    try:
        verify(program, ssa=ssa, types=types)
    except KernelError as error:
        raise InternalError(f"{after} left a broken program: {error}\n{program}") from error


def check_text(program: Program, after: str) -> None:
    """Raise InternalError when a program's text does not read back as an equal program."""
    text = str(program)
    try:
        assert_structural_equal(as_program(parse(text, {}, f"<after {after}>")), program)
    except (KernelError, ValueError) as error:
        raise InternalError(f"{after} left a program whose text reads back differently: {error}\n{text}") from error
