"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from difflib import unified_diff
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

GOLDEN = Path(__file__).parent / "golden"

TARGETS = os.environ.get("TILEWRIGHT_TEST_TARGETS", "cpu interpret").split()
"""Where numeric tests run: platforms. `make test-gpu` runs them on a GPU alone."""

os.environ["TILEWRIGHT_CACHE_DIR"] = "off"  # a test compiles what it says it compiles
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin take the processor of the other worker
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred processes that tests start read what this one has compiled
os.environ.setdefault("TILEWRIGHT_CORES", "2")  # tiles are the same on every machine
os.environ.setdefault("TILEWRIGHT_SMALL_WORK", "shared")  # tests are small, and threads are to meet in them
sys.dont_write_bytecode = False
sys.executable = os.environ.get("TILEWRIGHT_TEST_PYTHON", sys.executable)  # an emulated one has no name of its own
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it, and so do its


def _is_local(_path: str) -> bool:
    return False


def _try_the_same_programs_each_time() -> None:
    """Let tests be repeatable; `make fuzz` is what looks for new programs.

    Hypothesis also draws numbers that it finds in modules of the project, and which are loaded depends on what ran.
    """
    settings.register_profile("tests", derandomize=True, deadline=None)
    settings.load_profile("tests")
    setattr(providers, "is_local_module_file", _is_local)  # noqa: B010 - it is not theirs to export


_try_the_same_programs_each_time()


@dataclass(frozen=True)
class Golden:
    """Compares text with a file that `pytest --update-golden` rewrites and review reads."""

    update: bool

    def __call__(self, name: str, text: str, directory: Path = GOLDEN) -> None:
        """Fail unless `directory/name` holds exactly `text`; when updating, make it so."""
        path = directory / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"{path} is missing: write it with `pytest --update-golden`, then read it", pytrace=False)
        elif (expected := path.read_text(encoding="utf-8")) != text:
            diff = unified_diff(expected.splitlines(), text.splitlines(), str(path), "this run", lineterm="")
            pytest.fail("\n".join([*diff, "if this run is right: pytest --update-golden"]), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")


def pytest_collection_finish() -> None:
    """Spare the collector what stays until the end: tests, and the modules they are from."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """Say over which generated program a worker ended."""
    from property.crashes import last_words

    report.longrepr = f"{report.longrepr}\n{last_words(report.node.gateway.id, os.getpid())}"


@pytest.fixture(autouse=True, scope="session")
def declared_alike() -> Generator[None]:
    """Fail where code declares a function that other code declares otherwise: a module may come to hold both."""
    from tilewright.native.llvm import Module

    known: dict[str, str] = {}
    declare = Module.declare

    def declared(module: Module, line: str) -> None:
        if line.startswith("declare "):
            name = line.split("@")[1].split("(")[0]
            assert known.setdefault(name, line) == line, f"declared in two ways: {line} and {known[name]}"
        declare(module, line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Module, "declare", declared)
        yield


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Golden:
    return Golden(update=bool(pytestconfig.getoption("--update-golden")))


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """The platform that a numeric test runs on, as `RunConfig(platform=...)` and `ir.compile(platform=...)` take it."""
    if request.param == "cuda" and "target" in signature(request.function).parameters:
        pytest.skip("runs programs on arrays of the host")
    return request.param


@pytest.fixture
def targets() -> list[str]:
    """The same platforms, for tests that run on one after the other what took long to make."""
    found = [target for target in TARGETS if target != "cuda"]
    return found or pytest.skip("runs programs on arrays of the host")


def _asks_for_torch(error: BaseException | str) -> bool:
    return find_spec("torch") is None and "No module named 'torch'" in str(error)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip the files that import torch where there is none."""
    report = yield
    if report.failed and _asks_for_torch(str(report.longrepr)):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, "Skipped: needs torch")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Skip the tests that import torch where there is none."""
    try:
        return (yield)
    except Exception as error:
        if _asks_for_torch(error):
            pytest.skip("needs torch")
        raise
