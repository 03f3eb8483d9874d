"""PyPTO's names: scripts and tests that import them run as they are, and what is missing says so by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

WRITTEN = Path(__file__).parent / "written"
PACKAGE = "tilewright.compat.pypto"


def ran(*arguments: str, cwd: Path | None = None) -> str:
    """Return what a Python process prints that ends well."""
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(code: str) -> str:
    """Return what a process prints in which the names are known."""
    return ran("-c", f"import {PACKAGE}\n{code}").strip()


EACH = """
import json, os, sys, tempfile
import tilewright.compat.pypto
found = {}
for code in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as output:
        if not (child := os.fork()):
            os.dup2(output.fileno(), 1)
            status = 1
            try:
                exec(code, {"__name__": "__main__"})
                sys.stdout.flush()
                status = 0
            finally:
                os._exit(status)
        ended = os.waitpid(child, 0)[1]
        output.seek(0)
        found[code] = [ended, output.read().strip()]
print(json.dumps(found))
"""
"""Answers each question in a process of its own, forked from one that knows the names and nothing else yet."""


def told_each(codes: Sequence[str]) -> dict[str, str]:
    """Return what processes print in which the names are known, one for each code, by code."""
    done = subprocess.run([sys.executable, "-c", EACH], input=json.dumps(codes), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[int, str]] = json.loads(done.stdout)
    assert not any(ended for ended, _ in found.values()), done.stderr
    return {code: output for code, (_, output) in found.items()}


def test_a_script_runs_with_its_arguments(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    output = ran("-m", PACKAGE, str(WRITTEN / "add_scripts.py"), "-p", "a2a3", "--output-dir", str(tmp_path / "made"))
    assert output == "AddThenScale passed on a2a3\n"
    assert (tmp_path / "made" / "compiled_meta.json").exists()


def test_test_files_run_with_the_plugin(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    options = ("-q", "-p", PACKAGE, "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", os.devnull)
    assert " passed" in ran("-m", "pytest", *options, *map(str, sorted(WRITTEN.glob("*_cases.py"))), cwd=tmp_path)


def test_scripts_run_one_after_the_other_in_a_folder_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for script in sorted(WRITTEN.glob("*_scripts.py")):
        assert "passed" in ran("-m", PACKAGE, str(script), cwd=tmp_path), script


def test_a_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, pypto\nprint(__name__, sys.argv[1:], beside.VALUE, __file__ == sys.argv[0])\n"
    )
    assert ran("-m", PACKAGE, str(script), "a", "-m") == "__main__ ['a', '-m'] 7 True\n"
    assert ran("-m", PACKAGE, "-m", "script", "a", cwd=tmp_path).startswith("__main__ ['a'] 7")


@pytest.mark.parametrize(("given", "said"), [((), "usage:"), (("missing.py",), "there is no script missing.py")])
def test_nothing_to_run_is_said(given: tuple[str, ...], said: str) -> None:
    done = subprocess.run([sys.executable, "-m", PACKAGE, *given], capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_script_may_come_by_the_standard_input() -> None:
    text = "import sys, pypto.language as pl\nprint(__name__, sys.argv, pl.FP32)\n"
    done = subprocess.run([sys.executable, "-m", PACKAGE, "-", "a"], input=text, capture_output=True, text=True)
    assert done.stdout == "__main__ ['-', 'a'] fp32\n", done.stderr
    assert "standard input" in ran("-m", PACKAGE, "--help")


def test_modules_are_ours_under_a_second_name() -> None:
    same = "import pypto.language as pl, tilewright.language as ours; from pypto.ir import passes"
    assert told(f"{same}; import tilewright.ir.passes as p; print(pl is ours, passes is p, pl.__name__)") == (
        "True True tilewright.language"
    )


IMPORTS = [
    "import pypto.language.distributed as pld",
    "import pypto.ir.pass_manager, pypto.ir.compiled_program",
    "from pypto.language import jit, tile, FP32",
    "from pypto.pypto_core import DataType, ir, passes, backend",
    "from pypto.runtime.runner import RunConfig, run",
    "from pypto.jit.decorator import JITFunction",
    "from pypto.backend.pto_backend import PartialCodegenError",
    "from pypto.language.parser.diagnostics import ParserError, ParserTypeError, concise_error_message",
    "from pypto.language.parser.diagnostics.exceptions import InvalidOperationError, ParserSyntaxError",
    "from pypto.debug import torch_codegen, validate_pass_ir_codegen_results",
    "from pypto.compile_profiling import CompileProfiler, StageRecord, get_active_profiler",
    "from pypto.runtime import ChipWorker, DeviceTensor, Worker, benchmark, configure_log, execute_compiled",
    "from pypto.passes import MemoryPlanner, PassContext, VerificationLevel",
    "import pypto; pypto.set_log_level(pypto.LogLevel.ERROR)",
    "from pypto import DT_BF16, DataType, Error, InternalError, backend, ir, passes, runtime, language, jit",
]


def test_public_modules_can_be_imported() -> None:
    assert told_each(IMPORTS) == dict.fromkeys(IMPORTS, "")


MISSING = {
    "import pypto.nothing": "ModuleNotFoundError pypto.nothing",
    "from pypto import nothing": "ModuleNotFoundError pypto.nothing",
    "from pypto.language import nothing": "ModuleNotFoundError pypto.language.nothing",
    "import pypto.language.nothing": "ModuleNotFoundError pypto.language.nothing",
    "from pypto.ir.passes import nothing": "ModuleNotFoundError pypto.ir.passes.nothing",
    "import pypto; pypto.nothing": "AttributeError pypto.nothing",
    "import pypto; pypto.DT_FP31": "AttributeError pypto.DT_FP31",
    "import pypto.language as pl; pl.nothing": "AttributeError pypto.language.nothing",
    "from pypto import runtime; runtime.nothing": "AttributeError pypto.runtime.nothing",
    "import pypto.language.distributed as pld; pld.nothing": "AttributeError pypto.language.distributed.nothing",
}


def test_what_is_missing_is_named_as_it_was_asked_for() -> None:
    caught = "try:\n    {}\nexcept Exception as error:\n    print(type(error).__name__, error)"
    named = {caught.format(code): f"{name} is not in tilewright's compat module" for code, name in MISSING.items()}
    assert told_each([*named]) == named


def test_settings_of_the_environment_are_followed() -> None:
    code = "import os; os.environ['PYPTO_PROG_BUILD_DIR'] = '/somewhere'\n"
    check = "from tilewright import settings; print(settings.build_dir())"
    assert ran("-c", f"{code}import {PACKAGE}\n{check}").strip() == "/somewhere"


def test_messages_are_logged_where_the_level_says_so() -> None:
    log = "import logging; logging.basicConfig(format='%(levelname)s %(message)s', stream=__import__('sys').stdout)"
    used = "import pypto; pypto.log_info('quiet'); pypto.set_log_level('info'); pypto.log_info('said')"
    assert told(f"{log}\n{used}") == "INFO said"


def test_asking_whether_a_name_is_there_is_no_mistake() -> None:
    assert told("import pypto.language as pl; print(hasattr(pl, 'add'), hasattr(pl, 'nothing'))") == "True False"


def test_pypto_itself_loaded_first_is_not_replaced() -> None:
    code = f"import sys, types; sys.modules['pypto'] = types.ModuleType('pypto')\nimport {PACKAGE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: pypto has been imported already" in done.stderr


def test_the_names_alone_load_neither_the_language_nor_numpy() -> None:
    assert told("import sys, pypto; print({'numpy', 'torch', 'tilewright.language'} & sys.modules.keys())") == "set()"
